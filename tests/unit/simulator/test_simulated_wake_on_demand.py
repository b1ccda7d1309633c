# SPDX-License-Identifier: Apache-2.0
"""Tests of hosts that are woken for a waiting server in a simulation."""

import unittest

from nova_preempt.core.energy import power_steps
from nova_preempt.core.model import SECOND
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator.simulated_servers import Server
from tests.unit.simulator import small
from tests.unit.simulator import test_simulated_power


class TestWakeOnDemand(unittest.TestCase):

    def setUp(self):
        super().setUp()
        simulation = run.Simulation(
            small.cloud(3), small.options(power=test_simulated_power.POWER))
        self.fleet = simulation._power
        self.waking = self.fleet.waking
        # Nobody decides anew.
        self.waking._again = lambda server: None
        for name in self.fleet.states:
            self.set(name, power_steps.ASLEEP)
        boot = small.boot(0, 'one', 4)
        self.server = Server(boot, simulation._kinds.of(boot))

    def set(self, name, state, ago_s=0):
        self.fleet._move(name, state, '')
        self.fleet.states[name].since_us -= ago_s * SECOND

    def wait(self, is_busy=False):
        return self.waking.wait(self.server, None, is_busy=is_busy)

    def in_state(self, state):
        return list(self.fleet.in_state[state])

    def test_a_request_wakes_no_host_while_too_many_wait(self):
        self.assertFalse(self.wait(is_busy=True))
        self.assertEqual([], self.in_state(power_steps.WAKING))

    def test_a_host_whose_boot_hangs_comes_last(self):
        self.set('h-1', power_steps.WAKING, 10_000)
        self.set('h-2', power_steps.SLEEPING, 10_000)
        self.assertTrue(self.wait())
        self.assertEqual(['h-1', 'h-3'], self.in_state(power_steps.WAKING))

    def test_woken_hosts_are_kept_for_the_request(self):
        self.wait()
        self.set('h-1', power_steps.ON)
        self.waking.look()
        self.wait()
        self.assertEqual(['h-2', 'h-1'], self.waking.promised_hosts())

    def test_hosts_that_still_boot_are_reported_as_coming(self):
        self.wait()
        self.set('h-1', power_steps.ON)
        self.waking.look()
        self.set('h-1', power_steps.SLEEPING)
        for name in ('h-2', 'h-3'):
            self.set(name, power_steps.FAILED)
        self.assertFalse(self.wait())
        self.assertEqual([], self.waking.promised_hosts())

    def test_a_host_that_was_on_is_not_waited_for_again(self):
        """It may be asleep again before the last one is on."""
        self.wait()
        wait = self.waking._waits['one']
        wait.memory = wait.memory.promised(['h-1', 'h-2'])
        again = []
        self.waking._again = again.append
        self.set('h-1', power_steps.ON)
        self.waking.look()
        self.assertEqual([], again)
        self.set('h-1', power_steps.ASLEEP)
        self.set('h-2', power_steps.ON)
        self.waking.look()
        self.assertEqual([self.server], again)
