# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of events."""

import itertools
import unittest

from nova_preempt.simulator import events
from nova_preempt.simulator.events import Phase


class TestEvents(unittest.TestCase):

    def setUp(self):
        self.events = events.EventQueue()
        self.happened = []

    def add(self, at_us, turn, name):
        self.events.add(at_us, turn, self.happened.append, name)

    def test_in_order_of_time_turn_and_addition(self):
        items = [(2, Phase.END, 'd'), (1, Phase.BOOT, 'c'),
                 (1, Phase.END, 'a'), (1, Phase.STEP, 'b')]
        for order in itertools.permutations(items):
            with self.subTest(order):
                self.setUp()
                for item in order:
                    self.add(*item)
                self.add(1, Phase.BOOT, 'c')
                self.events.run(2)
                self.assertEqual(['a', 'b', 'c', 'c', 'd'], self.happened)
                self.assertEqual(0, len(self.events))

    def test_until(self):
        for at_us in (5, 7, 9):
            self.add(at_us, Phase.STEP, at_us)
        self.events.run(7, Phase.STEP)
        self.assertEqual(([5], 7), (self.happened, self.events.now_us))
        self.events.run(8)
        self.assertEqual(([5, 7], 8), (self.happened, self.events.now_us))

    def test_an_event_may_add_more(self):
        def again(left):
            self.happened.append(self.events.now_us)
            if left:
                self.events.add(self.events.now_us + 3, Phase.STEP, again,
                                left - 1)

        again(3)
        self.events.run(7)
        self.assertEqual([0, 3, 6], self.happened)

    def test_the_past(self):
        self.events.run(7)
        with self.assertRaisesRegex(ValueError, '6 us is before the current'):
            self.add(6, Phase.END, 'a')
