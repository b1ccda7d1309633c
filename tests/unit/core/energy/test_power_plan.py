# SPDX-License-Identifier: Apache-2.0
"""Tests of hosts that are powered on and off: published cases, corrected, and
own ones."""

import dataclasses
import unittest

from nova_preempt.core.energy import power_plan


def host(name, *, on=True, idle=5, busy=False, **values):
    return power_plan.PowerHost(name, on, busy, 0 if busy else idle, **values)


def hosts(names, **values):
    return [host(name, **values) for name in names]


class TestCountIdle(unittest.TestCase):

    def test_004_j_a_busy_interval_resets_the_count(self):
        intervals, counted = {}, []
        for idle in (1, 1, 1, 0, 1):
            intervals = power_plan.count_idle(
                intervals, {'a'} if idle else set())
            counted.append(intervals.get('a'))
        self.assertEqual([1, 2, 3, None, 1], counted)

    def test_each_host_has_its_own_count(self):
        self.assertEqual({'a': 4, 'c': 1},
                         power_plan.count_idle({'a': 3, 'b': 9}, ['a', 'c']))

    def test_largest_gap_between_notes_in_a_row(self):
        """Steps may be further apart than notes."""
        self.assertEqual(150, power_plan.max_gap_s(10))
        self.assertEqual(250, power_plan.max_gap_s(100))


class TestPublished(unittest.TestCase):

    def test_004_f_all_but_the_reserved_ones(self):
        cloud = hosts('abcd', reserved=True) + hosts('efghij')
        self.assertEqual(
            power_plan.HostSwitches((), tuple('efghij'), required=4),
            power_plan.decide(cloud, 3, power_plan.PowerPolicy()))

    def test_004_g_ends_when_no_host_may_sleep(self):
        cloud = [host('a', reserved=True), host('e'), host('f', idle=6),
                 host('g', idle=4), *hosts('hijklm', busy=True)]
        found = power_plan.decide(cloud, 0, power_plan.PowerPolicy())
        self.assertEqual(('e', 'f'), found.sleep)
        self.assertEqual(8, len(cloud) - len(found.sleep))

    def test_004_h_ends_when_all_are_on(self):
        cloud = [*hosts('abc', busy=True), host('d', on=False)]
        self.assertEqual(power_plan.HostSwitches(('d',), (), required=5),
                         power_plan.decide(cloud, 5, power_plan.PowerPolicy()))


class TestWake(unittest.TestCase):

    def asleep(self, **efficiencies):
        return [host(name, on=False, efficiency=efficiency)
                for name, efficiency in efficiencies.items()]

    def wake(self, cloud, forecast, **policy):
        return power_plan.decide(cloud, forecast,
                                 power_plan.PowerPolicy(**policy)).wake

    def test_the_most_efficient_first_the_unknown_last(self):
        cloud = self.asleep(a=None, b=2.0, c=3.0, d=2.0)
        self.assertEqual(('c', 'b', 'd'), self.wake(cloud, 3))
        self.assertEqual(('c', 'b', 'd', 'a'), self.wake(cloud, 9))

    def test_part_of_a_host_is_a_whole_one(self):
        self.assertEqual(('a', 'b'), self.wake(self.asleep(a=2, b=1), 1.01))

    def test_reserved_ones_before_efficient_ones(self):
        cloud = [*self.asleep(a=9.0), host('b', on=False, efficiency=1.0,
                                           reserved=True)]
        self.assertEqual(('b',), self.wake(cloud, 1))

    def test_a_reservation_soon_does_not_wake_where_enough_are_on(self):
        cloud = [host('a', busy=True), host('b', on=False, reserved=True)]
        self.assertEqual((), self.wake(cloud, 1))

    def test_a_due_host_wakes_in_any_case(self):
        cloud = [*hosts('abc', busy=True),
                 host('d', on=False, reserved=True, due=True)]
        self.assertEqual(('d',), self.wake(cloud, 1))

    def test_spare_and_minimum(self):
        cloud = self.asleep(a=1, b=1, c=1, d=1)
        self.assertEqual(('a',), self.wake(cloud, 0, spare=1))
        self.assertEqual(('a', 'b', 'c'), self.wake(cloud, 2, spare=1))
        self.assertEqual(('a', 'b'), self.wake(cloud, 0, minimum=2))
        self.assertEqual(('a', 'b'),
                         self.wake(cloud, 1, spare=1, minimum=2))

    def test_reserved_hosts_are_not_spare(self):
        cloud = [*hosts('abc', reserved=True), host('d', busy=True),
                 *self.asleep(e=1, f=2), host('g', on=False, reserved=True)]
        # Four are on, and three reserved and one spare are all that the
        # published sum asks for.
        self.assertEqual((), self.wake(cloud, 1))
        self.assertEqual(('f',), self.wake(cloud[:-1], 1, spare=1))
        self.assertEqual(('g', 'f'), self.wake(cloud, 1, spare=1))
        self.assertEqual(('f', 'e'), self.wake(cloud[:-1], 1, spare=2))

    def test_minimum_of_an_aggregate(self):
        cloud = [*hosts('abc', aggregates=frozenset('x')),
                 host('d', on=False, efficiency=1.0,
                      aggregates=frozenset('y')),
                 host('e', on=False, efficiency=2.0,
                      aggregates=frozenset('yz'))]
        self.assertEqual(
            ('e',), self.wake(cloud, 0, minimum_of={'y': 1, 'z': 1}))
        self.assertEqual(
            ('e', 'd'), self.wake(cloud, 0, minimum_of={'y': 7, 'z': 1}))

    def test_an_aggregate_and_the_whole_share_their_minimum(self):
        """A host that wakes for the aggregate counts as required."""
        cloud = [host('a', on=False, efficiency=9.0),
                 host('b', on=False, aggregates=frozenset('x'))]
        self.assertEqual(('b',), self.wake(cloud, 1, minimum_of={'x': 1}))

    def test_limit(self):
        cloud = [*self.asleep(a=5, b=4),
                 host('d', on=False, reserved=True, due=True)]
        self.assertEqual(('d', 'a'), self.wake(cloud, 9, max_wakes=2))
        self.assertEqual((), self.wake(cloud, 9, max_wakes=0))

    def test_excluded_ones_sleep_on(self):
        cloud = [host('a', on=False, excluded=True, reserved=True, due=True)]
        self.assertEqual((), self.wake(cloud, 9))


