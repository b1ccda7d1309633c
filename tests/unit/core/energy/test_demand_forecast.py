# SPDX-License-Identifier: Apache-2.0
"""Tests of forecasts of the number of hosts."""

import importlib.metadata
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.energy import demand_forecast
from tests.unit.core.support import LAW

NOW_S = 1_700_000_000
DAY_S = 86400
WEEK_S = 7 * DAY_S
FORECASTS = (demand_forecast.ewma, demand_forecast.max_window,
             demand_forecast.seasonal)


def steps(*busy, step_s=300):
    """Return a load for each step, the last one now."""
    return [demand_forecast.Load(NOW_S - step_s * ago, number)
            for ago, number in zip(range(len(busy) - 1, -1, -1), busy,
                                   strict=True)]


def ago(*loads):
    return [demand_forecast.Load(NOW_S - age_s, busy) for age_s, busy in loads]


class TestEwma(unittest.TestCase):

    def ewma(self, history):
        return demand_forecast.ewma(history, NOW_S, 300)

    def test_usage_and_expected_arrivals(self):
        # Arrivals 2, 0, 4: 2, then .7 * 2 = 1.4, then .3 * 4 + .7 * 1.4.
        self.assertAlmostEqual(8 + 2.18, self.ewma(steps(2, 4, 4, 8)))

    def test_departures_are_no_arrivals(self):
        self.assertEqual(1, self.ewma(steps(9, 5, 1)))

    def test_the_most_of_a_step_counts(self):
        history = ago((400, 1), (350, 3), (300, 1), (200, 1), (100, 5),
                      (0, 4))
        self.assertEqual(4 + 2, self.ewma(history))

    def test_where_nothing_was_noted_nothing_came(self):
        history = ago((1500, 1), (1200, 3), (0, 3))
        self.assertAlmostEqual(3 + 2 * .7 ** 4, self.ewma(history))

    def test_one_interval_or_none(self):
        self.assertEqual(0, self.ewma([]))
        self.assertEqual(7, self.ewma(steps(7)))

    def test_later_loads_are_ignored(self):
        history = [*steps(1, 2), demand_forecast.Load(NOW_S + 1, 99)]
        self.assertEqual(3, self.ewma(history))


class TestMaxWindow(unittest.TestCase):

    def test_window(self):
        history = ago((3601, 9), (3600, 7), (60, 2), (0, 3))
        self.assertEqual([9, 7, 3, 3], [
            demand_forecast.max_window(history, NOW_S + later_s, 300)
            for later_s in (-1, 0, 1, 4000)])

    def test_an_empty_history(self):
        self.assertEqual(0, demand_forecast.max_window([], NOW_S, 300))


class TestSeasonal(unittest.TestCase):

    def seasonal(self, *loads):
        return demand_forecast.seasonal(
            ago(*sorted(loads, reverse=True)), NOW_S, 300)

    def test_mean_of_the_same_hour_of_earlier_weeks(self):
        loads = [(2 * WEEK_S, 2), (2 * WEEK_S - 3599, 6),
                 (2 * WEEK_S - 3600, 50), (2 * WEEK_S + 1, 50),
                 (WEEK_S - 60, 3), (DAY_S, 50), (0, 1)]
        self.assertEqual(4.5, self.seasonal(*loads))
        self.assertEqual(4.5, self.seasonal((5 * WEEK_S, 99), *loads))
        self.assertEqual((2 + 6 + 3 + 9) / 4, self.seasonal(
            (4 * WEEK_S, 2), (3 * WEEK_S, 9), *loads))

    def test_not_fewer_than_are_in_use(self):
        self.assertEqual(9, self.seasonal((WEEK_S, 2), (0, 9)))

    def test_without_such_weeks_as_ewma(self):
        self.assertEqual(6, self.seasonal((300, 2), (0, 4)))
        # What was longer ago is history to ewma(), of no arrivals.
        self.assertAlmostEqual(4.6, self.seasonal(
            (5 * WEEK_S, 4), (300, 2), (0, 4)))


class TestAll(unittest.TestCase):

    @LAW
    @hypothesis.given(st.lists(st.tuples(st.integers(0, 3 * WEEK_S),
                                         st.integers(0, 50)), max_size=15))
    def test_never_fewer_than_are_in_use_nor_far_more_than_ever(self, loads):
        history = ago(*sorted(loads, reverse=True))
        latest = history[-1].busy if history else 0
        most = max((load.busy for load in history), default=0)
        for function in FORECASTS:
            found = function(history, NOW_S, 300)
            self.assertGreaterEqual(found, latest)
            self.assertLessEqual(found, latest + most)

    def test_they_are_plugins(self):
        found = {point.name: point.load() for point in
                 importlib.metadata.entry_points(
                     group='nova_preempt.forecast')}
        for function in FORECASTS:
            self.assertIs(function, found[function.__name__])
