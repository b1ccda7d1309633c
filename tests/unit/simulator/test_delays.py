# SPDX-License-Identifier: Apache-2.0
"""Tests of delays."""

import random
import statistics
import unittest

from nova_preempt.simulator import delays


class TestDelay(unittest.TestCase):

    def drawn(self, text, count=4000):
        delay = delays.Delay(text)
        chance = random.Random(1)
        return [delay.draw_us(chance) / 1e6 for _ in range(count)]

    def test_distributions(self):
        self.assertEqual({1.5}, set(self.drawn('constant:1.5')))
        found = self.drawn('uniform:2,4')
        self.assertTrue(2 <= min(found) < 2.1 and 3.9 < max(found) <= 4)
        found = self.drawn('exponential:10')
        self.assertAlmostEqual(10, statistics.mean(found), delta=0.7)
        found = self.drawn('lognormal:20,0.5')
        self.assertAlmostEqual(20, statistics.median(found), delta=1)
        self.assertAlmostEqual(
            0.5, statistics.stdev(map(delays.math.log, found)), delta=0.03)

    def test_nothing(self):
        for text in ('constant:0', 'uniform:0,0', 'exponential:0',
                     'lognormal:0,1'):
            self.assertEqual({0}, set(self.drawn(text, 3)))

    def test_no_longer_than_a_day(self):
        self.assertEqual(86400, max(self.drawn('exponential:80000')))

    def test_invalid_delays(self):
        for text in ('', 'constant', 'constant:', 'constant:-1',
                     'constant:nan', 'constant:1,2', 'constant:1.2.3',
                     'uniform:1', 'uniform:3,2', 'normal:1,2',
                     'constant:86401', 'constant:1e3', 'x' * 1000):
            with self.subTest(text), self.assertRaises(ValueError) as raised:
                delays.Delay(text)
            self.assertLess(len(str(raised.exception)), 400)


class TestDrawn(unittest.TestCase):

    def test_each_kind_by_itself(self):
        one, other = (delays.DelaySampler(delays.Delays(), 3)
                      for _ in range(2))
        other.draw_us('boot')
        other.draw_us('boot')
        self.assertEqual([one.draw_us('delete') for _ in range(5)],
                         [other.draw_us('delete') for _ in range(5)])
        self.assertNotEqual(one.draw_us('boot'), other.draw_us('boot'))
        another = delays.DelaySampler(delays.Delays(), 4)
        self.assertNotEqual([one.draw_us('stop') for _ in range(5)],
                            [another.draw_us('stop') for _ in range(5)])
