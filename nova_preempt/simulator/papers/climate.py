# SPDX-License-Identifier: Apache-2.0
"""Idle hosts that are switched off, with and without reservations.

F. Rossigneux, L. Lefèvre and M. Dias de Assunção, "A Resource Reservation
System to Improve the Support for HPC Applications in OpenStack" (Climate):
requests for whole hosts, as Grid'5000 has them in advance, and as they would
come to a cloud without reservations. Their metrics are res_idle, e_savings
and delay_req.

Each request is a reservation of a trace for ``simulator/simulation.py``: of
whole hosts, those with the most FLOPS per watt first, whether they are on or
not. Without reservations it is asked for when it is to start. No servers come:
who has hosts is taken to use all of their cores.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import math
import random
from typing import Any

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core import notice_period
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_savings
from nova_preempt.core.model import SECOND, Inventory
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import leases
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.pictures import drawing
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator import time_series
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers.figures import Figure
from nova_preempt.simulator.traces import generator
from nova_preempt.simulator.traces.trace_model import Reserve

PAPER = ('F. Rossigneux, L. Lefèvre, M. Dias de Assunção: A Resource '
         'Reservation System to Improve the Support for HPC Applications in '
         'OpenStack, section V; and M. Dias de Assunção, L. Lefèvre, F. '
         'Rossigneux (CNSM 2016), its abstract')

DAYS = 14
#: How often the paper notes what is idle; all is looked at as often.
NOTE_S = 60
IDLE_INTERVALS = 5
#: How much more there is than the most that is asked for at once.
SAFETY = 0.1

CORES = 8
# Steps of a drawn curve.
_MOST_STEPS = 168
#: Not in the paper: from power on until a host can be used, and what hosts
#: of three ages compute (GFLOPS) and draw, in use, idle and asleep (W).
BOOT_S = 180
_KINDS = ((90.0, 290.0, 180.0), (160.0, 250.0, 140.0), (300.0, 210.0, 90.0))
ASLEEP_W = 8.0
_FIGURES = [efficiency_ranking.Figures(*each) for each in _KINDS]
_DELAYS = delays.Delays(power_on=delays.Delay(f'constant:{BOOT_S}'))
_OPTIONS = simulation_settings.Options(
    preemption_policy.Policy(eligibility.Rules(), ('delete',),
                             costs.partial_hour),
    interval_s=NOTE_S, reservations=simulation_settings.ReservationOptions(
        leases.GuardTime(0, notice_period.NoticeRule(0), eligibility.Rules(),
                         0, 0), 0,
        ranking=calendar.energy, reservable_default=True))

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


@dataclasses.dataclass(frozen=True)
class LeaseRequest:
    """A lease: its request time, start and duration."""

    asked_s: int
    start_s: int
    run_s: int
    hosts: int


def run(scale: float, seed: int, clock: Callable[[], float]
        ) -> figures.PaperEvaluation:
    """Return a figures.PaperEvaluation."""
    del clock
    days = max(1, round(DAYS * scale))
    requests = make(days, seed)
    at_once = [on_demand(each) for each in requests]
    # Adaptation 3.
    peak = generator.peak((each.start_s, each.start_s + each.run_s,
                           {'hosts': each.hosts}) for each in at_once)
    count = math.ceil(peak['hosts'] * (1 + SAFETY))
    end_s = days * _DAY_S
    found = {
        'all on': simulate(at_once, count, end_s, is_switching=False),
        'on demand': simulate(at_once, count, end_s),
        'reserved': simulate(requests, count, end_s),
        'by name': simulate(at_once, count, end_s, is_ranked=False)}
    return figures.PaperEvaluation(
        PAPER,
        f'{days} days, {len(requests)} requests for {count} hosts of {CORES} '
        'cores in three ages',
        'the request logs of Grid\'5000 are not public in the form that was '
        'used. Ours are made up: most are asked for on working days from 8 '
        f'to 20 h, {_AHEAD:.0%} of them for later, often at night. Boots take '
        f'{BOOT_S} s; what hosts draw is made up too.',
        list(_figures(found, count, end_s)), [_plot(found)])


# -- what is asked for -------------------------------------------------------

def make(days: int, seed: int) -> list[LeaseRequest]:
    """Return LeaseRequests in order of their requests; day 0 is a Monday."""
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


def _lease(at_s: int, chance: random.Random) -> LeaseRequest:
    start_s = at_s
    if chance.random() < _AHEAD:
        if chance.random() < 0.5:
            # The next evening, until when no host was free.
            evening_s = at_s - at_s % _DAY_S + 3600 * _WORKING_H[1]
            start_s = max(at_s, evening_s) + int(chance.expovariate(1 / 3600))
        else:
            start_s = at_s + int(chance.expovariate(1 / (4 * 3600)))
    run_s = max(_LEAST_RUN_S, int(generator.lognormal(
        chance, _MEAN_RUN_S, 1.0)))
    hosts = min(_MOST_HOSTS, max(1, round(generator.lognormal(
        chance, _MEAN_HOSTS, 1.0))))
    return LeaseRequest(at_s, start_s, run_s, hosts)


def is_working(time_s: int) -> bool:
    """Return whether a time is within working hours."""
    day, second = divmod(time_s, _DAY_S)
    return day % 7 < _WORKDAYS and (
        _WORKING_H[0] <= second / 3600 < _WORKING_H[1])


def on_demand(lease: LeaseRequest) -> LeaseRequest:
    """Return what its user would have asked of a cloud that has room.

    Adaptations 1 and 2 of the paper: who asked in working hours for another
    time would have started at once, all others when they did.
    """
    if is_working(lease.asked_s) and not is_working(lease.start_s):
        return dataclasses.replace(lease, start_s=lease.asked_s)
    return dataclasses.replace(lease, asked_s=lease.start_s)


# -- what becomes of it ------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class RunResult:
    """Results of a run: how requests fared on some hosts.

    :param late_s: how long each that has begun has waited for its hosts
    :param delays: of those that have waited
    :param series: how many hosts were on, and how many reserved
    """

    totals: power_savings.EnergyTotals
    late_s: Sequence[float]
    delays: Sequence[power_savings.DelayedRequest]
    series: time_series.Series

    def cores(self, what: str, most: int = time_series.MOST_POINTS
              ) -> list[float]:
        """Return the mean number of cores of "hosts ...", step by step.

        :param most: how many steps there are at most
        """
        return [CORES * (after.levels.get(what, 0) - before.levels.get(
            what, 0)) / (after.at_us - before.at_us)
            for before, after in self.series.steps(most)]


def simulate(requests: Iterable[LeaseRequest], count: int, end_s: int, *,
             is_switching: bool = True, is_ranked: bool = True) -> RunResult:
    """Simulate requests on a number of hosts.

    :param is_switching: whether idle hosts are switched off
    :param is_ranked: whether those with the most FLOPS per watt come first
    """
    known = [each if is_ranked else dataclasses.replace(each, flops=None)
             for each in _FIGURES]
    kinds = {f'h{number:03}-1': simulation_settings.HostKind(
        f'h{number:03}', 1, {'VCPU': Inventory(CORES)},
        known[number % len(known)], ASLEEP_W) for number in range(count)}
    asked = {f'{number:05}': each for number, each in enumerate(
        sorted(requests, key=lambda each: each.asked_s))}
    records: list[dict[str, Any]] = []
    series = time_series.Series()
    summary = simulation.Simulation(
        simulation_settings.CloudSetting(tuple(kinds.values()),
                                         delays=_DELAYS),
        dataclasses.replace(_OPTIONS, power=energy_observation.Options(
            power_plan.PowerPolicy(IDLE_INTERVALS), max_wakes_per_minute=count,
            max_sleeps_per_minute=count) if is_switching else None),
        write=records.append, series=series,
    ).run([Reserve(each.asked_s * SECOND, uuid, each.hosts, each.start_s,
                   duration_s=each.run_s) for uuid, each in asked.items()],
          end_s * SECOND)
    starts = {record['id']: record['start'] for record in records
              if record['event'] == 'reservation granted'}
    ends = {record['id']: record['t'] for record in records
            if record['event'] == 'reservation ended'}
    delays, late_s, joules = [], [], 0.0
    for record in records:
        if record['event'] != 'reservation started':
            continue
        uuid, at_s, names = record['id'], record['t'], record['on']
        late_s.append(at_s - starts[uuid])
        if late_s[-1]:
            delays.append(power_savings.DelayedRequest(
                CORES * len(names), late_s[-1], asked[uuid].run_s))
        # The simulation knows what they draw while they are idle.
        joules += (ends.get(uuid, end_s) - at_s) * sum(
            (kinds[name].figures.watts or 0.0)
            - (kinds[name].figures.idle_watts or 0.0) for name in names)
    saved_core_h = summary['energy'].get('core_hours_off', 0.0)
    idle_core_h = CORES * (count * end_s / 3600
                           - summary['reservations']['host_hours'])
    return RunResult(power_savings.EnergyTotals(
        3600 * (idle_core_h - saved_core_h), 3600 * saved_core_h,
        summary['energy']['used_kwh'] + power_savings.kwh(joules, 1)),
        late_s, delays, series)


# -- what is said of it ------------------------------------------------------

_CNSM = 'abstract of CNSM 2016'


def _figures(found: Mapping[str, RunResult], count: int, end_s: int
             ) -> Iterator[Figure]:
    lost = ('the text at hand ends before its results; the metrics are as '
            'defined there')
    worst = found['all on'].totals
    capacity = CORES * count * end_s
    yield Figure('idle core-hours, all hosts on (res_idle)', None,
                 worst.idle_core_s / 3600, lost)
    yield Figure('the same as a part of all', None,
                 worst.idle_core_s / capacity, lost)
    for name in ('on demand', 'reserved'):
        site, totals = found[name], found[name].totals
        yield Figure(f'{name}: core-hours switched off (e_savings)', None,
                     totals.saved_core_s / 3600, lost)
        yield Figure(f'{name}: the same as a part of what was idle', None,
                     totals.saved_core_s / worst.idle_core_s, lost)
        yield Figure(f'{name}: weighted delay (delay_req)', None,
                     power_savings.delay_req(site.delays), lost)
        yield Figure(f'{name}: share of requests that wait for a boot', None,
                     len(site.delays) / len(site.late_s), lost)
        yield Figure(f'{name}: kWh', None, totals.used_kwh,
                     'by draws that we make up')
    yield Figure(
        'savings with reservations / on demand', 'similar',
        found['reserved'].totals.saved_core_s
        / found['on demand'].totals.saved_core_s, source=_CNSM)
    delays = [power_savings.delay_req(found[name].delays)
              for name in ('reserved', 'on demand')]
    yield Figure('delay with reservations / on demand', 'less',
                 delays[0] / delays[1] if delays[1] else 'nobody waits',
                 'hosts that are reserved are woken before they are needed',
                 _CNSM)
    yield Figure('all on: kWh', None, worst.used_kwh,
                 'by draws that we make up')
    yield Figure(
        'energy: hosts by FLOPS per watt (KWRanking) / by name', None,
        found['on demand'].totals.used_kwh / found['by name'].totals.used_kwh,
        'the text has the ranking, and no figure of what it saves; how much '
        'that is depends on how unlike the hosts are')


def _plot(found: Mapping[str, RunResult]) -> drawing.Plot:
    panels = []
    for name in ('on demand', 'reserved'):
        site = found[name]
        pairs = list(site.series.steps(_MOST_STEPS))
        panels.append(drawing.Panel(
            f'Cores of hosts, {name}', 'time since the first event (days)',
            'cores', [drawing.FigureSeries(
                label, [(at.at_us - pairs[0][0].at_us) / SECOND / _DAY_S
                        for at in (*(at for at, _ in pairs), pairs[-1][1])],
                site.cores(what, _MOST_STEPS), 'step')
                for label, what in (('in use', 'hosts reserved'),
                                    ('awake', 'hosts on'))]))
    kwh = {name: found[name].totals.used_kwh
           for name in ('all on', 'on demand', 'reserved', 'by name')}
    delays = {name: power_savings.delay_req(found[name].delays)
              for name in ('on demand', 'reserved')}
    panels += [
        drawing.Panel(title, '', label, [drawing.FigureSeries(
            '', list(values), list(values.values()), 'bar')])
        for title, label, values in (
            ('Energy (published: "on demand" and "reserved" are similar)',
             'kWh', kwh),
            ('Weighted delay of requests (published: less if "reserved")',
             'delay_req', delays))]
    return drawing.Plot('climate', panels, drawing.one_line(
        'Energy saved by switching idle hosts off', (
            (name, f'{100 - 100 * kwh[name] / kwh["all on"]:.0f} %')
            for name in ('on demand', 'reserved'))))
