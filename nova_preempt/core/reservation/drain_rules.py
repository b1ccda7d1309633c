# SPDX-License-Identifier: Apache-2.0
"""Rules by which a host is drained for a reservation.

Nobody ends in vain: as long as something on the host will not be gone in
time, nobody there is given notice. What a server was promised, and a lock on
it, hold here as they do wherever a server may have to end.
"""

from collections.abc import Collection, Container, Iterable, Mapping
import dataclasses
import enum
import math

from nova_preempt.core import actions
from nova_preempt.core import eligibility
from nova_preempt.core import model
from nova_preempt.core import notice_period
from nova_preempt.core.energy import host_candidates
from nova_preempt.core.reservation import reservation_model

#: How soon hosts are looked at again, in seconds: while somebody waits, and
#: otherwise.
BUSY_S = 1
IDLE_S = 5

#: How often another host is looked for in place of one that will not be empty
#: in time, in seconds.
SWAP_S = 30

#: How long after a move was asked for the next one is, if it came to nothing,
#: in seconds.
RETRY_S = 30


class Kind(enum.Enum):
    """Kinds of servers on the host of a reservation."""

    OWN = "own"  # its own: stays
    OTHERS = "others"  # of another reservation: gone after that one's end
    PREEMPTIBLE = "preemptible"  # ends
    NORMAL = "normal"  # is moved away


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server on a host, as it is now.

    :ivar named: the ids of the reservations that it names
    :ivar notice_s: the length of its notice, None of a normal one
    :ivar lead_s: how long it takes from its notice, or from when it begins
        to be moved, until it is gone
    :ivar stays_s: for how long from now on it cannot begin to go; for one of
        another reservation, until that is over; infinity if nobody knows
    :ivar busy: something is happening to it: its end, its move, or what it
        has to finish first
    :ivar refused: the last attempt to move it has failed
    :ivar asked_us: when its move away from the host was asked for last, since
        the epoch, None if never
    :ivar kind: see classified()
    """

    uuid: str
    named: Collection[str] = ()
    notice_s: int | None = None
    lead_s: float = 0.0
    stays_s: float = 0.0
    busy: bool = False
    refused: bool = False
    asked_us: int | None = None
    kind: Kind = Kind.NORMAL


@dataclasses.dataclass(frozen=True, slots=True)
class DrainStep:
    """A step of the drain of a host.

    :ivar empty: nothing is there but what may stay
    :ivar notice: uuids of those whose notice begins
    :ivar move: uuids of those that begin to be moved
    :ivar blocking: uuids of those that will not be gone in time; the name of
        the host if that will not be on
    :ivar waiting: nothing is to be done but to wait for the end of another
        reservation, which is in time
    :ivar lead_s: how long before the start there is something to do
    """

    empty: bool = False
    notice: tuple[str, ...] = ()
    move: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    waiting: bool = False
    lead_s: float = 0.0


def classified(
    server: Server, reservation: str,
    running: Mapping[str, reservation_model.Reservation], now_us: int,
) -> Server:
    """Return a server with what it is to a reservation of its host.

    :param running: the reservations whose servers stay, by their ids
    """
    if reservation in server.named:
        return dataclasses.replace(server, kind=Kind.OWN)
    ends_s = [running[uuid].end_s for uuid in server.named if uuid in running]
    if ends_s:
        stays_s = (max(ends_s) * model.SECOND - now_us) / model.SECOND
        return dataclasses.replace(server, kind=Kind.OTHERS, lead_s=0.0,
                                   stays_s=stays_s, refused=False)
    return dataclasses.replace(
        server, kind=Kind.NORMAL if server.notice_s is None
        else Kind.PREEMPTIBLE)


def move_lead_s(lead_s: int) -> int:
    """Return how long before the start a normal server begins to be moved.

    :param lead_s: what the operator says
    """
    return max(notice_period.MARGIN_S, lead_s)


def patience_s(step: DrainStep) -> float:
    """Return for how long it is waited that a host becomes empty.

    What will not go in time is not waited for.
    """
    if step.blocking:
        return notice_period.MARGIN_S
    return max(step.lead_s, notice_period.MARGIN_S)


def wait_for_power(name: str, off: host_candidates.OffHost,
        to_start_s: float) -> DrainStep:
    """Return the Step for a host that is not on: there is only to wait.

    One that nobody may count on blocks as soon as it had to begin to wake.
    The others have the time of a boot after the start.
    """
    late = off.why_late and to_start_s <= off.patience_s
    return DrainStep(blocking=(name,) if late else (), waiting=to_start_s > 0,
                lead_s=off.patience_s)


def by_notice(
    notices: Mapping[str, int | None], ending: Container[str]
) -> list[tuple[str, ...]]:
    """Return which servers end as one decision.

    Those with notices of the same length, the shortest first.

    :param notices: the length of their notices, by their uuids
    :param ending: uuids of those that end already
    """
    groups: dict[int, list[str]] = {}
    for uuid, length_s in notices.items():
        if uuid not in ending:
            groups.setdefault(length_s or 0, []).append(uuid)
    return [tuple(groups[length_s]) for length_s in sorted(groups)]


def why_stays(
    server: model.Server, action: str, rules: eligibility.Rules) -> str:
    """Why a server must not leave a host that is needed, "" if it may.

    For how long it was promised to run is not asked.

    :param action: that of its terms
    """
    if rules.counts(server.locked_by):
        return "it is locked"
    return actions.why_stays(
        server, action, server.vm_state) or eligibility.why_not_by(
        server, actions.vacating(server, action, server.vm_state))


def stays_s(*, kept: bool, uptime_s: float, minimum_s: float) -> float:
    """Return for how long a preemptible server cannot be given notice.

    :param kept: whether it must not end at all, being locked, say
    :param minimum_s: what it was promised to run for
    """
    return math.inf if kept else max(0.0, minimum_s - uptime_s)


def decide(residents: Iterable[Server], to_start_s: float, caps: Collection[
        model.Cap] = ()) -> DrainStep:
    """Return the next Step for a host; the same in whatever order they come.

    :param to_start_s: until the reservation starts; negative afterwards
    :param caps: how many of the preemptible ones may begin to end now
    """
    others = sorted(
        (item for item in residents if item.kind is not Kind.OWN),
        key=lambda item: (-item.lead_s, item.uuid), )
    if not others:
        return DrainStep(empty=True)
    leads = {
        item.uuid: item.lead_s * _waves(item, caps)
        for item in others
        if item.kind in (Kind.PREEMPTIBLE, Kind.NORMAL)
    }
    lead_s = max(leads.values(), default=0.0)
    blocking = tuple(
        item.uuid for item in others if _blocks(item, to_start_s))
    if blocking:
        return DrainStep(blocking=blocking, lead_s=lead_s)
    due = [
        item for item in others if not item.busy and item.stays_s <= 0
        and to_start_s <= leads.get(item.uuid, -math.inf)]
    held_back = any(item.refused for item in others)
    notice = [item.uuid for item in due if item.kind is Kind.PREEMPTIBLE]
    return DrainStep(notice=() if held_back else _within(notice, caps),
        move=tuple(item.uuid for item in due if item.kind is Kind.NORMAL),
        waiting=any(item.kind is Kind.OTHERS for item in others),
        lead_s=lead_s)


def _blocks(item: Server, to_start_s: float) -> bool:
    """Tell whether it will not be gone in time.

    After the start, in time is as soon as possible.
    """
    if item.kind is Kind.OTHERS:
        return item.stays_s > max(to_start_s, 0.0)
    if item.busy or item.stays_s <= 0:
        return False
    return item.stays_s + item.lead_s > max(to_start_s, item.lead_s)


def _waves(item: Server, caps: Collection[model.Cap]) -> int:
    """Return in how many rounds those go that share a budget with it."""
    return max(
        (
            math.ceil(len(cap.uuids) / max(1, cap.most)) for cap in caps
            if item.uuid in cap.uuids),
        default=1, )


def _within(
    uuids: Iterable[str], caps: Collection[model.Cap]) -> tuple[str, ...]:
    """Return the first ones of these that the caps allow together."""
    left = [cap.most for cap in caps]
    chosen = []
    for uuid in uuids:
        counts = [
            number for number, cap in enumerate(caps) if uuid in cap.uuids]
        if all(left[number] > 0 for number in counts):
            chosen.append(uuid)
            for number in counts:
                left[number] -= 1
    return tuple(chosen)
