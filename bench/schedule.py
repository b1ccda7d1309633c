# SPDX-License-Identifier: Apache-2.0
"""Measure a decision of the scheduler: ours, Nova's own and a retrying one.

    python bench/schedule.py [--hosts 100,1000] [--cases abc]
                             [--repetitions N] [--phases] [--profile CASE]
                             [--storm N]

All three run in this process on the same real Placement and Nova databases.
README.rst beside this file says what is measured and what is not.
"""


# Before other modules of Nova: it decides whether eventlet patches.
import copies  # isort: skip
import schedulers  # isort: skip

import argparse
import concurrent.futures
import contextlib
import copy
import cProfile
import dataclasses
import gc
import pstats
import statistics
import time
from unittest import mock

from nova import context as nova_context
import nova.conf
from nova.scheduler import host_manager
from nova.scheduler.client import report
import oslo_messaging as messaging

from nova_preempt import db
from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.core.scheduling import plan_search
from nova_preempt.db import preemptible_hints
from nova_preempt.embedded import embedded_cloud

CONF = nova.conf.CONF

WARM_UP = 2

# As many as nova-scheduler has for requests ([DEFAULT]
# executor_thread_pool_size).
THREADS = 64


# -- measuring -----------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Case:
    """A measured kind of decision.

    :param scheduler: an attribute of Schedulers
    :param vcpus: of the request
    :param always: [preemption]consider is always, not when_full
    :param victims: whether somebody has to end
    """

    label: str
    scheduler: str
    vcpus: int = copies.SMALL
    always: bool = False
    victims: bool = False


STOCK = Case('stock', 'stock')
WHEN_FULL = Case('ours, when_full', 'ours')
ALWAYS = Case('ours, always', 'ours', always=True)
PREEMPTING = Case('ours, preempting', 'ours', copies.LARGE, victims=True)
RETRY = Case('retry', 'retry', copies.LARGE, victims=True)


@dataclasses.dataclass(frozen=True)
class Group:
    """Cases that are compared, turn by turn, on one cloud.

    :param ratios: [(case, case that it is compared to, the target)]
    """

    title: str
    preemptible: int
    cases: tuple[Case, ...]
    ratios: tuple[tuple[Case, Case, str], ...]


GROUPS = {
    'a': Group('(a) no preemptible server', 0, (STOCK, WHEN_FULL, ALWAYS),
               ((WHEN_FULL, STOCK, '<= 1.05'), (ALWAYS, STOCK, '<= 1.05'))),
    'b': Group('(b) preemptible servers, room on every host',
               copies.PREEMPTIBLE,
               (STOCK, WHEN_FULL, ALWAYS),
               ((WHEN_FULL, STOCK, '<= 1.05'), (ALWAYS, STOCK, '<= 1.15'))),
    'c': Group('(c) no room; (d) against a retry', copies.PREEMPTIBLE,
               (STOCK, PREEMPTING, RETRY),
               ((PREEMPTING, STOCK, '<= 0.47 at 1000 hosts, aim 0.30'),
                (PREEMPTING, RETRY, '< 1.00'))),
}

PROFILES = {
    'stock': ('b', STOCK),
    'a': ('a', WHEN_FULL),
    'b': ('b', WHEN_FULL),
    'b-always': ('b', ALWAYS),
    'c': ('c', PREEMPTING),
    'retry': ('c', RETRY),
}


