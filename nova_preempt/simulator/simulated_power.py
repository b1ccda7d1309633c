# SPDX-License-Identifier: Apache-2.0
"""Hosts that are powered off and on: what the controller is told of them, and
what its intents lead to, see core.energy.energy_controller.
"""

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import itertools

from nova_preempt.core.energy import demand_forecast
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.core.energy import energy_controller
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import host_classification
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps
from nova_preempt.core.model import SECOND
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator import power_meter
from nova_preempt.simulator import simulated_wake_on_demand
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulation_settings import CloudSetting
from nova_preempt.simulator.simulation_state import SimulationState


@dataclasses.dataclass(eq=False, slots=True)
class PoweredHost:
    """A host and its power state; a energy_controller.Host and .HostPower.

    :ivar is_powered: whether it has power
    :ivar up: whether its compute service reports
    :ivar disabled: whether that is disabled
    :ivar closed_us: when a look first saw that, in its state; None before
    :ivar boot_s: how long it took to boot last, None before
    :ivar epoch: grows as what was to happen to it will not happen
    """

    host: memory_cloud.MemoryHost
    state: str = power_steps.ON
    why: str = ''
    since_us: int = 0
    is_powered: bool = True
    up: bool = True
    disabled: bool = False
    closed_us: int | None = None
    boots: int = 0
    asked_us: int | None = None
    is_switching: bool = False
    boot_s: float | None = None
    idle_intervals: int = 0
    epoch: int = 0
    is_operators: bool = False
    aggregates: frozenset[str] = frozenset()

    @property
    def is_ours(self) -> bool:
        return self.disabled

    @property
    def servers(self) -> int:
        return len(self.host.allocations)


