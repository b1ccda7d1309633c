# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A cloud in memory, and a plain loop that places requests in it.

It answers what a decision asks (core.scheduling.port.Cloud) and carries out
what is decided, at once and without a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import datetime
import functools
from typing import Any, TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core.model import (
    Host,
    Inventory,
    Provider,
    Refusal,
    Request,
    Server,
)
from nova_preempt.core.scheduling import budgets
from nova_preempt.core.scheduling import cycle as cycles
from nova_preempt.core.scheduling import memo
from nova_preempt.core.scheduling import policy as policies
from nova_preempt.core.scheduling import port
from nova_preempt.core.scheduling.joining import Releasing
from nova_preempt.core.scheduling.plan import Plan


@dataclasses.dataclass
class MemoryHost:
    """A host of one provider.

    :ivar allocations: {uuid of a server: {class: amount}}
    :ivar servers: the preemptible ones among them, by uuid; replaced, and not
        changed, when some come or go
    """

    uuid: str
    name: str
    inventories: dict[str, Inventory]
    allocations: dict[str, dict[str, int]] = dataclasses.field(
        default_factory=dict)
    servers: dict[str, Server] = dataclasses.field(default_factory=dict)
    generation: int = 0

    def __post_init__(self) -> None:
        self._listing: port.Listing | None = None
        # {kind of request: whether it has room}
        self._room: dict[tuple[object, ...], bool] = {}

    @property
    def listing(self) -> port.Listing:
        """What a decision is told of it, a core Listing."""
        if self._listing is None or (
                self._listing.providers[0].generation != self.generation):
            self._listing = port.Listing(self.uuid, self.name, (Provider(
                self.uuid, self.generation, self.inventories,
                dict(self.allocations)),), True)
            self._room = {}
        return self._listing

    @property
    def providers(self) -> tuple[Provider, ...]:
        """Its tree of providers."""
        return self.listing.providers

    def add(self, uuid: str, resources: Mapping[str, int],
            server: Server | None = None) -> None:
        """Put a server here, a preemptible one with its record.

        Or change what it holds, if it is here.
        """
        self.allocations[uuid] = dict(resources)
        if server is not None:
            self.servers = {**self.servers, uuid: server}
        self.generation += 1

    def remove(self, uuid: str) -> None:
        """Take a server away."""
        del self.allocations[uuid]
        if uuid in self.servers:
            self.servers = {other: server for other, server
                            in self.servers.items() if other != uuid}
        self.generation += 1

    def has_room(self, request: Request) -> bool:
        """Whether a server fits without anybody's end."""
        return self.has_room_for(request, request.kind)

    def has_room_for(self, request: Request, kind: tuple[object, ...]) -> bool:
        """The same of a request whose kind is known."""
        providers = self.providers
        has_room = self._room.get(kind)
        if has_room is None:
            found = capacity.missing(request, Host(self.name, providers))
            has_room = not isinstance(found, Refusal) and not found
            self._room[kind] = has_room
        return has_room


#: Whether a host passes every filter without some servers.
Passes: TypeAlias = Callable[[MemoryHost, tuple[Server, ...]], bool]
#: A key by which the smallest host comes first, given what it costs in
#: micro-units or None for one with room.
Weigh: TypeAlias = Callable[[MemoryHost, int | None], tuple[Any, ...]]


