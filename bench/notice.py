# SPDX-License-Identifier: Apache-2.0
"""Measure whether requests that wait for a notice hold up others.

    python bench/notice.py [--waiting N] [--notice SECONDS] [--repetitions N]

So many requests preempt at once and wait for the notice of their victims.
Meanwhile servers are asked for that need none. What they take is compared to
what the same requests take before, in the same process and cloud.
"""

# Before other modules of Nova: it decides whether eventlet patches.
import copies  # isort: skip

import argparse
import concurrent.futures
import contextlib
import statistics
import sys
import time

from nova import context as nova_context
import oslo_messaging as messaging

from nova_preempt.cloud import awaited_servers
from nova_preempt.core import observed_server
from nova_preempt.embedded import embedded_cloud
from nova_preempt.scheduler import manager

# Duration of the measurement of the idle process.
IDLE_S = 10


class FakeNova:
    """Accepts all calls and evicts nothing, as there are no computes."""

    def set_notice(self, *args):
        pass

    clear_notice = force_delete = set_notice

    def get(self, uuid):
        return observed_server.ObservedServer(uuid, '', status='ACTIVE')


class Gone:
    """Reports every server as gone."""

    def add(self, uuids):
        pass

    remove = add

    def get(self, uuid, max_age_s=None):
        pass


class Waiting:
    """A cloud, and a scheduler whose requests wait for notices."""

    def __init__(self, cloud, notice_s):
        self._cloud = cloud
        cloud.case.flags(group='preemption', notice_s=notice_s,
                         maximum_notice_s=notice_s,
                         max_waiting_requests=sys.maxsize)
        cloud.case.patch(awaited_servers, 'POLL_INTERVAL_S', 0.5)
        self._scheduler = manager.PreemptibleSchedulerManager()
        self._scheduler.start_preemption()
        preemption = self._scheduler.preemption
        preemption.handover.terminator.nova = FakeNova()
        preemption.handover.recovery._nova = FakeNova()
        preemption.known.refresh()
        cloud.tell(self._scheduler)

    def decide(self, server, spec_obj):
        """Decide on a request.

        :returns: seconds, those of them that its thread computes, a selection
        """
        start, cpu = time.perf_counter(), time.thread_time()
        selections = self._scheduler.select_destinations(
            nova_context.RequestContext('user', 'project'),
            spec_obj=spec_obj, instance_uuids=[server], return_objects=True,
            return_alternates=True)
        return (time.perf_counter() - start, time.thread_time() - cpu,
                selections[0][0])

    def end_all(self):
        """End all waits: report all victims as gone."""
        self._scheduler.preemption.handover.terminator.watch = Gone()

    def preempt(self, request):
        """Wait for the notice of victims."""
        with contextlib.suppress(messaging.ExpectedException):
            self.decide(*request)

    def measure(self, repetitions):
        """Send requests without preemption; return the seconds of each, and
        the processor time of its thread.
        """
        times = []
        for _ in range(repetitions):
            *took, selection = self.decide(*self._cloud.ask(copies.SMALL))
            if self._cloud.restore(selection):
                raise SystemExit('a server was preempted')
            times.append(took)
        return [list(column) for column in zip(*times, strict=True)]

    def waiting(self):
        """Return the number of waiting requests."""
        preemption = self._scheduler.preemption
        return len(preemption.process.decisions.get_claimed_uuids()) + sum(
            map(len, list(preemption.releasing._taken.values())))


def idle_share():
    """Return the share of a processor in use between decisions."""
    start = time.process_time()
    time.sleep(IDLE_S)
    return (time.process_time() - start) / IDLE_S


def run(waiting, notice_s, repetitions):
    with embedded_cloud.EmbeddedCloud({}, copies.OPTIONS) as case:
        # Twice as many hosts: on those that are left there is room.
        cloud = copies.Cloud(case, 2 * waiting, copies.PREEMPTIBLE)
        parts = Waiting(cloud, notice_s)
        requests = [cloud.ask(copies.LARGE) for _ in range(waiting)]
        parts.measure(3)
        before, idle_before = parts.measure(repetitions), idle_share()
        with concurrent.futures.ThreadPoolExecutor(waiting) as pool:
            futures = [pool.submit(parts.preempt, request)
                       for request in requests]
            try:
                while parts.waiting() < waiting:
                    if any(future.done() for future in futures):
                        raise SystemExit('some requests are done before the '
                                         'last one waits')
                    time.sleep(1)
                during, idle_during = parts.measure(repetitions), idle_share()
                still = parts.waiting()
            finally:
                parts.end_all()
        print(f'{waiting} requests wait for a notice of {notice_s} s '
              f'({still} still did at the end)')
        for name, (wall, cpu), idle in (
                ('before', before, idle_before),
                ('meanwhile', during, idle_during)):
            print(f'  {name:10} median {1000 * statistics.median(wall):7.1f}'
                  f' ms, max {1000 * max(wall):7.1f} ms, '
                  f'cpu {1000 * statistics.median(cpu):7.1f} ms; '
                  f'{100 * idle:.0f} % of a processor between them')
        ratio, cpu_ratio = (
            statistics.median(meanwhile) / statistics.median(first)
            for first, meanwhile in zip(before, during, strict=True))
        print(f'  ratio {ratio:.2f} (cpu {cpu_ratio:.2f}), target <= 1.20')


def main():
    parser = argparse.ArgumentParser(description='Who waits for a notice.')
    parser.add_argument('--waiting', type=int, default=200, metavar='N')
    parser.add_argument('--notice', type=int, default=1500, metavar='SECONDS')
    parser.add_argument('--repetitions', type=int, default=30, metavar='N')
    args = parser.parse_args()
    run(args.waiting, args.notice, args.repetitions)


if __name__ == '__main__':
    main()
