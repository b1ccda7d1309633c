# SPDX-License-Identifier: Apache-2.0
"""Carries out the intents of the reservation controller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
import dataclasses
import math
from typing import TYPE_CHECKING, Any

from nova_preempt.core.energy import host_classification
from nova_preempt.core.model import SECOND, PreemptibleServer, VictimCap
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator import reservation_book
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulated_migration
from nova_preempt.simulator import simulated_power
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState

if TYPE_CHECKING:
    from nova_preempt.simulator import simulated_lease_events

#: In these a server of another's is on its host.
_THERE = frozenset((State.BOOTING, State.RUNNING, State.NOTICE,
                    State.ENDING, State.DELETED, State.STOPPED))
_BUSY = frozenset((State.BOOTING, State.ENDING, State.DELETED))


class HostView:
    """Hosts as reservations see them.

    :param book: a reservation_book.ReservationBook
    :param evictions: an simulated_evictions.Evictions
    :param moves: a simulated_migration.ServerMigrator
    :param power: returns a simulated_power.SimulatedPower, None if all hosts
        are always on
    """

    def __init__(self, world: SimulationState,
                 book: reservation_book.ReservationBook,
                 evictions: simulated_evictions.Evictions,
                 moves: simulated_migration.ServerMigrator,
                 power: Callable[[], simulated_power.SimulatedPower | None]
                 ) -> None:
        self.world = world
        self.book = book
        self.evictions = evictions
        self.moves = moves
        self._power = power

    @property
    def options(self) -> simulation_settings.ReservationOptions:
        return self.world.options.reservation_options

    def host(self, name: str) -> memory_cloud.MemoryHost:
        return self.world.cloud.by_name()[name]

    def is_usable(self, name: str) -> bool:
        """Return whether a host is on or can be woken."""
        power = self._power()
        return power is None or not power.has_failed(name)

    def off(self, name: str) -> host_classification.OffHost | None:
        power = self._power()
        return None if power is None else power.off(name)

    def seen(self, name: str) -> observed_hosts.Host:
        """Return the current state of a host."""
        return dataclasses.replace(
            self.book.hosts[name], asleep=self.off(name),
            state='up' if self.is_usable(name) else 'down')

    def is_vacant(self, name: str) -> bool:
        """Return whether all servers of a host can be evicted."""
        off = self.off(name)
        if off is not None and off.why_late:
            return False
        # Also those that have been stopped, of which there is no record.
        return all(
            server.kind.terms is not None and not self._stays_s(server)
            for server in map(self.world.servers.__getitem__,
                              self.host(name).allocations))

    def on_host(self, name: str, states: Collection[State] = _THERE
                ) -> Iterator[Server]:
        """Yield the servers on a host, without arriving ones."""
        host = self.host(name)
        for uuid in host.allocations:
            server = self.world.servers.get(uuid)
            if server is not None and server.host is host and (
                    server.state in states):
                yield server

    def observe(self, server: Server) -> drain_rules.Server:
        """Return a server as the controller sees it."""
        uuid, terms = server.boot.id, server.kind.terms
        busy = server.state in _BUSY or self.moves.has(server)
        if terms is None:
            return drain_rules.Server(
                uuid, server.named, None,
                drain_rules.move_lead_s(self.options.evacuation_lead_s),
                0.0, busy, self.moves.has_failed(server),
                self.moves.asked_us(server))
        notice_s = self.options.guard.notice.length_s(terms.notice_s)
        return drain_rules.Server(
            uuid, server.named, notice_s, self.options.lead_s(notice_s),
            self._stays_s(server), busy)

    def record(self, server: Server) -> PreemptibleServer:
        """Nova's record of a preemptible server."""
        found: PreemptibleServer | None = server.current_host.servers.get(
            server.boot.id)
        if found is None:
            # Of a stopped one nothing is known on its host.
            found = server.record(self.world.events.now_us, is_active=True)
        return found

    def _stays_s(self, server: Server) -> float:
        """For how long it cannot be given notice."""
        rules = self.options.guard.rules
        record = self.record(server)
        uptime_us = self.world.events.now_us - server.launched_us
        return drain_rules.stays_s(
            kept=bool(drain_rules.why_stays(
                record, self.world.options.policy.action(record), rules)),
            uptime_s=uptime_us / SECOND,
            minimum_s=rules.promised_s(record.minimum_runtime_s))


class _View:
    """See the core's View."""

    #: Hosts do not die in simulations.
    down: Collection[str] = ()

    def __init__(self, cloud: HostView,
                 reservation: reservation_model.Reservation) -> None:
        self._cloud = cloud
        self.reservation = reservation
        self.running: Mapping[
            str, reservation_model.Reservation] = cloud.book.running
        self.leads_s = cloud.options.leads_s()

    def host(self, name: str) -> observed_hosts.Host:
        return self._cloud.seen(name)

    def servers(self, name: str) -> list[drain_rules.Server]:
        return [*map(self._cloud.observe, self._cloud.on_host(name))]

    def caps(self, servers: Collection[str]) -> Collection[VictimCap]:
        cloud = self._cloud
        budgets = cloud.evictions.budgets()
        return () if budgets is None else budgets.caps(
            cloud.record(cloud.world.servers[uuid]) for uuid in servers)

    def evicting(self) -> Collection[str]:
        return self._cloud.evictions.ending

    def is_free(self, name: str, servers: Collection[str]) -> bool:
        return set(servers) >= self._cloud.host(name).allocations.keys()

    def candidates(self) -> list[str]:
        cloud = self._cloud
        return host_replacement.candidates(
            self.reservation, map(cloud.seen, cloud.book.hosts),
            cloud.book.leases.busy, now_s=cloud.book.now_s(),
            lead_s=cloud.options.evacuation_lead_s,
            ranking=cloud.options.ranking, is_vacant=cloud.is_vacant,
            servers={name: len(cloud.host(name).servers)
                     for name in cloud.book.hosts})

    def former(self) -> list[str]:
        book = self._cloud.book
        return host_replacement.free_lost_hosts(self.reservation,
            self._cloud.seen, book.leases.busy, book.now_s())


