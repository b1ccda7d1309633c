# SPDX-License-Identifier: Apache-2.0
"""Why requests find no room, and the hosts kept for them."""

import dataclasses
import datetime
import itertools
import math
import unittest
from unittest import mock

from nova_preempt.core.backlog import shortfalls
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import codes
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import starts
from tests.unit.core.backlog.base import vcpus
from tests.unit.core.backlog.test_dispatch import decide

#: Hosts without room for anybody: of nine hosts two are kept for a project.
OTHERS = [host(f'other{number}', 0, capacity=1) for number in range(7)]


class TestShortfalls(unittest.TestCase):

    def test_the_shortfall_is_computed_once_for_each_flavor(self):
        """For any order of the flavors."""
        looked = []

        def lack(tracker, alternative, look=shortfalls.shortfall):
            looked.append(alternative.name)
            return look(tracker, alternative)

        flavors = [vcpus(number) for number in range(2, 7)]
        requests = [base.request(str(number), *order) for number, order
                    in enumerate(itertools.permutations(flavors))]
        with mock.patch.object(shortfalls, 'shortfall', lack):
            decide(requests, [host('h', 1)])
        self.assertEqual(['2', '3', '4', '5', '6'], sorted(looked))


class TestHolds(unittest.TestCase):

    def test_hosts_are_kept_after_a_long_wait(self):
        large = base.request('large', vcpus(8),
                             waits_since=base.ago(600))
        requests = [large, base.request('a'), base.request('b')]
        rooms = [host('h', 7), host('i', 1)]
        self.assertEqual(['a', 'b'], [start.uuid for start in decide(
            requests, rooms, hold_after_s=601).starts])
        found = decide(requests, rooms, hold_after_s=600)
        self.assertEqual(['a'], [start.uuid for start in found.starts])
        self.assertEqual(('large',), found.held)
        self.assertIn('kept free', found.notes['large'].waits_for['text'])
        self.assertEqual(['a', 'b'], [start.uuid for start in decide(
            requests, rooms, hold_after_s=600, most_holds=0).starts])

    def test_requests_besides_kept_hosts_get_a_chosen_host(self):
        """Nova does not know kept hosts and would use any."""
        large = base.request('large', vcpus(8), created_at=base.ago(60))
        small = base.request('a')
        rooms = [host('h', 7), host('i', 1)]
        for requests, hosts in (([large, small], {'i': 1}),
                                ([small, large], {}), ([small], {})):
            found = decide(requests, rooms, hold_after_s=60)
            self.assertEqual([hosts], [
                start.hosts for start in found.starts])

    def test_when_it_can_start_is_said(self):
        found = decide([base.request('large', vcpus(8))],
                       [host('h', 7, ends=[(60, 1)])], hold_after_s=0)
        self.assertIn('in 60 s', found.notes['large'].waits_for['text'])

    def test_only_of_flavors_of_which_enough_could_start(self):
        requests = [base.request('a', vcpus(8), vcpus(4), count=3)]
        found = decide(requests, [host('h', 7, ends=[(60, 1)]), host('i', 8)],
                       hold_after_s=0)
        self.assertEqual([('a', '4', 3)], starts(found))
        found = decide(
            requests, [host('h', 7, ends=[(60, 1)]), host('i', 0), *OTHERS],
            hold_after_s=0)
        self.assertEqual(('a',), found.held)
        self.assertNotIn(' s.', found.notes['a'].waits_for['text'])
        found = decide(requests, [
            host('h', 7, ends=[(60, 1)]), host('i', 0, ends=[(90, 4)]),
            *OTHERS],
            hold_after_s=0)
        self.assertIn('in 90 s.', found.notes['a'].waits_for['text'])

    def test_no_host_is_kept_while_too_many_are_reserved(self):
        large = base.request('a', vcpus(8), count=2, created_at=base.ago(60))
        for free_s, expected in ((0, ['b']), (math.inf, [])):
            found = decide([large, base.request('b')], [
                host('h', 4), dataclasses.replace(host('i', 0),
                                                  free_s=free_s), *OTHERS],
                hold_after_s=60)
            self.assertEqual(expected, [start.uuid for start in found.starts])
            self.assertEqual('room', codes(found)['a'])

    def test_a_large_request_is_not_starved(self):
        """Small requests come all the time, one of which always fits."""
        def steps(hold_after_s):
            running = dict.fromkeys(range(8), 'h')   # when they end: where
            large = base.request('large', vcpus(8))
            for step in range(100):
                now = base.NOW + datetime.timedelta(seconds=step)
                running.pop(step, None)
                requests = [large] + [base.request(
                    f'{step}-{number}', created_at=now)
                    for number in range(3)]
                found = decide(requests, [host('h', 8 - len(running))],
                               now=now, hold_after_s=hold_after_s)
                for start in found.starts:
                    if start.uuid == 'large':
                        return step
                    running[max(running, default=step) + 1] = 'h'
            return None

        self.assertIsNone(steps(10 ** 6))
        self.assertLess(steps(20), 40)


if __name__ == '__main__':
    unittest.main()
