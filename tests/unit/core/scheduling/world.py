# SPDX-License-Identifier: Apache-2.0

"""In-memory clouds for tests of decisions."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
import dataclasses
import datetime
import functools
from typing import Any

from nova_preempt.core import eligibility
from nova_preempt.core.model import (
    Inventory,
    PreemptibleServer,
    Request,
    Resources,
)
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import eviction_budgets
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling import scheduling_cycle
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.simulator import memory_cloud

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.timezone.utc)

#: {uuid of a preemptible server: (cost in micro-units, what it has)}
Spots = Mapping[str, tuple[int, Resources]]


def server(uuid: str, node: str = 'host',
           **values: object) -> PreemptibleServer:
    """Return the record of a preemptible server, launched two hours ago."""
    return PreemptibleServer(**{  # type: ignore[arg-type]
        'uuid': uuid, 'host': node, 'node': node, 'cell_uuid': 'cell',
        'project_id': 'p', 'user_id': 'u', 'flavor': 'f',
        'launched_at': NOW - datetime.timedelta(hours=2),
        'vm_state': 'active', 'task_state': None, 'minimum_runtime_s': 0,
        'vcpus': 1, 'memory_mb': 1, 'disk_mb': 1, **values})


#: Whether a host passes every filter without some servers.
Passes = Callable[[memory_cloud.MemoryHost, tuple[PreemptibleServer, ...]],
                  bool]
#: Makes the record of a preemptible server, None for a normal one.
MakeServer = Callable[[str, memory_cloud.MemoryHost], PreemptibleServer | None]


class Answers(memory_cloud.MemoryCloudView):
    """A host of a World; may be changed."""

    _cloud: World

    def may_wait(self, notice_s: float) -> bool:
        return notice_s <= self._cloud.longest_notice_s

    def budgets(self) -> eviction_budgets.EvictionBudgets | None:
        return self._cloud.budget

    def passing(self,
                trials: Sequence[cloud_view.HostTrial]) -> Collection[str]:
        return {trial.host for trial in trials
                if self._cloud.passes(self._cloud.hosts[trial.host],
                                      trial.without)}

    def _key(self, trial: cloud_view.HostTrial) -> tuple[Any, ...]:
        if self._cloud.weigh is None:
            return super()._key(trial)
        return (self._cloud.weigh(
            self._cloud.hosts[trial.host],
            trial.cost_us if trial.without else None),)


class World(memory_cloud.MemoryCloud):
    """Hosts with preemptible servers of given costs.

    :ivar costs: {uuid: micro-units}
    :ivar weigh: given (MemoryHost, cost in micro-units or None for one with
        room), a key by which the smallest comes first
    """

    def __init__(self, passes: Passes = lambda host, without: True) -> None:
        super().__init__(())
        self.passes = passes
        self.weigh: Callable[[memory_cloud.MemoryHost, int | None],
                             Any] | None = (
                                 None)
        self.budget: eviction_budgets.EvictionBudgets | None = None
        self.longest_notice_s = float('inf')
        self.costs: dict[str, int] = {}
        self.policy = preemption_policy.Policy(
            eligibility.Rules(), ('delete',),
            lambda server, options: self.costs[server.uuid])

    def add(self, name: str, capacity: Resources, used: Resources = (),
            spots: Spots = (), uuid: str = '', **values: object) -> None:
        """Add a host.

        :param used: by normal servers
        :param values: of its preemptible servers' records
        """
        host = memory_cloud.MemoryHost(
            uuid or f'uuid of {name}', name,
            {rc: total if isinstance(total, Inventory) else Inventory(total)
             for rc, total in capacity.items()})
        if used:
            host.add(f'normal on {host.uuid}', used)
        for spot, (cost, resources) in dict(spots).items():
            self.costs[spot] = cost
            host.add(spot, resources, server(spot, name, **values))
        self.hosts[host.uuid] = host

    def set(self, **values: object) -> None:
        """Change the policy."""
        self.policy = dataclasses.replace(self.policy, **values)

    def cycle(self, resources: Resources,
              **kwargs: object) -> scheduling_cycle.SchedulingCycle:
        """Return a SchedulingCycle that knows which hosts have room."""
        self.view = self.answers()
        cycle = scheduling_cycle.SchedulingCycle(self.view,
                                                 Request.of(resources),
                                                 self.policy, NOW, **kwargs)
        self.begin(cycle)
        return cycle

    def begin(self, cycle: scheduling_cycle.SchedulingCycle) -> None:
        """Tell a SchedulingCycle which hosts have room."""
        cycle.found_room({
            uuid: host.providers[0].all_free
            for uuid, host in self.hosts.items()
            if host.has_room(cycle.request)})

    def considered(self, resources: Resources, **kwargs: object
                   ) -> list[tuple[str, str, int]]:
        """Return (host, victims, cost) of all hosts, the best first."""
        self.set(always=True, first_batch=1000)
        cycle = self.cycle(resources, **kwargs)
        cycle.order(self.offered(cycle))
        return [(item.name, ' '.join(item.victims), item.cost_us)
                for item in cycle.hosts.considered]

    def refusals(self, resources: Resources) -> dict[str, str]:
        """Return why hosts with preemptible servers cannot serve it."""
        cycle = self.cycle(resources)
        cycle.order(self.offered(cycle))
        return cycle.search.refusals

    def placed(self, resources: Resources, *uuids: str,
               make_server: MakeServer = lambda uuid, host: None,
               **kwargs: object) -> list[tuple[str, list[str]]] | None:
        """Place servers; return the host and the victims of each."""
        cycle = self.cycle(resources, memo=self.memo, **kwargs)
        left = iter(uuids or ('new',))
        undo: list[Callable[[], None]] = []

        def claim(uuid: str, plan: Plan | None) -> bool:
            host = self.hosts[uuid]
            for victim in plan.victims if plan else ():
                undo.append(functools.partial(
                    host.add, victim.uuid,
                    host.allocations[victim.uuid], victim))
                host.remove(victim.uuid)
            new = next(left)
            host.add(new, resources, make_server(new, host))
            undo.append(functools.partial(host.remove, new))
            return True

        found = cycle.place(self.offered(cycle), claim, len(uuids) or 1)
        if found is None:
            for act in reversed(undo):
                act()
            return None
        return [(self.hosts[uuid].name, [each.uuid for each in plan.victims]
                 if plan else []) for uuid, plan in found]

    def answers(self, objection: str = '') -> Answers:
        """Return the recorded inputs of a request's decision."""
        return Answers(self, objection)


def amounts(vcpus: int, memory_mb: int = 0) -> Resources:
    """Return resources."""
    found = {'VCPU': vcpus}
    if memory_mb:
        found['MEMORY_MB'] = memory_mb
    return found


def uuids(found: Iterable[PreemptibleServer]) -> list[str]:
    """Return the uuids of servers."""
    return [each.uuid for each in found]