class Bench:
    """Makes decisions and rolls them back."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._schedulers = schedulers.Schedulers(cloud)
        # The whole cloud is in this process: too much for the garbage
        # collector of a scheduler to go through, again and again.
        gc.collect()
        gc.freeze()

    def decide(self, case, during=None):
        """Decide once; (seconds, seconds of processor time).

        :param during: a context manager around the decision
        """
        server, spec_obj = self._cloud.ask(case.vcpus)
        scheduler = getattr(self._schedulers, case.scheduler)
        preemption = self._schedulers.ours.preemption
        CONF.set_override(
            'consider', 'always' if case.always else 'when_full',
            'preemption')
        with during or contextlib.nullcontext():
            wall, cpu = time.perf_counter(), time.process_time()
            selections = scheduler.select_destinations(
                nova_context.RequestContext('user', 'project'),
                spec_obj=spec_obj, instance_uuids=[server],
                return_objects=True, return_alternates=True)
            times = (time.perf_counter() - wall, time.process_time() - cpu)
        victims = self._cloud.restore(selections[0][0])
        if bool(victims) != case.victims:
            raise SystemExit(f'{case.label}: {victims} victims')
        preemption.known.refresh()
        return times

    def storm(self, number):
        """Ask for as many normal servers at once, where nothing is free.

        :returns: [(seconds until the answer, victims or None if refused)]
        """
        scheduler = self._schedulers.ours
        asked = [self._cloud.ask(copies.LARGE) for _ in range(number)]
        start = time.perf_counter()

        def decide(server, spec_obj):
            try:
                scheduler.select_destinations(
                    nova_context.RequestContext('user', 'project'),
                    spec_obj=spec_obj, instance_uuids=[server],
                    return_objects=True, return_alternates=True)
                placed = True
            except messaging.ExpectedException:
                placed = False
            return time.perf_counter() - start, placed

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(decide, *zip(*asked, strict=True)))

    def compare(self, cases, repetitions):
        """{case: [(seconds, processor seconds)]}, the cases by turns."""
        times = {case: [] for case in cases}
        for number in range(-WARM_UP, repetitions):
            for case in cases if number % 2 else cases[::-1]:
                took = self.decide(case)
                if number >= 0:
                    times[case].append(took)
        return times


class Phases(contextlib.AbstractContextManager):
    """Time of each phase of a decision, without nested phases."""

    PARTS = {
        'Placement': (report.SchedulerReportClient, (
            'get', 'put', 'post', 'delete')),
        'host states': (host_manager.HostManager, (
            'get_host_states_by_uuids',)),
        'filters, weighers': (host_manager.HostManager, (
            'get_filtered_hosts', 'get_weighed_hosts')),
        'servers': (preemptible_server_cache.ServerCache, ('refresh',)),
        'our database': (db.Decisions, (
            'create_decision', 'update_decision', 'get_decisions')),
        'hints': (preemptible_hints, ('get',)),
        'bounds': (plan_search.PlanSearch, ('_bound',)),
        'victims': (plan_search.PlanSearch, ('plan',)),
        'copies': (copy, ('deepcopy',)),
    }

    def __init__(self):
        self.seconds = dict.fromkeys((*self.PARTS, 'rest'), 0)
        self._stack = contextlib.ExitStack()
        self._inner = [0]

    def __enter__(self):
        for part, (owner, names) in self.PARTS.items():
            for name in names:
                self._stack.enter_context(mock.patch.object(
                    owner, name, self._timed(part, getattr(owner, name))))
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exc_info):
        took = time.perf_counter() - self._start
        self.seconds['rest'] += took - self._inner[0]
        self._inner = [0]
        self._stack.close()

    def _timed(self, part, function):
        def call(*args, **kwargs):
            self._inner.append(0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - start
                self.seconds[part] += took - self._inner.pop()
                self._inner[-1] += took

        return call


@contextlib.contextmanager
def started(hosts, preemptible):
    """A Bench on a new cloud."""
    gc.unfreeze()
    with embedded_cloud.EmbeddedCloud({}, copies.OPTIONS) as case:
        start = time.perf_counter()
        bench = Bench(copies.Cloud(case, hosts, preemptible))
        print(f'{hosts} hosts, {preemptible} of {len(copies.SIZES)} servers '
              'on each preemptible; made in '
              f'{time.perf_counter() - start:.0f} s', flush=True)
        yield bench


def measure(hosts, groups, repetitions, phases):
    for preemptible in sorted({group.preemptible for group in groups}):
        with started(hosts, preemptible) as bench:
            for group in groups:
                if group.preemptible == preemptible:
                    times = bench.compare(group.cases, repetitions)
                    print_group(group, times)
                    if phases:
                        print_phases(bench, group, repetitions)


def print_group(group, times):
    print(f'\n{group.title}\n  {"ms":20}{"median":>9}{"min":>9}{"max":>9}'
          f'{"cpu":>9}')
    for case in group.cases:
        wall = [1000 * took for took, _cpu in times[case]]
        cpu = [1000 * took for _wall, took in times[case]]
        print(f'  {case.label:20}{statistics.median(wall):9.1f}'
              f'{min(wall):9.1f}{max(wall):9.1f}'
              f'{statistics.median(cpu):9.1f}')
    for case, other, target in group.ratios:
        ratio, cpu_ratio = (
            statistics.median(ours[clock] / theirs[clock] for ours, theirs
                              in zip(times[case], times[other], strict=True))
            for clock in (0, 1))
        print(f'  {case.label} / {other.label}: {ratio:.2f} '
              f'(cpu {cpu_ratio:.2f}), target {target}')
    print(flush=True)


def print_phases(bench, group, repetitions):
    for case in group.cases:
        phases = Phases()
        for _ in range(repetitions):
            bench.decide(case, phases)
        print(f'  phases of {case.label}, ms: ' + ', '.join(
            f'{part} {1000 * seconds / repetitions:.1f}'
            for part, seconds in phases.seconds.items() if seconds))
    print(flush=True)


def storm(hosts, number):
    with started(hosts, copies.PREEMPTIBLE) as bench:
        cpu = time.process_time()
        times = bench.storm(number)
        cpu = time.process_time() - cpu
    placed = [seconds for seconds, was_placed in times if was_placed]
    print(f'{number} normal requests at once, {THREADS} threads: '
          f'{len(placed)} placed, {number - len(placed)} refused, the last '
          f'claim after {max(placed):.1f} s, {len(placed) / max(placed):.1f} '
          f'decisions a second, {1000 * cpu / number:.0f} ms of processor '
          'time each', flush=True)


def profile(hosts, name, repetitions):
    group, case = PROFILES[name]
    with started(hosts, GROUPS[group].preemptible) as bench:
        for _ in range(WARM_UP):
            bench.decide(case)
        profiler = cProfile.Profile()
        for _ in range(repetitions):
            bench.decide(case, profiler)
        print(f'{case.label}, {repetitions} decisions')
        pstats.Stats(profiler).sort_stats('cumulative').print_stats(
            'nova[_/]', 25)


def main():
    parser = argparse.ArgumentParser(
        description='Time of a scheduling decision.')
    parser.add_argument(
        '--hosts', default='100,1000', metavar='N,...',
        type=lambda text: [int(number) for number in text.split(',')],
        help='sizes of the cloud (100,1000)')
    parser.add_argument('--repetitions', type=int, default=15, metavar='N',
                        help='decisions of each kind (15)')
    parser.add_argument('--cases', default='abc', metavar='LETTERS',
                        help='cases to run: a, b, c; c includes d (abc)')
    parser.add_argument('--phases', action='store_true',
                        help='print the time of each phase, too')
    parser.add_argument('--profile', choices=PROFILES, metavar='CASE',
                        help='profile this case instead: '
                             + ', '.join(PROFILES))
    parser.add_argument('--storm', type=int, metavar='N',
                        help='send N requests at once instead')
    args = parser.parse_args()
    print('The end of victims is left out of all times.')
    for hosts in args.hosts:
        if args.storm:
            storm(hosts, args.storm)
        elif args.profile:
            profile(hosts, args.profile, args.repetitions)
        else:
            measure(hosts, [GROUPS[name] for name in args.cases],
                    args.repetitions, args.phases)


if __name__ == '__main__':
    main()
