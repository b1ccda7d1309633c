# SPDX-License-Identifier: Apache-2.0

"""Rules by which reservations are granted, changed and cancelled."""

from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
import enum

from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import reservation_limits
from nova_preempt.core.reservation import reservation_model

#: A start in the past by at most this counts as now: clocks differ, and
#: requests take time.
LATE_S = 60


class BadWindow(ValueError):
    """Raised for impossible times of a reservation; names the field."""


@dataclasses.dataclass(frozen=True, slots=True)
class RequestedWindow:
    """The time window of a request, and the duration within it.

    :ivar end_s: None if it has no end
    :ivar immediate: whether it has to start now
    """

    start_s: int
    end_s: int | None
    duration_s: int
    immediate: bool


def requested_window(now_s: int, start_s: int | None, end_s: int | None,
        duration_s: int | None) -> RequestedWindow:
    """Return the window of a request; None stands for a time not given.

    Without a duration all of the window is reserved; without a start and an
    end the reservation begins now.

    :raises BadWindow: the times are impossible
    """
    immediate = start_s is None and end_s is None
    if start_s is not None and start_s < now_s - LATE_S:
        raise BadWindow("start_time: it is in the past")
    first_s = max(now_s, now_s if start_s is None else start_s)
    if end_s is not None:
        if end_s <= now_s:
            raise BadWindow("end_time: it is in the past")
        if end_s <= first_s:
            raise BadWindow("end_time: it must be after start_time")
    if duration_s is None:
        if start_s is None or end_s is None:
            raise BadWindow(
                "duration: it is required unless start_time and end_time are "
                "both set")
        duration_s = end_s - first_s
    if immediate:
        end_s = first_s + duration_s
    if end_s is not None and end_s - first_s < duration_s:
        raise BadWindow(
            f"duration: {duration_s} s are more than the {end_s - first_s} s "
            "from start_time to end_time")
    return RequestedWindow(first_s, end_s, duration_s, immediate)


@dataclasses.dataclass(frozen=True, slots=True)
class MatchingHost:
    """A host that matches the query of a request.

    :ivar vacant: it has no servers, or only preemptible ones with a short
        notice
    """

    name: str
    flops_per_watt: float | None
    vacant: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Search:
    """The search for the hosts of a request, repeated on newer calendars.

    :ivar offers: the matching hosts
    :ivar limits: of the project
    :ivar emptied_s: before then only hosts that are vacant now
    """

    window: RequestedWindow
    quantity: int
    offers: Collection[MatchingHost]
    limits: reservation_limits.Limits
    ranking: calendar.Ranking
    now_s: int
    emptied_s: int

    def hosts(
        self, busy: Mapping[str, tuple[calendar.Interval, ...]],
        is_reservable: Callable[[str], bool],
    ) -> list[calendar.ReservableHost]:
        """Return the reservable hosts, each with its busy times.

        :param busy: when hosts are leased
        """
        return [
            calendar.ReservableHost(
                offer.name, busy.get(offer.name, ()), offer.flops_per_watt,
                None if offer.vacant else self.emptied_s)
            for offer in self.offers if is_reservable(offer.name)]

    def find(
        self, hosts: Sequence[calendar.ReservableHost], *,
        at_any_time: bool = False, ) -> calendar.FoundWindow | None:
        """Return the time and hosts that can be granted, None for none.

        :param at_any_time: whether the end of the window is ignored
        """
        window, ends_s = self.window, []
        if window.end_s is not None and not at_any_time:
            ends_s.append(window.end_s)
        max_advance_s = self.limits.get("max_advance_s")
        if max_advance_s is not None:
            ends_s.append(self.now_s + max_advance_s + window.duration_s)
        return calendar.find(
            hosts, window_start_s=window.start_s,
            window_end_s=min(ends_s, default=None),
            duration_s=window.duration_s, quantity=self.quantity,
            ranking=self.ranking)

    def check(self, found: calendar.FoundWindow,
              others: Collection[reservation_model.Reservation]) -> None:
        """Raise if the project's limits are exceeded.

        :param others: its other open reservations
        """
        self.limits.check_usage(self.quantity, found.start_s, found.end_s,
                                others)

    def check_created(self, count: int) -> None:
        """Raise if the project may create no more within 24 hours."""
        self.limits.check("max_created_per_day", 1, count)


class NewEnd(enum.Enum):
    """Kinds of a new end of a reservation."""

    OVER = "over"  # the reservation has ended
    PAST = "past"  # not after now
    BEFORE_START = "before start"
    EARLIER = "earlier"  # or the same
    LATER = "later"


def new_end(reservation: reservation_model.Reservation, end_s: int,
            now_s: int) -> NewEnd:
    """Return the kind of a new end of a reservation."""
    if reservation.end_s <= now_s:
        return NewEnd.OVER
    if end_s <= now_s:
        return NewEnd.PAST
    if end_s <= reservation.start_s:
        return NewEnd.BEFORE_START
    return NewEnd.LATER if end_s > reservation.end_s else NewEnd.EARLIER


class CancelEffect(enum.Enum):
    """Effects of cancelling a reservation."""

    NEVER_STARTS = "never starts"
    ENDS_NOW = "ends now"
    ENDS_ANYWAY = "ends anyway"  # its time is over, which is not recorded yet


def cancel(reservation: reservation_model.Reservation,
           now_s: int) -> CancelEffect:
    """Return the effect of cancelling an open reservation."""
    if (reservation.status == reservation_model.PENDING
            or reservation.start_s > now_s):
        return CancelEffect.NEVER_STARTS
    return (CancelEffect.ENDS_NOW if reservation.end_s > now_s
            else CancelEffect.ENDS_ANYWAY)
