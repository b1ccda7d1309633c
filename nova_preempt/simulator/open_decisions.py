# SPDX-License-Identifier: Apache-2.0
"""Open decisions, and the capacity that they release.

Also, for the core, which requests of a simulation still exist.
"""

import collections
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import dataclasses
import itertools

from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.eviction_actions import choose
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.reservation import reservation_model
from nova_preempt.core.scheduling import eviction_budgets
from nova_preempt.core.scheduling.pending_evictions import PendingEviction
from nova_preempt.core.scheduling.pending_evictions import ReleasingHost
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator.simulated_servers import HostSearch
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState

#: Of decisions for no request.
_NO_SEARCH = HostSearch()


@dataclasses.dataclass(eq=False, slots=True)
class Decision:
    """Victims that are evicted together.

    :ivar server: for whom, None if for no request
    :ivar purpose: what needs the space
    :ivar victims: {uuid: Server}
    :ivar terms: {uuid: how it ends}
    :ivar shown: {uuid: Nova's record of it} of those that were asked to end
    :ivar attempt: in which the host was found
    """

    uuid: str
    host: memory_cloud.MemoryHost
    server: Server | None
    purpose: requester_liveness.ServedRequest
    attempt: HostSearch = _NO_SEARCH
    victims: dict[str, Server] = dataclasses.field(default_factory=dict)
    terms: dict[str, eviction_values.Victim] = dataclasses.field(
        default_factory=dict)
    shown: dict[str, ObservedServer | None] = dataclasses.field(
        default_factory=dict)
    memory: eviction_values.Memory = dataclasses.field(
        default_factory=lambda: eviction_values.Memory({}, 0))
    waiters: list[tuple[Server, set[str], HostSearch]] = dataclasses.field(
        default_factory=list)

    def is_open(self, victim: Server) -> bool:
        """Return whether a victim has not ended yet."""
        return victim.boot.id in self.memory.pending and (
            self.victims[victim.boot.id] is victim)

    def observed(self, why_unwanted: str) -> eviction_values.Observed:
        """Return the core's observation; hosts are always up."""
        return eviction_values.Observed(
            self.terms,
            {} if self.server is None else {self.uuid: self.host.name},
            {uuid: (self._seen(uuid), True) for uuid in self.memory.pending},
            dict.fromkeys(self.memory.pending, False), {self.host.name: True},
            {self.uuid: why_unwanted})

    def _seen(self, uuid: str) -> ObservedServer | None:
        """Return a victim as Nova's record would show it."""
        victim = self.victims[uuid]
        if uuid in self.shown:
            return self.shown[uuid]
        if victim.state is State.OVER:
            return None
        if victim.state is State.SHELVED:
            return ObservedServer(uuid, 'shelved_offloaded')
        # Others end it, too, as once a reservation is over.
        return ObservedServer(
            uuid, 'stopped' if victim.state is State.STOPPED else 'active',
            None if victim.state in _AT_REST else 'deleting', self.host.name)


#: In these nothing happens to a victim.
_AT_REST = frozenset((State.RUNNING, State.NOTICE, State.STOPPED))


class OpenDecisions:
    """Open decisions, and the requests that wait for them.

    :ivar open: {uuid: Decision}
    :ivar others: tells how many wait in schedulers for other things
    """

    def __init__(self, world: SimulationState) -> None:
        self.open: dict[str, Decision] = {}
        self.others: Callable[[], int] = lambda: 0
        self._world = world
        # The open ones by the uuid of their host.
        self._by_host: dict[str, dict[str, Decision]] = {}
        self._joined: dict[str, tuple[Server, str]] = {}
        self._serial = itertools.count(1)

    @property
    def waiting(self) -> int:
        """Count the requests that wait for evictions, or for hosts."""
        return self.others() + len(self._joined) + sum(
            each.server is not None for each in self.open.values())

    def add(self, host: memory_cloud.MemoryHost, server: Server | None = None,
            attempt: HostSearch = _NO_SEARCH, operation: str = '',
            reservation: str = '') -> Decision:
        """Return a new one."""
        decision = Decision(
            f'd{next(self._serial)}', host, server,
            requester_liveness.ServedRequest(
                operation, '' if server is None else server.boot.id,
                reservation, host.name, (host.uuid,)), attempt)
        self.open[decision.uuid] = decision
        self._by_host.setdefault(host.uuid, {})[decision.uuid] = decision
        return decision

    def close(self, decision: Decision) -> None:
        """Forget a decision that is closed."""
        del self.open[decision.uuid]
        there = self._by_host[decision.host.uuid]
        del there[decision.uuid]
        if not there:
            del self._by_host[decision.host.uuid]

    def ending_for_none(self) -> list[Server]:
        """Return the victims that end for no server."""
        return [decision.victims[uuid] for decision in self.open.values()
                if decision.server is None for uuid in decision.memory.pending]

    # -- who waits for ends that are under way -----------------------------

    def join(self, server: Server, plan: Plan, attempt: HostSearch) -> None:
        """Have a server wait for them."""
        server.state = State.WAITING
        self._joined[server.boot.id] = (server, plan.host.uuid)
        joins = {uuid for uuid in plan.joins if uuid in self.open}
        waiter = (server, joins, dataclasses.replace(
            attempt, waited={*attempt.waited, *joins}, is_stuck=False))
        for uuid in sorted(joins):
            self.open[uuid].waiters.append(waiter)
        self._world.report.note('joined', server)

    def leave(self, server: Server) -> bool:
        """Stop waiting with a server; return whether it waited."""
        return self._joined.pop(server.boot.id, None) is not None

    def released(self,
                 decision: Decision) -> Iterator[tuple[Server, HostSearch]]:
        """Yield the servers to decide anew after a decision closed."""
        for server, joins, attempt in decision.waiters:
            joins.discard(decision.uuid)
            if not joins and self.leave(server):
                yield server, attempt

    def releasing(self, waited: Collection[str] = ()
                  ) -> Mapping[str, ReleasingHost]:
        """Return the capacity being released, by host.

        :param waited: decisions that were waited for before
        """
        return ReleasingByHost(self._by_host, self._release_of, waited)

    def _release_of(self, decisions: Sequence[Decision]) -> ReleasingHost:
        host = decisions[0].host.uuid
        allowed = self._world.options.policy.actions
        now_us = self._world.events.now_us
        return ReleasingHost(
            tuple(PendingEviction(
                each.uuid,
                {uuid: choose(each.victims[uuid].terms.action, allowed)
                 for uuid in each.memory.pending},
                max(0, max(progress.notice_until_us for progress
                           in each.memory.pending.values()) - now_us) / SECOND)
                for each in decisions),
            tuple(server.kind.resources for server, waits_on
                  in self._joined.values() if waits_on == host))


