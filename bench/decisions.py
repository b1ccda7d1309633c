# SPDX-License-Identifier: Apache-2.0
"""Measure decisions on a cloud in memory, without Nova and Placement.

Requests come to a cloud in memory one after the other, and the very code
decides that decides in a scheduler. The cloud is full: every normal request
ends preemptible servers, and each time a few normal servers leave and
preemptible ones fill the gaps. With classes each preemptible server has one of
three, and promises decide first; with claims requests are of a class, too, and
have waited for up to ten minutes.

Usage: python bench/decisions.py [--hosts 1000] [--requests 10000]
       [--classes [--claims]]
"""

import argparse
import dataclasses
import datetime
import random
import time

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.promised_availability import ClassPromiseRules
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.model import (
    SECOND,
    Inventory,
    PreemptibleServer,
    Request,
)
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling.scheduling_cycle import SchedulingCycle
from nova_preempt.core.times import microseconds
from nova_preempt.simulator import indexed_cloud
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator.papers import qos_experiment

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
SIZES = ({'VCPU': 1, 'MEMORY_MB': 2048}, {'VCPU': 2, 'MEMORY_MB': 4096},
         {'VCPU': 4, 'MEMORY_MB': 8192})
CAPACITY = {'VCPU': 16, 'MEMORY_MB': 32768}


class Load:
    """A full cloud and the requests that arrive."""

    def __init__(self, hosts, seed):
        self.random = random.Random(seed)
        self.serial = 0
        self.normal = []          # (host, uuid)
        self.classes = qos_experiment.published_classes(300, 300)
        self.claimants = {}       # uuid of a preemptible server: Claimant
        self.cloud = indexed_cloud.IndexedCloud(
            memory_cloud.MemoryHost(f'{number:08}-host', f'host{number:05}',
                                    {name: Inventory(amount)
                                     for name, amount in CAPACITY.items()})
            for number in range(hosts))
        self.now = START
        for host in self.cloud.hosts.values():
            while self.fill(host):
                pass

    def fill(self, host):
        """Add a preemptible server to a host, if it fits; tell whether."""
        size = self.random.choice(SIZES)
        if not host.has_room(Request.of(size)):
            size = SIZES[0]
            if not host.has_room(Request.of(size)):
                return False
        uuid = self.uuid('spot')
        self.cloud.put(host, uuid, size, PreemptibleServer(
            uuid, host.name, host.name, 'cell', 'project', 'user', 'spot',
            self.now - datetime.timedelta(
                seconds=self.random.randrange(10 * 86400)),
            'active', None, 0, size['VCPU'], size['MEMORY_MB'], 0))
        self.claimants[uuid] = self.claimant(host.servers[uuid], size)
        return True

    def claimant(self, server, size):
        """Return a Claimant of a server, with a wait of up to its run time."""
        begun_us = microseconds(server.launched_at)
        waited_us = self.serial * 7919 % 100 * server.uptime_us(self.now) // 99
        return Claimant(
            server.uuid, list(self.classes)[self.serial % 3],
            ServerClocks([Event(begun_us - waited_us, Kind.QUEUED),
                          Event(begun_us, Kind.ALLOCATING),
                          Event(begun_us, Kind.RUNNING)]), size)

    def promises(self):
        """Return the current ClassPromiseRules."""
        return ClassPromiseRules(
            self.classes, self.claimants, microseconds(self.now))

    def uuid(self, kind):
        self.serial += 1
        return f'{self.serial:08}-{kind}'

    def rank(self, size):
        """Return the rank of a request of a random class."""
        now_us = microseconds(self.now)
        waited_us = self.random.randrange(600) * SECOND
        return preemption_policy.PreemptionRight(
            True, self.promises(
                ).claim(
                    Claimant(
                        self.uuid(
                            'claim'), self.random.choice(
                                list(
                                    self.classes)), ServerClocks(
                                        [Event(now_us - waited_us,
                                               Kind.QUEUED)]), size)))

    def request(self, policy, claims=False):
        """Decide on a request; return (seconds, number of victims or None)."""
        self.now += datetime.timedelta(seconds=7)
        size = self.random.choice(SIZES)
        uuid = self.uuid('normal')
        if policy.classes is not None:
            # A service that has read them anew knows them by another list.
            policy = dataclasses.replace(policy, classes=ClassPromiseRules(
                self.classes, dict(self.claimants), microseconds(self.now)))
        rank = self.rank(size) if claims else preemption_policy.NORMAL
        start = time.process_time()
        cycle = SchedulingCycle(self.cloud.answers(), Request.of(size), policy,
                                self.now, rank, memo=self.cloud.memo)
        self.cloud.begin(cycle)
        found = cycle.place(self.cloud.offered(cycle), lambda *_: True)
        took_s = time.process_time() - start
        if found is not None:
            ((host_uuid, plan),) = found
            host = self.cloud.hosts[host_uuid]
            victims = plan.victims if plan else ()
            for victim in victims:
                self.cloud.take_away(host, victim.uuid)
            self.cloud.put(host, uuid, size)
            self.normal.append((host, uuid))
            return took_s, len(victims)
        return took_s, None

    def leave(self):
        """Delete a normal server, and refill its host with spot servers."""
        if len(self.normal) > 2 * len(self.cloud.hosts):
            host, uuid = self.normal.pop(
                self.random.randrange(len(self.normal)))
            self.cloud.take_away(host, uuid)
            while self.fill(host):
                pass


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--requests', type=int, default=10000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--classes', action='store_true')
    parser.add_argument('--claims', action='store_true')
    args = parser.parse_args()
    policy = preemption_policy.Policy(eligibility.Rules(), ('delete',),
                                      costs.partial_hour)
    load = Load(args.hosts, args.seed)
    if args.classes:
        policy = dataclasses.replace(policy, classes=load.promises())
    times_s, ended, refused = [], 0, 0
    for _ in range(args.requests):
        took_s, victims = load.request(policy, args.claims)
        times_s.append(took_s)
        if victims is None:
            refused += 1
        else:
            ended += victims
        load.leave()
    times_s.sort()
    total_s = sum(times_s)
    print(f'{args.requests} requests on {args.hosts} hosts: '
          f'{total_s:.1f} s of processor time, '
          f'{args.requests / total_s:.0f} decisions a second')
    print(f'median {1000 * times_s[len(times_s) // 2]:.2f} ms, '
          f'95 % {1000 * times_s[len(times_s) * 95 // 100]:.2f} ms, '
          f'most {1000 * times_s[-1]:.2f} ms')
    print(f'{ended} servers ended, {refused} requests refused')


if __name__ == '__main__':
    main()
