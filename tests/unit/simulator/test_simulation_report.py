# SPDX-License-Identifier: Apache-2.0
"""Figures and tables."""

import random
import unittest

from nova_preempt.simulator import simulation_report
from nova_preempt.simulator import summary_tables


class TestWaits(unittest.TestCase):

    def test_quantiles_are_a_little_too_large_at_most(self):
        chance = random.Random(1)
        waits = simulation_report.WaitHistogram()
        found = [chance.choice((0, chance.randrange(10**9)))
                 for _ in range(999)]
        for wait_us in found:
            waits.add(wait_us)
        found.sort()
        for share in (0.1, 0.5, 0.9, 0.95, 1.0):
            exact = found[-(-round(share * 10000) * 999 // 10000) - 1]
            self.assertLessEqual(exact, waits.quantile_us(share))
            self.assertLessEqual(waits.quantile_us(share), 1.1 * exact)
        self.assertEqual(found[-1], waits.quantile_us(1))
        self.assertAlmostEqual(sum(found) / 999e6, waits.figures()['mean'],
                               places=3)

    def test_none(self):
        self.assertEqual({'mean': 0, 'median': 0, '95 %': 0, 'most': 0},
                         simulation_report.WaitHistogram().figures())


class TestTable(unittest.TestCase):

    WAIT = {'mean': 1, 'median': 1, '95 %': 2, 'most': 3}

    def summary(self, **figures):
        return {'seconds': 60, 'used': {'normal': {'VCPU': 0.5}},
                'decisions': {'preemptions': 3, 'cost_us': 2_500_000},
                'classes': {'gold': {**figures, 'lost_s': 0,
                                     'wait_s': self.WAIT}}}

    def test_side_by_side(self):
        lines = summary_tables.table(['first', 'b.conf'], [self.summary()] * 2)
        self.assertEqual([
            '                      first   b.conf',
            'simulated              60 s     60 s',
            'VCPU, normal        50.00 %  50.00 %'], lines[:3])
        alone = summary_tables.table(['one'], [self.summary()])
        self.assertEqual('simulated              60 s', alone[0])

    def test_rows_of_only_one_policy(self):
        lines = summary_tables.table(['first', 'b.conf'], [
            self.summary(asked=1), self.summary(asked=1, refused=2)])
        rows = [line.split('  ') for line in lines]
        rows = {row[0]: [cell.strip() for cell in row[1:] if cell]
                for row in rows}
        self.assertEqual(['0', '2'], rows['gold: refused'])
        self.assertEqual(['3', '3'], rows['preemptions'])
        self.assertEqual(['2 s', '2 s'], rows['their cost'])
