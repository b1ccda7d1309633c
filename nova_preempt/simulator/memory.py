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

from collections.abc import Callable, Iterable
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.model import Host, Inventory, Provider, Refusal
from nova_preempt.core.scheduling import cycle as cycles
from nova_preempt.core.scheduling import memo
from nova_preempt.core.scheduling import port


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
    allocations: dict = dataclasses.field(default_factory=dict)
    servers: dict = dataclasses.field(default_factory=dict)
    generation: int = 0

    def __post_init__(self):
        self._listing = None
        self._room = {}           # kind of request: whether it has room

    @property
    def listing(self):
        """What a decision is told of it, a core Listing."""
        if self._listing is None or (
                self._listing.providers[0].generation != self.generation):
            self._listing = port.Listing(self.uuid, self.name, (Provider(
                self.uuid, self.generation, self.inventories,
                dict(self.allocations)),), True)
            self._room = {}
        return self._listing

    @property
    def providers(self):
        """Its tree of providers."""
        return self.listing.providers

    def add(self, uuid, resources, server=None):
        """Put a server here, a preemptible one with its record.

        Or change what it holds, if it is here.
        """
        self.allocations[uuid] = dict(resources)
        if server is not None:
            self.servers = {**self.servers, uuid: server}
        self.generation += 1

    def remove(self, uuid):
        """Take a server away."""
        del self.allocations[uuid]
        if uuid in self.servers:
            self.servers = {other: server for other, server
                            in self.servers.items() if other != uuid}
        self.generation += 1

    def has_room(self, request):
        """Whether a server fits without anybody's end."""
        return self.has_room_for(request, request.kind)

    def has_room_for(self, request, kind):
        """The same of a request whose kind is known."""
        providers = self.providers
        has_room = self._room.get(kind)
        if has_room is None:
            found = capacity.missing(request, Host(self.name, providers))
            has_room = not isinstance(found, Refusal) and not found
            self._room[kind] = has_room
        return has_room


class MemoryCloud:
    """Hosts, and whoever runs on them.

    :param hosts: MemoryHosts
    :param passes: given (MemoryHost, servers that are gone), whether it
        passes every filter
    :param weigh: given (MemoryHost, cost in micro-units or None for one with
        room), a key by which the smallest comes first
    """

    def __init__(self, hosts: Iterable[MemoryHost],
                 passes: Callable = lambda host, without: True,
                 weigh: Callable | None = None):
        self.hosts = {host.uuid: host for host in hosts}
        self.passes = passes
        self.weigh = weigh or cheapest_first
        self.budget = None
        self.memo = memo.Memo()
        self.longest_notice_s = float('inf')

    def answers(self, objection=''):
        """What the decision on one request is told."""
        return Answers(self, objection)

    def by_name(self):
        """{name: MemoryHost}."""
        return {host.name: host for host in self.hosts.values()}

    def find(self, uuid):
        """The MemoryHost of a preemptible server, None if there is none."""
        return next((host for host in self.hosts.values()
                     if uuid in host.servers), None)

    def begin(self, cycle):
        """Tell a core Cycle which hosts have room."""
        kind = cycle.request.kind
        cycle.found_room({
            uuid: {name: host.providers[0].free(name)
                   for name in host.inventories}
            for uuid, host in self.hosts.items()
            if host.has_room_for(cycle.request, kind)})

    def offered(self, cycle):
        """The hosts to put in order first: (uuid, name) of each."""
        plans = cycle.offer(any_victims=True)
        return [(uuid, self.hosts[uuid].name)
                for uuid in (*cycle.room, *(plan.host.uuid
                                            for plan in plans))]

    def put(self, host, uuid, resources, server=None):
        """Put a server on a host, see MemoryHost.add()."""
        host.add(uuid, resources, server)

    def take_away(self, host, uuid):
        """Take a server away from a host."""
        host.remove(uuid)

    def place(self, request, policy, now, uuids, make_server=None, **kwargs):
        """Place servers of one request, end their victims.

        :param request: the core's Request
        :param uuids: of the servers
        :param make_server: makes the record of a preemptible one, given
            (uuid, MemoryHost); None for normal servers
        :param kwargs: for the core's Cycle
        :returns: [(MemoryHost, Plan or None)], None where there is no host
        """
        cycle = cycles.Cycle(self.answers(), request, policy, now,
                             memo=self.memo, **kwargs)
        self.begin(cycle)
        resources = capacity.total(
            group.resources for group in request.groups)
        left = iter(uuids)
        undo = []

        def claim(uuid, plan):
            host = self.hosts[uuid]
            victims = plan.victims if plan else ()
            for victim in victims:
                undo.append((self.put, (
                    host, victim.uuid, host.allocations[victim.uuid],
                    victim)))
                self.take_away(host, victim.uuid)
            new = next(left)
            self.put(host, new, resources,
                     make_server and make_server(new, host))
            undo.append((self.take_away, (host, new)))
            return True

        found = cycle.place(self.offered(cycle), claim, len(uuids))
        if found is None:
            for act, arguments in reversed(undo):
                act(*arguments)
            return None
        return [(self.hosts[uuid], plan) for uuid, plan in found]


def cheapest_first(host, cost_us):
    """Hosts with room first, then those whose victims cost least."""
    return (cost_us is not None, cost_us or 0, host.name, host.uuid)


class Answers:
    """A core.scheduling.port.Cloud."""

    def __init__(self, cloud, objection=''):
        self._cloud = cloud
        self._objection = objection
        self._names = cloud.by_name()

    def objection(self):
        return self._objection

    def refresh(self, max_age_s):
        pass

    def may_wait(self, notice_s):
        return notice_s <= self._cloud.longest_notice_s

    def listed(self, max_age_s):
        return [host.listing for host in self._cloud.hosts.values()
                if host.servers]

    def list_again(self, host, max_age_s):
        found = self._cloud.hosts.get(host)
        return found and found.listing

    def read(self, host):
        found = self._cloud.hosts.get(host)
        return found.providers if found else ()

    def servers_on(self, name):
        return self._names[name].servers

    def server(self, uuid):
        found = self._cloud.find(uuid)
        return found and found.servers[uuid]

    def ending(self):
        return ()

    def releasing(self):
        return {}

    def budgets(self):
        return self._cloud.budget

    def load(self, hosts):
        return [uuid for uuid in hosts if uuid in self._cloud.hosts]

    def passing(self, trials):
        return {trial.host for trial in trials
                if self._cloud.passes(self._cloud.hosts[trial.host],
                                      trial.without)}

    def order(self, trials, index):
        passing = self.passing(trials)
        costs = {trial.host: trial.cost_us if trial.without else None
                 for trial in trials}
        return sorted(passing, key=lambda uuid: self._cloud.weigh(
            self._cloud.hosts[uuid], costs[uuid]))

    def room_age_s(self):
        return 0.0