class DrainExecutor:
    """Steps the controllers of open reservations.

    :param cloud: a HostView
    """

    def __init__(self, cloud: HostView,
                 events: simulated_lease_events.LeaseEvents) -> None:
        self._cloud = cloud
        self._lease_events = events
        self._world = cloud.world
        self._book = cloud.book
        self._memories: dict[str, reservation_controller.Memory] = {}
        # What a reservation was like at its last step, and when to step again
        # if it still is.
        self._last: dict[str, tuple[Any, float]] = {}
        self._watched: set[str] = set()
        cloud.book.on_foreign_server = self._look_in

    def watch(self, uuid: str) -> None:
        """Look at the hosts of a reservation from when it is time."""
        reservation = self._book.opened[uuid]
        early_s = drain_rules.IDLE_S * math.ceil(
            max(self._cloud.options.leads_s()) / drain_rules.IDLE_S + 2)
        in_s = (reservation.start_at - self._book.now()).total_seconds()
        # So that it is looked at its very start, too.
        self._look_in(uuid, max(in_s - early_s, in_s % drain_rules.IDLE_S))

    def _look_in(self, uuid: str, in_s: float = 0.0) -> None:
        if uuid not in self._watched:
            self._watched.add(uuid)
            self._world.events.add(
                self._world.events.now_us + round(in_s * SECOND), Phase.POLL,
                self._look, uuid)

    def _look(self, uuid: str) -> None:
        """Step, unless nothing has changed and nothing is due."""
        self._watched.discard(uuid)
        if uuid not in self._book.opened:
            self._memories.pop(uuid, None)
            self._last.pop(uuid, None)
            return
        now_us = self._book.now_us()
        seen, wake_at_us = self._last.get(uuid, (None, 0))
        has_changed = wake_at_us <= now_us or seen != self._is_like(uuid)
        while has_changed:
            step = reservation_controller.step(
                _View(self._cloud, self._book.opened[uuid]),
                self._memories.get(uuid, reservation_controller.Memory()),
                now_us)
            self._memories[uuid] = step.memory
            held = self._book.opened[uuid].held
            for intent in step.intents:
                self._carry_out(intent, uuid)
            wake_at_us = math.inf if (
                step.wake_at_us is None) else step.wake_at_us
            has_changed = wake_at_us <= now_us and (
                held != self._book.opened[uuid].held)
            self._last[uuid] = (self._is_like(uuid), wake_at_us)
        if now_us < self._book.opened[uuid].start_s * SECOND:
            # Nobody tells what changes on its hosts.
            self._look_in(uuid, drain_rules.IDLE_S)
        elif wake_at_us < math.inf:
            self._look_in(uuid, max(
                drain_rules.BUSY_S, (wake_at_us - now_us) / SECOND))

    def _is_like(self, uuid: str) -> Any:
        """Return a key that changes with a reservation and its hosts."""
        reservation = self._book.opened[uuid]
        return reservation, [
            (self._cloud.host(name).generation,
             sum(1 for _ in self._cloud.on_host(name)))
            for name in reservation.held]

    # -- what is decided ---------------------------------------------------

    def _carry_out(self, intent: reservation_controller.Intent,
                   uuid: str) -> None:
        servers, reservation = self._world.servers, self._book.opened[uuid]
        if isinstance(intent, reservation_controller.Evict):
            self._cloud.evictions.end_all(
                [servers[each] for each in intent.servers], uuid)
        elif isinstance(intent, reservation_controller.Migrate):
            self._cloud.moves.move(servers[intent.server])
        elif isinstance(intent, reservation_controller.SetHost):
            self._book.put(dataclasses.replace(reservation, hosts=tuple(
                dataclasses.replace(host, status=intent.status)
                if host.host == intent.host else host
                for host in reservation.hosts)))
        elif isinstance(intent, reservation_controller.ReplaceHost):
            new = next((name for name in intent.candidates
                        if name not in reservation.held), None)
            self._exchange(reservation, intent.host, new)
        elif isinstance(intent, host_replacement.ReturnHost):
            self._exchange(reservation, intent.instead_of, intent.host)
        elif isinstance(intent, reservation_controller.StartReservation):
            self._lease_events.start(uuid)

    def _exchange(self, reservation: reservation_model.Reservation,
                  old: str | None, new: str | None) -> None:
        now = self._book.now().replace(microsecond=0)
        why = f'host {old} is not empty' if old else ''
        hosts = {host.host: host for host in reservation.hosts}
        for item in host_replacement.exchange(reservation, old, new, now, why,
                                              why):
            hosts[item.host] = item
        found = dataclasses.replace(reservation, hosts=tuple(
            hosts[name] for name in sorted(hosts)))
        changes: Mapping[str, Any] = host_replacement.status_after(found, why,
            why)
        self._book.put(dataclasses.replace(found, **changes))
        self._world.report.reservation(
            'host lost' if new is None else 'host replaced' if old
            else 'host added', reservation.uuid, host=new or old, why=why)
