# SPDX-License-Identifier: Apache-2.0
"""Choice of victims on one host or two, as an operator would try it."""

import datetime
import unittest

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.costs import CostOptions
from nova_preempt.core.model import SECOND
from nova_preempt.core.scheduling import eviction_budgets
from tests.unit.core.scheduling import world
from tests.unit.core.scheduling.world import NOW

SLOT = {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10}


def slots(number):
    """Return the resources of this number of slots."""
    return {rc: number * amount for rc, amount in SLOT.items()}


def launched(uptime_s):
    return NOW - datetime.timedelta(seconds=uptime_s)


def spots(**found):
    """(cost, slots) by uuid, as World.add() wants them."""
    return {uuid: (cost, slots(number))
            for uuid, (cost, number) in found.items()}


class TestCosts(unittest.TestCase):
    """Three servers of one slot and one of two, of different uptimes."""

    def choose(self, cost, billing_period_s=3600, **uptimes_s):
        """Return the victims of a server of two slots, and their cost."""
        found = world.World()
        found.set(cost=cost, cost_options=CostOptions(billing_period_s))
        found.add('host1', slots(5), {}, {
            name: (0, slots(2 if name == 'large' else 1))
            for name in uptimes_s})
        servers = found.hosts['uuid of host1'].servers
        for name, uptime_s in uptimes_s.items():
            servers[name] = world.server(name, 'host1',
                                         launched_at=launched(uptime_s))
        (_host, victims, cost_us), = found.considered(slots(2))
        return victims, cost_us // SECOND

    def test_partial_hour(self):
        self.assertEqual(('b c', 30), self.choose(
            costs.partial_hour, large=3000, a=600, b=7200 + 10, c=3600 + 20))

    def test_another_billing_period(self):
        self.assertEqual(('large', 1), self.choose(
            costs.partial_hour, 60, large=3001, a=600 + 2, b=7200 + 10,
            c=3659))

    def test_count(self):
        self.assertEqual(('large', 1), self.choose(
            costs.count, large=3599, a=1, b=2, c=3))

    def test_youngest_first(self):
        self.assertEqual(('a b', 3660 + 60), self.choose(
            costs.youngest_first, large=4000, a=3660, b=60, c=7200))

    def test_oldest_first(self):
        ten_years = 10 * 365 * 24 * 3600
        self.assertEqual(('large', ten_years - 10), self.choose(
            costs.oldest_first, large=10, a=100000, b=200000, c=300000))

    def test_oldest_of_equally_many(self):
        found = world.World()
        found.set(cost=costs.oldest_first)
        found.add('host1', slots(2), {}, spots(young=(0, 1), old=(0, 1)))
        servers = found.hosts['uuid of host1'].servers
        for name, uptime_s in (('young', 3600), ('old', 5000)):
            servers[name] = world.server(name, 'host1',
                                         launched_at=launched(uptime_s))
        self.assertEqual([('host1', ['old'])], found.placed(SLOT))


class TestLeftAlone(unittest.TestCase):

    def choose(self, number, minimum_runtime_s=0, locks='admin', **servers):
        """Return the victims of a server of some slots, None without any."""
        found = world.World()
        found.set(rules=eligibility.Rules(
            locks, minimum_runtime_s=minimum_runtime_s))
        found.add('host1', slots(len(servers)), {},
                  spots(**dict.fromkeys(servers, (1, 1))))
        for name, values in servers.items():
            found.hosts['uuid of host1'].servers[name] = world.server(
                name, 'host1', **values)
        placed = found.placed(slots(number))
        return placed and placed[0][1]

    def test_locks(self):
        servers = {'a': {'locked_by': 'owner'}, 'b': {'locked_by': 'admin'}}
        self.assertEqual(['a'], self.choose(1, **servers))
        self.assertIsNone(self.choose(2, **servers))
        self.assertIsNone(self.choose(1, locks='all', **servers))

    def test_busy(self):
        self.assertIsNone(self.choose(
            1, a={'task_state': 'image_snapshot'}))
        self.assertEqual(['a'], self.choose(1, a={'task_state': None}))

    def test_minimum_runtime(self):
        """The operator's for all, a flavor's where it is longer."""
        def servers(young, old, long, short):
            return {
                'young': {'launched_at': launched(young)},
                'old': {'launched_at': launched(old)},
                'long': {'launched_at': launched(long),
                         'minimum_runtime_s': 1000},
                'short': {'launched_at': launched(short),
                          'minimum_runtime_s': 10}}

        early = servers(99, 100, 999, 50)
        self.assertIsNone(self.choose(2, 100, **early))
        self.assertEqual(['old'], self.choose(1, 100, **early))
        late = servers(100, 100, 1000, 100)
        self.assertEqual(sorted(late), self.choose(4, 100, **late))

    def test_stop_keeps_the_disk(self):
        """A request that only its disk would help is not served."""
        found = world.World()
        found.set(actions=('stop',))
        found.add('host1', slots(2), {}, spots(a=(1, 1), b=(1, 1)))
        self.assertIsNone(found.placed(SLOT))
        self.assertEqual([('host1', ['a'])], found.placed(
            {**SLOT, 'DISK_GB': 0}))


