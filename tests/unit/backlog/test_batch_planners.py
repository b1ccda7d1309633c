# SPDX-License-Identifier: Apache-2.0
"""Batch placement: options, requirements and failures."""

import sys
import unittest
from unittest import mock

from nova_preempt import exceptions
from nova_preempt.backlog import batch_planners
from nova_preempt.conf import backlog as conf_backlog
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.batch import backlog_batch
from nova_preempt.core.batch import batch_model
from tests.unit.backlog import test_orders
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus


class TestBatch(test_orders.OrdersTestCase):

    def setUp(self):
        super().setUp()
        self.now_s = 0.0

    def make(self, **options):
        for name, value in options.items():
            self.conf.set_override(name, value, conf_backlog.GROUP)
        return batch_planners.load(self.conf.backlog, lambda: self.now_s)

    def decide(self, requests, rooms, **options):
        found = base.decide(
            requests, rooms, base.NOW, dispatch.Options(),
            planner=self.make(**options).planner())
        return {start.uuid: dict(start.hosts) for start in found.starts}

    def test_no_planner_by_default(self):
        self.assertIsNone(self.make())

    def test_each_mode(self):
        requests = [base.request('y', vcpus(4)), base.request('x', vcpus(2))]
        rooms = [host('a', 4), host('b', 2)]
        for mode, found in (
                ('exact', {'x': {'b': 1}, 'y': {'a': 1}}),
                ('greedy', {'x': {'b': 1}, 'y': {'a': 1}})):
            self.assertEqual(found, self.decide(
                requests, rooms, batch_mode=mode), mode)

    def test_missing_libraries(self):
        """The error at the start names the extra."""
        for mode, missing in (('greedy', 'numpy'),
                              ('exact', 'scipy.optimize')):
            with mock.patch.dict(sys.modules, {missing: None}), (
                    self.assertRaisesRegex(
                        exceptions.InvalidConfiguration,
                        rf'\[backlog\]batch_mode is {mode}: '
                        r'.*install nova-preempt\[batch\]')):
                self.make(batch_mode=mode)

    def test_bad_values(self):
        self.assertRaises(ValueError, self.conf.set_override, 'batch_mode',
                          'ecsched', conf_backlog.GROUP)

    def test_time_is_up(self):
        """Requests that are not placed in time are placed one by one."""
        planner = self.make(batch_mode='exact').planner()
        requests = [base.request('x')]
        self.assertEqual({'a': 1}, planner.plan(
            requests, [host('a', 4)])['x'].hosts)
        self.now_s = 2.0
        self.assertEqual({'x': backlog_batch.TIME},
                         planner.plan(requests, [host('a', 4)]))

    def test_numbers_that_cannot_be_added_up(self):
        """Inventories are absurdly large by mistake."""
        with self.assertLogs(batch_planners.__name__, 'WARNING') as logs:
            found = self.decide(
                [base.request(f'r{number}', vcpus(2 ** 61 + number))
                 for number in range(20)],
                [host('a', 2 ** 62), host('b', 2 ** 70)], batch_mode='exact')
        self.assertEqual(20, len(found))
        self.assertEqual([{}], [*map(dict, {
            tuple(hosts.items()) for hosts in found.values()})])
        self.assertEqual(1, len(logs.output), logs.output)
        self.assertIn('can be added up', logs.output[0])

    def test_a_single_request(self):
        for mode in batch_model.MODES:
            self.assertEqual({'x': {'a': 1}}, self.decide(
                [base.request('x')], [host('a', 4)], batch_mode=mode))

    def test_no_hosts_at_all(self):
        for mode in batch_model.MODES:
            self.assertEqual({}, self.decide(
                [base.request('x')], [], batch_mode=mode))


if __name__ == '__main__':
    unittest.main()