class TestSleep(unittest.TestCase):

    def sleep(self, cloud, forecast=0, **policy):
        return power_plan.decide(cloud, forecast,
                                 power_plan.PowerPolicy(**policy)).sleep

    def test_the_unknown_first_then_the_least_efficient(self):
        cloud = [host('a', efficiency=2.0), host('b', efficiency=1.0),
                 host('c'), host('d', efficiency=3.0)]
        self.assertEqual(('c', 'b', 'a', 'd'), self.sleep(cloud))
        self.assertEqual(('c', 'b'), self.sleep(cloud, 2))

    def test_hosts_sleep_until_the_required_number_is_on(self):
        cloud = hosts('abcdef')
        self.assertEqual(tuple('abc'), self.sleep(cloud, 2, spare=1))
        self.assertEqual(tuple('ab'), self.sleep(cloud, 1, minimum=4))
        self.assertEqual((), self.sleep(cloud, 6))

    def test_hosts_that_never_sleep(self):
        for values in ({'busy': True}, {'reserved': True}, {'due': True},
                       {'excluded': True}, {'idle': 4}, {'on': False}):
            self.assertEqual((), self.sleep([host('a', **values)]), values)

    def test_spare_hosts_besides_reserved_ones(self):
        cloud = [*hosts('abc', reserved=True), *hosts('de', busy=True),
                 *hosts('fg')]
        self.assertEqual(('f', 'g'), self.sleep(cloud, 2))
        self.assertEqual(('f',), self.sleep(cloud, 2, spare=1))
        self.assertEqual((), self.sleep(cloud, 2, spare=2))

    def test_hosts_that_stay_on_count_as_required(self):
        cloud = [host('a', excluded=True), host('b', busy=True), host('c')]
        self.assertEqual(('c',), self.sleep(cloud, 2))

    def test_minimum_of_an_aggregate(self):
        cloud = [host('a', aggregates=frozenset('x'), efficiency=1.0),
                 host('b', aggregates=frozenset('xy'), efficiency=2.0),
                 host('c', efficiency=3.0)]
        self.assertEqual(('a', 'c'), self.sleep(cloud, minimum_of={'y': 1}))
        self.assertEqual(('a', 'c'), self.sleep(cloud, minimum_of={'x': 1}))
        self.assertEqual(('c',), self.sleep(cloud, minimum_of={'x': 2}))
        self.assertEqual(('c',), self.sleep(cloud, minimum_of={'x': 5}))

    def test_a_booting_host_does_not_count_yet(self):
        """The due host comes up before another one sleeps."""
        due = host('c', on=False, reserved=True, due=True)
        cloud = [host('a'), due]
        found = power_plan.decide(cloud, 0, power_plan.PowerPolicy())
        self.assertEqual((('c',), ()), (found.wake, found.sleep))
        cloud[1] = dataclasses.replace(due, on=True)
        self.assertEqual(('a',), self.sleep(cloud))

    def test_limit(self):
        self.assertEqual(('a', 'b'), self.sleep(hosts('abcd'), max_sleeps=2))
        self.assertEqual((), self.sleep(hosts('abcd'), max_sleeps=0))
