# SPDX-License-Identifier: Apache-2.0
"""Returns shelved victims, and keeps stopped victims for a while."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
from typing import Any

from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.controller_step import Step
from nova_preempt.core.eviction import return_controller
from nova_preempt.core.eviction import stopped_victim_controller
from nova_preempt.core.eviction.return_controller import ShelvedState
from nova_preempt.core.eviction.return_controller import ShelvedVictim
from nova_preempt.core.eviction_actions import STOP
from nova_preempt.core.eviction_actions import kept
from nova_preempt.core.model import SECOND, Resources
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.events import Alarm
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState


@dataclasses.dataclass
class _Alike:
    """Servers of one size.

    :ivar ended: (when, uuid) in order
    """

    all: Returns
    ended: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    def __iter__(self) -> Iterator[ShelvedVictim]:
        return (self.all.shelved(uuid) for _, uuid in self.ended)


class Returns:
    """The shelved victims, see core.eviction.return_controller.Observed.

    :param unshelve: called with a server to be scheduled; if it gets no host,
        keep() is called
    :param may_come: tells whether there is space to spare for so much
    :param classes: a simulated_classes.SimulatedClasses, None without classes
    """

    def __init__(self, world: SimulationState,
                 unshelve: Callable[[Server], None],
                 may_come: Callable[[Resources], bool],
                 classes: Any = None) -> None:
        self._may_come = may_come
        self._classes = classes
        self._world = world
        self._unshelve = unshelve
        self._waiting: dict[Any, _Alike] = {}
        self._of_class: dict[str, Server] = {}
        self._coming: dict[str, Server] = {}
        self._alarm = Alarm(world.events, Phase.POLL, self._look)
        self._memory: int | None = None
        options = world.options
        self.options = return_controller.Options(
            options.restore_at_once, options.restore_timeout_s)

    # -- what happens ------------------------------------------------------

    def add(self, server: Server) -> None:
        """Note a server that was shelved."""
        server.tries = 0
        server.since_us = self._world.events.now_us
        self.keep(server)

    def keep(self, server: Server) -> None:
        """Let a server wait on; it may have found no host when asked."""
        self._coming.pop(server.boot.id, None)
        if self._is_of_class(server):
            self._of_class[server.boot.id] = server
        else:
            bisect.insort(self._alike(server).ended,
                          (server.since_us, server.boot.id))
        self._look_soon()

    def remove(self, server: Server) -> None:
        """Forget a server that is deleted, or comes no more."""
        if self._of_class.pop(server.boot.id, None) is not None:
            return
        ended, item = self._alike(server).ended, (
            server.since_us, server.boot.id)
        place = bisect.bisect_left(ended, item)
        if ended[place:place + 1] == [item]:
            del ended[place]

    def is_back(self, server: Server) -> None:
        """Note that a server runs again, or was deleted on its way."""
        self._coming.pop(server.boot.id, None)

    def _alike(self, server: Server) -> _Alike:
        return self._waiting.setdefault(server.kind.request.kind, _Alike(self))

    def _is_of_class(self, server: Server) -> bool:
        return self._classes is not None and self._classes.has(server)

    def _look_soon(self) -> None:
        interval_us = self._world.options.interval_s * SECOND
        now_us = self._world.events.now_us
        self._alarm.set((now_us // interval_us + 1) * interval_us)

    def _look(self) -> None:
        self._waiting = {key: alike for key, alike in self._waiting.items()
                         if alike.ended}
        if not self._waiting and not self._of_class:
            return
        step = return_controller.step(self, self._memory,
                                      simulated_servers.clock_us(
                                          self._world.events.now_us))
        self._memory = step.memory
        for intent in step.intents:
            server = self._world.servers[intent.uuid]
            self.remove(server)
            if isinstance(intent, return_controller.GiveUp):
                self._world.report.note('left', server)
            elif isinstance(intent, return_controller.Unshelve):
                server.next_try_us = intent.next_try_us
                server.tries += 1
                self._coming[intent.uuid] = server
                self._unshelve(server)
        self._look_soon()

    # -- what the controller asks ------------------------------------------

    def shelved(self, uuid: str) -> ShelvedVictim:
        """Return a server as the controller has it."""
        server = self._world.servers[uuid]
        return ShelvedVictim(
            uuid, server.kind.resources,
            simulated_servers.clock_us(server.since_us),
            server.tries, server.next_try_us,
            self._classes.period_s if self._is_of_class(server) else None)

    def asked(self) -> list[ShelvedVictim]:
        return [*map(self.shelved, self._coming)]

    def waiting(self) -> list[_Alike]:
        return [*self._waiting.values()]

    def of_class(self) -> list[ShelvedVictim]:
        return [*map(self.shelved, self._of_class)]

    def unseen(self) -> tuple[str, ...]:
        # What happens is known at once.
        return ()

    def sight(self, uuid: str) -> ShelvedState:
        return (ShelvedState.COMING if uuid in self._coming
                else ShelvedState.SHELVED)

    def holds(self, uuid: str) -> bool:
        return uuid in self._coming

    def room(self, server: ShelvedVictim) -> Mapping[str, Resources]:
        request = self._world.servers[server.uuid].kind.request
        found = self._world.cloud.room(request, self.options.at_once)
        return found if found and self._may_come(server.resources) else {}

    def choose(self, waiting: Sequence[ShelvedVictim], most: int,
               memory: int | None, now_us: int) -> Step[str, int | None]:
        found: Step[str, int | None] = self._classes.choose(
            waiting, most, self.room, memory, now_us)
        return found


class StoppedVictims:
    """Keeps the servers that were stopped, until they are deleted."""

    def __init__(self, world: SimulationState) -> None:
        self._world = world

    def keep(self, victim: Server) -> None:
        """Keep the disk of a server that was stopped, for a while."""
        world = self._world
        # It is on its host, even if it holds nothing there.
        world.cloud.put(victim.current_host, victim.boot.id, kept(
            victim.kind.resources, STOP))
        victim.since_us = world.events.now_us
        self._look(victim)

    def _look(self, victim: Server) -> None:
        if victim.state is not State.STOPPED:
            return
        world = self._world
        step = stopped_victim_controller.step(
            stopped_victim_controller.Observed(
                ObservedServer(victim.boot.id, 'stopped', None,
                               victim.current_host.name),
                victim.since_us, world.options.stop_retention_s),
            None, world.events.now_us)
        if step.wake_at_us is not None:
            world.later(victim, step.wake_at_us - world.events.now_us,
                        Phase.POLL, self._look)
        if stopped_victim_controller.NextAction.DELETE in step.intents:
            self.forget(victim)
            world.report.note('deleted', victim)
            world.report.lost(victim, victim.ran_us)

    def forget(self, victim: Server) -> None:
        """Delete a stopped server and free its allocations."""
        self._world.cloud.take_away(victim.current_host, victim.boot.id)
        victim.state = State.OVER
        self._world.report.mark(victim, Kind.ENDED)
        self._world.forget(victim)
