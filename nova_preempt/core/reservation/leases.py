# SPDX-License-Identifier: Apache-2.0

"""Leases: the times for which projects have hosts for themselves.

The scheduler asks where a request may go, power control which hosts have to
be on, the calendar when a host is free: of one and the same Leases. Times are
whole seconds since the epoch, intervals half-open: [start, end). Hosts go by
their node name (hypervisor_hostname).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import datetime
import math

from nova_preempt.core import eligibility
from nova_preempt.core import notice_period
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import reservation_model

PENDING = "pending"
ACTIVE = "active"
ENDED = "ended"  # only in an answer to a question after one lease


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """The hosts that one project has for itself, from start_s to end_s.

    :ivar unready: those of the hosts that others are still on: nobody else
        comes, but its owner waits
    """

    id: str
    project_id: str
    status: str
    start_s: int
    end_s: int
    hosts: frozenset[str] = frozenset()
    unready: frozenset[str] = frozenset()


def make(
    id: str, project_id: str, status: str, start_s: int, end_s: int,
    hosts: Mapping[str, str], *, ready: bool, ) -> Lease:
    """Return the Lease that a reservation of this status is.

    :param hosts: {name: status} of those that are not LOST
    :param ready: whether they were empty once
    """
    # Before the start all of them are looked at, and nobody comes.
    unready = frozenset(
        name for name, how in hosts.items() if ready
        and how != reservation_model.READY)
    return Lease(
        id, project_id, _status(status, ready=ready), start_s, end_s,
        frozenset(hosts), unready, )


def of(reservation: reservation_model.Reservation) -> Lease:
    """Return the Lease that a Reservation is."""
    return make(
        reservation.uuid, reservation.project_id, reservation.status,
        reservation.start_s, reservation.end_s,
        {
            host.host: host.status
            for host in reservation.hosts
            if host.status != reservation_model.LOST
        },
        ready=reservation.ready_at is not None, )


def _status(status: str, *, ready: bool) -> str:
    # A degraded one is pending until its hosts were empty once.
    if status == reservation_model.DEGRADED:
        return ACTIVE if ready else PENDING
    return {reservation_model.PENDING: PENDING,
            reservation_model.ACTIVE: ACTIVE}.get(status, ENDED)


class Leases:
    """Leases by their ids and by their hosts.

    They are pending or active, but for some that somebody has asked after:
    no host is theirs.

    It never changes: updated() returns another one, in which only what has
    changed is new, so that many may read the one while the other is made.

    :ivar busy: {host: when it is leased}, as calendar.merged() has it
    """

    __slots__ = ("_by_host", "_by_id", "busy")

    def __init__(self, leases: Iterable[Lease] = ()) -> None:
        self._by_id: dict[str, Lease] = {}
        self._by_host: dict[str, tuple[Lease, ...]] = {}
        self.busy: dict[str, tuple[calendar.Interval, ...]] = {}
        self._update({lease.id: lease for lease in leases}, ())

    def updated(
        self, changed: Iterable[Lease], gone: Iterable[str] = ()) -> Leases:
        """Return the same with these instead of those of the same ids.

        :param gone: ids of leases that are none any more
        """
        made = Leases()
        made._by_id = dict(self._by_id)
        made._by_host = dict(self._by_host)
        made.busy = dict(self.busy)
        made._update({lease.id: lease for lease in changed}, gone)
        return made

    def _update(
        self, changed: Mapping[str, Lease], gone: Iterable[str]) -> None:
        old = [
            self._by_id.pop(lease_id) for lease_id in {*changed, *gone}
            if lease_id in self._by_id]
        self._by_id.update(changed)
        hosts: dict[str, list[Lease]] = {
            host: [] for lease in old for host in lease.hosts
        }
        for lease in changed.values():
            for host in lease.hosts:
                hosts.setdefault(host, []).append(lease)
        for host, new in hosts.items():
            self._set(
                host,
                (
                    *(
                        lease for lease in self._by_host.get(host, ())
                        if self._by_id.get(lease.id) is lease),
                    *new),
            )

    def _set(self, host: str, leases: tuple[Lease, ...]) -> None:
        busy = calendar.merged(
            (lease.start_s, lease.end_s) for lease in leases)
        self._by_host[host], self.busy[host] = leases, busy
        if not leases:
            del self._by_host[host]
        if not busy:
            del self.busy[host]

    def __iter__(self) -> Iterator[Lease]:
        """Go through the leases by their start."""
        return iter(
            sorted(
                self._by_id.values(),
                key=lambda lease: (lease.start_s, lease.id), ))

    def __eq__(self, other: object) -> bool:
        """Return whether they are the same leases on the same hosts."""
        if not isinstance(other, Leases):
            return NotImplemented
        return (self._by_id, self.busy) == (other._by_id, other.busy)

    __hash__ = None  # type: ignore[assignment]

    def get(self, lease_id: str) -> Lease | None:
        """Return the Lease of this id, None if there is none."""
        return self._by_id.get(lease_id)

    def is_free(self, host: str, start_s: int, end_s: int) -> bool:
        """Return whether nobody has the host in [start_s, end_s)."""
        return calendar.is_free(self.busy.get(host, ()), start_s, end_s)

    def free_s(self, host: str, now_s: int) -> float:
        """Return for how many seconds from now on nobody has the host.

        0 if somebody has it now, infinity if nobody will.
        """
        # What is past is hardly ever there: most often this is the first.
        for start_s, end_s in self.busy.get(host, ()):
            if end_s > now_s:
                return max(0, start_s - now_s)
        return math.inf

    def needed(self, now_s: int, until_s: int) -> dict[str, int]:
        """Return which hosts somebody has from now until then.

        :returns: {host: from when on, without a break}, both ends included
        """
        found = {}
        for host, intervals in self.busy.items():
            for start_s, end_s in intervals:
                if end_s > now_s:
                    if start_s <= until_s:
                        found[host] = start_s
                    break
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class ReservedHosts:
    """Where a request that names reservations may go.

    :ivar hosts: the names of the nodes
    :ivar own_hosts: the same with those that others are still on
    :ivar reason: why it may go nowhere, "" if it may
    :ivar known: whether that is for certain
    """

    hosts: frozenset[str] = frozenset()
    reason: str = ""
    known: bool = True
    own_hosts: frozenset[str] = frozenset()

    @property
    def is_void(self) -> bool:
        """Whether a server that exists already goes where any other may.

        It cannot get rid of the reservations that it names, though they are
        over, or were never there.
        """
        return self.known and bool(self.reason)


@dataclasses.dataclass(frozen=True, slots=True)
class Guard:
    """How long before a lease its hosts take no more servers of others.

    :ivar guard_s: servers that are not preemptible, in seconds
    """

    guard_s: int
    notice: notice_period.NoticeRule
    rules: eligibility.Rules
    termination_timeout_s: int
    migrate_timeout_s: int

    def lead_s(
        self, preemptible: bool, minimum_runtime_s: int, notice_s: int | None
    ) -> int:
        """Return for how long a server must have its host for itself.

        A preemptible one until its notice would have to begin, and what it
        was promised to run for comes before the notice.

        :param minimum_runtime_s: what its flavor promises
        :param notice_s: what its flavor asks for
        """
        if not preemptible:
            return self.guard_s
        return self.rules.promised_s(minimum_runtime_s) + notice_period.lead_s(
            self.notice.length_s(notice_s), self.termination_timeout_s,
            self.migrate_timeout_s, )


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseView:
    """Leases as they are looked at now.

    :ivar leases: None if none were ever read
    :ivar fresh: whether they are as new as they must be
    :ivar fail_open: whether they are forgotten while they are not
    """

    leases: Leases | None
    fresh: bool
    fail_open: bool
    now_s: int

    def free_s(self, host: str) -> float:
        """Return the same as Leases for a request that names none."""
        if not self.fresh and self.fail_open:
            return math.inf
        if self.leases is None:
            return 0
        return self.leases.free_s(host, self.now_s)

    def may_take(self, host: str, lead_s: float) -> bool:
        """Return whether a server may go there that names no reservation.

        :param lead_s: see Guard
        """
        return is_long_enough(self.free_s(host), lead_s)

    def answer(self, lease_ids: Iterable[str],
            project_id: str) -> ReservedHosts:
        """Return the Answer for a request of a project that names these."""
        if self.leases is None or not (self.fresh or self.fail_open):
            return ReservedHosts(
                reason="Reservations cannot be looked up: the lease "
                "service does not answer.",
                known=False, )
        hosts: frozenset[str] = frozenset()
        own: frozenset[str] = frozenset()
        for lease_id in lease_ids:
            lease = self.leases.get(lease_id)
            # NOTE: the same words for both, or an id could be guessed.
            if lease is None or lease.project_id != project_id:
                return ReservedHosts(
                    reason=f"There is no reservation {lease_id[:64]!r} of "
                    "this project."
                )
            reason = self._refusal(lease)
            if reason:
                return ReservedHosts(reason=reason)
            own |= lease.hosts
            hosts |= lease.hosts - lease.unready
        return ReservedHosts(hosts, own_hosts=own)

    def _refusal(self, lease: Lease) -> str:
        if lease.status == ENDED or lease.end_s <= self.now_s:
            return f"Reservation {lease.id} has ended at {_iso(lease.end_s)}."
        if lease.status != ACTIVE or self.now_s < lease.start_s:
            return (
                f"Reservation {lease.id} is not active yet: it starts at "
                f"{_iso(lease.start_s)}.")
        if not lease.hosts:
            return f"Reservation {lease.id} has no host left."
        if lease.hosts <= lease.unready:
            return f"Reservation {lease.id} has no host that is empty yet."
        return ""


def is_long_enough(free_s: float, lead_s: float) -> bool:
    """Return whether a host that is free for so long takes a server.

    :param lead_s: see Guard
    """
    return free_s > lead_s


def _iso(time_s: int) -> str:
    time = datetime.datetime.fromtimestamp(time_s, datetime.timezone.utc)
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
