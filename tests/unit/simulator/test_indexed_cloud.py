# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice of hosts by arrays."""

import unittest

import hypothesis
from hypothesis import strategies

from nova_preempt.core import costs
from nova_preempt.core.model import Inventory, Request
from nova_preempt.core.scheduling import plan_search
from nova_preempt.core.times import microseconds
from nova_preempt.simulator import indexed_cloud
from nova_preempt.simulator import memory_cloud
from tests.unit.core.scheduling import world
from tests.unit.simulator import small

NOW_US = microseconds(world.NOW)
TWO = Request.of({'VCPU': 2})


class TestIndexedCloud(unittest.TestCase):

    def setUp(self):
        self.cloud = indexed_cloud.IndexedCloud(
            memory_cloud.MemoryHost(f'uuid {name}', name, {
                'VCPU': Inventory(4, max_unit=3), 'MEMORY_MB': Inventory(8)})
            for name in 'dbac')
        self.policy = small.options(cost=costs.count).policy
        self.hosts = self.cloud.by_name()

    def fill(self, name, vcpus, memory_mb=0, spot=False):
        uuid = f'{vcpus} on {name}'
        self.cloud.put(self.hosts[name], uuid, {
            'VCPU': vcpus, 'MEMORY_MB': memory_mb},
            world.server(uuid, name) if spot else None)
        return uuid

    def best(self, vcpus, memory_mb=0):
        found = self.cloud.best(Request.of({
            'VCPU': vcpus, 'MEMORY_MB': memory_mb}))
        return found and found.name

    def test_most_free_memory_first_then_by_name(self):
        self.assertEqual('a', self.best(1))
        self.fill('a', 1, 1)
        self.assertEqual('b', self.best(1))
        for name in 'bcd':
            self.fill(name, 3, 0)
        self.assertEqual('a', self.best(2))
        self.assertEqual('b', self.best(1))
        self.assertIsNone(self.best(1, 9))

    @hypothesis.given(strategies.booleans(), strategies.lists(
        strategies.tuples(
            strategies.sampled_from(('come', 'go', 'close', 'open')),
            strategies.integers(0, 29), strategies.integers(0, 3),
            strategies.integers(0, 3)), max_size=60))
    def test_first_of_all_that_have_room(self, spread, steps):
        """More hosts than are looked at one by one."""
        found = indexed_cloud.IndexedCloud([
            memory_cloud.MemoryHost(f'{number:02}', f'{number:02}', {
                'VCPU': Inventory(4), 'MEMORY_MB': Inventory(6 + number % 3)})
            for number in range(30)], spread)
        hosts = sorted(found.hosts.values(), key=lambda host: host.uuid)
        closed = set()
        for serial, (what, number, vcpus, memory_mb) in enumerate(steps):
            host = hosts[number]
            request = Request.of({'VCPU': vcpus, 'MEMORY_MB': memory_mb})
            if what == 'come':
                found.put(host, f'{serial}', request.resources)
            elif what == 'go' and host.allocations:
                found.take_away(host, min(host.allocations))
            elif what == 'close':
                closed.add(host.uuid)
                found.close(host)
            elif what == 'open':
                closed.discard(host.uuid)
                found.open(host)
            fitting = [
                host for host in hosts
                if host.uuid not in closed and host.has_room(request)]
            sign = -1 if spread else 1
            self.assertIs(
                min(fitting, default=None, key=lambda host: (
                    sign * host.providers[0].free('MEMORY_MB'), host.name)),
                found.best(request))

    def test_the_core_has_the_last_word(self):
        self.assertEqual('a', self.best(3))
        # Nobody has so many, as no server may.
        self.assertIsNone(self.best(4))

    def test_departures_free_space(self):
        for name in 'abcd':
            uuid = self.fill(name, 4, spot=True)
        self.assertIsNone(self.best(1))
        self.assertIs(self.hosts['d'], self.cloud.find(uuid))
        self.cloud.take_away(self.hosts['d'], uuid)
        self.assertEqual('d', self.best(1))
        self.assertIsNone(self.cloud.find(uuid))

    def test_room(self):
        self.fill('a', 3)
        self.assertEqual(
            {name: {'VCPU': 4, 'MEMORY_MB': 8} for name in 'bc'},
            self.cloud.room(TWO, 2))

    def test_a_class_that_no_host_has(self):
        self.assertIsNone(self.cloud.best(Request.of({'PCPU': 1})))
        self.assertEqual('a', self.cloud.best(Request.of({'PCPU': 0})).name)

    def candidates(self, releasing=()):
        return [(listing.name, listing.floor_us) for listing
                in self.cloud.candidates(TWO, self.policy, NOW_US,
                                         releasing)]

    def look(self):
        """Let the core compute the costs of plans."""
        answers = memory_cloud.MemoryCloudView(self.cloud)
        answers.listed = lambda max_age_s: self.cloud.candidates(
            TWO, self.policy, NOW_US)
        return [plan.host.name for plan in plan_search.PlanSearch(
            answers, TWO, self.policy, world.NOW,
            memo=self.cloud.memo).ranked()]

    def test_the_cheapest_hosts_come_first(self):
        for name, count in (('a', 4), ('b', 0), ('c', 2), ('d', 4)):
            for nth in range(1, count + 1):
                self.cloud.put(self.hosts[name], f'{name}{nth}', {
                    'VCPU': 4 // count}, world.server(f'{name}{nth}', name))
        # Nothing is known but that no server of b could leave, and what the
        # cheapest one costs on each host.
        second = 1_000_000
        self.assertEqual([('a', second), ('c', second), ('d', second)],
                         self.candidates())
        self.assertEqual(['c', 'a', 'd'], self.look())
        self.assertEqual([('c', second), ('a', 2 * second),
                          ('d', 2 * second)], self.candidates())
        # To wait for an end that is under way costs nothing.
        self.assertEqual([('d', 0), ('c', second), ('a', 2 * second)],
                         self.candidates([self.hosts['d']]))
        # Nothing is known any more of a host that has changed.
        self.cloud.take_away(self.hosts['a'], 'a1')
        self.assertEqual([('a', second), ('c', second), ('d', 2 * second)],
                         self.candidates())
        self.look()
        self.assertEqual([('a', second), ('c', second), ('d', 2 * second)],
                         self.candidates())

    def test_where_no_victims_help(self):
        self.fill('a', 3)
        self.fill('a', 1, spot=True)
        self.fill('c', 4, spot=True)
        self.assertEqual([('c', 1_000_000)], self.candidates())
        self.assertEqual(1, len(self.cloud.candidates(
            TWO, self.policy, NOW_US)))
