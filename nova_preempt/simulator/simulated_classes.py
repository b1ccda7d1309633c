# SPDX-License-Identifier: Apache-2.0
"""Classes of service: the clocks of servers, and what is promised to them.

As nova_preempt.classes has it for the scheduler and the engine, but that
what happens is known at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import datetime
import types
from typing import Any

from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes import class_dispatch
from nova_preempt.core.classes import class_table
from nova_preempt.core.classes import class_unshelve_controller
from nova_preempt.core.classes.promised_availability import ClassPromiseRules
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.controller_step import Step
from nova_preempt.core.eviction.return_controller import ShelvedVictim
from nova_preempt.core.model import Resources
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.times import microseconds
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulation_state import SimulationState


class SimulatedClasses:
    """Classes of service of a simulation, and their servers.

    :param world: a simulation_state.SimulationState with options of classes
    :ivar period_s: how often others may end for those that wait
    """

    def __init__(self, world: SimulationState,
                 options: simulation_settings.ClassOptions,
                 evictions: simulated_evictions.Evictions) -> None:
        self._world = world
        self._evictions = evictions
        self._options = options
        self._table = options.table
        self.period_s = self._table.pass_period_s
        self._claimants: dict[str, class_dispatch.Claimant] = {}
        # Between two events; another one after each.
        self._known = types.MappingProxyType(self._claimants)
        self._overheads = availability_margin.Overheads(
            self._table.overhead_us)

    @property
    def now_us(self) -> int:
        """The time as clocks have it."""
        return simulated_servers.clock_us(self._world.events.now_us)

    def has(self, server: Server) -> bool:
        """Return whether a server has a class."""
        return server.boot.id in self._claimants

    def claimants(self) -> Mapping[str, class_dispatch.Claimant]:
        """Return the claimants of all servers, without resources."""
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
            found = class_dispatch.Claimant(uuid, qos, ServerClocks(), {})
        if kind is Kind.RUNNING:
            self._measure(server, found.clocks)
        clocks = found.clocks.applied(Event(self.now_us, kind))
        if kind is Kind.ENDED:
            self._world.report.promised(found.qos, clocks.at(self.now_us))
            del self._claimants[uuid]
        else:
            self._claimants[uuid] = dataclasses.replace(
                found, clocks=clocks.settled(clocks.mark.last_us - 1),
                overhead_us=self._overheads.of(server.kind.request.kind))
        self._known = types.MappingProxyType(self._claimants)

    def _measure(self, server: Server, clocks: ServerClocks) -> None:
        """Record the time that the return of a victim took."""
        if clocks.kind is Kind.ALLOCATING and server.tries:
            self._overheads = self._overheads.seen(
                server.kind.request.kind, self.now_us - clocks.mark.since_us)

    def tell(self) -> None:
        """Report the servers that still exist."""
        for found in self._claimants.values():
            self._world.report.promised(found.qos,
                                        found.clocks.at(self.now_us))

    # -- what is decided ---------------------------------------------------

    def policy(self,
               policy: preemption_policy.Policy) -> preemption_policy.Policy:
        """Return the policy with the current promises."""
        return dataclasses.replace(policy, classes=ClassPromiseRules(
            self._table.classes, self._known, self.now_us))

    def rank(self, server: Server) -> preemption_policy.PreemptionRight:
        """Return that of a request for a preemptible server."""
        claimant = self._claimants.get(server.boot.id)
        if claimant is None or not claimant.is_certain:
            return preemption_policy.PREEMPTIBLE
        return preemption_policy.PreemptionRight(
            True, claimant.stand(self._table.classes, self.now_us))

    def choose(self, waiting: Sequence[ShelvedVictim], most: int,
               room: Callable[[ShelvedVictim], Mapping[str, Resources]],
               memory: int | None, now_us: int) -> Step[str, int | None]:
        """Return which shelved servers return next."""
        step = class_unshelve_controller.step(
            class_unshelve_controller.Options(
                self._table.classes, self.period_s),
            class_unshelve_controller.Observed(
                waiting, most, self._known, room, lambda: self._world.options
                .may_unshelve, self._evictable), memory, now_us)
        return Step(tuple(each.uuid for each in step.intents), step.memory)

    def _evictable(self) -> class_unshelve_controller.EvictableServers:
        world = self._world
        return class_unshelve_controller.EvictableServers(
            ((host.name, host.providers[0], host.servers.values())
             for host in world.cloud.hosts.values()), self._known,
            world.options.policy, self._evictions.budgets(),
            self._evictions.ending)


class WaitingRequestClocks:
    """Clocks of waiting requests, for the queue order ``qos``.

    :ivar table: a core.classes.class_table.ClassTable
    """

    def __init__(self, found: class_table.ClassTable) -> None:
        self.table = found
        self._classes: SimulatedClasses | None = None

    def bind(self, classes: SimulatedClasses) -> None:
        """Tell of the servers of this simulation from now on."""
        self._classes = classes

    def _find(self, request: Any) -> class_dispatch.Claimant | None:
        assert self._classes is not None
        return self._classes.claimants().get(request.uuid)

    def clocks(self, requests: Iterable[Any]) -> dict[str, ServerClocks]:
        """Return the clocks of core.backlog requests."""
        found = {}
        for request in requests:
            known = self._find(request)
            found[request.uuid] = ServerClocks((Event(microseconds(
                request.created_at.replace(tzinfo=datetime.timezone.utc)),
                Kind.QUEUED),)) if known is None else known.clocks
        return found

    def overheads_us(self, requests: Iterable[Any]) -> dict[str, int]:
        """Return how long it takes to get servers of them to a host."""
        return {request.uuid: self.table.overhead_us if known is None
                else known.overhead_us for request in requests
                for known in (self._find(request),)}


def parse(entries: Iterable[Mapping[str, str]],
          pass_period_s: int) -> simulation_settings.ClassOptions:
    """Parse the classes of an operator.

    For the parameters see core.classes.class_table.parse().

    :raises ValueError: says what is wrong with which field of which class
    """
    found = class_table.parse(entries, pass_period_s)
    return simulation_settings.ClassOptions(found, WaitingRequestClocks(found))

