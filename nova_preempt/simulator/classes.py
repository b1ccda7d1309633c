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
"""Classes of service: the clocks of servers, and what is promised to them.

As nova_preempt.classes has it for the scheduler and the engine, but that
what happens is known at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.classes import overheads
from nova_preempt.core.classes import rounds
from nova_preempt.core.classes import rules
from nova_preempt.core.classes import table
from nova_preempt.core.classes.clocks import Clocks
from nova_preempt.core.classes.clocks import Event
from nova_preempt.core.classes.clocks import Kind
from nova_preempt.core.classes.promises import Promises
from nova_preempt.core.model import SECOND, Resources
from nova_preempt.core.scheduling import policy as policies
from nova_preempt.core.times import microseconds
from nova_preempt.simulator import endings
from nova_preempt.simulator import servers
from nova_preempt.simulator import setting
from nova_preempt.simulator.servers import Server

_EPOCH_US = microseconds(servers.EPOCH)


class _Known(Mapping[str, rounds.Claimant]):
    """Claimants as they are between two events: another one after each."""

    def __init__(self, claimants: dict[str, rounds.Claimant]) -> None:
        self._claimants = claimants

    def __getitem__(self, uuid: str) -> rounds.Claimant:
        return self._claimants[uuid]

    def get(self, uuid: str, default: Any = None) -> Any:
        return self._claimants.get(uuid, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._claimants)

    def __len__(self) -> int:
        return len(self._claimants)


class Classes:
    """Those of a simulation.

    :param parts: a run.Parts, whose options have a setting.Classes
    """

    def __init__(self, parts: Any) -> None:
        self._parts = parts
        self._options = parts.options.classes
        self._table = self._options.table
        self._claimants: dict[str, rounds.Claimant] = {}
        self._known = _Known(self._claimants)
        self._overheads = overheads.Overheads(self._table.overhead_us)

    @property
    def now_us(self) -> int:
        """The time as clocks have it."""
        return _EPOCH_US + self._parts.events.now_us

    def has(self, server: Server) -> bool:
        """Whether a server is of a class."""
        return server.boot.id in self._claimants

    def claimant(self, server: Server) -> rounds.Claimant:
        """Return it, with what the server asks for."""
        return dataclasses.replace(self._claimants[server.boot.id],
                                   resources=server.kind.resources)

    def claimants(self) -> Mapping[str, rounds.Claimant]:
        """Return those of all servers, without their resources."""
        return self._known

    # -- what happens ------------------------------------------------------

    def note(self, server: Server, kind: Kind) -> None:
        """Something has happened to a server that may be of a class."""
        uuid = server.boot.id
        found = self._claimants.get(uuid)
        if found is None:
            terms = server.kind.terms
            qos = None if terms is None or kind is not Kind.QUEUED else (
                self._table.classes.find(terms.class_name))
            if qos is None:
                return
            found = rounds.Claimant(uuid, qos, Clocks(), {})
        if kind is Kind.RUNNING:
            self._measure(server, found.clocks)
        clocks = found.clocks.applied(Event(self.now_us, kind))
        if kind is Kind.ENDED:
            self._parts.report.promised(found.qos, clocks.at(self.now_us))
            del self._claimants[uuid]
        else:
            self._claimants[uuid] = dataclasses.replace(
                found, clocks=clocks.settled(clocks.mark.last_us - 1),
                overhead_us=self._overheads.of(server.kind.request.kind))
        self._known = _Known(self._claimants)

    def _measure(self, server: Server, clocks: Clocks) -> None:
        """Learn how long it took to get one back that gave way."""
        if clocks.kind is Kind.ALLOCATING and server.tries:
            self._overheads = self._overheads.seen(
                server.kind.request.kind,
                self.now_us - clocks.mark.since_us)

    def tell(self) -> None:
        """Tell the report of those that are not over."""
        for found in self._claimants.values():
            self._parts.report.promised(found.qos,
                                        found.clocks.at(self.now_us))

    # -- what is decided ---------------------------------------------------

    def policy(self, policy: policies.Policy) -> policies.Policy:
        """Return it with what is promised now."""
        return dataclasses.replace(
            policy, exact=self._options.exact,
            classes=Promises(self._table.classes, self._known, self.now_us))

    def rank(self, server: Server) -> policies.Rank:
        """Return that of a request for a preemptible server."""
        claimant = self._claimants.get(server.boot.id)
        if claimant is None or not claimant.is_certain:
            return policies.PREEMPTIBLE
        return policies.Rank(True, claimant.stand(self._table.classes,
                                                  self.now_us))


class Claims:
    """What requests of the backlog may claim, for the order ``qos`` of it.

    :ivar table: a core.classes.table.Table
    """

    def __init__(self, found: table.Table) -> None:
        self.table = found
        self._classes: Classes | None = None

    def bind(self, classes: Classes) -> None:
        """Tell of the servers of this simulation from now on."""
        self._classes = classes

    def _find(self, request: Any) -> rounds.Claimant | None:
        assert self._classes is not None
        return self._classes.claimants().get(request.uuid)

    def clocks(self, requests: Iterable[Any]) -> dict[str, Clocks]:
        """Return those of core.backlog requests."""
        found = {}
        for request in requests:
            known = self._find(request)
            found[request.uuid] = Clocks((Event(microseconds(
                request.created_at.replace(tzinfo=datetime.timezone.utc)),
                Kind.QUEUED),)) if known is None else known.clocks
        return found

    def overheads_us(self, requests: Iterable[Any]) -> dict[str, int]:
        """Return how long it takes to get servers of them to a host."""
        return {request.uuid: self.table.overhead_us if known is None
                else known.overhead_us for request in requests
                for known in (self._find(request),)}


def parse(entries: Iterable[Mapping[str, str]], overhead_s: int,
          pass_period_s: int | None, *, exact: bool) -> setting.Classes:
    """Return what an operator has written down.

    For the parameters see core.classes.table.parse().

    :raises ValueError: says what is wrong with which field of which class
    """
    found = table.parse(entries, overhead_s, pass_period_s)
    return setting.Classes(found, exact, Claims(found))


class Returning:
    """Chooses among shelved servers of a class.

    The pass of M. Carvalho et al., as nova_preempt.classes.returning has it.

    :param parts: a run.Parts
    :param known: Classes
    :param may_come: tells whether there is space to spare for so much
    """

    def __init__(self, parts: Any, known: Classes,
                 under_way: endings.Endings, may_come: Any) -> None:
        self._parts = parts
        self._known = known
        self._endings = under_way
        self._may_come = may_come
        options = parts.options.classes
        self._classes = options.table.classes
        self._rule = rules.ByPromise(self._classes, options.exact)
        self._period_us = options.table.pass_period_s * SECOND
        self._passed_us: int | None = None

    def choose(self, waiting: list[Server], most: int) -> list[Server]:
        """Return those that are to be asked to come, in this order."""
        if not waiting or most <= 0:
            return []
        of = {server.boot.id: server for server in waiting}
        rooms, spared = self._rooms(waiting, most)
        placed = self._round(spared, most, rooms)
        if len(placed) < min(most, len(waiting)) and self._is_time():
            # Who would take what is kept free is in nobody's way.
            placed = (*self._round(waiting, most, self._hosts(rooms)),
                      *placed)
        return [of[uuid] for uuid in dict.fromkeys(
            each.uuid for each in placed)][:most]

    def _is_time(self) -> bool:
        """Whether the last pass in which others ended is long enough ago."""
        now_us = self._parts.events.now_us
        if not self._parts.options.may_unshelve or (
                self._passed_us is not None
                and now_us - self._passed_us < self._period_us):
            return False
        self._passed_us = now_us
        return True

    def _round(self, waiting: list[Server], most: int,
               hosts: Mapping[str, rounds.RoundHost]
               ) -> tuple[rounds.Placement, ...]:
        now_us = self._known.now_us
        first = rounds.foremost(map(self._known.claimant, waiting),
                                self._classes, self._rule, now_us, most)
        return rounds.one_round(first, list(hosts.values()), self._classes,
                                self._rule, now_us)

    def _rooms(self, waiting: list[Server], most: int
               ) -> tuple[dict[str, rounds.RoundHost], list[Server]]:
        """What is free, with nobody on it, and for whom.

        Each that comes takes a host, and none what is kept free.
        """
        cloud = self._parts.cloud
        found: dict[str, Resources] = {}
        kinds = {server.kind.request.kind: server.kind for server in waiting}
        closed = set()
        for key, kind in kinds.items():
            if self._may_come(kind.resources):
                found |= cloud.room(kind.request, most)
            else:
                closed.add(key)
        return ({name: rounds.RoundHost(name, free)
                 for name, free in found.items()},
                [server for server in waiting
                 if server.kind.request.kind not in closed])

    def _hosts(self, rooms: Mapping[str, rounds.RoundHost]
               ) -> dict[str, rounds.RoundHost]:
        """The same, with those who may give way."""
        parts = self._parts
        policy = parts.options.policy
        now = servers.at(parts.events.now_us)
        budgets = self._endings.budgets()
        claimants = self._known.claimants()
        hosts = dict(rooms)
        for host in parts.cloud.hosts.values():
            there = [
                dataclasses.replace(claimants[uuid],
                                    resources=host.allocations[uuid])
                for uuid, record in host.servers.items()
                if uuid in claimants and uuid not in self._endings.ending
                and claimants[uuid].is_certain
                and policy.may_give_way(record, now)
                and (budgets is None or budgets.allows(record))]
            if there:
                provider = host.providers[0]
                amounts = {name: provider.free(name)
                           for name in host.inventories}
                for each in there:
                    for name, amount in each.resources.items():
                        amounts[name] = amounts.get(name, 0) + amount
                hosts[host.name] = rounds.RoundHost(host.name, amounts,
                                                    tuple(there))
        return hosts
