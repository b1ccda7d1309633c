# SPDX-License-Identifier: Apache-2.0
"""Space that is kept free ahead of demand, in the whole cloud.

As nova_preempt.headroom has it for schedulers, and nova_preempt.engine.
headroom for the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import functools

from nova_preempt.core import headroom_account
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import headroom_controller
from nova_preempt.core.model import SECOND, Provider, Resources
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.indexed_cloud import IndexedCloud
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulation_state import Parts

_NAME = 'the cloud'


class Nodes(Mapping[str, Provider]):
    """The hosts as they are now, made of those that are asked after."""

    def __init__(self, cloud: IndexedCloud) -> None:
        self.cloud = cloud

    def __getitem__(self, name: str) -> Provider:
        found: Provider = self.cloud.by_name()[name].providers[0]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.cloud.by_name())

    def __len__(self) -> int:
        return len(self.cloud.by_name())


class Cloud(headroom_account.Group):
    """All hosts as one group, without a look at each of them.

    What is free is added up by the cloud.
    """

    nodes: Nodes

    def uuids(self) -> set[str]:
        return self._uuids

    @functools.cached_property
    def _uuids(self) -> set[str]:
        return set(self.nodes.cloud.hosts)

    def capacity(self, resource_class: str) -> int:
        return self._capacity.get(resource_class, 0)

    @functools.cached_property
    def _capacity(self) -> dict[str, int]:
        return {rc: super(Cloud, self).capacity(rc) for rc in self.wanted}

    def free(self) -> dict[str, int]:
        found = self.nodes.cloud.free()
        return {name: found.get(name, 0) for name in self.wanted}


class Headroom:
    """Keeps it; there is room for all where none is to be kept."""

    def __init__(self, parts: Parts,
                 under_way: simulated_evictions.Endings) -> None:
        self._parts = parts
        self._endings = under_way
        self._account = headroom_account.HeadroomAccount()
        self._read_us: int | None = None
        self._memory: int | None = None
        self._wanted = parts.options.headroom
        self._group = Cloud(_NAME, self._wanted, Nodes(parts.cloud))
        if self._wanted:
            under_way.requests.is_short = self._is_short
            parts.events.add(parts.events.now_us, Turn.LOOK, self._look)

    # -- schedulers --------------------------------------------------------

    def is_closed(self, resources: Resources) -> bool:
        """Whether a preemptible server of this size would be in the way."""
        if not self._wanted:
            return False
        self._refresh()
        # All hosts are in the one group that there is.
        (uuid, *_) = self._parts.cloud.hosts
        return self._account.lacks({uuid: resources})

    def has_room(self, resources: Resources) -> bool:
        """Whether there is space to spare for it on some host."""
        if not self._wanted:
            return True
        self._read()
        return self._account.has_room_on(
            resources, self._parts.cloud.providers_with(resources))

    def placed(self, server: Server) -> None:
        """A server has taken what was free."""
        if self._wanted:
            self._account.take(headroom_account.Claim(
                {server.current_host.uuid: server.kind.resources},
                self._parts.events.now_us))

    def _refresh(self) -> None:
        now_us = self._parts.events.now_us
        max_age_us = self._parts.options.max_age_s * SECOND
        if self._read_us is None or now_us - self._read_us > max_age_us:
            self._read()

    def _read(self) -> None:
        # What was claimed at this very moment is there to be read, too.
        self._read_us = self._parts.events.now_us
        self._account.read((self._group,), self._read_us + 1)

    def _is_short(self) -> bool:
        return any(amount < 0 for amount in self._group.spare().values())

    # -- the engine --------------------------------------------------------

    def _look(self) -> None:
        parts = self._parts
        step = headroom_controller.step(
            headroom_controller.Observed(
                self._group,
                {victim.boot.id: {
                    victim.current_host.uuid:
                    victim.current_host.allocations[victim.boot.id]}
                 for victim in self._endings.decisions.ending_for_none()},
                self._candidates, parts.cloud.changes),
            self._memory, simulated_servers.clock_us(parts.events.now_us))
        self._memory = step.memory
        for end in step.intents:
            self._endings.end(parts.servers[end.server.uuid],
                              requester_liveness.HEADROOM)
        parts.events.add(parts.events.now_us
                         + parts.options.interval_s * SECOND, Turn.LOOK,
                         self._look)

    def _candidates(self) -> headroom_controller.Candidates:
        parts = self._parts
        return headroom_controller.Candidates(
            (record for host in parts.cloud.hosts.values()
             for record in host.servers.values()), parts.options.policy,
            self._endings.budgets(), self._endings.ending)
