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
"""Idle hosts that are switched off, with and without reservations.

F. Rossigneux, L. Lefèvre and M. Dias de Assunção, "A Resource Reservation
System to Improve the Support for HPC Applications in OpenStack" (Climate):
requests for whole hosts, as Grid'5000 has them in advance, and as they would
come to a cloud without reservations. Their metrics are res_idle, e_savings
and delay_req.

It is no trace for ``simulator/run.py``: also a request without a reservation
is for several whole hosts at once, which start together, at the earliest time
at which so many are free (``calendar.find``), on those with the most FLOPS per
watt among the hosts that are on. Servers of a trace are placed each for
itself, by free memory. When hosts are switched, and which, is the core's here
too (``core.energy.power``).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
import dataclasses
import functools
import math
import random
from typing import Self

from nova_preempt.core.energy import efficiency
from nova_preempt.core.energy import forecast
from nova_preempt.core.energy import power
from nova_preempt.core.energy import savings
from nova_preempt.core.reservation import calendar
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers.figures import Figure

PAPER = ('F. Rossigneux, L. Lefèvre, M. Dias de Assunção: A Resource '
         'Reservation System to Improve the Support for HPC Applications in '
         'OpenStack, section V; and M. Dias de Assunção, L. Lefèvre, F. '
         'Rossigneux (CNSM 2016), its abstract')

DAYS = 14
#: The intervals of the paper: what is idle is noted, hosts are switched, and
#: what is reserved within the horizon stays on.
NOTE_S = 60
SWITCH_S = 300
HORIZON_S = 900
IDLE_INTERVALS = 5
#: How much more there is than the most that is asked for at once.
SAFETY = 0.1

CORES = 8
#: Not in the paper: from power on until a host can be used, and what hosts
#: of three ages compute (GFLOPS) and draw, in use, idle and asleep (W).
BOOT_S = 180
_KINDS = ((90.0, 290.0, 180.0), (160.0, 250.0, 140.0), (300.0, 210.0, 90.0))
ASLEEP_W = 8.0

_DAY_S = 86400
_WORKING_H = (8, 20)
_WORKDAYS = 5
#: Of the load that we make up.
_PER_WORKING_HOUR = 6.0
_PER_OTHER_HOUR = 0.6
_MEAN_HOSTS = 6
_MOST_HOSTS = 40
_MEAN_RUN_S = 3 * 3600
_LEAST_RUN_S = 600
_AHEAD = 0.6
_FORECAST_S = 3600


@dataclasses.dataclass(frozen=True)
class Lease:
    """Hosts for somebody: asked for, wanted from, and for how long."""

    asked_s: int
    start_s: int
    run_s: int
    hosts: int


def run(scale: float, seed: int, clock: Callable[[], float]
        ) -> figures.Evaluation:
    """Return a figures.Evaluation."""
    del clock
    days = max(2, round(DAYS * scale))
    leases = make(days, seed)
    at_once = [on_demand(each) for each in leases]
    count = math.ceil(_most(at_once) * (1 + SAFETY))
    end_s = days * _DAY_S
    found = {
        'all on': _Site(count, end_s, is_switching=False).run(at_once),
        'on demand': _Site(count, end_s).run(at_once),
        'reserved': _Site(count, end_s).run(leases),
        'by name': _Site(count, end_s, is_ranked=False).run(at_once),
    }
    return figures.Evaluation(
        PAPER,
        f'{days} days, {len(leases)} requests for {count} hosts of {CORES} '
        'cores in three ages',
        'the request logs of Grid\'5000 are not public in the form that was '
        'used. Ours are made up: most are asked for on working days from 8 '
        f'to 20 h, {_AHEAD:.0%} of them for later, often at night. Boots take '
        f'{BOOT_S} s; what hosts draw is made up too.',
        list(_figures(found, count, end_s)), [_plot(found)])


# -- what is asked for -------------------------------------------------------

def make(days: int, seed: int) -> list[Lease]:
    """Return Leases in order of their requests; day 0 is a Monday."""
    chance = random.Random(seed)
    found = []
    for hour in range(24 * days):
        rate = (_PER_WORKING_HOUR if is_working(3600 * hour)
                else _PER_OTHER_HOUR)
        at_s = 3600 * hour + chance.expovariate(rate / 3600)
        while at_s < 3600 * (hour + 1):
            found.append(_lease(int(at_s), chance))
            at_s += chance.expovariate(rate / 3600)
    return found


def _lease(at_s: int, chance: random.Random) -> Lease:
    start_s = at_s
    if chance.random() < _AHEAD:
        if chance.random() < 0.5:
            # The next evening, until when no host was free.
            evening_s = at_s - at_s % _DAY_S + 3600 * _WORKING_H[1]
            start_s = max(at_s, evening_s) + int(chance.expovariate(1 / 3600))
        else:
            start_s = at_s + int(chance.expovariate(1 / (4 * 3600)))
    run_s = max(_LEAST_RUN_S, int(chance.lognormvariate(
        math.log(_MEAN_RUN_S) - 0.5, 1.0)))
    hosts = min(_MOST_HOSTS, max(1, round(chance.lognormvariate(
        math.log(_MEAN_HOSTS) - 0.5, 1.0))))
    return Lease(at_s, start_s, run_s, hosts)


def is_working(time_s: int) -> bool:
    """Whether a time is on a working day, in working hours."""
    day, second = divmod(time_s, _DAY_S)
    return day % 7 < _WORKDAYS and (
        _WORKING_H[0] <= second / 3600 < _WORKING_H[1])


def on_demand(lease: Lease) -> Lease:
    """Return what its user would have asked of a cloud that has room.

    Adaptations 1 and 2 of the paper: who asked in working hours for another
    time would have started at once, all others when they did.
    """
    if is_working(lease.asked_s) and not is_working(lease.start_s):
        return dataclasses.replace(lease, start_s=lease.asked_s)
    return dataclasses.replace(lease, asked_s=lease.start_s)


def _most(leases: Iterable[Lease]) -> int:
    """The most hosts at once (adaptation 3)."""
    changes = sorted(
        [(each.start_s, each.hosts) for each in leases]
        + [(each.start_s + each.run_s, -each.hosts) for each in leases])
    held = most = 0
    for _, change in changes:
        held += change
        most = max(most, held)
    return most


# -- what becomes of it ------------------------------------------------------

@dataclasses.dataclass
class _Host:
    """A host; ready_s is when it is on, None while it is off."""

    name: str
    figures: efficiency.Figures
    ready_s: int | None = 0
    busy: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    def is_busy(self, now_s: int) -> bool:
        return any(start_s <= now_s < end_s for start_s, end_s in self.busy)

    def next_s(self, now_s: int) -> int | None:
        """When its next reservation begins."""
        return min((start_s for start_s, _ in self.busy if start_s > now_s),
                   default=None)


class _Site:
    """Hosts that leases come to, minute by minute."""

    def __init__(self, count: int, end_s: int, *, is_switching: bool = True,
                 is_ranked: bool = True) -> None:
        self._hosts = [_Host(f'h{number:03}', efficiency.Figures(
            *_KINDS[number % len(_KINDS)])) for number in range(count)]
        self._end_s = end_s
        self._is_switching = is_switching
        self._is_ranked = is_ranked
        self._noted: dict[str, power.Noted] = {}
        self._history: list[forecast.Load] = []
        self.samples: list[savings.Sample] = []
        self.delays: list[savings.Delay] = []
        self.late_s: list[int] = []

    def run(self, leases: Iterable[Lease]) -> Self:
        """Let all of them come; return this."""
        coming = sorted(leases, key=lambda each: each.asked_s, reverse=True)
        delayed = []
        for now_s in range(0, self._end_s, NOTE_S):
            while coming and coming[-1].asked_s <= now_s:
                delayed.append(self._grant(coming.pop(), now_s))
            delayed = [each for each in delayed
                       if not self._begun(*each, now_s)]
            self._note(now_s)
        return self

    def _grant(self, lease: Lease, now_s: int
               ) -> tuple[Lease, list[_Host], int]:
        """Give hosts to a lease, of those that are on if it is to start."""
        start_s = max(lease.start_s, now_s)
        on = [host for host in self._hosts if host.ready_s is not None]
        find = functools.partial(
            calendar.find, window_start_s=start_s, duration_s=lease.run_s,
            quantity=lease.hosts, ranking=calendar.energy)
        found = None
        if start_s == now_s:
            found = find(self._reservable(on, now_s),
                         window_end_s=start_s + lease.run_s)
        if found is None:
            found = find(self._reservable(self._hosts, now_s),
                         window_end_s=None)
        # Sooner or later so many are free.
        assert found is not None
        chosen = [host for host in self._hosts if host.name in found.hosts]
        for host in chosen:
            host.busy.append((found.start_s, found.end_s))
        return lease, chosen, found.start_s

    def _begun(self, lease: Lease, chosen: Iterable[_Host], start_s: int,
               now_s: int) -> bool:
        """Whether a lease has begun; its hosts are waked if they sleep."""
        if start_s > now_s:
            return False
        ready_s = now_s
        for host in chosen:
            if host.ready_s is None:
                host.ready_s = now_s + BOOT_S
            ready_s = max(ready_s, host.ready_s)
        boot_s = ready_s - now_s
        if boot_s > 0:
            self.delays.append(savings.Delay(
                CORES * lease.hosts, boot_s, lease.run_s))
        self.late_s.append(boot_s)
        return True

    def _note(self, now_s: int) -> None:
        busy = {host.name for host in self._hosts if host.is_busy(now_s)}
        off = [host for host in self._hosts if host.ready_s is None]
        self.samples.append(savings.Sample(
            now_s, CORES * len(self._hosts), CORES * len(off),
            CORES * len(busy), sum(_watts(host, busy)
                                   for host in self._hosts)))
        if not self._is_switching:
            return
        self._noted = {name: power.Noted(intervals) for name, intervals in
                       power.count_idle(self._noted, [
                           host.name for host in self._hosts
                           if host.name not in busy
                           and host.ready_s is not None], math.inf).items()}
        self._history.append(forecast.Load(now_s, len(busy)))
        self._history = [load for load in self._history
                         if load.time_s > now_s - _FORECAST_S]
        if now_s % SWITCH_S == 0:
            self._switch(busy, now_s)

    def _switch(self, busy: Collection[str], now_s: int) -> None:
        for host in self._hosts:
            host.busy = [item for item in host.busy if item[1] > now_s]
        switches = power.decide(
            [self._power_host(host, busy, now_s) for host in self._hosts],
            forecast.ewma(self._history, now_s, SWITCH_S),
            power.Policy(IDLE_INTERVALS))
        for host in self._hosts:
            if host.name in switches.wake:
                host.ready_s = now_s + BOOT_S
            elif host.name in switches.sleep:
                host.ready_s = None

    def _power_host(self, host: _Host, busy: Collection[str], now_s: int
                    ) -> power.PowerHost:
        next_s = host.next_s(now_s)
        in_s = math.inf if next_s is None else next_s - now_s
        noted = self._noted.get(host.name)
        return power.PowerHost(
            host.name, host.ready_s is not None, host.name in busy,
            noted.intervals if noted else 0, self._efficiency(host),
            in_s <= HORIZON_S, in_s <= BOOT_S + SWITCH_S)

    def _reservable(self, hosts: Iterable[_Host], now_s: int
                    ) -> list[calendar.ReservableHost]:
        return [calendar.ReservableHost(
            host.name, calendar.merged(item for item in host.busy
                                       if item[1] > now_s),
            self._efficiency(host)) for host in hosts]

    def _efficiency(self, host: _Host) -> float | None:
        """What KWRanking goes by, None where it is off."""
        return host.figures.flops_per_watt if self._is_ranked else None

    def totals(self) -> savings.Totals:
        return savings.totals(self.samples, self._end_s)


def _watts(host: _Host, busy: Collection[str]) -> float:
    if host.ready_s is None:
        return ASLEEP_W
    return (host.figures.watts if host.name in busy
            else host.figures.idle_watts) or 0.0


# -- what is said of it ------------------------------------------------------

_CNSM = 'abstract of CNSM 2016'


def _figures(found: Mapping[str, _Site], count: int, end_s: int
             ) -> Iterator[Figure]:
    lost = ('the text at hand ends before its results; the metrics are as '
            'defined there')
    worst = found['all on'].totals()
    capacity = CORES * count * end_s
    yield Figure('idle core-hours, all hosts on (res_idle)', None,
                 worst.idle_core_s / 3600, lost)
    yield Figure('the same as a part of all', None,
                 worst.idle_core_s / capacity, lost)
    for name in ('on demand', 'reserved'):
        site, totals = found[name], found[name].totals()
        yield Figure(f'{name}: core-hours switched off (e_savings)', None,
                     totals.saved_core_s / 3600, lost)
        yield Figure(f'{name}: the same as a part of what was idle', None,
                     totals.saved_core_s / worst.idle_core_s, lost)
        yield Figure(f'{name}: weighted delay (delay_req)', None,
                     savings.delay_req(site.delays), lost)
        yield Figure(f'{name}: share of requests that wait for a boot', None,
                     len(site.delays) / len(site.late_s), lost)
        yield Figure(f'{name}: kWh', None, totals.used_kwh,
                     'by draws that we make up')
    yield Figure(
        'savings with reservations / on demand', 'similar',
        found['reserved'].totals().saved_core_s
        / found['on demand'].totals().saved_core_s, source=_CNSM)
    delays = [savings.delay_req(found[name].delays)
              for name in ('reserved', 'on demand')]
    yield Figure('delay with reservations / on demand', 'less',
                 delays[0] / delays[1] if delays[1] else 'nobody waits',
                 'hosts that are reserved are woken before they are needed',
                 _CNSM)
    yield Figure('all on: kWh', None, worst.used_kwh,
                 'by draws that we make up')
    yield Figure(
        'energy: hosts by FLOPS per watt (KWRanking) / by name', None,
        found['on demand'].totals().used_kwh
        / found['by name'].totals().used_kwh,
        'the text has the ranking, and no figure of what it saves; how much '
        'that is depends on how unlike the hosts are')


def _plot(found: Mapping[str, _Site]) -> figures.Plot:
    def hours(site: _Site) -> list[float]:
        return [sample.time_s / 3600 for sample in site.samples[::15]]

    panels = []
    for name in ('on demand', 'reserved'):
        site = found[name]
        panels.append(figures.Panel(
            f'Cores, {name}', 'time (h)', 'cores', [
                figures.Series('in use', hours(site), [
                    each.cores_used for each in site.samples[::15]], 'step'),
                figures.Series('on', hours(site), [
                    each.cores_total - each.cores_off
                    for each in site.samples[::15]], 'step')]))
    names = ('all on', 'on demand', 'reserved', 'by name')
    panels.append(figures.Panel('Energy', '', 'kWh', [figures.Series(
        'drawn', names, [found[name].totals().used_kwh for name in names],
        'bar')]))
    return figures.Plot('climate', panels)
