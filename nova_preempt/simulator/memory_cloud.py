# SPDX-License-Identifier: Apache-2.0

"""A cloud in memory that implements the core's CloudView.

See core.scheduling.cloud_view.CloudView.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
from typing import Any

from nova_preempt.core import capacity
from nova_preempt.core.model import (
    Host,
    Inventory,
    PreemptibleServer,
    Provider,
    Refusal,
    Request,
)
from nova_preempt.core.scheduling import cost_bound_cache
from nova_preempt.core.scheduling import eviction_budgets
from nova_preempt.core.scheduling import scheduling_cycle
from nova_preempt.core.scheduling.cloud_view import HostTrial
from nova_preempt.core.scheduling.cloud_view import ListedHost
from nova_preempt.core.scheduling.pending_evictions import ReleasingHost


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
    servers: dict[str,
                  PreemptibleServer] = dataclasses.field(default_factory=dict)
    generation: int = 0

    def __post_init__(self) -> None:
        self._listing: ListedHost | None = None
        # {kind of request: whether it has room}
        self._room: dict[tuple[object, ...], bool] = {}

    @property
    def listing(self) -> ListedHost:
        """Return the data of the host for a decision."""
        if self._listing is None or (
                self._listing.providers[0].generation != self.generation):
            provider = Provider(self.uuid, self.generation, self.inventories,
                                dict(self.allocations))
            self._listing = ListedHost(self.uuid, self.name, (provider,), True)
            self._room = {}
        return self._listing

    @property
    def providers(self) -> tuple[Provider, ...]:
        """Return the tree of its providers."""
        return self.listing.providers

    def add(self, uuid: str, resources: Mapping[str, int],
            server: PreemptibleServer | None = None) -> None:
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
        """Return whether a server fits without evictions."""
        providers = self.providers
        has_room = self._room.get(request.kind)
        if has_room is None:
            found = capacity.missing(request, Host(self.name, providers))
            has_room = not isinstance(found, Refusal) and not found
            self._room[request.kind] = has_room
        return has_room


class MemoryCloud:
    """A cloud of hosts with their servers.

    :param hosts: MemoryHosts
    """

    def __init__(self, hosts: Iterable[MemoryHost]) -> None:
        self.hosts = {host.uuid: host for host in hosts}
        self.memo = cost_bound_cache.CostBoundCache()

    def answers(self, objection: str = '') -> MemoryCloudView:
        """Return the CloudView for the decision on a request."""
        return MemoryCloudView(self, objection)

    def by_name(self) -> Mapping[str, MemoryHost]:
        """Return {name: MemoryHost}."""
        return {host.name: host for host in self.hosts.values()}

    def find(self, uuid: str) -> MemoryHost | None:
        """The MemoryHost of a preemptible server, None if there is none."""
        return next((host for host in self.hosts.values()
                     if uuid in host.servers), None)

    def offered(
            self,
            cycle: scheduling_cycle.SchedulingCycle) -> list[tuple[str, str]]:
        """The hosts to put in order first: (uuid, name) of each."""
        plans = cycle.offer(any_victims=True)
        return [(uuid, self.hosts[uuid].name)
                for uuid in (*cycle.room, *(plan.host.uuid for plan in plans))]


class MemoryCloudView:
    """A core.scheduling.cloud_view.CloudView."""

    def __init__(self, cloud: MemoryCloud, objection: str = '') -> None:
        self._cloud = cloud
        self._objection = objection
        self._names = cloud.by_name()

    def objection(self) -> str:
        return self._objection

    def refresh(self, max_age_s: float) -> None:
        pass

    def may_wait(self, notice_s: float) -> bool:
        return True

    def listed(self, max_age_s: float) -> Sequence[ListedHost]:
        return [host.listing for host in self._cloud.hosts.values()
                if host.servers]

    def list_again(self, host: str, max_age_s: float) -> ListedHost | None:
        found = self._cloud.hosts.get(host)
        return None if found is None else found.listing

    def read(self, host: str) -> tuple[Provider, ...]:
        found = self._cloud.hosts.get(host)
        return found.providers if found else ()

    def servers_on(self, name: str) -> Mapping[str, PreemptibleServer]:
        return self._names[name].servers

    def server(self, uuid: str) -> PreemptibleServer | None:
        found = self._cloud.find(uuid)
        return None if found is None else found.servers[uuid]

    def ending(self) -> Collection[str]:
        return ()

    def releasing(self) -> Mapping[str, ReleasingHost]:
        return {}

    def budgets(self) -> eviction_budgets.EvictionBudgets | None:
        return None

    def load(self, hosts: Collection[str]) -> Collection[str]:
        return [uuid for uuid in hosts if uuid in self._cloud.hosts]

    def passing(self, trials: Sequence[HostTrial]) -> Collection[str]:
        return {trial.host for trial in trials}

    def order(self, trials: Sequence[HostTrial], index: int) -> Sequence[str]:
        passing = self.passing(trials)
        return [trial.host for trial in sorted(trials, key=self._key)
                if trial.host in passing]

    def _key(self, trial: HostTrial) -> tuple[Any, ...]:
        """Order free hosts first, then hosts with cheap victims."""
        host = self._cloud.hosts[trial.host]
        return (bool(trial.without), trial.cost_us if trial.without else 0,
                host.name, host.uuid)

    def room_age_s(self) -> float:
        return 0.0
