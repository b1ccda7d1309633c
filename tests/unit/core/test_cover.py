# SPDX-License-Identifier: Apache-2.0

"""Methods of the cover search."""

from __future__ import annotations

import itertools
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.cover import dual_bound
from nova_preempt.core.cover.candidate_keys import make_keys
from nova_preempt.core.cover.cheapest_cover import branch
from nova_preempt.core.cover.label_search import search
from nova_preempt.core.cover.problem_reduction import ReducedProblem
from nova_preempt.core.cover.problem_reduction import reduce
from nova_preempt.core.model import Candidate
from tests.unit.core import support
from tests.unit.core.support import LAW

#: (keys, rows of two classes, need), all items together cover
COVERS = st.lists(
    st.tuples(
        st.integers(1, 50), st.tuples(st.integers(0, 9), st.integers(0, 9))
    ),
    min_size=1,
    max_size=8,
).filter(lambda items: all(sum(r[k] for _, r in items) for k in (0, 1)))


class TestKeys(unittest.TestCase):
    """Sums of keys are the order of sets."""

    @LAW
    @hypothesis.given(support.problems(most=6))
    def test_sums(
        self,
        problem: tuple[list[Candidate], dict[str, int], dict[str, int] | None],
    ) -> None:
        candidates, missing, capacity = problem
        pool = sorted(candidates, key=lambda each: each.uuid)
        keys = make_keys(pool, missing, capacity)
        indexes = range(len(pool))
        sums = {
            chosen: sum(keys.keys[i] for i in chosen)
            for count in range(len(pool) + 1)
            for chosen in itertools.combinations(indexes, count)
        }
        for chosen, key in sums.items():
            self.assertEqual(list(chosen), keys.decode(key))
        ranked = sorted(sums, key=sums.__getitem__)
        expected = sorted(
            sums,
            key=lambda chosen: (
                sum(pool[i].cost for i in chosen),
                len(chosen),
                sums[chosen] >> keys.low,  # what is left is the surplus
                chosen,
            ),
        )
        self.assertEqual(expected, ranked)


class TestDual(unittest.TestCase):
    """Good multipliers; any would be safe."""

    def value(
        self,
        prices: list[float],
        items: list[tuple[int, tuple[int, int]]],
        need: tuple[int, ...],
    ) -> float:
        """Return the lower bound that the prices give."""
        return sum(p * d for p, d in zip(prices, need, strict=True)) + sum(
            min(
                0.0, key - sum(p * a for p, a in zip(prices, row, strict=True))
            )
            for key, row in items
        )

    @LAW
    @hypothesis.given(COVERS, st.data())
    def test_no_grid_point_is_better(
        self,
        items: list[tuple[int, tuple[int, int]]],
        data: st.DataObject,
    ) -> None:
        """The bound is concave in the prices: compare with many others."""
        need = tuple(
            data.draw(st.integers(1, sum(row[k] for _, row in items)))
            for k in (0, 1)
        )
        prices = dual_bound.multipliers(
            [float(key) for key, _ in items], [row for _, row in items], need
        )
        self.assertGreaterEqual(min(prices), 0.0)
        found = self.value(prices, items, need)
        ticks = [n * n / 10 for n in range(24)]
        for first, second in itertools.product(ticks, ticks):
            other = self.value([first, second], items, need)
            self.assertLessEqual(other, found + 1e-6)

    def test_nothing_mends_a_row(self) -> None:
        """The prices stay valid if all items together do not cover."""
        prices = dual_bound.multipliers([1.0, 2.0], [(1,), (1,)], (3,))
        self.assertGreaterEqual(min(prices), 0.0)

    def test_free_items(self) -> None:
        self.assertEqual([0.0], dual_bound.multipliers([0.0], [(5,)], (3,)))


class TestReduced(unittest.TestCase):
    """The problem, reduced, is still the problem."""

    @LAW
    @hypothesis.given(COVERS, st.data())
    def test_bound_and_incumbent(
        self,
        items: list[tuple[int, tuple[int, int]]],
        data: st.DataObject,
    ) -> None:
        need = tuple(
            data.draw(st.integers(1, sum(row[k] for _, row in items)))
            for k in (0, 1)
        )
        clipped = [
            (key, tuple(map(min, row, need))) for key, row in items if any(row)
        ]
        best = min(
            sum(key for key, _ in chosen)
            for count in range(len(clipped) + 1)
            for chosen in itertools.combinations(clipped, count)
            if all(sum(r[k] for _, r in chosen) >= need[k] for k in (0, 1))
        )
        problem = reduce(clipped, need, 0)
        self.assertLessEqual(problem.floor, best)
        self.assertGreaterEqual(problem.rounded(), best)
        self.assertEqual(problem.base, min(problem.base, problem.base + 1))
        for unit in problem.units:
            deviations = [d >> problem.layout.deviation for d in unit]
            self.assertEqual(sorted(deviations), deviations)


class TestLabels(unittest.TestCase):
    """Searches too wide to check exhaustively."""

    def problem(
        self, seed: int, count: int, classes: int, spread: int, ties: bool
    ) -> ReducedProblem:
        """Return a problem with a third of everything needed."""
        source = random.Random(seed)
        items: list[tuple[int, tuple[int, ...]]] = []
        for number in range(count):
            row = tuple(source.randint(1, spread) for _ in range(classes))
            # All but proportional to size, which is what makes it hard; or
            # by one class only, so that many sets differ in their names.
            size = (sum(row) * 1000 + source.randint(0, 99)) * 64 + number
            named = (row[0] << 2 * count) + (1 << number)
            items.append((named if ties else size, row))
        need = tuple(
            sum(row[k] for _, row in items) // 3 for k in range(classes)
        )
        return reduce(
            [(key, tuple(map(min, row, need))) for key, row in items], need, 0
        )

    #: seed, number of items, classes, spread of amounts, ties
    PROBLEMS = (
        (1, 30, 3, 99, False),
        (2, 40, 3, 5, False),
        (2, 50, 3, 3, False),
        (1, 60, 1, 99, False),
        (2, 60, 2, 9, False),
        (1, 40, 3, 3, True),
        (2, 40, 2, 4, True),
        (3, 50, 4, 2, True),
    )

    def test_every_budget(self) -> None:
        """Each result is correct, and more labels find no worse one."""
        for parameters in self.PROBLEMS:
            with self.subTest(parameters=parameters):
                problem = self.problem(*parameters)
                start = problem.rounded()
                *results, (best, proven, _) = [
                    search(problem, start, labels)
                    for labels in (1, 300, 6_000, 40_000, 4_000_000)
                ]
                self.assertTrue(proven)
                for key, claimed, _ in results:
                    self.assertGreaterEqual(key, best)
                    self.assertLessEqual(key, start)
                    if claimed:
                        self.assertEqual(best, key)

    def test_work_is_bounded(self) -> None:
        for parameters in self.PROBLEMS:
            problem = self.problem(*parameters)
            start = problem.rounded()
            for labels in (1, 300, 6_000, 40_000):
                with self.subTest(parameters=parameters, labels=labels):
                    _, _, used = search(problem, start, labels)
                    self.assertLess(used, labels * 3 // 2 + 1_000)

    def test_agrees_with_branch_and_bound(self) -> None:
        for seed in range(8):
            with self.subTest(seed=seed):
                problem = self.problem(seed, 16, 3, 9, seed % 2 == 1)
                start = problem.rounded()
                key, proven, _ = branch(problem, start, 1_000_000)
                self.assertTrue(proven)
                self.assertEqual(
                    (key, True), search(problem, start, 1_000_000)[:2]
                )
