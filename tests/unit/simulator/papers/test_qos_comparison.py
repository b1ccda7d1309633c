# SPDX-License-Identifier: Apache-2.0
"""Figures of how well promises were kept."""

from __future__ import annotations

import fractions
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.simulator.papers import qos_comparison
from nova_preempt.simulator.papers import qos_experiment
from tests.unit.core.support import LAW

Fraction = fractions.Fraction


class TestGini(unittest.TestCase):
    def test_cases(self) -> None:
        for values, expected in (
            ([], 0),
            ([0, 0], 0),
            ([5, 5, 5], 0),
            ([0, 0, 0, 1], Fraction(3, 4)),
            ([1, 3], Fraction(1, 4)),
            ([Fraction(1, 2), 0], Fraction(1, 2)),
        ):
            self.assertEqual(
                expected, qos_experiment.gini(list(map(Fraction, values)))
            )

    @LAW
    @hypothesis.given(st.lists(st.fractions(0, 1), min_size=1, max_size=9))
    def test_as_the_mean_difference_of_all_pairs(
        self, values: list[Fraction]
    ) -> None:
        total = sum(values)
        differences = sum(abs(x - y) for x in values for y in values)
        expected = (
            differences / (2 * len(values) * total) if total else 0
        )
        self.assertEqual(expected, qos_experiment.gini(values))


class TestPromises(unittest.TestCase):
    def test_kept_and_broken(self) -> None:
        found = [Fraction(n, 10) for n in (9, 7, 10, 8)]
        promised = Fraction(9, 10)
        self.assertEqual(
            Fraction(1, 2), qos_comparison.fulfilment(found, promised)
        )
        self.assertEqual(
            [Fraction(1, 10), Fraction(1, 5)],
            sorted(qos_comparison.deficits(found, promised)),
        )
        self.assertEqual(1, qos_comparison.fulfilment([], promised))


if __name__ == "__main__":
    unittest.main()
