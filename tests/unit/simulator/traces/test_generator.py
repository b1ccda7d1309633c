# SPDX-License-Identifier: Apache-2.0
"""Traces that are made up."""

import itertools
import unittest

from nova_preempt.core.model import SECOND
from nova_preempt.simulator.traces import generator


class TestGenerator(unittest.TestCase):

    def test_same_seed_same_trace(self):
        load = generator.Load(2, 100)
        one, other, another = (list(generator.generate(load, seed))
                               for seed in (1, 1, 2))
        self.assertEqual(one, other)
        self.assertNotEqual(one, another)

    def test_first_ones_stay(self):
        load = generator.Load(1, 60, parts=(
            generator.LoadPart('normal', mean_s=100, sigma=0),))
        first = next(generator.generate(load, 3))
        self.assertEqual(
            ('s1', 'normal', 100 * SECOND),
            (first.id, first.class_name, first.duration_us))

    def test_rate_and_mean(self):
        load = generator.Load(24 * 10, 200, swing=0.5, parts=(
            generator.LoadPart('normal', 3, mean_s=500, sigma=1),
            generator.LoadPart('preemptible', 1, sizes={'large': 1})))
        found = list(generator.generate(load, 4))
        self.assertAlmostEqual(48000, len(found), delta=1000)
        self.assertEqual(found, sorted(found, key=lambda b: b.at_us))
        normal = [b for b in found if b.class_name == 'normal']
        self.assertAlmostEqual(0.75, len(normal) / len(found), delta=0.01)
        mean_us = sum(b.duration_us for b in normal) / len(normal)
        self.assertAlmostEqual(500, mean_us / SECOND, delta=15)
        self.assertEqual({4}, {b.resources['VCPU'] for b in found
                               if b.class_name == 'preemptible'})

    def test_daily_pattern(self):
        load = generator.Load(24 * 10, 200, swing=0.5, peak_hour=14)
        hours = [0] * 24
        for boot in generator.generate(load, 5):
            hours[boot.at_us // SECOND // 3600 % 24] += 1
        self.assertAlmostEqual(3000, hours[14], delta=200)
        self.assertAlmostEqual(1000, hours[2], delta=120)

    def test_nothing_comes(self):
        self.assertEqual([], list(generator.generate(
            generator.Load(1, 0), 1)))

    def test_bounds(self):
        for values in ({'hours': -1}, {'per_hour': float('nan')},
                       {'swing': 1.1}, {'peak_hour': 25}, {'parts': (
                           generator.LoadPart('x', sigma=9),)}, {'parts': (
                           generator.LoadPart('x', sizes={'huge': 1}),)}):
            with self.subTest(values), self.assertRaises(ValueError):
                generator.Load(**{'hours': 1, 'per_hour': 1, **values})

    def test_is_lazy(self):
        load = generator.Load(1e6, 1e6)
        self.assertEqual(5, len(list(itertools.islice(
            generator.generate(load, 1), 5))))
