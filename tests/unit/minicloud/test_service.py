# SPDX-License-Identifier: Apache-2.0
"""Services of ours are started with the constants of a test."""

import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from minicloud.inside import service

from nova_preempt.cmd import engine
from nova_preempt.core.energy import power_steps


class TestService(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory())) / 'constants.json'

    def test_constants_are_set(self):
        self.enterContext(mock.patch.object(power_steps, 'BOOTS',
                                            power_steps.BOOTS))
        self.path.write_text(json.dumps({'core.energy.power_steps.BOOTS': 7}))
        found = []

        def main():
            found.append((power_steps.BOOTS, list(sys.argv)))
            return 3

        self.enterContext(mock.patch.object(engine, 'main', main))
        self.enterContext(mock.patch.object(sys, 'argv', [
            'service.py', str(self.path), 'nova-preempt-engine', '--x=y']))
        self.assertEqual(3, service.main())
        self.assertEqual([(7, ['nova-preempt-engine', '--x=y'])], found)

    def test_an_unknown_constant(self):
        self.path.write_text(json.dumps({'core.energy.power_steps.BOOT': 7}))
        self.assertRaises(AttributeError, service.set_constants, self.path)