class ReleasingByHost(Mapping[str, ReleasingHost]):
    """Space that is being released on the hosts that are asked after.

    :param by_host: {uuid of a host: {uuid: Decision}}
    :param of: makes a Releasing of those of a host
    :param waited: uuids that do not count
    """

    def __init__(self, by_host: Mapping[str, Mapping[str, Decision]],
                 of: Callable[[Sequence[Decision]], ReleasingHost],
                 waited: Collection[str]) -> None:
        self._by_host = by_host
        self._of = of
        self._waited = waited

    def _count(self, host: str) -> list[Decision]:
        return [each for uuid, each in self._by_host.get(host, {}).items()
                if uuid not in self._waited]

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and bool(self._count(host))

    def __getitem__(self, host: str) -> ReleasingHost:
        found = self._count(host)
        if not found:
            raise KeyError(host)
        return self._of(found)

    def __iter__(self) -> Iterator[str]:
        return (host for host in self._by_host if host in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class RequesterLiveness:
    """Implements core.requester_liveness.RequesterView.

    :ivar reserved: returns a reservation, None if there is none
    :ivar is_short: whether less is free than the headroom wants
    """

    def __init__(self, world: SimulationState) -> None:
        self._world = world
        self.reserved: Callable[[str],
                                reservation_model.Reservation | None] = (
                                    lambda uuid: None)
        self.is_short: Callable[[], bool] = lambda: False

    def is_gone(self, server_uuid: str) -> bool:
        server = self._world.servers.get(server_uuid)
        return server is None or server.state is State.OVER

    def are_hosts_emptied(self) -> bool:
        return self._world.options.reservations is not None

    def reservation(self, uuid: str) -> reservation_model.Reservation | None:
        return self.reserved(uuid)

    def lacks_headroom(self, providers: Collection[str]) -> bool:
        return self.is_short()


class BudgetTracker:
    """Counts recent evictions for the eviction budgets."""

    def __init__(self, world: SimulationState) -> None:
        self._world = world
        # (when, uuid, project, groups)
        self._ended: collections.deque[
            tuple[int, str, str, tuple[str, ...]]] = collections.deque()

    def ended(self, victim: Server) -> None:
        """Note that a victim has ended."""
        if self._world.options.budget_window_s:
            uuid = victim.boot.id
            self._ended.append((
                self._world.events.now_us, uuid, victim.boot.project,
                self._world.groups.get(uuid, ())))

    def left(self, ending: Mapping[str, Server]
             ) -> eviction_budgets.EvictionBudgets | None:
        """Return the remaining budgets, None without any.

        :param ending: those that end now
        """
        options = self._world.options
        if not (options.project_budget or options.group_budget):
            return None
        since_us = (self._world.events.now_us
                    - options.budget_window_s * SECOND)
        while self._ended and self._ended[0][0] <= since_us:
            self._ended.popleft()
        projects = {uuid: project for _, uuid, project, _ in self._ended}
        groups = {uuid: found for _, uuid, _, found in self._ended}
        return eviction_budgets.EvictionBudgets(
            options.project_budget, options.group_budget,
            projects | {uuid: victim.boot.project
                        for uuid, victim in ending.items()},
            groups | self._world.groups)
