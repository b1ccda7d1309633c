# SPDX-License-Identifier: Apache-2.0
"""Figures beside published ones."""

import unittest

from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers.figures import Figure


class TestFigure(unittest.TestCase):

    def test_deviation(self):
        self.assertAlmostEqual(0.1, Figure('a', 10, 11).deviation)
        self.assertAlmostEqual(-0.5, Figure('a', 2.0, 1.0).deviation)
        self.assertEqual(0, Figure('a', 0, 0).deviation)

    def test_some_have_none(self):
        for published, ours in ((None, 1), ('less', 1), (0, 1), (1, 'yes')):
            self.assertIsNone(Figure('a', published, ours).deviation)

    def test_as_json(self):
        self.assertEqual(
            {'name': 'a', 'published': 4, 'ours': 5, 'reason': 'why',
             'source': 'Table 1', 'is_time': False, 'deviation': 0.25},
            Figure('a', 4, 5, 'why', 'Table 1').as_dict())


class TestLines(unittest.TestCase):

    def test_a_report(self):
        self.assertEqual([
            'Somebody, 2019',
            'Scale: half of it',
            'Data: ours',
            '',
            '       published   ours  deviation  source',
            'one        0.125   0.25  +100.00 %  abstract',
            'two            -  12346',
            '    lost',
            'three       less    yes',
        ], list(figures.lines(figures.PaperEvaluation(
            'Somebody, 2019', 'half of it', 'ours', [
                Figure('one', 0.125, 0.25, 'lost', 'abstract'),
                Figure('two', None, 12345.6, 'lost'),
                Figure('three', 'less', 'yes')]))))


class TestStatistics(unittest.TestCase):

    def test_statistics_of_no_values(self):
        self.assertEqual((0, 0), (figures.mean([]),
                                  figures.quantile([], 0.5)))

    def test_quantiles(self):
        values = [3, 1, 2, 4]
        self.assertEqual([1, 3, 4, 4], [
            figures.quantile(values, share) for share in (0, 0.5, 0.99, 1)])

    def test_cdf(self):
        series = figures.cdf('x', [2, 1])
        self.assertEqual(([1, 2], [0.5, 1.0]), (series.x, series.y))
