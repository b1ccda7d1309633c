# SPDX-License-Identifier: Apache-2.0
"""Space that is kept free ahead of demand, in the whole cloud.

As nova_preempt.headroom has it for schedulers, and nova_preempt.engine.
headroom for the engine.
"""

from collections.abc import Iterator, Mapping
import functools

from nova_preempt.core import headroom_account
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import headroom_controller
from nova_preempt.core.model import SECOND, Provider, Resources
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.indexed_cloud import IndexedCloud
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulation_state import SimulationState

_NAME = 'the cloud'


class HostProviders(Mapping[str, Provider]):
    """Current hosts, built when they are requested."""

    def __init__(self, cloud: IndexedCloud) -> None:
        self.cloud = cloud

    def __getitem__(self, name: str) -> Provider:
        return self.cloud.by_name()[name].providers[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cloud.by_name())

    def __len__(self) -> int:
        return len(self.cloud.by_name())


class CloudGroup(headroom_account.HostGroup):
    """Group of all hosts, computed from the sums of the cloud.

    What is free is added up by the cloud.
    """

    nodes: HostProviders

    def uuids(self) -> set[str]:
        return self._uuids

    @functools.cached_property
    def _uuids(self) -> set[str]:
        return set(self.nodes.cloud.hosts)

    def capacity(self, resource_class: str) -> int:
        return self._capacity.get(resource_class, 0)

    @functools.cached_property
    def _capacity(self) -> dict[str, int]:
        return {rc: super(CloudGroup, self).capacity(rc) for rc in self.wanted}

    def free(self) -> dict[str, int]:
        found = self.nodes.cloud.free()
        return {name: found.get(name, 0) for name in self.wanted}


class Headroom:
    """Keeps it; there is room for all where none is to be kept."""

    def __init__(self, world: SimulationState,
                 evictions: simulated_evictions.Evictions) -> None:
        self._world = world
        self._evictions = evictions
        self._account = headroom_account.HeadroomAccount()
        self._read_us: int | None = None
        self._memory: int | None = None
        self._wanted = world.options.headroom
        self._group = CloudGroup(_NAME, self._wanted,
                                 HostProviders(world.cloud))
        if self._wanted:
            evictions.requests.is_short = self._is_short
            world.events.add(world.events.now_us, Phase.POLL, self._look)

    # -- schedulers --------------------------------------------------------

    def is_closed(self, resources: Resources) -> bool:
        """Return whether a preemptible server would use headroom."""
        if not self._wanted:
            return False
        self._refresh()
        # All hosts are in the one group that there is.
        (uuid, *_) = self._world.cloud.hosts
        return self._account.lacks({uuid: resources})

    def has_room(self, resources: Resources) -> bool:
        """Return whether a host has capacity beyond the headroom."""
        if not self._wanted:
            return True
        self._read()
        return self._account.has_room_on(
            resources, self._world.cloud.providers_with(resources))

    def placed(self, server: Server) -> None:
        """Record that a server has used free capacity."""
        if self._wanted:
            self._account.take(headroom_account.HeadroomClaim(
                {server.current_host.uuid: server.kind.resources},
                self._world.events.now_us))

    def _refresh(self) -> None:
        now_us = self._world.events.now_us
        max_age_us = self._world.options.max_age_s * SECOND
        if self._read_us is None or now_us - self._read_us > max_age_us:
            self._read()

    def _read(self) -> None:
        # What was claimed at this very moment is there to be read, too.
        self._read_us = self._world.events.now_us
        self._account.read((self._group,), self._read_us + 1)

    def _is_short(self) -> bool:
        return any(amount < 0 for amount in self._group.spare().values())

    # -- the engine --------------------------------------------------------

    def _look(self) -> None:
        world = self._world
        step = headroom_controller.step(
            headroom_controller.Observed(
                self._group,
                {victim.boot.id: {
                    victim.current_host.uuid:
                    victim.current_host.allocations[victim.boot.id]}
                 for victim in self._evictions.decisions.ending_for_none()},
                self._candidates, world.cloud.changes),
            self._memory, simulated_servers.clock_us(world.events.now_us))
        self._memory = step.memory
        for end in step.intents:
            self._evictions.end(world.servers[end.server.uuid],
                                requester_liveness.HEADROOM)
        world.events.add(world.events.now_us
                         + world.options.interval_s * SECOND, Phase.POLL,
                         self._look)

    def _candidates(self) -> headroom_controller.Candidates:
        world = self._world
        return headroom_controller.Candidates(
            (record for host in world.cloud.hosts.values()
             for record in host.servers.values()), world.options.policy,
            self._evictions.budgets(), self._evictions.ending)