class SimulatedPower:
    """Steps the energy controller, as its Observed
    (core.energy.energy_observation).

    :param world: a simulation_state.SimulationState with options of energy
    :param figures: {name of a host: its Figures}
    :param watts: a power_meter.PowerMeter
    :param again, give_up: see simulated_wake_on_demand.WakeOnDemand
    :param needed: see Observed
    :ivar memory: the controller's
    :ivar waking: its WakeOnDemand
    """

    def __init__(self, world: SimulationState,
                 options: energy_observation.Options,
                 figures: Mapping[str, efficiency_ranking.Figures],
                 watts: power_meter.PowerMeter,
                 again: Callable[[Server], None],
                 give_up: Callable[[Server], None],
                 needed: Callable[[float], Mapping[str, float]]) -> None:
        self._world = world
        self.options = dataclasses.replace(
            options, step_s=world.options.interval_s)
        self._meter = watts
        self.needed = needed
        self.states = self.hosts = self.recent_hosts = {
            host.name: PoweredHost(host)
            for host in world.cloud.hosts.values()}
        self.is_whole = True
        self.minimums: dict[str, int] = {}
        self.in_state: dict[str, dict[str, PoweredHost]] = {
            state: {} for state in power_steps.NOT_ON}
        self._moved: dict[str, PoweredHost] = {}
        self.efficiencies = {
            name: found for name, each in figures.items()
            if (found := each.flops_per_watt) is not None}
        self._history: list[demand_forecast.Load] = []
        self.memory = energy_controller.Memory()
        self.waking = simulated_wake_on_demand.WakeOnDemand(world, self, again,
                                                            give_up)
        world.events.add(0, Phase.POLL, self._step)

    @property
    def now_us(self) -> int:
        return self._world.events.now_us

    # -- what the controller asks ------------------------------------------

    @property
    def promised(self) -> Sequence[str]:
        return self.waking.promised_hosts()

    def changed_since(self, since_us: int) -> Iterable[PoweredHost]:
        return itertools.takewhile(lambda host: host.since_us > since_us,
                                   reversed(self._moved.values()))

    def is_empty(self, name: str) -> bool:
        return not self.states[name].servers

    def loads(self, since_s: int,
              until_s: int) -> Sequence[demand_forecast.Load]:
        since, until = (
            bisect.bisect_left(self._history, time_s,
                               key=lambda load: load.time_s)
            for time_s in (since_s, until_s))
        return self._history[since:until]

    # -- what others ask ---------------------------------------------------

    def is_on(self, name: str) -> bool:
        return self.states[name].state == power_steps.ON

    def has_failed(self, name: str) -> bool:
        return self.states[name].state == power_steps.FAILED

    def off(self, name: str) -> host_classification.OffHost | None:
        """Return the OffHost of a host, None if it is on."""
        if self.is_on(name):
            return None
        return energy_controller.off(self, self.memory, self.now_us, name)

    # -- what is done ------------------------------------------------------

    def _step(self) -> None:
        now_us = self.now_us
        wake_at_us: int | None = now_us
        while wake_at_us is not None and wake_at_us <= now_us:
            step = energy_controller.step(self, self.memory, now_us)
            self.memory, wake_at_us = step.memory, step.wake_at_us
            self.carry_out(step.intents)
        if wake_at_us is not None:
            self._world.events.add(wake_at_us, Phase.POLL, self._step)
        self.waking.look()

    def carry_out(self, intents: Iterable[energy_controller.Intent]) -> None:
        """Carry out the intents of the controller."""
        for intent in intents:
            match intent:
                case energy_controller.Wake(name, why):
                    self._move(name, power_steps.WAKING, why)
                case energy_controller.PutToSleep(name, why):
                    self._move(name, power_steps.EMPTYING, why)
                case energy_controller.CountIdleInterval(names):
                    self._note(names)
                case energy_controller.ForgetPromises(names):
                    self.waking.forget(names)
                case energy_controller.Advance(names):
                    for name in names:
                        self._advance(name)

    def _note(self, names: frozenset[str]) -> None:
        counts = power_plan.count_idle({
            name: self.states[name].idle_intervals for name in names}, names)
        on = 0
        for name, host in self.states.items():
            host.idle_intervals = counts.get(name, 0)
            on += host.state == power_steps.ON
        self._history.append(demand_forecast.Load(
            self.now_us // SECOND, on - len(names)))

    def _move(self, name: str, state: str, why: str, boots: int = 0) -> None:
        host = self.states[name]
        self.in_state.get(host.state, {}).pop(name, None)
        host.state, host.since_us, host.boots = state, self.now_us, boots
        host.asked_us, host.idle_intervals = None, 0
        host.why, host.closed_us = why, None
        if state != power_steps.ON:
            self.in_state[state][name] = host
        self._moved.pop(name, None)
        self._moved[name] = host
        self._world.report.host(state, name, why)

    # -- step by step ------------------------------------------------------

    def _advance(self, name: str) -> None:
        """Take the steps of a host that can be taken now."""
        host = self.states[name]
        while not host.is_switching:
            facts = self._facts(host)
            step = power_steps.next_step(facts, self.options.boot_timeout_s)
            if step.act is not power_steps.Action.MOVE:
                self._act(host, step.act)
                return
            if not self._take(host, step, facts):
                return

    def _facts(self, host: PoweredHost) -> power_steps.HostFacts:
        if host.disabled and host.closed_us is None:
            host.closed_us = self.now_us
        servers = bool(host.servers)
        return power_steps.HostFacts(
            host.state, (self.now_us - host.since_us) / SECOND,
            self._ago_s(host.closed_us), host.up,
            # What is put to sleep reports no more until it has booted.
            host.up and host.state in (power_steps.WAKING, power_steps.FAILED),
            host.disabled, host.is_ours, host.boots,
            self._ago_s(host.asked_us),
            # To know them costs nothing here, so that nobody has to ask.
            power=power_steps.Power.ON if host.is_powered
            else power_steps.Power.OFF, empty=not servers, running=servers)

    def _ago_s(self, at_us: int | None) -> float:
        return 0 if at_us is None else (self.now_us - at_us) / SECOND

    def _take(self, host: PoweredHost, step: power_steps.Step,
              facts: power_steps.HostFacts) -> bool:
        """Move on; whether there is more to do at once."""
        if power_steps.is_limited(step, facts) and not self.options.left(
                self._moved.values(), self.now_us)[0]:
            return False
        if step.enable:
            host.disabled = False
            self._world.cloud.open(host.host)
        host.boot_s = power_steps.measured_boot_s(step, facts) or host.boot_s
        self._move(host.host.name, step.state, step.reason or host.why,
                   step.boots)
        if step.cycle:
            self._lose_power(host)
        return step.state == power_steps.SLEEPING

    def _act(self, host: PoweredHost, act: power_steps.Action) -> None:
        if act is power_steps.Action.DISABLE:
            host.disabled = True
            self._world.cloud.close(host.host)
        elif act is power_steps.Action.SHUT_DOWN:
            host.is_switching, host.asked_us = True, self.now_us
            took_us = self._world.sampler.draw_us('power_off')
            timeout_us = power_steps.POWER_OFF_TIMEOUT_S * SECOND
            self._later(host, min(took_us, timeout_us), self._has_shut_down)
        elif act is power_steps.Action.SWITCH_OFF:
            self._lose_power(host)
        elif act is power_steps.Action.POWER_ON:
            host.is_powered, host.asked_us = True, self.now_us
            self._meter.switched(host.host, on=True)
            self._later(host, self._world.sampler.draw_us('power_on'),
                        self._reports)

    def _later(self, host: PoweredHost, in_us: int,
               happen: Callable[[PoweredHost, int], None]) -> None:
        """Have something happen to a host, unless it loses its power."""
        host.epoch += 1
        self._world.events.add(self.now_us + in_us, Phase.STEP, happen, host,
                               host.epoch)

    def _has_shut_down(self, host: PoweredHost, epoch: int) -> None:
        if host.epoch != epoch:
            return
        host.is_switching = False
        if self._ago_s(host.asked_us) < power_steps.POWER_OFF_TIMEOUT_S:
            self._lose_power(host)
        self._advance(host.host.name)

    def _lose_power(self, host: PoweredHost) -> None:
        host.is_powered = host.up = False
        host.epoch += 1
        self._meter.switched(host.host, on=False)

    def _reports(self, host: PoweredHost, epoch: int) -> None:
        if host.epoch == epoch:
            host.up = True


def make(world: SimulationState, setup: CloudSetting,
         again: Callable[[Server], None], give_up: Callable[[Server], None],
         needed: Callable[[float], Mapping[str, float]]
         ) -> SimulatedPower | None:
    """Start the power meter; return SimulatedPower if it is enabled.

    For the parameters see SimulatedPower.
    """
    kinds = {host.name: kind for kind in setup.hosts for host in kind.hosts()}
    figures = {name: kind.figures for name, kind in kinds.items()
               if kind.figures.watts is not None}
    options = world.options.power
    if not figures and options is None:
        return None
    watts = power_meter.PowerMeter(world, figures, {
        name: kind.asleep_watts for name, kind in kinds.items()})
    world.cloud.watch = watts.changed
    if options is None:
        return None
    return SimulatedPower(world, options, figures, watts, again, give_up,
                          needed)
