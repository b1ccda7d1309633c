# SPDX-License-Identifier: Apache-2.0
"""The order by four SLA priorities."""

import unittest

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import promethee_order
from nova_preempt.core.backlog import queue_order
from tests.unit.core.backlog import base

NOBODY = queue_order.ProjectUsage({}, {})


def rank(requests, now=base.NOW, **options):
    rule = promethee_order.PrometheeOrder(queue_order.Options(**options))
    return [request.uuid for request in rule.rank(requests, now, NOBODY)]


def request(uuid, *levels, **changes):
    return base.request(uuid, priorities=backlog_model.SlaPriorities(*levels),
                        **changes)


class TestRank(unittest.TestCase):

    def test_published_case(self):
        """Ninety requests of three kinds, as they come: premium first."""
        kinds = {'a': (2,) * 4, 'b': (1,) * 4, 'p': (3,) * 4}
        requests = [
            request(f'{number:02}{kind}', *levels,
                    created_at=base.ago(90 - number))
            for number in range(90)
            for kind, levels in (list(kinds.items())[number % 3],)]
        expected = sorted((item.uuid for item in requests),
                          key=lambda uuid: ('pab'.index(uuid[-1]), uuid))
        self.assertEqual(expected, rank(requests))

    def test_each_priority_counts_alike(self):
        requests = [request('a', 3, 1, 1, 1), request('b', 1, 3, 1, 1),
                    request('c', 2, 2, 2, 1), request('d', 1, 1, 1, 3)]
        self.assertEqual(['c', 'a', 'b', 'd'], rank(requests))

    def test_weights(self):
        requests = [request('a', 1, 1, 1, 3), request('b', 3, 3, 1, 1)]
        self.assertEqual(['b', 'a'], rank(requests))
        self.assertEqual(['a', 'b'], rank(
            requests, weights={'redundancy': 5}))
        self.assertEqual(['a', 'b'], rank(
            requests, weights={'time': 0, 'reputation': 0}))

    def test_levels_that_are_far_apart(self):
        requests = [request('a', 2, 2, 1, 1), request('b', 1, 1, 2, 3),
                    request('c', 1, 1, 1, 1)]
        self.assertEqual(['a', 'b', 'c'], rank(requests))

    def test_equal_requests_keep_their_order(self):
        requests = [request('b', 2, 1, 1, 1, serial=7),
                    request('a', 1, 2, 1, 1, serial=8),
                    request('c', 1, 1, 2, 1, serial=6)]
        self.assertEqual(['c', 'b', 'a'], rank(requests))

    def test_requests_without_priorities_are_best_effort(self):
        requests = [base.request('b'), request('a', 1, 1, 1, 1),
                    request('c', 2, 1, 1, 1)]
        self.assertEqual(['c', 'a', 'b'], rank(requests))

    def test_a_long_wait_comes_first(self):
        requests = [request('old', created_at=base.ago(100)),
                    request('new', 3, 3, 3, 3)]
        self.assertEqual(['new', 'old'], rank(requests))
        self.assertEqual(['old', 'new'], rank(requests, patience_s=50))
        self.assertEqual(['new', 'old'], rank(requests, patience_s=0))
        # By a clock that is ahead.
        requests[1] = request('new', 1, 1, 1, 1, created_at=base.ago(-100))
        self.assertEqual(['old', 'new'], rank(requests, patience_s=1000))

    def test_nothing(self):
        self.assertEqual([], rank([]))

    def test_absurd_weights(self):
        for weights, text in (
                ({'times': 1}, "'times' is unknown; known are time, rep"),
                ({'time': -1}, 'weight of time is -1'),
                (dict.fromkeys(('time', 'reputation', 'cores',
                                'redundancy'), 0), 'are 0')):
            with self.subTest(weights), self.assertRaisesRegex(
                    ValueError, text):
                rank([], weights=weights)


if __name__ == '__main__':
    unittest.main()
