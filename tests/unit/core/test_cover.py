# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The parts of the search."""

from __future__ import annotations

import itertools
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.cover import dual
from nova_preempt.core.cover.keys import make_keys
from nova_preempt.core.cover.labels import search
from nova_preempt.core.cover.reduced import reduce
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
        need: tuple[int, int],
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
        prices = dual.multipliers(
            [float(key) for key, _ in items], [row for _, row in items], need
        )
        self.assertGreaterEqual(min(prices), 0.0)
        found = self.value(prices, items, need)
        ticks = [n * n / 10 for n in range(24)]
        for first, second in itertools.product(ticks, ticks):
            other = self.value([first, second], items, need)
            self.assertLessEqual(other, found + 1e-6)

    def test_nothing_mends_a_row(self) -> None:
        """Not even all items cover: the prices are still prices."""
        prices = dual.multipliers([1.0, 2.0], [(1,), (1,)], (3,))
        self.assertGreaterEqual(min(prices), 0.0)

    def test_free_items(self) -> None:
        self.assertEqual([0.0], dual.multipliers([0.0], [(5,)], (3,)))


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
    """Wide searches, beyond what the exhaustive one could check."""

    def items(
        self, seed: int, count: int, spread: int
    ) -> list[tuple[int, tuple[int, ...]]]:
        source = random.Random(seed)
        found = []
        for number in range(count):
            row = tuple(source.randint(1, spread) for _ in range(3))
            # All but proportional to size, which is what makes it hard.
            key = (sum(row) * 1000 + source.randint(0, 99)) * 64 + number
            found.append((key, row))
        return found

    def solve(
        self, seed: int, count: int, spread: int, labels: int
    ) -> tuple[int, bool, int]:
        items = self.items(seed, count, spread)
        need = tuple(sum(row[k] for _, row in items) // 3 for k in range(3))
        items = [(key, tuple(map(min, row, need))) for key, row in items]
        problem = reduce(items, need, 0)
        return search(problem, problem.rounded(), labels)

    def test_every_budget(self) -> None:
        """More labels never make it worse, and the proof holds."""
        for seed, count, spread in ((1, 30, 99), (2, 40, 5), (3, 50, 2)):
            with self.subTest(seed=seed):
                results = [
                    self.solve(seed, count, spread, labels)
                    for labels in (1, 300, 6_000, 40_000, 2_000_000)
                ]
                *_, (best, proven, _) = results
                self.assertTrue(proven)
                for key, claimed, _ in results:
                    self.assertGreaterEqual(key, best)
                    if claimed:
                        self.assertEqual(best, key)

    def test_work_is_bounded(self) -> None:
        for seed, count, spread in ((1, 60, 99), (2, 90, 5), (3, 90, 2)):
            for labels in (1, 300, 6_000, 40_000):
                with self.subTest(seed=seed, labels=labels):
                    _, _, used = self.solve(seed, count, spread, labels)
                    self.assertLess(used, labels * 3 // 2 + 1_000)
