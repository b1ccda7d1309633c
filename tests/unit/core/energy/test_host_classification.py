# SPDX-License-Identifier: Apache-2.0

"""Classification of hosts, and how soon they are on."""

import unittest

from nova_preempt.core.energy import host_classification
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps


class TestCandidates(unittest.TestCase):

    def test_usable_hosts(self):
        for state, up, disabled, expected in (
                (power_steps.ON, True, False, True),
                (power_steps.ON, False, False, False),
                (power_steps.ON, True, True, False),
                (power_steps.WAKING, True, False, False)):
            self.assertIs(expected, host_classification.is_usable(
                state, up=up, disabled=disabled))

    def off(self, state, age_s, boots=0, stopped=''):
        return host_classification.off(
            state, age_s, boots, lead_s=320, queue_s=70, stopped=stopped)

    def test_hosts_that_are_on_in_time(self):
        for state, age_s, boots, why in (
                (power_steps.ASLEEP, 10 ** 9, 0, ''),
                (power_steps.WAKING, 320, 0, ''),
                (power_steps.WAKING, 321, 0, 'it has been waking for 321 s'),
                (power_steps.WAKING, 1, 1, 'its first boot has failed'),
                # It was on already, as its controller says.
                (power_steps.WAKING, 1, 2, ''),
                (power_steps.SLEEPING, 690, 0, ''),
                (power_steps.SLEEPING, 691, 0,
                 'it has been sleeping for 691 s'),
                (power_steps.EMPTYING, 691, 0,
                 'it has been emptying for 691 s'),
                (power_steps.FAILED, 1, 0, 'it has failed to boot')):
            with self.subTest(state=state, age_s=age_s, boots=boots):
                self.assertEqual(why, self.off(state, age_s, boots).why_late)
        self.assertEqual('paused',
                         self.off(power_steps.ASLEEP, 1,
                                  stopped='paused').why_late)

    def test_how_long_it_may_take(self):
        self.assertEqual(320, self.off(power_steps.WAKING, 1).patience_s)
        self.assertEqual(390, self.off(power_steps.ASLEEP, 1).patience_s)

    def test_hosts_that_count_as_on(self):
        for state, usable, expected in (
                (power_steps.ON, True, True), (power_steps.ON, False, None),
                (power_steps.WAKING, False, True),
                (power_steps.ASLEEP, False, False),
                (power_steps.EMPTYING, False, None),
                (power_steps.SLEEPING, False, None),
                (power_steps.FAILED, False, None)):
            with self.subTest(state=state, usable=usable):
                self.assertIs(expected, host_classification.is_on(
                    state, usable=usable, operators=False))
                self.assertIsNone(host_classification.is_on(
                    state, usable=usable, operators=True))

    def is_busy(self, state=power_steps.ON, idle_intervals=0, servers=False,
                looked_at=True, promised=False):
        return host_classification.is_busy(
            state, idle_intervals, servers=servers, looked_at=looked_at,
            promised=promised)

    def test_busy_hosts(self):
        self.assertTrue(self.is_busy())
        self.assertTrue(self.is_busy(servers=True, looked_at=False))
        self.assertFalse(self.is_busy(looked_at=False))
        self.assertFalse(self.is_busy(idle_intervals=1))
        self.assertFalse(self.is_busy(power_steps.WAKING))
        self.assertTrue(self.is_busy(power_steps.WAKING, promised=True))
        self.assertTrue(self.is_busy(idle_intervals=9, promised=True))

    def test_reserved_and_due_hosts(self):
        for in_s, on, expected in (
                (None, True, (False, False)), (1000, True, (True, False)),
                (1001, True, (False, False)), (1000, False, (False, False)),
                (300, False, (True, True)), (300, True, (True, True))):
            with self.subTest(in_s=in_s, on=on):
                start = None if in_s is None else power_plan.ReservationStart(
                    'a', in_s,
                                                                   300)
                self.assertEqual(expected, host_classification.reserved(
                    start, 1000, 1, 10, on=on))