class MemoryCloud:
    """Hosts, and whoever runs on them.

    :param hosts: MemoryHosts
    """

    def __init__(self, hosts: Iterable[MemoryHost],
                 passes: Passes = lambda host, without: True,
                 weigh: Weigh | None = None) -> None:
        self.hosts = {host.uuid: host for host in hosts}
        self.passes = passes
        self.weigh = weigh or cheapest_first
        self.budget: budgets.Budgets | None = None
        self.memo = memo.Memo()
        self.longest_notice_s = float('inf')

    def answers(self, objection: str = '') -> Answers:
        """What the decision on one request is told."""
        return Answers(self, objection)

    def by_name(self) -> Mapping[str, MemoryHost]:
        """{name: MemoryHost}."""
        return {host.name: host for host in self.hosts.values()}

    def find(self, uuid: str) -> MemoryHost | None:
        """The MemoryHost of a preemptible server, None if there is none."""
        return next((host for host in self.hosts.values()
                     if uuid in host.servers), None)

    def begin(self, cycle: cycles.Cycle) -> None:
        """Tell a core Cycle which hosts have room."""
        kind = cycle.request.kind
        cycle.found_room({
            uuid: {name: host.providers[0].free(name)
                   for name in host.inventories}
            for uuid, host in self.hosts.items()
            if host.has_room_for(cycle.request, kind)})

    def offered(self, cycle: cycles.Cycle) -> list[tuple[str, str]]:
        """The hosts to put in order first: (uuid, name) of each."""
        plans = cycle.offer(any_victims=True)
        return [(uuid, self.hosts[uuid].name)
                for uuid in (*cycle.room, *(plan.host.uuid
                                            for plan in plans))]

    def put(self, host: MemoryHost, uuid: str, resources: Mapping[str, int],
            server: Server | None = None) -> None:
        """Put a server on a host, see MemoryHost.add()."""
        host.add(uuid, resources, server)

    def take_away(self, host: MemoryHost, uuid: str) -> None:
        """Take a server away from a host."""
        host.remove(uuid)

    def place(self, request: Request, policy: policies.Policy,
              now: datetime.datetime, uuids: Sequence[str],
              make_server: Callable[[str, MemoryHost], Server] | None = None,
              objection: str = '', **kwargs: Any
              ) -> list[tuple[MemoryHost, Plan | None]] | None:
        """Place servers of one request, end their victims.

        :param request: the core's Request
        :param uuids: of the servers
        :param make_server: makes the record of a preemptible one, given
            (uuid, MemoryHost); None for normal servers
        :param objection: why nobody may end for them, '' if some may
        :param kwargs: for the core's Cycle
        :returns: [(MemoryHost, Plan or None)], None where there is no host
        """
        cycle = cycles.Cycle(self.answers(objection), request, policy, now,
                             memo=self.memo, **kwargs)
        self.begin(cycle)
        resources = capacity.total(
            group.resources for group in request.groups)
        left = iter(uuids)
        undo: list[Callable[[], None]] = []

        def claim(uuid: str, plan: Plan | None) -> bool:
            host = self.hosts[uuid]
            victims = plan.victims if plan else ()
            for victim in victims:
                undo.append(functools.partial(
                    self.put, host, victim.uuid,
                    host.allocations[victim.uuid], victim))
                self.take_away(host, victim.uuid)
            new = next(left)
            self.put(host, new, resources,
                     None if make_server is None else make_server(new, host))
            undo.append(functools.partial(self.take_away, host, new))
            return True

        found = cycle.place(self.offered(cycle), claim, len(uuids))
        if found is None:
            for act in reversed(undo):
                act()
            return None
        return [(self.hosts[uuid], plan) for uuid, plan in found]


def cheapest_first(host: MemoryHost, cost_us: int | None
                   ) -> tuple[bool, int, str, str]:
    """Hosts with room first, then those whose victims cost least."""
    return (cost_us is not None, cost_us or 0, host.name, host.uuid)


class Answers:
    """A core.scheduling.port.Cloud."""

    def __init__(self, cloud: MemoryCloud, objection: str = '') -> None:
        self._cloud = cloud
        self._objection = objection
        self._names = cloud.by_name()

    def objection(self) -> str:
        return self._objection

    def refresh(self, max_age_s: float) -> None:
        pass

    def may_wait(self, notice_s: float) -> bool:
        return notice_s <= self._cloud.longest_notice_s

    def listed(self, max_age_s: float) -> Sequence[port.Listing]:
        return [host.listing for host in self._cloud.hosts.values()
                if host.servers]

    def list_again(self, host: str, max_age_s: float) -> port.Listing | None:
        found = self._cloud.hosts.get(host)
        return None if found is None else found.listing

    def read(self, host: str) -> tuple[Provider, ...]:
        found = self._cloud.hosts.get(host)
        return found.providers if found else ()

    def servers_on(self, name: str) -> Mapping[str, Server]:
        return self._names[name].servers

    def server(self, uuid: str) -> Server | None:
        found = self._cloud.find(uuid)
        return None if found is None else found.servers[uuid]

    def ending(self) -> Collection[str]:
        return ()

    def releasing(self) -> Mapping[str, Releasing]:
        return {}

    def budgets(self) -> budgets.Budgets | None:
        return self._cloud.budget

    def load(self, hosts: Collection[str]) -> Collection[str]:
        return [uuid for uuid in hosts if uuid in self._cloud.hosts]

    def passing(self, trials: Sequence[port.Trial]) -> Collection[str]:
        return {trial.host for trial in trials
                if self._cloud.passes(self._cloud.hosts[trial.host],
                                      trial.without)}

    def order(self, trials: Sequence[port.Trial], index: int) -> Sequence[str]:
        passing = self.passing(trials)
        costs = {trial.host: trial.cost_us if trial.without else None
                 for trial in trials}
        return sorted(passing, key=lambda uuid: self._cloud.weigh(
            self._cloud.hosts[uuid], costs[uuid]))

    def room_age_s(self) -> float:
        return 0.0
