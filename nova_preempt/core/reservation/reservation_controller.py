# SPDX-License-Identifier: Apache-2.0
"""Controller of an open reservation, from its drain until its end.

Its hosts are drained in time for its start, it starts when they are empty,
hosts that are down or cannot be emptied are replaced, and servers of others
are removed afterwards. lease_event_controller decides when it ends.
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import enum
import math
from typing import TypeAlias

from nova_preempt.core import controller_step
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_model

#: How often a missing host of a reservation is looked for, in seconds, while
#: nothing is known to have changed.
INCOMPLETE_S = 60


class Loss(enum.Enum):
    """Reasons for which a reservation loses a host."""

    DOWN = "down"
    OCCUPIED = "occupied"
    ASLEEP = "asleep"


@dataclasses.dataclass(frozen=True, slots=True)
class Evict:
    """Begin the notice of preemptible servers of a host, as one decision."""

    host: str
    servers: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Migrate:
    """Migrate a normal server away from a host."""

    host: str
    server: str


@dataclasses.dataclass(frozen=True, slots=True)
class SetHost:
    """Record the status of a host of the reservation.

    :ivar reason: why it is not empty though it has been
    """

    host: str
    status: str
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ReplaceHost:
    """Give the reservation the first candidate that is still free.

    :ivar host: the host that it loses for that, None if it misses one
    :ivar loss: why it loses that host
    :ivar or_lose: whether it loses the host even if no candidate is free
    :ivar residents: the servers on the host
    :ivar blocking: uuids of servers that will not be gone in time
    """

    host: str | None
    candidates: tuple[str, ...]
    loss: Loss | None = None
    or_lose: bool = False
    residents: tuple[drain_rules.Server, ...] = ()
    blocking: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class StartReservation:
    """Start the reservation."""


Intent: TypeAlias = (Evict | Migrate | SetHost | ReplaceHost
    | host_replacement.ReturnHost | StartReservation)


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """State of a reservation that one step keeps for the next.

    :ivar since_us: since when each host is waited for
    :ivar swapped_us: when a replacement of each host was last looked for
    """

    since_us: Mapping[str, int] = dataclasses.field(default_factory=dict)
    swapped_us: Mapping[str, int] = dataclasses.field(default_factory=dict)


def is_due(
    reservation: reservation_model.Reservation, leads_s: Collection[float],
    down: Collection[str], now_us: int, ) -> bool:
    """Tell whether a step can have intents.

    For the parameters see observed_hosts.ReservationView.
    """
    return (
        is_near(reservation, leads_s, now_us)
        or len(reservation.held) < reservation.quantity
        or not set(down).isdisjoint(reservation.held))


def is_near(
    reservation: reservation_model.Reservation, leads_s: Collection[float],
    now_us: int) -> bool:
    """Tell whether it is time to look at the hosts of a reservation."""
    return _to_start_s(reservation, now_us) <= _early_s(leads_s)


def _early_s(leads_s: Collection[float]) -> float:
    return max(leads_s) + 2 * drain_rules.IDLE_S


def _to_start_s(reservation: reservation_model.Reservation,
                now_us: int) -> float:
    return (reservation.start_s * SECOND - now_us) / SECOND


def step(view: observed_hosts.ReservationView, memory: Memory,
        now_us: int) -> controller_step.Step[Intent, Memory]:
    """Decide the next step of an open reservation.

    If it needs other hosts, that is decided first, and ``wake_at_us`` is now:
    the rest depends on the hosts that it gets.

    :param now_us: since the epoch
    """
    reservation = view.reservation
    changes = _other_hosts(view)
    if changes:
        return controller_step.Step(changes, memory, now_us)
    if not is_near(reservation, view.leads_s, now_us):
        in_s = _to_start_s(reservation, now_us) - _early_s(view.leads_s)
        if len(reservation.held) < reservation.quantity:
            in_s = min(in_s, INCOMPLETE_S)
        return controller_step.Step((), memory, now_us + round(in_s * SECOND))
    looks = _HostSteps(view, memory, now_us)
    for host in reservation.hosts:
        seen = None if host.status == reservation_model.LOST else view.host(
            host.host)
        if seen is None:
            continue
        if (reservation.ready_at is not None
            and host.status == reservation_model.READY):
            looks.turn_away(host, seen)
        elif looks.keep_empty(host, seen):
            return looks.step(now_us)
    return looks.finish()


def _other_hosts(view: observed_hosts.ReservationView) -> tuple[Intent, ...]:
    """Return the intents that change the hosts of a reservation."""
    reservation = view.reservation
    down = [name for name in reservation.held if name in view.down]
    if down:
        names = tuple(view.candidates())
        return tuple(ReplaceHost(name, names, Loss.DOWN, or_lose=True)
                     for name in down)
    if reservation.ready_at is not None:
        former = view.former()
        found = former and host_replacement.returns(
            reservation.quantity,
            {name: _own(view, name) for name in reservation.held},
            {name: _own(view, name) for name in former}, )
        if found:
            return found
    names = (tuple(view.candidates())
             if len(reservation.held) < reservation.quantity else ())
    return (ReplaceHost(None, names),) if names else ()


def _own(view: observed_hosts.ReservationView, name: str) -> int:
    """Return how many servers of the reservation are on a host."""
    return sum(view.reservation.uuid in server.named
               for server in view.servers(name))


class _HostSteps:
    """Collects the intents for one host after the other."""

    def __init__(self, view: observed_hosts.ReservationView, memory: Memory,
                 now_us: int) -> None:
        self._view = view
        self._reservation = view.reservation
        self._now_us = now_us
        self._to_start_s = _to_start_s(view.reservation, now_us)
        self._since_us = dict(memory.since_us)
        self._swapped_us = dict(memory.swapped_us)
        self._intents: list[Intent] = []
        self._hosts = {host.host: host for host in view.reservation.hosts}
        # How long before the start there is something to do next.
        self._next_s = 0.0
        self._has_strangers = False

    def step(self, wake_at_us: int | None
             ) -> controller_step.Step[Intent, Memory]:
        """Return the collected intents."""
        return controller_step.Step(
            tuple(self._intents), Memory(self._since_us, self._swapped_us),
            wake_at_us)

    def finish(self) -> controller_step.Step[Intent, Memory]:
        """Return the collected intents once all hosts were looked at."""
        reservation = dataclasses.replace(
            self._reservation, hosts=tuple(self._hosts.values()))
        if lease_event_controller.change(reservation,
                                         lease_event_controller.Kind.START,
                                         reservation_model.from_us(
                                             self._now_us)):
            self._intents.append(StartReservation())
        if self._to_start_s > 0:
            in_s = min(self._to_start_s, (
                self._to_start_s - self._next_s
                if self._to_start_s > self._next_s else drain_rules.IDLE_S))
        elif any(host.status not
                 in (reservation_model.READY, reservation_model.LOST)
                 for host in self._hosts.values()):
            in_s = drain_rules.BUSY_S
        elif self._has_strangers:
            in_s = drain_rules.IDLE_S
        elif len(reservation.held) < reservation.quantity:
            in_s = INCOMPLETE_S
        else:
            return self.step(None)
        return self.step(self._now_us + round(in_s * SECOND))

    def turn_away(self, host: reservation_model.Assignment,
                  seen: observed_hosts.Host) -> None:
        """Drain servers of others from a host that has been empty.

        Such a server was being scheduled at the start, or was put there by an
        administrator; it is drained as before the start.
        """
        if seen.dark:
            return
        servers = self._view.servers(host.host)
        # Sorted, or another order would count as another reason.
        others = ", ".join(sorted(each.uuid for each in servers if
                                  self._reservation.uuid not in each.named))
        self._set(host, reservation_model.READY,
                  others and f"other servers are on it: {others}")
        if others:
            self._drain(host.host, servers)
            self._has_strangers = True

    def keep_empty(self, host: reservation_model.Assignment,
                   seen: observed_hosts.Host) -> bool:
        """Drain a host until the reservation starts.

        :returns: whether another host replaces it
        """
        name = host.host
        found, residents = self._look(name, seen)
        if found.empty:
            self._set(host, reservation_model.READY)
            return False
        names: Sequence[str] = ()
        if found.blocking and self._may_swap(name):
            names = self._view.candidates()
        or_lose = not names and self._is_late(
            name, found, found.lead_s if seen.asleep is not None
            else drain_rules.patience_s(found))
        if not names and not or_lose:
            self._set(host, reservation_model.EMPTYING)
            return False
        names = names or self._view.candidates()
        loss = Loss.OCCUPIED if seen.asleep is None else Loss.ASLEEP
        self._intents.append(ReplaceHost(
            name, tuple(names), loss, or_lose, residents, found.blocking))
        self._hosts[name] = dataclasses.replace(host,
                                                status=reservation_model.LOST)
        return bool(names)

    def _look(self, name: str, seen: observed_hosts.Host) -> tuple[
            drain_rules.DrainStep, tuple[drain_rules.Server, ...]]:
        """Return the drain step of a host, and its servers."""
        waits = drain_rules.DrainStep(waiting=True)
        residents: tuple[drain_rules.Server, ...] = ()
        if seen.asleep is not None and not seen.dark:
            found = drain_rules.wait_for_power(name, seen.asleep,
                self._to_start_s)
        elif seen.dark or not seen.is_usable:
            found = waits
        else:
            servers = self._view.servers(name)
            found, residents = self._drain(name, servers)
            if found.empty:
                is_free = self._view.is_free(
                    name, {server.uuid for server in servers})
                found = (waits if is_free is None
                         else dataclasses.replace(found, empty=is_free))
                self._next_s = max(self._next_s, 0.0 if is_free else math.inf)
                return found, residents
        # Nothing has to be done before the first of them is due.
        is_quiet = found == drain_rules.DrainStep(
            lead_s=found.lead_s) and residents
        self._next_s = max(self._next_s,
                           found.lead_s if is_quiet else math.inf)
        return found, residents

    def _drain(self, name: str, servers: Sequence[drain_rules.Server]
               ) -> tuple[drain_rules.DrainStep,
                   tuple[drain_rules.Server, ...]]:
        """Evict and migrate the servers of a host that are due."""
        residents = {server.uuid: drain_rules.classified(
            server, self._reservation.uuid, self._view.running, self._now_us)
            for server in servers}
        free = [uuid for uuid, item in residents.items()
                if item.kind is drain_rules.ServerKind.PREEMPTIBLE
                and not item.busy]
        found = drain_rules.decide(residents.values(), self._to_start_s,
                                   self._view.caps(free) if free else ())
        self._intents += [
            Migrate(name, uuid) for uuid in found.move
            if not self._is_recent(residents[uuid].asked_us,
                                   drain_rules.RETRY_S)]
        if found.notice:
            groups = drain_rules.by_notice(
                {uuid: residents[uuid].notice_s for uuid in found.notice},
                self._view.evicting())
            self._intents += [Evict(name, uuids) for uuids in groups]
        return found, tuple(residents.values())

    def _set(self, host: reservation_model.Assignment, status: str,
             reason: str = "") -> None:
        if (host.status, host.reason or "") != (status, reason):
            self._hosts[host.host] = dataclasses.replace(host, status=status)
            self._intents.append(SetHost(host.host, status, reason))

    def _may_swap(self, name: str) -> bool:
        """Tell whether to look for a replacement now, which is expensive."""
        if self._is_recent(self._swapped_us.get(name), drain_rules.SWAP_S):
            return False
        self._swapped_us[name] = self._now_us
        return True

    def _is_recent(self, when_us: int | None, within_s: int) -> bool:
        """Tell whether that was lately, and not in the future."""
        return when_us is not None and (
            0 <= self._now_us - when_us < within_s * SECOND)

    def _is_late(self, name: str, found: drain_rules.DrainStep,
            patience_s: float) -> bool:
        """Tell whether a host should have been empty by now.

        A host that is drained late, since it was reserved at once, replaced
        another or no engine ran, gets the time that it would have had.
        """
        since_us = min(self._since_us.get(name, self._now_us), self._now_us)
        if found.waiting and not found.blocking:
            # The end of another reservation has no time limit here.
            self._since_us[name] = self._now_us
            return False
        self._since_us[name] = since_us
        if self._to_start_s > 0 or (
                self._now_us - since_us < patience_s * SECOND):
            return False
        # A later attempt starts anew.
        del self._since_us[name]
        return True
