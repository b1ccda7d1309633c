# SPDX-License-Identifier: Apache-2.0
"""Tests of the ranking by efficiency."""

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.energy import efficiency_ranking
from tests.unit.core.support import LAW

Figures = efficiency_ranking.Figures


class TestEfficiency(unittest.TestCase):

    def test_004_i(self):
        """Published, but for names: 90/30 before 100/50 before no meter."""
        found = {'b': Figures(100, 50).flops_per_watt,
                 'c': Figures(90, 30).flops_per_watt,
                 'a': Figures(1000).flops_per_watt}
        self.assertEqual({'c': 3.0, 'b': 2.0, 'a': None}, found)
        self.assertEqual(['c', 'b', 'a'], efficiency_ranking.ranking(found))

    def test_equals_go_by_name(self):
        self.assertEqual(['c', 'a', 'b'], efficiency_ranking.ranking(
            {'b': 1.0, 'a': 1.0, 'c': 2.0}))

    def test_without_flops_or_watts_it_is_not_known(self):
        for figures in (Figures(), Figures(watts=9), Figures(flops=9),
                        Figures(9, 0)):
            self.assertIsNone(figures.flops_per_watt)


class TestShare(unittest.TestCase):

    def test_share_of_the_allocatable_vcpus(self):
        for vcpus, total, ratio, expected in (
                (2, 8, 1.0, .25), (2, 8, 2.0, .125), (0, 8, 1.0, 0),
                (16, 8, 2.0, 1), (2, 8, None, .25), (2, 8, 0.0, .25),
                (2, 0, 2.0, None)):
            with self.subTest(total=total, ratio=ratio):
                self.assertEqual(expected,
                                 efficiency_ranking.share(vcpus, total, ratio))


class TestMarginalWatts(unittest.TestCase):

    figures = Figures(None, 300, 100)

    def test_a_host_that_has_nothing_to_give(self):
        self.assertIsNone(self.figures.marginal_watts(None, in_use=True))
        # Who has nothing to give is idle.
        self.assertEqual(Figures(None, 600, 200),
                         self.figures.as_measured(200, None))

    def test_idle_power_is_due_to_the_first_server(self):
        self.assertEqual(150, self.figures.marginal_watts(.25, in_use=False))

    def test_a_running_host_costs_the_slope_only(self):
        self.assertEqual(50, self.figures.marginal_watts(.25, in_use=True))

    def test_full_load_adds_up_to_the_measured_watts(self):
        first = self.figures.marginal_watts(.25, in_use=False)
        rest = 3 * self.figures.marginal_watts(.25, in_use=True)
        self.assertEqual(300, first + rest)

    def test_marginal_watts_are_never_negative(self):
        self.assertEqual(0, Figures(None, 90, 100).marginal_watts(
            1, in_use=True))

    def test_without_watts_it_is_not_known(self):
        for figures in (Figures(1, 300), Figures(1, None, 100)):
            self.assertIsNone(figures.marginal_watts(1, in_use=True))


class TestAsMeasured(unittest.TestCase):

    FIGURES = efficiency_ranking.Figures(1000, 300, 100)

    def test_at_its_load_as_expected_nothing_changes(self):
        for share, watts in ((0, 100), (0.5, 200), (1, 300), (1.7, 300)):
            self.assertEqual(self.FIGURES,
                             self.FIGURES.as_measured(watts, share))

    def test_a_tenth_more_is_a_tenth_more_at_any_load(self):
        for share, watts in ((0, 110), (0.5, 220), (1, 330)):
            found = self.FIGURES.as_measured(watts, share)
            self.assertAlmostEqual(330, found.watts)
            self.assertAlmostEqual(110, found.idle_watts)

    def test_where_nothing_is_expected_it_is_all_there_is(self):
        for figures in (efficiency_ranking.Figures(1000),
                        efficiency_ranking.Figures(
                                1000, 300),
                        efficiency_ranking.Figures(1000, None, 100)):
            self.assertEqual(5, figures.as_measured(200, 0.5).flops_per_watt)

    def test_no_reading(self):
        for watts in (None, 0, 0.0, -5.0):
            self.assertEqual(self.FIGURES,
                             self.FIGURES.as_measured(watts, 0.5))

    @LAW
    @hypothesis.given(st.floats(1, 1e6), st.floats(0, 1))
    def test_a_host_with_more_watts_is_never_preferred(self, watts, share):
        found, more = (self.FIGURES.as_measured(value, share)
                       for value in (watts, watts * 1.5))
        self.assertGreater(found.flops_per_watt, more.flops_per_watt)


class TestFillUnknown(unittest.TestCase):

    def test_neutral(self):
        self.assertEqual([2.0, 3.0, 4.0],
                         efficiency_ranking.fill_unknown([2.0, None, 4.0]))

    def test_last(self):
        self.assertEqual([2.0, 0.0, 4.0], efficiency_ranking.fill_unknown(
            [2.0, None, 4.0], last=True))

    def test_without_known_weights_all_are_equal(self):
        for last in (False, True):
            self.assertEqual([0.0, 0.0], efficiency_ranking.fill_unknown(
                [None, None], last=last))
            self.assertEqual([],
                             efficiency_ranking.fill_unknown([], last=last))

    @LAW
    @hypothesis.given(st.lists(st.none() | st.floats(-1e15, 1e15)),
                      st.booleans())
    def test_the_known_stay_and_the_unknown_find_their_place(self, values,
                                                             last):
        filled = efficiency_ranking.fill_unknown(values, last=last)
        known = [value for value in values if value is not None]
        self.assertEqual(len(values), len(filled))
        for value, found in zip(values, filled, strict=True):
            if value is not None:
                self.assertEqual(value, found)
            elif known and last:
                self.assertLess(found, min(known))
            elif known:
                # A mean may be off by a rounding.
                slack = 1e-9 * max(map(abs, known))
                self.assertGreaterEqual(found, min(known) - slack)
                self.assertLessEqual(found, max(known) + slack)
