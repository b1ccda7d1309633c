# SPDX-License-Identifier: Apache-2.0
"""Tests of the remaining capacity of hosts."""

import dataclasses
import math
import unittest

from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import shortfalls
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.notice_period import NoticeRule
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus

CAPACITY = {'VCPU': 8}
APART = group_placement.Group('g', group_placement.ANTI_AFFINITY)


def held(tracker, *args):
    """Return how many hosts are kept, and when all servers can start."""
    found = tracker.hold(*args)
    return (0, None) if found is None else (len(found.hosts), found.in_s)


class TestTake(unittest.TestCase):

    def test_servers_are_spread_over_several_hosts(self):
        tracker = CapacityTracker([host('b', 3), host('a', 4)])
        self.assertEqual(3, tracker.count(vcpus(2), 9))
        self.assertEqual(2, tracker.count(vcpus(2), 2))
        tracker.take(vcpus(2), 2)      # on a
        self.assertEqual(1, tracker.count(vcpus(2), 9))
        self.assertEqual(1, tracker.count(vcpus(3), 9))
        with self.assertRaisesRegex(ValueError, 'no room for 1 of 2'):
            tracker.take(vcpus(2), 2)

    def test_hosts_reserved_for_a_kind(self):
        """For any size and any free space."""
        rooms = [
            dataclasses.replace(
                host(name, 0), capacity=capacity, traits=frozenset(traits),
                free_s=free_s)
            for name, capacity, traits, free_s in (
                ('a', {'VCPU': 1}, 'T', math.inf),
                ('b', {'VCPU': 8, 'VGPU': 1}, 'T', math.inf),
                ('c', {'VCPU': 8, 'VGPU': 0}, '', math.inf),
                ('d', {'VCPU': 8, 'VGPU': 1}, 'T', 0))]
        tracker = CapacityTracker(rooms)
        for wanted, expected in (
                (vcpus(4), 'abc'),
                (dataclasses.replace(vcpus(4), required=('T',)), 'ab'),
                (base.alternative(VCPU=4, VGPU=1), 'b')):
            self.assertEqual({*expected}, tracker.suitable(wanted).names)
            self.assertEqual({*expected},
                tracker.copy().suitable(wanted).names)

    def test_preempting_requests_see_reclaimable_space(self):
        tracker = CapacityTracker([host('a', 1, reclaimable=4)])
        spot, normal = vcpus(1, preemptible=True), vcpus(3)
        self.assertEqual((1, 1), (tracker.count(spot, 9),
                                  tracker.count(normal, 9)))
        tracker.take(normal, 1)
        self.assertEqual((0, 1), (tracker.count(spot, 9),
                                  tracker.count(vcpus(1), 9)))

    def test_space_of_preemptible_servers_can_be_reclaimed(self):
        tracker = CapacityTracker([host('a', 2)])
        tracker.take(vcpus(1, preemptible=True), 2)
        self.assertEqual(2, tracker.count(vcpus(1), 9))

    def test_a_host_that_is_used_beyond_its_capacity(self):
        self.assertEqual(
            0, CapacityTracker([host('a', -1)]).count(vcpus(1), 1))

    def test_a_flavor_without_resources_fits_anywhere(self):
        nothing = base.alternative('none', VCPU=0)
        tracker = CapacityTracker([host('a', 0)])
        self.assertEqual(5, tracker.count(nothing, 5))
        tracker.take(nothing, 5)


