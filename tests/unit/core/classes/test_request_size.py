# SPDX-License-Identifier: Apache-2.0

"""Cores, hosts and copies by class of service."""

from __future__ import annotations

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.classes import request_size
from nova_preempt.core.classes.request_size import CoreBounds
from nova_preempt.core.classes.request_size import ServiceLevel
from tests.unit.core.support import LAW


class TestBounds(unittest.TestCase):
    def of(self, smallest: int) -> list[tuple[int, int]]:
        found = request_size.bounds(smallest)
        return [
            (found[service].least,
             found[service].most) for service in ServiceLevel
        ]

    def test_000_b_thirds_of_the_smallest_host(self) -> None:
        for smallest, expected in (
            (3, [(1, 1), (2, 2), (3, 3)]),
            (4, [(1, 1), (2, 2), (3, 4)]),
            (8, [(1, 2), (3, 5), (6, 8)]),
            (9, [(1, 3), (4, 6), (7, 9)]),
            (16, [(1, 5), (6, 10), (11, 16)]),
            (32, [(1, 10), (11, 21), (22, 32)]),
        ):
            self.assertEqual(expected, self.of(smallest), smallest)

    def test_000_c_a_host_without_three_thirds(self) -> None:
        self.assertEqual([(1, 1)] * 3, self.of(1))
        self.assertEqual([(1, 1), (2, 2), (2, 2)], self.of(2))

    def test_a_host_without_cores(self) -> None:
        with self.assertRaisesRegex(ValueError, "smallest host has 0 cores"):
            request_size.bounds(0)

    @LAW
    @hypothesis.given(st.integers(3, 10**6))
    def test_the_better_service_never_gets_less(self, smallest: int) -> None:
        low, middle, top = self.of(smallest)
        self.assertEqual((1, smallest), (low[0], top[1]))
        self.assertEqual((low[1] + 1, middle[1] + 1), (middle[0], top[0]))
        for least, most in (low, middle, top):
            self.assertLessEqual(least, most)


    def test_clamp(self) -> None:
        self.assertEqual([2, 3, 4],
                         [CoreBounds(2, 4).clamp(n) for n in (1, 3, 9)])


class TestCores(unittest.TestCase):
    def test_a_share_is_rounded_down_and_cut_to_its_bounds(self) -> None:
        limits = request_size.bounds(32)
        for priority, of_all, idle, expected in (
            (3, 6, 63, 31),
            (3, 6, 21, 22),
            (3, 3, 99, 32),
            (2, 6, 45, 15),
            (1, 10, 55, 5),
            (1, 10, 3, 1),
        ):
            self.assertEqual(
                expected, request_size.cores(priority, of_all, idle, limits)
            )

    def test_the_largest_flavor_that_is_not_too_large(self) -> None:
        ladder = {"web.1": 1, "web.4": 4, "also.4": 4, "web.8": 8}
        for most, expected in (
            (0, None), (1, "web.1"), (3, "web.1"), (7, "also.4"), (9, "web.8")
        ):
            self.assertEqual(expected, request_size.rung(ladder, most),
                             most)


class TestCopies(unittest.TestCase):
    def test_as_many_as_the_redundancy_says(self) -> None:
        self.assertEqual([1, 2, 3], [
            request_size.COPIES[each] for each in ServiceLevel])


if __name__ == "__main__":
    unittest.main()
