# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""How hosts are switched, step by step; which comes next is the core's.

As nova_preempt.power.switching has it for the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
from typing import Any

from nova_preempt.core.energy import candidates
from nova_preempt.core.energy import efficiency
from nova_preempt.core.energy import power
from nova_preempt.core.energy import steps
from nova_preempt.core.model import SECOND
from nova_preempt.simulator import memory
from nova_preempt.simulator import meter
from nova_preempt.simulator.events import Turn

_MINUTE_US = 60 * SECOND


@dataclasses.dataclass(eq=False, slots=True)
class PoweredHost:
    """One; times are in microseconds.

    :ivar is_powered: whether it has power
    :ivar is_up: whether its compute service reports
    :ivar closed_us: since when that is disabled, None if it is not
    :ivar boot_s: how long it took to boot last, None before
    :ivar epoch: grows as what was to happen to it will not happen
    """

    host: memory.MemoryHost
    efficiency: float | None
    state: str = steps.ON
    since_us: int = 0
    is_powered: bool = True
    is_up: bool = True
    closed_us: int | None = None
    boots: int = 0
    shut_down: bool = False
    is_switching: bool = False
    boot_s: float | None = None
    noted: power.Noted | None = None
    epoch: int = 0

    @property
    def name(self) -> str:
        return self.host.name


class Switcher:
    """Of all hosts.

    :param parts: a run.Parts; its options have a setting.Power
    :param figures: {name of a host: its Figures}
    :ivar hosts: {name: PoweredHost}
    :ivar not_on: those of them that are not simply on
    """

    def __init__(self, parts: Any, figures: Mapping[str, efficiency.Figures],
                 watts: meter.Meter) -> None:
        self._parts = parts
        self._options = parts.options.power
        self._meter = watts
        nobody = efficiency.Figures()
        self.hosts = {
            host.name: PoweredHost(
                host, figures.get(host.name, nobody).flops_per_watt)
            for host in parts.cloud.hosts.values()}
        self.not_on: dict[str, PoweredHost] = {}
        self._moves: list[tuple[int, str]] = []

    @property
    def _now_us(self) -> int:
        return self._parts.events.now_us

    def coming(self) -> Iterator[PoweredHost]:
        """Yield the hosts that will be on for whoever needs them."""
        return (host for host in self.not_on.values()
                if host.state in steps.COMING)

    def wake_some(self, names: Iterable[str], why: str) -> None:
        """Wake as many of these as may be now, in this order."""
        for name in names:
            host = self.hosts[name]
            if host.state in candidates.OFF and not (
                    self.left()[0] > 0 and self.wake(name, why)):
                break

    def put_to_sleep(self, name: str, why: str) -> None:
        """Begin to power a host off."""
        self._move(self.hosts[name], steps.EMPTYING, why=why)

    def left(self) -> tuple[int, int]:
        """How many may be woken and put to sleep in this minute."""
        self._moves = [(at_us, name) for at_us, name in self._moves
                       if self._now_us - at_us < _MINUTE_US]
        recent = {name for _, name in self._moves}
        return candidates.left(
            (self.hosts[name].state for name in recent),
            self._options.max_wakes_per_minute,
            self._options.max_sleeps_per_minute)

    def wake(self, name: str, why: str) -> bool:
        """Begin to power a host on; whether it was off, or about to be."""
        host = self.hosts[name]
        if host.state not in (*candidates.OFF, steps.FAILED):
            return False
        self._move(host, steps.WAKING, why=why)
        return True

    def _move(self, host: PoweredHost, state: str, *, boots: int = 0,
              why: str = '') -> None:
        host.state, host.since_us, host.boots = state, self._now_us, boots
        host.shut_down = False
        if state == steps.ON:
            self.not_on.pop(host.name, None)
        else:
            self.not_on[host.name] = host
        self._moves.append((self._now_us, host.name))
        self._parts.report.host(state, host.name, why)

    def _close(self, host: PoweredHost) -> None:
        host.closed_us = self._now_us
        self._parts.cloud.close(host.host)

    def _open(self, host: PoweredHost) -> None:
        host.closed_us = None
        self._parts.cloud.open(host.host)

    def advance(self, host: PoweredHost) -> None:
        """Take the steps of a host that can be taken now."""
        facts = self._facts(host)
        while not host.is_switching:
            step = steps.next_step(facts, self._options.limits)
            if step.act is steps.Act.ASK_POWER:
                facts = dataclasses.replace(
                    facts, power=steps.Power.ON if host.is_powered
                    else steps.Power.OFF)
            elif step.act is steps.Act.LOOK:
                servers = bool(host.host.allocations)
                facts = dataclasses.replace(facts, empty=not servers,
                                            running=servers)
            elif step.act is steps.Act.MOVE and self._take(host, step):
                facts = self._facts(host)
            else:
                self._act(host, step)
                return

    def _facts(self, host: PoweredHost) -> steps.Facts:
        is_closed = host.closed_us is not None
        return steps.Facts(
            host.state, (self._now_us - host.since_us) / SECOND,
            (self._now_us - (host.closed_us or 0)) / SECOND
            if is_closed else 0, host.is_up,
            # What is put to sleep reports no more until it has booted.
            host.is_up and host.state in (steps.WAKING, steps.FAILED),
            is_closed,
            is_closed, host.boots, host.shut_down)

    def _take(self, host: PoweredHost, step: steps.Step) -> bool:
        """Move on; whether there is more to do at once."""
        if step.state == steps.WAKING and not (
                host.is_powered and not step.cycle) and not self.left()[0]:
            return False
        if step.enable:
            self._open(host)
        if host.state == steps.WAKING and step.state == steps.ON:
            host.boot_s = (self._now_us - host.since_us) / SECOND
        self._move(host, step.state, boots=step.boots, why=step.reason)
        if step.cycle:
            self._lose_power(host)
        return step.state == steps.SLEEPING

    def _act(self, host: PoweredHost, step: steps.Step) -> None:
        if step.act is steps.Act.DISABLE:
            self._close(host)
        elif step.act is steps.Act.SHUT_DOWN:
            host.is_switching = True
            took_us = self._parts.drawn.us('power_off')
            timeout_us = round(
                self._options.limits.power_off_timeout_s * SECOND)
            host.epoch += 1
            self._parts.events.add(
                self._now_us + min(took_us, timeout_us), Turn.STEP,
                self._has_shut_down, host, host.epoch,
                took_us <= timeout_us)
        elif step.act is steps.Act.SWITCH_OFF:
            self._lose_power(host)
        elif step.act is steps.Act.POWER_ON:
            host.is_powered = True
            self._meter.switched(host.host, on=True)
            host.epoch += 1
            self._parts.events.add(
                self._now_us + self._parts.drawn.us('power_on'), Turn.STEP,
                self._reports, host, host.epoch)

    def _has_shut_down(self, host: PoweredHost, epoch: int,
                       is_down: bool) -> None:
        if host.epoch != epoch:
            return
        host.is_switching = False
        host.shut_down = True
        if is_down:
            self._lose_power(host)
        self.advance(host)

    def _lose_power(self, host: PoweredHost) -> None:
        host.is_powered = host.is_up = False
        host.epoch += 1
        self._meter.switched(host.host, on=False)

    def _reports(self, host: PoweredHost, epoch: int) -> None:
        if host.epoch == epoch:
            host.is_up = True
