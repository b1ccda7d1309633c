# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""How hosts of reservations are emptied, and others take their place.

As nova_preempt.reservation has it for the engine: what is done next on a
host, when it is late and which host takes another's place is the core's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import math
from typing import Any

from nova_preempt.core import notice
from nova_preempt.core.energy import candidates
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import drain
from nova_preempt.core.reservation import healing
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import lease_events
from nova_preempt.core.reservation import model
from nova_preempt.simulator import endings
from nova_preempt.simulator import memory
from nova_preempt.simulator import moving
from nova_preempt.simulator import reservations
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.servers import Server
from nova_preempt.simulator.servers import State

#: How often a host is looked for that a reservation misses, in seconds.
_COMPLETE_S = 60

#: In these a server of another's is on its host.
_THERE = frozenset((State.BOOTING, State.RUNNING, State.NOTICE,
                    State.ENDING, State.DELETED, State.STOPPED))
_BUSY = frozenset((State.BOOTING, State.ENDING, State.DELETED))


class Emptying:
    """Of all reservations.

    :param parts: a run.Parts
    :param book: a reservations.Book
    :param ends: an endings.Endings
    :param moves: a moving.Moves
    :param fleet: returns a power.Power, None if all hosts are always on
    """

    def __init__(self, parts: Any, book: reservations.Book,
                 ends: endings.Endings, moves: moving.Moves,
                 fleet: Callable[[], Any]) -> None:
        self._parts = parts
        self._options = parts.options.reservations
        self._book = book
        self._ends = ends
        self._moves = moves
        self._fleet = fleet
        self._patience = drain.Patience()
        self._swapped: dict[tuple[str, str], int] = {}
        self._completed: dict[str, int] = {}
        # (reservation, host): its generation when there was nothing to do,
        # and until when.
        self._quiet: dict[tuple[str, str], tuple[int, float]] = {}
        self._watched: set[str] = set()

    # -- what is known of hosts --------------------------------------------

    def _host(self, name: str) -> memory.MemoryHost:
        found: memory.MemoryHost = self._parts.cloud.by_name()[name]
        return found

    def is_usable(self, name: str) -> bool:
        """Whether it is there, or can be woken."""
        fleet = self._fleet()
        return fleet is None or not fleet.has_failed(name)

    def _off(self, name: str) -> candidates.Off | None:
        fleet = self._fleet()
        found: candidates.Off | None = fleet and fleet.off(name)
        return found

    def is_reservable(self, name: str) -> bool:
        """Whether it may be reserved at all."""
        said = self._book.hosts[name].kind.reservable
        return (self._options.reservable_default if said is None else said)

    def is_vacant(self, name: str) -> bool:
        """Whether nothing is there but preemptible servers that can end."""
        off = self._off(name)
        if off is not None and off.why_late:
            return False
        # Also those that have been stopped, of which there is no record.
        return all(
            server.kind.terms is not None and not self._stays_s(server)
            for server in map(self._parts.servers.__getitem__,
                              self._host(name).allocations))

    def _servers_on(self, host: memory.MemoryHost) -> Iterator[Server]:
        """Those that are there; others have only been promised space."""
        for uuid in host.allocations:
            server = self._parts.servers.get(uuid)
            if server is not None and server.host is host and (
                    server.state in _THERE):
                yield server

    # -- step by step ------------------------------------------------------

    def watch(self, uuid: str) -> None:
        """Look at the hosts of a reservation from when it is time."""
        reservation = self._book.opened[uuid]
        leads = (self._options.evacuation_lead_s,
                 self._lead_s(self._options.maximum_notice_s))
        early_s = drain.IDLE_S * math.ceil(
            max(leads) / drain.IDLE_S + 2)
        in_s = (reservation.start_at - self._book.now()).total_seconds()
        # So that it is looked at its very start, too.
        first_s = in_s - early_s if in_s > early_s else in_s % drain.IDLE_S
        self._look_in(first_s, uuid)

    def _look_in(self, in_s: float, uuid: str) -> None:
        self._watched.add(uuid)
        self._parts.events.add(
            self._parts.events.now_us + round(in_s * SECOND), Turn.LOOK,
            self._look_again, uuid)

    def _look_again(self, uuid: str) -> None:
        self._watched.discard(uuid)
        reservation = self.look(uuid)
        if reservation is None or uuid in self._watched:
            return
        if self._is_settled(reservation):
            if len(reservation.held) < reservation.quantity:
                self._look_in(_COMPLETE_S, uuid)
            return
        self._look_in(drain.IDLE_S, uuid)

    def look(self, uuid: str) -> model.Reservation | None:
        """Do the next step; return the Reservation as it is then."""
        reservation = self._book.opened.get(uuid)
        if reservation is None:
            return None
        reservation = self._complete(reservation)
        for name in reservation.held:
            reservation = self._look_after(reservation, name)
        changes = lease_events.change(
            reservation, lease_events.Kind.START, self._book.now())
        if changes:
            reservation = dataclasses.replace(reservation, **changes)
            self._book.put(reservation)
            self._parts.report.started(
                reservation, (self._book.now()
                              - reservation.start_at).total_seconds())
        return reservation

    def forget(self, uuid: str) -> None:
        """One is over."""
        self._patience.forget(self._book.opened)
        self._completed.pop(uuid, None)
        for known in (self._swapped, self._quiet):
            for key in [key for key in known if key[0] == uuid]:
                del known[key]

    def _is_settled(self, reservation: model.Reservation) -> bool:
        return reservation.ready_at is not None and all(
            host.status in (model.READY, model.LOST)
            for host in reservation.hosts)

    def _look_after(self, reservation: model.Reservation, name: str
                    ) -> model.Reservation:
        """See to it that a host is empty, until the reservation starts."""
        (assignment,) = (host for host in reservation.hosts
                         if host.host == name)
        if reservation.ready_at is not None and (
                assignment.status == model.READY):
            return reservation
        key = reservation.uuid, name
        host = self._host(name)
        now = self._book.now()
        to_start_s = (reservation.start_at - now).total_seconds()
        quiet = self._quiet.get(key)
        if quiet is not None and quiet[0] == host.generation and (
                to_start_s > quiet[1]):
            return reservation
        off = self._off(name)
        if off is not None:
            step = drain.wake(name, off, to_start_s)
            patience_s = step.lead_s
        else:
            step, is_empty = self._empty_host(reservation, host, to_start_s)
            patience_s = drain.patience_s(step)
            if is_empty:
                return self._set(reservation, name, model.READY)
        if step.blocking:
            other = self._swap(reservation, name)
            if other is not None:
                return other
        if self._patience.is_over(
                key, reservation.start_at, now, patience_s,
                only_waits=step.waiting and not step.blocking):
            return self._replace(reservation, name)
        return self._set(reservation, name, model.EMPTYING)

    def _empty_host(self, reservation: model.Reservation,
                    host: memory.MemoryHost, to_start_s: float
                    ) -> tuple[drain.Step, bool]:
        """Do what is to be done on a host, and note if that was nothing."""
        key = reservation.uuid, host.name
        found = len(list(self._servers_on(host)))
        step, is_empty = self._empty(reservation, host, to_start_s)
        self._quiet.pop(key, None)
        # Who has been promised a place may come, and nothing else changes.
        if found == len(host.allocations) and not (
                step.notice or step.move or step.blocking or step.waiting):
            # Nothing has to be done before the first notice.
            self._quiet[key] = (host.generation, max(0.0, step.lead_s))
        return step, is_empty

    def _empty(self, reservation: model.Reservation,
               host: memory.MemoryHost, to_start_s: float
               ) -> tuple[drain.Step, bool]:
        """Do what is to be done on a host: (that, whether it is empty)."""
        residents = {server.boot.id: server
                     for server in self._servers_on(host)}
        budgets = self._ends.budgets()
        step = drain.decide(
            [self._resident(server, reservation)
             for server in residents.values()], to_start_s,
            () if budgets is None else budgets.caps(
                self._record(server) for server in residents.values()
                if server.kind.terms is not None
                and server.state not in _BUSY))
        if step.empty:
            own = {uuid for uuid, server in residents.items()
                   if server.boot.reservation == reservation.uuid}
            return step, own >= host.allocations.keys()
        for uuid in step.move:
            self._moves.move(residents[uuid])
        self._give_notice([residents[uuid] for uuid in step.notice],
                          reservation.uuid)
        return step, False

    def _resident(self, server: Server, reservation: model.Reservation
                  ) -> drain.Resident:
        uuid = server.boot.id
        options = self._options
        named = (server.boot.reservation,) if server.boot.reservation else ()
        running = {each.uuid: each for each in (
            *self._book.opened.values(), *self._book.over.values())
            if each.ready_at is not None} if named else {}
        kind = drain.kind(named, reservation.uuid, running,
                          preemptible=server.kind.terms is not None)
        busy = server.state in _BUSY or self._moves.has(server)
        if kind is drain.Kind.OWN:
            return drain.Resident(uuid, kind)
        if kind is drain.Kind.OTHERS:
            end_at = running[named[0]].end_at
            return drain.Resident(
                uuid, kind, busy=busy,
                stays_s=(end_at - self._book.now()).total_seconds())
        if kind is drain.Kind.NORMAL:
            return drain.Resident(
                uuid, kind, drain.move_lead_s(options.evacuation_lead_s),
                0.0, busy, self._moves.has_failed(server))
        return drain.Resident(
            uuid, kind, self._lead_s(options.guard.notice.length_s(
                server.kind.terms.notice_s)), self._stays_s(server), busy)

    def _lead_s(self, notice_s: int) -> int:
        """How long before a start a notice of this length is given."""
        guard = self._options.guard
        return notice.lead_s(notice_s, guard.termination_timeout_s,
                             guard.migrate_timeout_s)

    def _record(self, server: Server) -> Any:
        """Nova's record of a preemptible server."""
        found = server.host.servers.get(server.boot.id)
        if found is None:
            # Of a stopped one nothing is known on its host.
            found = server.record(self._parts.events.now_us, is_active=True)
        return found

    def _stays_s(self, server: Server) -> float:
        """For how long it cannot be given notice."""
        rules = self._options.guard.rules
        uptime_us = self._parts.events.now_us - server.launched_us
        return drain.stays_s(
            kept=False, uptime_s=uptime_us / SECOND,
            minimum_s=rules.promised_s(server.kind.terms.minimum_runtime_s))

    def _give_notice(self, found: list[Server], reservation: str) -> None:
        by_uuid = {server.boot.id: server for server in found}
        length_s = self._parts.options.policy.notice_s
        for uuids in drain.by_notice(
                {uuid: length_s(self._record(server))
                 for uuid, server in by_uuid.items()}, self._ends.ending):
            self._ends.end_all([by_uuid[uuid] for uuid in uuids],
                               reservation)

    # -- other hosts -------------------------------------------------------

    def _set(self, reservation: model.Reservation, name: str, status: str
             ) -> model.Reservation:
        if all(host.host != name or host.status == status
               for host in reservation.hosts):
            return reservation
        found = dataclasses.replace(reservation, hosts=tuple(
            dataclasses.replace(host, status=status)
            if host.host == name else host for host in reservation.hosts))
        self._book.put(found)
        return found

    def _swap(self, reservation: model.Reservation, name: str
              ) -> model.Reservation | None:
        """Take another host for one that will not be empty in time."""
        key = reservation.uuid, name
        now_us = self._parts.events.now_us
        tried_us = self._swapped.get(key)
        if tried_us is not None and now_us - tried_us < (
                drain.SWAP_S * SECOND):
            return None
        self._swapped[key] = now_us
        found = self._find(reservation)
        if found is None:
            return None
        return self._exchange(reservation, name, found)

    def _replace(self, reservation: model.Reservation, name: str
                 ) -> model.Reservation:
        """Give another host for one that is late, or none."""
        return self._exchange(reservation, name, self._find(reservation))

    def _complete(self, reservation: model.Reservation
                  ) -> model.Reservation:
        """Add hosts that are missing, as far as there are any."""
        now_us = self._parts.events.now_us
        tried_us = self._completed.get(reservation.uuid, -math.inf)
        if len(reservation.held) >= reservation.quantity or (
                now_us - tried_us < _COMPLETE_S * SECOND):
            return reservation
        self._completed[reservation.uuid] = now_us
        while len(reservation.held) < reservation.quantity:
            found = self._find(reservation)
            if found is None:
                break
            reservation = self._exchange(reservation, None, found)
        return reservation

    def _exchange(self, reservation: model.Reservation, old: str | None,
                  new: str | None) -> model.Reservation:
        now = self._book.now().replace(microsecond=0)
        why = f'host {old} is not empty' if old else ''
        hosts = {host.host: host for host in reservation.hosts}
        for item in healing.exchange(reservation, old, new, now, why, why):
            hosts[item.host] = item
        found = dataclasses.replace(reservation, hosts=tuple(
            hosts[name] for name in sorted(hosts)))
        changes: Mapping[str, Any] = healing.standing(found, why, why)
        found = dataclasses.replace(found, **changes)
        self._book.put(found)
        self._parts.report.reservation(
            'host lost' if new is None else 'host replaced' if old
            else 'host added', reservation.uuid, host=new or old, why=why)
        if reservation.uuid not in self._watched:
            self._look_in(drain.IDLE_S, reservation.uuid)
        return found

    def _find(self, reservation: model.Reservation) -> str | None:
        """The best host that could be given, None if there is none."""
        place = healing.make_place(
            reservation, self._book.now_s(),
            self._options.evacuation_lead_s)
        matches = host_query.parse(reservation.host_properties).matches
        busy = self._book.leases.busy
        found = healing.substitutes(
            place,
            (healing.Spare(
                calendar.ReservableHost(
                    host.name, busy.get(host.name, ()),
                    host.kind.figures.flops_per_watt),
                self.is_reservable(host.name), self.is_usable(host.name),
                matches(host.properties),
                len(self._host(host.name).servers), self._off(host.name))
             for host in self._book.hosts.values()),
            self._options.ranking, self.is_vacant)
        return found[0] if found else None
