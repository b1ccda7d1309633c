# SPDX-License-Identifier: Apache-2.0

"""Leases: the times for which projects have hosts for themselves.

The scheduler, power control and the calendar share one Leases. Times are whole
seconds since the epoch, intervals half-open: [start, end). Hosts go by their
node name (hypervisor_hostname).
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
ENDED = "ended"  # only in a look-up by id


@dataclasses.dataclass(frozen=True, slots=True)
class HostLease:
    """The hosts of one project from start_s to end_s.

    :ivar unready: the hosts that are not empty yet: closed to everybody, the
        owner included
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
    hosts: Mapping[str, str], *, ready: bool, ) -> HostLease:
    """Return the lease of a reservation of this status.

    :param hosts: {name: status} of hosts that are not LOST
    :param ready: whether they were empty once
    """
    # Before its start a lease is closed anyway.
    unready = frozenset(
        name for name, how in hosts.items() if ready
        and how != reservation_model.READY)
    return HostLease(
        id, project_id, _status(status, ready=ready), start_s, end_s,
        frozenset(hosts), unready, )


def of(reservation: reservation_model.Reservation) -> HostLease:
    """Return the lease of a reservation."""
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
    """Immutable index of leases by id and by host.

    They are pending or active, but for leases that were looked up by id: those
    have no hosts.

    updated() returns a changed copy that shares unchanged parts, so that
    readers need no lock.

    :ivar busy: {host: when it is leased}, as calendar.merged() has it
    """

    __slots__ = ("_by_host", "_by_id", "busy")

    def __init__(self, leases: Iterable[HostLease] = ()) -> None:
        self._by_id: dict[str, HostLease] = {}
        self._by_host: dict[str, tuple[HostLease, ...]] = {}
        self.busy: dict[str, tuple[calendar.Interval, ...]] = {}
        self._update({lease.id: lease for lease in leases}, ())

    def updated(self, changed: Iterable[HostLease],
                gone: Iterable[str] = ()) -> Leases:
        """Return a copy with these leases added or replaced.

        :param gone: ids of leases to remove
        """
        made = Leases()
        made._by_id = dict(self._by_id)
        made._by_host = dict(self._by_host)
        made.busy = dict(self.busy)
        made._update({lease.id: lease for lease in changed}, gone)
        return made

    def _update(
        self, changed: Mapping[str, HostLease], gone: Iterable[str]) -> None:
        old = [
            self._by_id.pop(lease_id) for lease_id in {*changed, *gone}
            if lease_id in self._by_id]
        self._by_id.update(changed)
        hosts: dict[str, list[HostLease]] = {
            host: [] for lease in old for host in lease.hosts}
        for lease in changed.values():
            for host in lease.hosts:
                hosts.setdefault(host, []).append(lease)
        for host, new in hosts.items():
            self._set(host, (
                *(lease for lease in self._by_host.get(host, ())
                  if self._by_id.get(lease.id) is lease), *new))

    def _set(self, host: str, leases: tuple[HostLease, ...]) -> None:
        busy = calendar.merged(
            (lease.start_s, lease.end_s) for lease in leases)
        self._by_host[host], self.busy[host] = leases, busy
        if not leases:
            del self._by_host[host]
        if not busy:
            del self.busy[host]

    def __iter__(self) -> Iterator[HostLease]:
        """Iterate over the leases by start."""
        return iter(sorted(self._by_id.values(),
                           key=lambda lease: (lease.start_s, lease.id)))

    def __eq__(self, other: object) -> bool:
        """Tell whether they have the same leases on the same hosts."""
        if not isinstance(other, Leases):
            return NotImplemented
        return (self._by_id, self.busy) == (other._by_id, other.busy)

    __hash__ = None  # type: ignore[assignment]

    def get(self, lease_id: str) -> HostLease | None:
        """Return the lease of this id, None if there is none."""
        return self._by_id.get(lease_id)

    def is_free(self, host: str, start_s: int, end_s: int) -> bool:
        """Tell whether the host is not leased in [start_s, end_s)."""
        return calendar.is_free(self.busy.get(host, ()), start_s, end_s)

    def free_s(self, host: str, now_s: int) -> float:
        """Return for how many seconds from now on the host is not leased.

        0 if it is leased now, infinity if it never will be.
        """
        # Past intervals are rare: most often this is the first.
        for start_s, end_s in self.busy.get(host, ()):
            if end_s > now_s:
                return max(0, start_s - now_s)
        return math.inf

    def needed(self, now_s: int, until_s: int) -> dict[str, int]:
        """Return the hosts that are leased from now until then.

        :returns: {host: start of the lease}, both ends included
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
class AllowedHosts:
    """The hosts that a request with reservations may use.

    :ivar hosts: the names of the nodes
    :ivar own_hosts: these, and hosts that are not empty yet
    :ivar reason: why it may use none, "" if it may
    :ivar known: whether that is certain
    """

    hosts: frozenset[str] = frozenset()
    reason: str = ""
    known: bool = True
    own_hosts: frozenset[str] = frozenset()

    @property
    def is_void(self) -> bool:
        """Tell whether an existing server may use any other host.

        It cannot drop the reservations that it names, though they are over, or
        never existed.
        """
        return self.known and bool(self.reason)


@dataclasses.dataclass(frozen=True, slots=True)
class GuardTime:
    """Times before a lease at which its hosts are closed.

    :ivar guard_s: for servers that are not preemptible, in seconds
    """

    guard_s: int
    notice: notice_period.NoticeRule
    rules: eligibility.Rules
    termination_timeout_s: int
    migrate_timeout_s: int

    def lead_s(
        self, preemptible: bool, minimum_runtime_s: int, notice_s: int | None
    ) -> int:
        """Return for how long a server must have its host before a lease.

        For a preemptible server: its minimum run time, then the time that its
        eviction takes.

        :param minimum_runtime_s: of its flavor
        :param notice_s: of its flavor
        """
        if not preemptible:
            return self.guard_s
        return self.rules.promised_s(minimum_runtime_s) + notice_period.lead_s(
            self.notice.length_s(notice_s), self.termination_timeout_s,
            self.migrate_timeout_s, )


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseView:
    """Leases at a time.

    :ivar leases: None if none were ever read
    :ivar fresh: whether they are recent enough
    :ivar fail_open: whether stale leases are ignored
    """

    leases: Leases | None
    fresh: bool
    fail_open: bool
    now_s: int

    def free_s(self, host: str) -> float:
        """Return Leases.free_s() for a request that names no reservation."""
        if not self.fresh and self.fail_open:
            return math.inf
        if self.leases is None:
            return 0
        return self.leases.free_s(host, self.now_s)

    def may_take(self, host: str, lead_s: float) -> bool:
        """Tell whether a host takes a server that names no reservation.

        :param lead_s: see GuardTime
        """
        return is_long_enough(self.free_s(host), lead_s)

    def answer(self, lease_ids: Iterable[str],
            project_id: str) -> AllowedHosts:
        """Return the hosts for a request of a project that names these leases.
        """
        if self.leases is None or not (self.fresh or self.fail_open):
            return AllowedHosts(
                reason="Reservations cannot be looked up: the lease "
                "service does not answer.",
                known=False, )
        hosts: frozenset[str] = frozenset()
        own: frozenset[str] = frozenset()
        for lease_id in lease_ids:
            lease = self.leases.get(lease_id)
            # NOTE: the same words for both, or an id could be guessed.
            if lease is None or lease.project_id != project_id:
                return AllowedHosts(
                    reason=f"There is no reservation {lease_id[:64]!r} of "
                    "this project."
                )
            reason = self._refusal(lease)
            if reason:
                return AllowedHosts(reason=reason)
            own |= lease.hosts
            hosts |= lease.hosts - lease.unready
        return AllowedHosts(hosts, own_hosts=own)

    def _refusal(self, lease: HostLease) -> str:
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
    """Tell whether a host that is free for so long takes a server.

    :param lead_s: see GuardTime
    """
    return free_s > lead_s


def _iso(time_s: int) -> str:
    time = datetime.datetime.fromtimestamp(time_s, datetime.timezone.utc)
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
