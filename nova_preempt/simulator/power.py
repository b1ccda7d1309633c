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
"""Hosts that are put to sleep while they are idle, and woken in time.

As nova_preempt.power has it for the engine: which hosts are on, what one
counts as and which step comes next is the core's.
"""

from __future__ import annotations

import bisect
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
import dataclasses
import fnmatch
from typing import Any

from nova_preempt.core.energy import candidates
from nova_preempt.core.energy import demand
from nova_preempt.core.energy import efficiency
from nova_preempt.core.energy import forecast
from nova_preempt.core.energy import power as core
from nova_preempt.core.energy import steps
from nova_preempt.core.model import SECOND
from nova_preempt.simulator import meter
from nova_preempt.simulator import switching
from nova_preempt.simulator import waking
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.servers import Server
from nova_preempt.simulator.setting import Setting

_MINUTE_US = 60 * SECOND
#: Hours of the past that forecasts look at.
_HOUR_S = 3600
_STEPS = 30
_MOVING = frozenset((steps.EMPTYING, steps.SLEEPING, steps.WAKING))


class Power:
    """All of them.

    :param parts: a run.Parts; its options have a setting.Power
    :param figures: {name of a host: its Figures}
    :param meter: a meter.Meter
    :param again, give_up: see waking.Waking
    :param needed: tells {name of a host: in how many seconds a reservation of
        it begins, 0 if it has}, of those within so many seconds
    """

    def __init__(self, parts: Any, figures: Mapping[str, efficiency.Figures],
                 meter: meter.Meter, again: Callable[[Server], None],
                 give_up: Callable[[Server], None],
                 needed: Callable[[float], Mapping[str, float]] = (
                     lambda within_s: {})) -> None:
        self._parts = parts
        self._options = parts.options.power
        self._needed = needed
        self._switcher = switching.Switcher(parts, figures, meter)
        self._hosts = self._switcher.hosts
        self._not_on = self._switcher.not_on
        self._excluded = {
            name for name in self._hosts for pattern
            in self._options.excluded if fnmatch.fnmatchcase(name, pattern)}
        self._history: list[forecast.Load] = []
        self._done_us: dict[str, int] = {}
        self._failed: set[tuple[str, int]] = set()
        self._needed_queue_s = 0.0
        self.waking = waking.Waking(parts, self, again, give_up)
        parts.events.add(0, Turn.LOOK, self._look)

    @property
    def _now_us(self) -> int:
        return self._parts.events.now_us

    # -- what others ask ---------------------------------------------------

    def is_on(self, name: str) -> bool:
        return self._hosts[name].state == steps.ON

    def has_failed(self, name: str) -> bool:
        return self._hosts[name].state == steps.FAILED

    def is_coming(self, name: str) -> bool:
        """Whether it will be on for whoever needs it."""
        return self._hosts[name].state in steps.COMING

    def coming(self) -> Iterator[switching.PoweredHost]:
        """Yield the hosts that will be on for whoever needs them."""
        return (host for host in self._switcher.coming()
                if host.name not in self._excluded)

    def off(self, name: str) -> candidates.Off | None:
        """Whether one that is not on is on in time, None if it is on."""
        host = self._hosts[name]
        if host.state == steps.ON:
            return None
        return candidates.off(
            host.state, (self._now_us - host.since_us) / SECOND, host.boots,
            lead_s=self._lead_s(host), queue_s=self._needed_queue_s,
            limits=self._options.limits,
            stopped='it is left alone' if name in self._excluded else '')

    def for_rooms(self) -> dict[str, Any]:
        """Return what Cloud.rooms() is told of hosts that are off."""
        return {'off': self.off, 'wakes': self._options.demand_wakes}

    def wake_some(self, names: Iterable[str], why: str) -> None:
        """Wake as many of these as may be now, in this order."""
        self._switcher.wake_some(names, why)

    # -- what is done every so often ---------------------------------------

    def _look(self) -> None:
        interval_us = self._parts.options.interval_s * SECOND
        self._parts.events.add(self._now_us + interval_us, Turn.LOOK,
                               self._look)
        options = self._options
        needed = self._needed(max(
            options.horizon_s, options.limits.boot_timeout_s)
            + self._queue_s(self._not_on))
        self._needed_queue_s = self._queue_s(needed)
        note = self._is_time('note', options.note_interval_s)
        failed = {(host.name, host.since_us) for host
                  in self._not_on.values() if host.state == steps.FAILED}
        if failed - self._failed:
            # Others are to take their place.
            self._done_us.pop('switch', None)
        self._failed = failed
        decide = self._is_time('switch', options.switch_interval_s)
        self._wake_due(needed)
        promised = self._keep_promises()
        if note:
            self._note()
        if decide:
            self._decide(needed, promised)
        for host in list(self._not_on.values()):
            if note or host.state in _MOVING:
                self._switcher.advance(host)
        self.waking.look()

    def _is_time(self, what: str, pause_s: float) -> bool:
        done_us = self._done_us.get(what)
        if done_us is not None and self._now_us - done_us < pause_s * SECOND:
            return False
        self._done_us[what] = self._now_us
        return True

    def _note(self) -> None:
        """Count for how long hosts have been idle."""
        gap_s = core.max_gap_s(self._options.note_interval_s,
                               self._parts.options.interval_s)
        usable = [host for host in self._hosts.values()
                  if host.state == steps.ON]
        idle = core.count_idle(
            {host.name: host.noted for host in usable
             if host.noted is not None},
            [host.name for host in usable if not host.host.allocations],
            gap_s)
        for host in self._hosts.values():
            number = idle.get(host.name)
            host.noted = None if number is None else core.Noted(number)
        self._history.append(forecast.Load(
            self._now_us // SECOND, len(usable) - len(idle)))

    def _decide(self, needed: Mapping[str, float],
                promised: Collection[str]) -> None:
        options = self._options
        wakes, sleeps = self._switcher.left()
        policy = dataclasses.replace(options.policy, max_wakes=wakes,
                                     max_sleeps=sleeps)
        switches = core.decide(
            list(self._candidates(needed, promised)), options.forecast(
                self._past(), self._now_us // SECOND, options.parameters),
            policy)
        why = f'{switches.required} hosts are needed'
        for name in switches.wake:
            self._switcher.wake(name, why)
        for name in switches.sleep:
            self._switcher.put_to_sleep(name, why)
        if len(switches.wake) == wakes or len(switches.sleep) == sleeps:
            # As many as a minute allows: there may be more to do in the next.
            self._done_us['switch'] = self._now_us + _MINUTE_US - (
                options.switch_interval_s * SECOND)

    def _past(self) -> list[forecast.Load]:
        """The last hours, and the same hour of earlier weeks."""
        parameters = self._options.parameters
        now_s = self._now_us // SECOND
        recent_s = max(parameters.window_s, _STEPS * parameters.step_s)
        week_s = 7 * 24 * _HOUR_S
        begins = [(now_s - week * week_s, now_s - week * week_s + _HOUR_S)
                  for week in range(parameters.weeks, 0, -1)]
        begins.append((now_s - recent_s, now_s + 1))
        return [load for since_s, until_s in begins
                for load in self._history[self._place(since_s):
                                          self._place(until_s)]]

    def _place(self, time_s: int) -> int:
        """How many notes are from before a time."""
        return bisect.bisect_left(self._history, time_s,
                                  key=lambda load: load.time_s)

    def _candidates(self, needed: Mapping[str, float],
                    promised: Collection[str]) -> Iterator[core.PowerHost]:
        options = self._options
        horizon_s = options.horizon_s + self._queue_s(needed)
        noted_us = self._done_us['note']
        for host in self._hosts.values():
            on = candidates.is_on(
                host.state, usable=candidates.is_usable(
                    host.state, up=host.is_up,
                    disabled=host.closed_us is not None), operators=False)
            if on is None:
                continue
            name = host.name
            reserved, due = candidates.reserved(
                self._start(host, needed[name]) if name in needed else None,
                horizon_s, options.max_wakes_per_minute,
                self._parts.options.interval_s, on=on)
            intervals = host.noted.intervals if host.noted else 0
            yield core.PowerHost(
                name, on, on and candidates.is_busy(
                    host.state, intervals,
                    servers=bool(host.host.allocations),
                    looked_at=host.since_us < noted_us,
                    promised=name in promised),
                intervals, host.efficiency, reserved, due,
                name in self._excluded)

    # -- reservations, and who waits ---------------------------------------

    def _start(self, host: switching.PoweredHost, in_s: float) -> core.Start:
        return core.Start(host.name, in_s, self._lead_s(host))

    def _lead_s(self, host: switching.PoweredHost) -> float:
        return candidates.lead_s(
            candidates.boot_s([host.boot_s], self._options.boot_time_s),
            self._parts.options.interval_s)

    def _queue_s(self, names: Iterable[str]) -> float:
        """How long it takes to wake those of these that are off."""
        return core.queue_s(
            sum(self._hosts[name].state in candidates.OFF for name in names),
            self._options.max_wakes_per_minute,
            self._parts.options.interval_s)

    def _wake_due(self, needed: Mapping[str, float]) -> None:
        due = core.due(
            (self._start(self._hosts[name], in_s)
             for name, in_s in needed.items()
             if self._hosts[name].state in candidates.OFF
             and name not in self._excluded),
            self._options.max_wakes_per_minute,
            self._parts.options.interval_s)
        for name in due[:self._switcher.left()[0]]:
            self._switcher.wake(name, 'a reservation of it begins')

    def _keep_promises(self) -> frozenset[str]:
        """Wake those whose turn has come; the names of all that are kept."""
        found = demand.sort_out(
            self.waking.promised_hosts(),
            lambda name: self._hosts[name].state,
            lambda names: [name for name in names
                           if name not in self._excluded])
        if found.lost:
            self.waking.forget(found.lost)
        self.wake_some(found.coming, 'a request finds no other host')
        return found.kept


def make(parts: Any, setup: Setting, again: Callable[[Server], None],
         give_up: Callable[[Server], None],
         needed: Callable[[float], Mapping[str, float]]) -> Power | None:
    """Look after what hosts draw, and after their power if that is on.

    For the parameters see Power.
    """
    kinds = {host.name: kind for kind in setup.hosts
             for host in kind.hosts()}
    figures = {name: kind.figures for name, kind in kinds.items()
               if kind.figures.watts is not None}
    if not figures and parts.options.power is None:
        return None
    watts = meter.Meter(parts, figures, {
        name: kind.asleep_watts for name, kind in kinds.items()})
    parts.cloud.watch = watts.changed
    if parts.options.power is None:
        return None
    return Power(parts, {name: kind.figures for name, kind in kinds.items()},
                 watts, again, give_up, needed)
