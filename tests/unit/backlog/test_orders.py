# SPDX-License-Identifier: Apache-2.0
"""Queue orders as plugins, and their requirements."""

import sys
import unittest
from unittest import mock

from oslo_config import cfg

from nova_preempt import exceptions
from nova_preempt.backlog import cloud_observer
from nova_preempt.classes import class_queue_order
from nova_preempt.conf import backlog as conf_backlog
from nova_preempt.core.backlog import dominant_fair_share
from nova_preempt.core.backlog import promethee_order
from nova_preempt.core.backlog import queue_order


class OrdersTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        conf_backlog.register_opts(self.conf)
        self.conf([])

    def load(self, **options):
        for name, value in options.items():
            self.conf.set_override(name, value, conf_backlog.GROUP)
        return cloud_observer.load_order(self.conf.backlog)


class TestOrders(OrdersTestCase):

    def test_by_name(self):
        for name, kind in (('fifo', queue_order.FIFO),
                           ('fair_share',
                            dominant_fair_share.DominantFairShare),
                           ('promethee', promethee_order.PrometheeOrder)):
            self.assertIsInstance(self.load(order=name), kind)

    def test_unknown(self):
        with self.assertRaisesRegex(
                exceptions.InvalidConfiguration,
                r"\[backlog\]order is 'x'; known are: "
                'fair_share, fifo, promethee, qos'):
            self.load(order='x')

    def test_weights(self):
        for weights, text in (({'time': '1.5'}, "has '1.5' for time"),
                              ({'tim': '1'}, "the weight 'tim' is unknown"),
                              ({'time': '-1'}, 'weight of time is -1')):
            with self.subTest(weights), self.assertRaisesRegex(
                    exceptions.InvalidConfiguration, text):
                self.load(order='promethee', priority_weights=weights)

    def test_by_promises(self):
        with self.assertRaisesRegex(
                exceptions.InvalidConfiguration,
                r'\[backlog\]order is qos, but \[classes\]enabled is false'):
            self.load(order='qos')
        self.assertIsInstance(cloud_observer.load_order(self.conf.backlog,
                                                        object()),
                              class_queue_order.ClassQueueOrder)

    def test_missing_libraries(self):
        missing = {'numpy': None}
        for name in [*sys.modules]:
            if name.endswith(('core.classes.promethee',
                              'core.backlog.promethee_order')):
                missing[name] = None
        with mock.patch.dict(sys.modules, missing), self.assertRaisesRegex(
                exceptions.InvalidConfiguration,
                r'it comes with nova-preempt\[classes\]'):
            self.load(order='promethee')
        self.assertIsInstance(self.load(order='fifo'), queue_order.FIFO)


if __name__ == '__main__':
    unittest.main()
