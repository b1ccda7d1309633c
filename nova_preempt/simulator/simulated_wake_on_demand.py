# SPDX-License-Identifier: Apache-2.0
"""Normal servers that wait for hosts to wake, see [energy]demand_wakes."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import TYPE_CHECKING

from nova_preempt.core import capacity
from nova_preempt.core import poll_timing
from nova_preempt.core.energy import energy_controller
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy import wake_choice
from nova_preempt.core.model import SECOND, Host
from nova_preempt.simulator.cost_bound_index import Mask
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState

if TYPE_CHECKING:
    from nova_preempt.simulator import simulated_power


@dataclasses.dataclass(eq=False, slots=True)
class _Wait:
    """A waiting server with its promised hosts."""

    server: Server
    memory: wake_choice.Waiting


class WakeOnDemand:
    """Promises sleeping hosts to servers and wakes them.

    :param power: a simulated_power.SimulatedPower
    :param again: called with a server that is to be decided anew
    :param give_up: called with one for which nothing has come of it
    """

    def __init__(self, world: SimulationState,
                 power: simulated_power.SimulatedPower,
                 again: Callable[[Server], None],
                 give_up: Callable[[Server], None]) -> None:
        self._world = world
        self._power = power
        self._again = again
        self._give_up = give_up
        self._waits: dict[str, _Wait] = {}
        self._promises: dict[str, tuple[int, list[wake_choice.Promise]]] = {}

    def __len__(self) -> int:
        """Count the servers that wait."""
        return sum(each.server.state is State.WAKING
                   for each in self._waits.values())

    @property
    def _now_s(self) -> float:
        return self._world.events.now_us / SECOND

    def wait(self, server: Server, where: Mask | None, *, is_busy: bool
             ) -> bool:
        """Have a server wait for which there is no host; whether it does.

        :param where: a mask of the hosts that it may go to, None for all
        :param is_busy: whether too many requests wait: then it wakes no host
        """
        options = self._power.options
        if server.kind.terms is not None or not options.demand_wakes:
            return False
        uuid = server.boot.id
        wait = self._waits.get(uuid) or _Wait(
            server, wake_choice.Waiting(poll_timing.BoundedWait(
                self._now_s, options.demand_wait_s, 1)))
        # No host would be any good to one that is refused for a reason.
        names = [] if server.why_not or is_busy else self._promise(wait, where)
        # A move does not wait.
        if not names or server.moves or wait.memory.limit.is_over(self._now_s):
            self.over(server)
            return False
        wait.memory = wait.memory.promised(names)
        server.state = State.WAKING
        if uuid not in self._waits:
            self._waits[uuid] = wait
            self._world.report.note('woken', server)
            self._world.events.add(
                self._world.events.now_us
                + options.demand_wait_s * SECOND, Phase.POLL, self._look, wait)
        return True

    def _promise(self, wait: _Wait, where: Mask | None) -> list[str]:
        """Names of hosts that will be on for it; they begin to wake."""
        uuid = wait.server.boot.id
        now_us = self._world.events.now_us
        sleepers = energy_controller.sleepers(
            self._power, self._power.memory, now_us, self._rooms(wait, where))
        promised = self._promised()
        found = wake_choice.promise(uuid, 1, sleepers, promised)
        self._promises[uuid] = now_us, [
            *found, *wake_choice.kept(uuid, promised, self._power.is_on)]
        names = [item.host for item in found]
        self._power.carry_out(energy_controller.wakes(self._power, now_us,
                                                      names))
        return names

    def _rooms(self, wait: _Wait, where: Mask | None) -> dict[str, int]:
        """Return {name of a waking host: number of servers that fit}."""
        request = wait.server.kind.request
        return {
            name: room for state in power_steps.COMING
            for name, powered in self._power.in_state[state].items()
            if name not in wait.memory.tried
            and self._world.cloud.is_among(powered.host.uuid, where)
            and (room := capacity.count(request, Host(
                name, powered.host.providers), {}))}

    def _promised(self) -> list[wake_choice.Promise]:
        since_us = (self._world.events.now_us
                    - self._power.options.promised_s * SECOND)
        self._promises = {uuid: item for uuid, item
                          in self._promises.items() if item[0] >= since_us}
        return [item for _, found in self._promises.values() for item in found]

    def promised_hosts(self) -> list[str]:
        """Return them in the order in which they are to wake."""
        return list(dict.fromkeys(item.host for item in self._promised()))

    def forget(self, names: frozenset[str]) -> None:
        """Forget hosts for which no server waits any more."""
        self._promises = {
            uuid: (at_us, left) for uuid, (at_us, found)
            in self._promises.items()
            if (left := [item for item in found if item.host not in names])}

    def look(self) -> None:
        """Decide servers anew whose hosts are up or have failed."""
        for wait in list(self._waits.values()):
            self._look(wait)

    def _look(self, wait: _Wait) -> None:
        server = wait.server
        if server.state is not State.WAKING or (
                self._waits.get(server.boot.id) is not wait):
            return
        outcome, wait.memory = wake_choice.step(
            wait.memory, lambda name: self._power.states[name].state,
            self._now_s)
        if outcome is wake_choice.NextAction.GIVE_UP:
            self.over(server)
            self._give_up(server)
        elif outcome is wake_choice.NextAction.RETRY:
            self._again(server)

    def over(self, server: Server) -> None:
        """Let a server wait no more.

        What is promised to it is kept for a time, for whoever asks again.
        """
        self._waits.pop(server.boot.id, None)

    def served(self, server: Server) -> None:
        """Report how long a server has waited that has got a host."""
        wait = self._waits.pop(server.boot.id, None)
        self._promises.pop(server.boot.id, None)
        if wait is not None:
            self._world.report.delayed(
                server, self._now_s - wait.memory.limit.began)