class TestLack(unittest.TestCase):

    def test_nearest_host(self):
        tracker = CapacityTracker([host('a', 1), host('b', 2), host('c', 3),
                                  host('d', 3, capacity=3)])
        found = shortfalls.shortfall(tracker, vcpus(4))
        self.assertEqual(
            shortfalls.Shortfall({'VCPU': 1}, {'VCPU': 4}, True, 4), found)

    def test_no_host_is_large_enough(self):
        found = shortfalls.shortfall(CapacityTracker([host('a', 1)]), vcpus(9))
        self.assertEqual(shortfalls.Shortfall({}, {'VCPU': 1}, False, 1),
            found)
        self.assertEqual(shortfalls.Shortfall({}, {'VCPU': 0}, False, 0),
                         shortfalls.shortfall(CapacityTracker([]), vcpus(1)))

    def test_a_class_that_no_host_has(self):
        found = shortfalls.shortfall(CapacityTracker([host('a', 1)]),
                                base.alternative(VCPU=1, VGPU=1))
        self.assertEqual(
            shortfalls.Shortfall({}, {'VCPU': 0, 'VGPU': 1}, False, 1), found)


class TestTraits(unittest.TestCase):

    ROOMS = [dataclasses.replace(host('a', 4), traits=frozenset('XY')),
             dataclasses.replace(host('b', 4), traits=frozenset('X')), host(
                 'c', 8)]

    def alternative(self, required='', forbidden=''):
        return dataclasses.replace(vcpus(1), required=tuple(required),
                                   forbidden=tuple(forbidden))

    def test_only_hosts_with_the_traits_count(self):
        for wanted, expected in ((('XY',), 4), (('X',), 8), (('X', 'Y'), 4),
                                 (('', 'X'), 8), (('Z',), 0)):
            with self.subTest(wanted):
                self.assertEqual(expected, CapacityTracker(self.ROOMS).count(
                    self.alternative(*wanted), 99))

    def test_lack_and_hold(self):
        tracker = CapacityTracker(self.ROOMS)
        large = dataclasses.replace(vcpus(8), required=('X',))
        self.assertEqual(
            shortfalls.Shortfall({'VCPU': 4}, {'VCPU': 2}, True, 2),
                         shortfalls.shortfall(tracker, large))
        self.assertEqual(shortfalls.Shortfall({}, {'VCPU': 0}, False, 0),
                         shortfalls.shortfall(tracker, self.alternative('Z')))
        tracker.hold(large, 1)                            # a
        self.assertEqual(4, tracker.count(self.alternative('X'), 99))


class TestApart(unittest.TestCase):

    def test_anti_affinity_allows_one_server_a_host(self):
        tracker = CapacityTracker([host('a', 4), host('b', 4), host('c', 0)])
        self.assertEqual(2, tracker.count(vcpus(2), 9, APART))
        tracker.take(vcpus(3), 2, APART)
        self.assertEqual(2, tracker.count(vcpus(1), 9))
        with self.assertRaises(ValueError):
            tracker.take(vcpus(1), 3, APART)


