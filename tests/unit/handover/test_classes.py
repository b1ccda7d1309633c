# SPDX-License-Identifier: Apache-2.0

import sys
import tempfile
import unittest
from unittest import mock

from oslo_config import cfg

from nova_preempt import exceptions
from nova_preempt.classes import class_registry
from nova_preempt.conf import classes as conf_classes
from nova_preempt.conf import preemption
from nova_preempt.core.classes import availability_margin
from nova_preempt.handover import eviction_policy


class TestLoad(unittest.TestCase):

    def load(self, *lines):
        conf = cfg.ConfigOpts()
        conf_classes.register_opts(conf)
        preemption.register_opts(conf)
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
            print('[classes]', *lines, sep='\n', file=file, flush=True)
            conf(['--config-file', file.name])
        return eviction_policy.load_classes(conf)

    def test_off_by_default(self):
        self.assertIsNone(self.load('qos_class = nonsense'))

    def test_not_even_imported_where_it_is_off(self):
        with mock.patch.dict(sys.modules,
                             {'nova_preempt.classes.class_registry': None}):
            self.assertIsNone(self.load())

    def test_classes_of_a_file(self):
        found = self.load(
            'enabled = true', 'pass_period_s = 120',
            'qos_class = name:gold, importance:1, availability:1',
            'qos_class = name:bronze,importance:3,availability:0.5,open:true')
        self.assertIsInstance(found, class_registry.ServiceClasses)
        self.assertEqual(('gold', 'bronze'), found.table.names)
        self.assertEqual({'bronze'}, found.table.open)
        self.assertEqual((60_000_000, 120), (found.table.overhead_us,
                                             found.table.pass_period_s))

    def test_the_default_of_the_period_is_that_of_the_core(self):
        found = self.load(
            'enabled = true',
            'qos_class = name:gold, importance:1, availability:1')
        self.assertEqual(availability_margin.PASS_PERIOD_S,
                         found.table.pass_period_s)

    def test_options_that_make_no_sense(self):
        for line, text in (
                ('', r'^\[classes\]qos_class: 0 classes are defined'),
                ('qos_class = gold', 'qos_class'),
                ('qos_class = name:gold,importance:1,availability:2',
                 r'^\[classes\]qos_class: availability of class gold is 2')):
            with self.subTest(line), self.assertRaisesRegex(
                    exceptions.InvalidConfiguration, text):
                self.load('enabled = true', line)

    def test_left_out(self):
        with mock.patch.dict(sys.modules,
                             {'nova_preempt.classes.class_registry': None}), \
                self.assertRaisesRegex(
                    exceptions.InvalidConfiguration,
                    'enabled is true, but its plugin is not installed'):
            self.load('enabled = true')
