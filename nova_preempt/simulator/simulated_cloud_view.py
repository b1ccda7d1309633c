# SPDX-License-Identifier: Apache-2.0
"""Implements the core's CloudView for a simulated cloud."""

from collections.abc import Collection, Mapping, Sequence
import functools

from nova_preempt.core import capacity
from nova_preempt.core.model import Request
from nova_preempt.core.scheduling.cloud_view import HostTrial
from nova_preempt.core.scheduling.cloud_view import ListedHost
from nova_preempt.core.scheduling.eviction_budgets import EvictionBudgets
from nova_preempt.core.scheduling.pending_evictions import ReleasingHost
from nova_preempt.core.times import microseconds
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.cost_bound_index import Mask
from nova_preempt.simulator.simulation_state import SimulationState


class SimulatedCloudView(memory_cloud.MemoryCloudView):
    """Answers for the decision on one request.

    :param waited: decisions that it has waited for before
    :param is_closed: whether nothing that is free may be taken for it
    :param enabled: whether anybody may end for it
    :param where: a mask of the hosts that reservations let it go to, None
        for all
    """

    def __init__(self, world: SimulationState,
                 evictions: simulated_evictions.Evictions,
                 request: Request, waited: Collection[str],
                 *, is_closed: bool = False, where: Mask | None = None,
                 enabled: bool = True) -> None:
        super().__init__(world.cloud, '' if enabled else 'preemption is off')
        self._world = world
        self._asked = request
        self._evictions = evictions
        self._waited = waited
        self._is_closed = is_closed
        self._where = where

    def passing(self, trials: Sequence[HostTrial]) -> Collection[str]:
        found = super().passing(trials)
        if self._where is not None:
            found = {uuid for uuid in found
                     if self._world.cloud.is_among(uuid, self._where)}
        if not self._is_closed:
            return found
        return {trial.host for trial in trials
                if trial.host in found and self._gives_all(trial)}

    def _gives_all(self, trial: HostTrial) -> bool:
        """Return whether victims release all that they use."""
        host = self._world.cloud.hosts[trial.host]
        left = capacity.total(host.allocations[server.uuid]
                              for server in trial.without)
        return all(capacity.fits(group.resources, left)
                   for group in self._asked.groups)

    def listed(self, max_age_s: float) -> Sequence[ListedHost]:
        return self._world.cloud.candidates(
            self._asked, self._world.options.policy,
            microseconds(simulated_servers.at(self._world.events.now_us)),
            [each.host for each in self._evictions.decisions.open.values()],
            self._where)

    def may_wait(self, notice_s: float) -> bool:
        return notice_s <= 0 or self._can_wait

    @functools.cached_property
    def _can_wait(self) -> bool:
        return (self._evictions.decisions.waiting
                < self._world.options.max_waiting_requests)

    def ending(self) -> Collection[str]:
        return self._evictions.ending

    def releasing(self) -> Mapping[str, ReleasingHost]:
        return self._evictions.decisions.releasing(self._waited)

    def budgets(self) -> EvictionBudgets | None:
        return self._evictions.budgets()
