# SPDX-License-Identifier: Apache-2.0

"""Tests of the time to get back to a host."""

from __future__ import annotations

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.classes.availability_margin import Overheads
from nova_preempt.core.classes.availability_margin import smoothed_us
from nova_preempt.core.model import SECOND
from tests.unit.core.support import LAW


class TestOverheads(unittest.TestCase):
    def test_a_minute_until_one_was_measured(self) -> None:
        self.assertEqual(60 * SECOND, Overheads().of("any"))
        self.assertEqual(7, Overheads(default_us=7).of("any"))

    def test_each_kind_has_its_own(self) -> None:
        found = Overheads()
        for kind, took_us in (("a", 10), ("b", 99), ("a", 20), ("a", 23)):
            found = found.seen(kind, took_us)
        # 10, 13, 16.
        self.assertEqual(16, found.of("a"))
        self.assertEqual(99, found.of("b"))

    def test_less_than_no_time_tells_nothing(self) -> None:
        found = Overheads().seen("a", 5)
        self.assertEqual(found, found.seen("a", -1))

    @LAW
    @hypothesis.given(
        st.integers(0, 10**12), st.integers(0, 10**12)
    )
    def test_the_mean_lies_between(
        self, mean_us: int, sample_us: int
    ) -> None:
        low, high = sorted((mean_us, sample_us))
        self.assertLessEqual(low, smoothed_us(mean_us, sample_us))
        self.assertLessEqual(smoothed_us(mean_us, sample_us), high)


if __name__ == "__main__":
    unittest.main()
