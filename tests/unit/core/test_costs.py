# SPDX-License-Identifier: Apache-2.0

"""Cost functions."""

from __future__ import annotations

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import costs
from nova_preempt.core.costs import CostInputs
from nova_preempt.core.costs import CostOptions
from nova_preempt.core.model import SECOND
from tests.unit.core import support

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def cost(
    function: costs.CostFunction, uptime_us: int, period_s: int = 3600
) -> int:
    """Return the cost of a server that is up so long."""
    server = CostInputs("u", uptime_us, {"VCPU": 1})
    return function(server, CostOptions(period_s))


class TestPartialHour(unittest.TestCase):
    """Algorithm 4: the time since the last full billing period."""

    def test_003_a(self) -> None:
        """The server of 120 minutes ends before those of 119 and 61."""
        found = [
            cost(costs.partial_hour, minutes * MINUTE)
            for minutes in (120, 119, 61)
        ]
        self.assertEqual([0, 59 * MINUTE, 1 * MINUTE], found)

    def test_micro_seconds_count(self) -> None:
        self.assertEqual(1, cost(costs.partial_hour, HOUR + 1))
        self.assertEqual(HOUR - 1, cost(costs.partial_hour, HOUR - 1))

    def test_billing_period(self) -> None:
        self.assertEqual(
            30 * SECOND, cost(costs.partial_hour, 90 * SECOND, 60)
        )


class TestRepeats(unittest.TestCase):
    """Costs that earlier evictions of a server add."""

    def total(self, preemptions: int, repeat_cost_s: int = 3600) -> int:
        """Return the cost of a server that is up for ten minutes."""
        server = CostInputs(
            "u", 10 * MINUTE, {"VCPU": 1}, preemptions=preemptions
        )
        options = CostOptions(3600, repeat_cost_s)
        return costs.total(costs.partial_hour, server, options)

    def test_each_time_counts(self) -> None:
        self.assertEqual(
            [10 * MINUTE, HOUR + 10 * MINUTE, 2 * HOUR + 10 * MINUTE],
            [self.total(times) for times in range(3)],
        )

    def test_off(self) -> None:
        self.assertEqual(10 * MINUTE, self.total(7, 0))

    def test_negative(self) -> None:
        with self.assertRaises(ValueError):
            CostOptions(repeat_cost_s=-1)


class TestOthers(unittest.TestCase):
    """The other orders."""

    def test_count(self) -> None:
        self.assertEqual(SECOND, cost(costs.count, 0))
        self.assertEqual(SECOND, cost(costs.count, 5 * HOUR))

    def test_youngest_first(self) -> None:
        self.assertEqual(5 * HOUR, cost(costs.youngest_first, 5 * HOUR))

    def test_oldest_first(self) -> None:
        self.assertLess(
            cost(costs.oldest_first, 2 * HOUR), cost(costs.oldest_first, HOUR)
        )

    def test_oldest_first_takes_the_fewest(self) -> None:
        one = cost(costs.oldest_first, 0)
        year = 365 * 24 * HOUR
        self.assertLess(one, 2 * cost(costs.oldest_first, year))

    def test_oldest_first_is_never_negative(self) -> None:
        self.assertEqual(0, cost(costs.oldest_first, costs.HORIZON_US + HOUR))


class TestFloors(unittest.TestCase):
    """Lower bounds of costs."""

    @support.LAW
    @hypothesis.given(
        st.sampled_from(sorted(costs.LOWER_BOUNDS, key=str)),
        st.integers(0, 2 * costs.HORIZON_US),
        st.integers(1, 7200),
        st.floats(0, 1, exclude_max=True),
    )
    def test_never_above_the_cost(
        self,
        function: costs.CostFunction,
        uptime_us: int,
        period_s: int,
        share: float,
    ) -> None:
        """This holds until the validity of the floor ends."""
        options = CostOptions(period_s)
        least, until_us = costs.LOWER_BOUNDS[function](uptime_us, options)
        self.assertGreater(until_us, uptime_us)
        until_us = min(until_us, uptime_us + 10 * HOUR)
        for later_us in (
            uptime_us,
            uptime_us + int(share * (until_us - uptime_us)),
            until_us - 1,
        ):
            self.assertLessEqual(least, cost(function, later_us, period_s))
