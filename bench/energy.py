# SPDX-License-Identifier: Apache-2.0
"""Measure the share of KWRankingWeigher in a decision.

    python bench/energy.py [--hosts 100,1000] [--repetitions N]

Every host has figures. A decision is made, and the same hosts are weighed
once more by KWRankingWeigher alone.
"""

# Before other modules of Nova: it decides whether eventlet patches.
import schedule  # isort: skip
import copies  # isort: skip

import argparse
import contextlib
import random
import statistics
import time
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.db import energy_store
from nova_preempt.scheduler.weights import efficiency_weigher

TARGET = 0.02


class Weighing(contextlib.AbstractContextManager):
    """Records the hosts that a decision weighs, to weigh them again."""

    def __init__(self, scheduler):
        self._manager = scheduler.host_manager
        self._weigher, = (
            weigher for weigher in self._manager.weighers
            if isinstance(weigher, efficiency_weigher.KWRankingWeigher))
        self._noted = None

    def learn(self, database, hosts):
        """Store figures of all hosts, no two alike."""
        rng = random.Random(copies.SEED)
        now = timeutils.utcnow()
        energy_store.put_figures(database, [
            energy_store.HostEfficiency(host.name, 1e12 * rng.uniform(1, 4),
                                        rng.uniform(300, 900),
                                        rng.uniform(80, 200),
                                        now) for host in hosts])
        self._weigher.figures.refresh()

    def __enter__(self):
        weigh = self._manager.get_weighed_hosts

        def note(hosts, spec_obj):
            hosts = list(hosts)
            self._noted = hosts, spec_obj
            return weigh(hosts, spec_obj)

        self._patch = mock.patch.object(self._manager, 'get_weighed_hosts',
                                        note)
        self._patch.start()
        return self

    def __exit__(self, *exc_info):
        self._patch.stop()

    def again(self):
        """Return (hosts, seconds, processor seconds) of the weigher alone.

        With what Nova does for each weigher: normalize, multiply, sort.
        """
        hosts, spec_obj = self._noted
        wall, cpu = time.perf_counter(), time.process_time()
        self._manager.weight_handler.get_weighed_objects(
            [self._weigher], hosts, spec_obj)
        return (len(hosts), time.perf_counter() - wall,
                time.process_time() - cpu)


def measure(hosts, repetitions):
    with schedule.started(hosts, 0) as bench:
        scheduler = bench._schedulers.ours
        weighing = Weighing(scheduler)
        weighing.learn(scheduler.preemption.process.db, bench._cloud.servers)
        for ranking in ('efficiency', 'marginal'):
            bench._cloud.case.flags(group='energy', ranking=ranking)
            report(ranking, list(compare(bench, weighing, repetitions)))


def compare(bench, weighing, repetitions):
    for number in range(-schedule.WARM_UP, repetitions):
        decision = bench.decide(schedule.WHEN_FULL, weighing)
        weighed, *alone = weighing.again()
        if number >= 0:
            yield weighed, decision, alone


def report(ranking, times):
    weighed = {number for number, _decision, _alone in times}
    print(f'\n{ranking}, hosts weighed: {", ".join(map(str, weighed))}')
    for clock, name in enumerate(('wall', 'cpu')):
        shares = [alone[clock] / decision[clock]
                  for _number, decision, alone in times]
        print(f'  {name}: decision '
              f'{1000 * statistics.median(d[clock] for _, d, _ in times):.1f}'
              ' ms, KWRankingWeigher '
              f'{1000 * statistics.median(a[clock] for _, _, a in times):.2f}'
              f' ms, share {100 * statistics.median(shares):.2f} % '
              f'(max {100 * max(shares):.2f} %), target < {100 * TARGET:g} %',
              flush=True)


def main():
    parser = argparse.ArgumentParser(
        description='Share of KWRankingWeigher in a decision.')
    parser.add_argument(
        '--hosts', default='100,1000', metavar='N,...',
        type=lambda text: [int(number) for number in text.split(',')],
        help='sizes of the cloud (100,1000)')
    parser.add_argument('--repetitions', type=int, default=15, metavar='N',
                        help='decisions of each kind (15)')
    args = parser.parse_args()
    for hosts in args.hosts:
        measure(hosts, args.repetitions)


if __name__ == '__main__':
    main()