class TestBudgets(unittest.TestCase):

    def test_used_up(self):
        found = world.World()
        found.add('host1', slots(2), {}, spots(a=(100, 1), b=(1000, 1)))
        found.budget = eviction_budgets.EvictionBudgets(1, 0, {}, {})
        self.assertIsNone(found.placed(slots(2)))
        self.assertEqual([('host1', ['a'])], found.placed(SLOT))
        found.budget = eviction_budgets.EvictionBudgets(1, 0, {'a': 'p'}, {})
        self.assertIsNone(found.placed(SLOT))
        # It counts no more.
        found.budget = eviction_budgets.EvictionBudgets(1, 0, {}, {})
        self.assertEqual([('host1', ['b'])], found.placed(SLOT))

    def test_a_victim_of_another_project(self):
        """The more expensive set, since the cheaper servers are of one
        project."""
        found = world.World()
        found.add('host1', slots(3), {}, spots(
            a=(10, 1), b=(20, 1), c=(3000, 1)))
        found.hosts['uuid of host1'].servers['c'] = world.server(
            'c', 'host1', project_id='other')
        found.budget = eviction_budgets.EvictionBudgets(1, 0, {}, {})
        self.assertEqual([('host1', ['a', 'c'])], found.placed(slots(2)))

    def test_the_group_is_spared(self):
        found = world.World()
        found.add('host1', slots(2), {}, spots(a=(10, 1), b=(20, 1)))
        found.add('host2', slots(2), {}, spots(c=(1000, 1), d=(1000, 1)))
        found.budget = eviction_budgets.EvictionBudgets(
            0, 1, {}, {'a': [1], 'b': [1]})
        self.assertEqual([('host2', ['c', 'd'])], found.placed(slots(2)))


class TestTooManyServers(unittest.TestCase):
    """A host with space left for more servers than it may have."""

    def world(self, most, number, **servers):
        found = world.World(passes=lambda host, without: len(
            host.allocations) - len(without) < most)
        found.add('host1', slots(number), {}, spots(**servers))
        return found

    def test_victims_make_it_pass(self):
        found = self.world(2, 4, a=(100, 1), b=(50, 1))
        for victims in (['b'], ['a']):
            self.assertEqual([('host1', victims)],
                             found.placed(SLOT, f'instead of {victims}'))
        self.assertIsNone(found.placed(SLOT))

    def test_several_at_once(self):
        found = self.world(2, 4, a=(100, 1), b=(50, 1))
        self.assertEqual([('host1', ['b']), ('host1', ['a'])],
                         found.placed(SLOT, 'm1', 'm2'))
        self.assertEqual({'m1', 'm2'},
                         set(found.hosts['uuid of host1'].allocations))

    def test_more_victims_than_space_needs(self):
        """Both a place and a slot are missing: the small ones are cheaper."""
        found = self.world(3, 4, big=(500, 2), a=(10, 1), b=(20, 1))
        self.assertEqual([('host1', ['a', 'b'])], found.placed(slots(2)))


class TestAlways(unittest.TestCase):
    """Much memory left on host1, little more than a slot on host2."""

    def setUp(self):
        self.world = world.World()
        self.world.add('host1', {**slots(2), 'MEMORY_MB': 8192}, {},
                       spots(a=(10, 1), b=(20, 1)))
        self.world.add('host2', slots(3), SLOT, spots(c=(1, 1)))

    def test_the_same_where_victims_cost_more_than_room(self):
        """One server uses free space, for the other a victim is evicted."""
        for always in (False, True):
            self.setUp()
            self.world.set(always=always)
            self.assertEqual([('host2', []), ('host2', ['c'])],
                             self.world.placed(SLOT, 'n1', 'n2'))

    def test_several_at_once(self):
        """Servers that fit use free space, and the others have few victims."""
        self.world.set(always=True)
        self.assertEqual([('host2', []), ('host2', ['c']), ('host1', ['a'])],
                         self.world.placed(SLOT, 'm1', 'm2', 'm3'))

    def test_cheap_victims_beat_a_poor_host_with_room(self):
        """The order of the weighers decides."""
        self.world.weigh = lambda host, cost_us: host.name
        self.assertEqual([('host2', [])], self.world.placed(SLOT, 'n1'))
        self.setUp()
        self.world.weigh = lambda host, cost_us: host.name
        self.world.set(always=True)
        self.assertEqual([('host1', ['a'])], self.world.placed(SLOT, 'n1'))


class TestRepeats(unittest.TestCase):

    def test_not_always_the_same(self):
        """Each eviction of a server raises its cost."""
        found = world.World()
        found.set(cost=costs.youngest_first,
                  cost_options=CostOptions(repeat_cost_s=3600))
        found.add('host1', slots(2), {}, spots(a=(0, 1), b=(0, 1)))
        servers = found.hosts['uuid of host1'].servers
        for name, uptime_s in (('a', 100), ('b', 1000)):
            servers[name] = world.server(name, 'host1',
                                         launched_at=launched(uptime_s))
        self.assertEqual([('host1', 'a', 100 * SECOND)],
                         found.considered(SLOT))
        found.set(preemptions={'a': 1})
        self.assertEqual([('host1', 'b', 1000 * SECOND)],
                         found.considered(SLOT))