class TestHold(unittest.TestCase):

    def test_others_do_not_use_kept_hosts(self):
        tracker = CapacityTracker([host('a', 4), host('b', 7)])
        self.assertEqual((1, None), held(tracker, vcpus(8), 1))   # on b
        self.assertEqual(4, tracker.count(vcpus(1), 99))
        self.assertEqual((1, None), held(tracker, vcpus(8), 1))   # on a
        self.assertEqual(0, tracker.count(vcpus(1), 99))
        self.assertEqual((0, None), held(tracker, vcpus(8), 1))

    def test_a_server_that_ends_in_time_may_use_a_kept_host(self):
        tracker = CapacityTracker([host('a', 2, ends=[(600, 4), (60, 2)])])
        self.assertEqual((1, 600), held(tracker, vcpus(8), 1))
        spot = vcpus(1, preemptible=True, run_s=600)
        self.assertEqual(2, tracker.count(spot, 99))
        # None but preemptible servers are made to end, whatever is written.
        for other in (vcpus(1, preemptible=True, run_s=601),
                      vcpus(1, preemptible=True), vcpus(1, run_s=600)):
            self.assertEqual(0, tracker.count(other, 99))

    def test_a_server_without_maximum_run_time_may_not_use_a_kept_host(self):
        tracker = CapacityTracker([host('a', 2, ends=[(600, 6)])])
        self.assertEqual((1, 600), held(tracker, vcpus(8), 1))
        self.assertEqual(0, tracker.count(
            vcpus(1, preemptible=True, run_s=0), 99))

    def test_defaults_of_the_operator_determine_the_end(self):
        for departures, expected in (
                (ExpectedDepartures(570, NoticeRule(30)), (2, 2, 0)),
                (ExpectedDepartures(571, NoticeRule(30)), (0, 2, 0)),
                (ExpectedDepartures(100, NoticeRule(30), are_ended=False),
                 (0, 0, 0)),
                (ExpectedDepartures(0, NoticeRule(0)), (0, 2, 0)),
                (ExpectedDepartures(0, NoticeRule(31)), (0, 0, 0))):
            tracker = CapacityTracker(
                [host('a', 2, ends=[(600, 6)])], departures=departures)
            self.assertEqual((1, 600), held(tracker, vcpus(8), 1))
            self.assertEqual(expected, tuple(
                tracker.copy().count(
                    vcpus(1, preemptible=True, run_s=run_s), 9)
                for run_s in (None, 570, 0)))

    def test_reclaimable_servers_do_not_count_as_departures(self):
        """It may evict these servers anyway."""
        for reclaimable, in_s in ((True, None), (False, 60)):
            rooms = [dataclasses.replace(
                host('a', 0, reclaimable=4),
                ends=(host_capacity.Departure(60, {'VCPU': 4}, reclaimable),))]
            self.assertEqual(
                (1, in_s), held(CapacityTracker(rooms), vcpus(8), 1))
            spot = dataclasses.replace(vcpus(4), preemptible=True)
            self.assertEqual((1, 60), held(CapacityTracker(rooms), spot, 1))

    def test_surplus_of_a_kept_host_is_free(self):
        tracker = CapacityTracker([host('a', 4, ends=[(60, 2)])])
        self.assertEqual((1, 60), held(tracker, vcpus(6), 1))
        self.assertEqual(0, tracker.count(vcpus(1), 99))
        tracker = CapacityTracker([host('a', 4)])
        self.assertEqual((1, 0), held(tracker, vcpus(3), 1))
        self.assertEqual(1, tracker.count(vcpus(1), 99))

    def test_hold_needs_enough_hosts(self):
        """Each host is kept for as many servers as fit on it when empty."""
        rooms = [host('a', 6, ends=[(60, 2)]), host('b', 2, capacity=2)]
        for count, expected, left in ((2, (1, 60), 2), (3, (0, None), 8)):
            tracker = CapacityTracker(rooms)
            self.assertEqual(expected, held(tracker, vcpus(4), count))
            self.assertEqual(left, tracker.count(vcpus(1), 99))
        # Those that are nearest get the most.
        tracker = CapacityTracker([host('a', 0), host('b', 8)])
        self.assertEqual((2, None), held(tracker, vcpus(2), 3))
        self.assertEqual([-2, 4], [
            each.free['VCPU'] for each in tracker.left([])])

    def test_hold_respects_the_limit_of_a_server_group(self):
        group = dataclasses.replace(APART, most=2)
        rooms = [dataclasses.replace(host('a', 8), members={'g': 1}),
                 host('b', 8)]
        tracker = CapacityTracker(rooms)
        self.assertEqual((2, 0), held(tracker, vcpus(3), 3, group))
        self.assertEqual([5, 2], [
            each.free['VCPU'] for each in tracker.left([])])
        for wanted, count in ((vcpus(3), 4), (vcpus(5), 3)):
            self.assertEqual((0, None), held(
                CapacityTracker(rooms), wanted, count, group))

    def test_a_full_host_is_evaluated_again_after_a_hold(self):
        tracker = CapacityTracker([host('a', 2), host('b', 2)])
        self.assertEqual(1, tracker.count(vcpus(2), 1))
        tracker.hold(vcpus(3), 1)                         # on a
        self.assertEqual(1, tracker.count(vcpus(2), 2))


if __name__ == '__main__':
    unittest.main()
