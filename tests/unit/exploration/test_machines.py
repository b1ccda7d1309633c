# SPDX-License-Identifier: Apache-2.0
"""Tests of the machines in memory as Nova sees them."""

import random
import types
import unittest

from tests.exploration import machines
from tests.exploration import nova_servers
from tests.exploration import tasks


class TestMachine(unittest.TestCase):

    def setUp(self):
        super().setUp()
        loop = self.loop = tasks.Loop(random.Random(0))
        self.host = nova_servers.Host(
            'uuid', 'host1', 'cell1', {}, lambda: loop.now_s)
        self.all = machines.Machines(types.SimpleNamespace(
            loop=loop, seed=0, faults=types.SimpleNamespace(is_off=True),
            nova=types.SimpleNamespace(hosts={'host1': self.host})))
        self.addCleanup(self.all.stop)
        self.machine = self.all.of['host1']

    def wait(self, seconds):
        self.loop.start(tasks.Process('test'), 'test',
                        lambda: self.loop.sleep(seconds))
        self.loop.run(self.loop.now_s + seconds)

    def test_shut_down_stops_the_service_at_once_and_then_the_power(self):
        self.machine.shut_down()
        self.assertFalse(self.host.runs)
        self.assertTrue(self.machine.is_powered)
        self.wait(21)
        self.assertFalse(self.machine.is_powered)

    def test_nova_notices_a_minute_later(self):
        self.machine.switch_off()
        self.wait(40)
        self.assertTrue(self.host.is_up)
        self.wait(40)
        self.assertFalse(self.host.is_up)

    def test_a_boot_ends_with_a_report_of_the_service(self):
        self.machine.switch_off()
        self.wait(100)
        before_s = self.host.reported_s
        self.machine.power_on()
        self.wait(100)
        self.assertTrue(self.host.is_up)
        self.assertGreater(self.host.reported_s, before_s)

    def test_a_boot_that_is_cut_does_not_end(self):
        self.machine.switch_off()
        self.machine.power_on()
        self.machine.switch_off()
        self.wait(100)
        self.assertEqual(machines.OFF, self.machine.state)


if __name__ == '__main__':
    unittest.main()
