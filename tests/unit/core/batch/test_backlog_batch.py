# SPDX-License-Identifier: Apache-2.0
"""Requests of the backlog as a batch."""

import random
import unittest

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.batch import backlog_batch
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus


def planner(**options):
    placer = solver_choice.make(batch_model.Options(**options))
    return backlog_batch.Planner(lambda: placer)


def starts(requests, rooms, **options):
    return base.decide(requests, rooms, base.NOW, dispatch.Options(),
                       planner=planner(**options)).starts


def decide(requests, rooms, **options):
    return {start.uuid: dict(start.hosts)
            for start in starts(requests, rooms, **options)}


def flavors(requests, rooms):
    return {start.uuid: (start.flavor_id, dict(start.hosts))
            for start in starts(requests, rooms)}


class TestPlanner(unittest.TestCase):

    def test_room_is_made(self):
        """Placed one by one, the first would use the only host of the second.
        """
        self.assertEqual(
            {'x': {'b': 1}, 'y': {'a': 1}},
            decide([base.request('x', vcpus(2)), base.request('y', vcpus(4))],
                   [host('a', 4), host('b', 2)]))

    def test_counts(self):
        rooms = [host('a', 2), host('b', 2)]
        self.assertEqual(
            {'x': {'a': 2, 'b': 1}, 'y': {'b': 1}},
            decide([base.request('x', count=3), base.request('y')], rooms))
        self.assertEqual(
            {'y': {'a': 1}},
            decide([base.request('x', count=5), base.request('y')],
                   [host('a', 2), host('b', 1)]))
        # Two of three run already.
        self.assertEqual(
            {'x': {'a': 1}},
            decide([base.request('x', count=3, servers=base.servers(
                backlog_model.RUNNING, backlog_model.RUNNING))], rooms))

    def test_apart_and_traits(self):
        spread = base.request('x', count=2, apart=True)
        self.assertEqual({'x': {'a': 1, 'b': 1}},
                         decide([spread], [host('a', 9), host('b', 1)]))
        self.assertEqual({}, decide([spread], [host('a', 9)]))
        rooms = [host_capacity.HostCapacity(name, {'VCPU': 4}, {'VCPU': 4},
                                    {'VCPU': 4}, traits=frozenset(traits))
                 for name, traits in (('a', ()), ('b', ('T',)))]
        fast = backlog_model.Alternative('f', 'f', {'VCPU': 1},
                                         required=('T',))
        slow = backlog_model.Alternative('s', 's', {'VCPU': 1},
                                         forbidden=('T',))
        self.assertEqual(
            {'x': {'b': 1}, 'y': {'a': 1}},
            decide([base.request('x', fast), base.request('y', slow)], rooms))

    def test_requests_with_hints_or_zones_are_not_planned(self):
        """Only Nova evaluates hints and zones."""
        for body in ({'server': {}, 'os:scheduler_hints': {'group': 'g'}},
                     {'server': {'availability_zone': 'z'}},
                     {'server': {'host': 'b'}}):
            self.assertEqual(
                {'x': {}, 'y': {'a': 1}},
                decide([base.request('x', body=body), base.request('y')],
                       [host('a', 4)]), body)

    def test_parts_of_hosts(self):
        """The sums fit; Nova checks each provider and chooses the host."""
        rooms = [
            host_capacity.HostCapacity(name, *3 * ({'VCPU': 4, 'VGPU': 2},),
                                    parts=frozenset(['VGPU']))
                 for name in 'ab']
        device = backlog_model.Alternative('d', 'd', {'VCPU': 1, 'VGPU': 1})
        self.assertEqual(
            {'x': {}, 'y': {'a': 1}},
            decide([base.request('x', device), base.request('y')], rooms))
        # No host has so many.
        found = base.decide(
            [base.request('x', backlog_model.Alternative(
                'd', 'd', {'VGPU': 3}))], rooms, base.NOW, dispatch.Options(),
            planner=planner())
        self.assertEqual('too_large', found.notes['x'].waits_for['code'])

    def test_victims_come_after(self):
        """Free space is planned, reclaimable space is not."""
        self.assertEqual(
            {'x': {}, 'y': {'b': 1}},
            decide([base.request('x', vcpus(4)), base.request('y')],
                   [host('a', 1, reclaimable=4), host('b', 1)],
                   score=batch_model.ML))

    def test_further_alternatives(self):
        """They are used in order, in the capacity left by the first."""
        rooms = [host('a', 4), host('b', 2)]
        self.assertEqual(
            {'x': ('2', {'b': 1}), 'y': ('4', {'a': 1})},
            flavors([base.request('x', vcpus(8), vcpus(2)),
                     base.request('y', vcpus(4), vcpus(2))], rooms))
        # The first comes first all the same.
        self.assertEqual(
            {'x': ('3', {}), 'z': ('small', {'b': 1})},
            flavors([base.request('x', vcpus(8), vcpus(3)),
                     base.request('y', vcpus(4)), base.request('z')], rooms))

    def test_more_than_can_be_counted(self):
        """A class that no host has is not planned."""
        self.assertEqual(
            {'y': {'a': 1}},
            decide([base.request('x', vcpus(2 ** 70), count=9),
                    base.request('y')], [host('a', 4)]))

    def test_no_time_left(self):
        found = base.decide(
            [base.request('x')], [host('a', 4)], base.NOW, dispatch.Options(),
            planner=backlog_batch.Planner(lambda: None))
        self.assertEqual([{}], [start.hosts for start in found.starts])

    def test_many(self):
        """Only requests that may start are evaluated, out of 100,000."""
        requests = [base.request(f'r{number:06}')
                    for number in range(100_000)]
        found = base.decide(
            requests, [host('a', 60), host('b', 30)], base.NOW,
            dispatch.Options(most_of_project=100), planner=planner())
        self.assertEqual(90, len(found.starts))

    def test_nothing_fits_anywhere(self):
        requests = [base.request(f'r{number:04}', vcpus(5), vcpus(4))
                    for number in range(1000)]
        self.assertEqual({}, decide(requests, [host('a', 3), host('b', 3)]))

    def test_no_fewer_start(self):
        """As many of the first requests start as one by one."""
        chance = random.Random(7)
        for _ in range(20):
            requests = [
                base.request(f'r{number:02}', vcpus(chance.choice((1, 2, 4))))
                for number in range(12)]
            rooms = [host(f'h{number}', chance.randint(0, 8))
                     for number in range(3)]
            together = decide(requests, rooms)
            alone = {start.uuid for start in base.decide(
                requests, rooms, base.NOW, dispatch.Options()).starts}
            self.assertGreaterEqual(
                [request.uuid in together for request in requests],
                [request.uuid in alone for request in requests])
