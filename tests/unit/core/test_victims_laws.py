# SPDX-License-Identifier: Apache-2.0

"""Cheapest victims: laws."""

from __future__ import annotations

import dataclasses
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.model import Candidate
from nova_preempt.core.victims import SearchLimits
from nova_preempt.core.victims import cheapest_victims
from nova_preempt.core.victims import lower_bound
from nova_preempt.core.victims import stays_cheapest
from tests.unit.core import support
from tests.unit.core.support import LAW
from tests.unit.core.support import exhaustive
from tests.unit.core.support import frees_enough
from tests.unit.core.support import uuids

#: (candidates, missing, capacity)
Problem = tuple[list[Candidate], dict[str, int], dict[str, int] | None]

ENOUGH = 10**7
#: Each method on its own, and all together.
METHODS = (
    SearchLimits(branch_steps=ENOUGH, dp_labels=0, accept_checks=ENOUGH),
    SearchLimits(branch_steps=0, dp_labels=ENOUGH, accept_checks=ENOUGH),
    SearchLimits(branch_steps=9, dp_labels=ENOUGH, accept_checks=ENOUGH),
    SearchLimits(accept_checks=ENOUGH),
)
SMALL = st.builds(
    SearchLimits,
    branch_steps=st.integers(0, 5),
    dp_labels=st.integers(0, 500),
    accept_checks=st.integers(0, 3),
)


class TestLaws(unittest.TestCase):
    """The exhaustive search is the judge."""

    def best(
        self, problem: Problem, limits: SearchLimits
    ) -> tuple[Candidate, ...] | None:
        """Return the victims, which must be proven the best."""
        candidates, missing, capacity = problem
        found = cheapest_victims(
            candidates, missing, capacity=capacity, limits=limits
        )
        if found is None:
            return None
        self.assertTrue(found.optimal)
        self.assertEqual(sum(v.cost for v in found.victims), found.cost)
        self.assertEqual(sorted(uuids(found.victims)), uuids(found.victims))
        return found.victims

    @LAW
    @hypothesis.given(support.problems())
    def test_every_method_finds_the_best(self, problem: Problem) -> None:
        expected = exhaustive(*problem)
        for limits in METHODS:
            self.assertEqual(expected, self.best(problem, limits), limits)

    @hypothesis.settings(LAW, max_examples=20)
    @hypothesis.given(support.problems(most=12))
    def test_twelve_candidates(self, problem: Problem) -> None:
        expected = exhaustive(*problem)
        for limits in METHODS:
            self.assertEqual(expected, self.best(problem, limits), limits)

    @LAW
    @hypothesis.given(support.problems(), st.data())
    def test_the_cheapest_alone_holds_for_less(
        self, problem: Problem, data: st.DataObject
    ) -> None:
        candidates, missing, capacity = problem
        hypothesis.assume(candidates and any(missing.values()))
        # The first frees enough, and costs less than all others.
        first, *others = candidates
        candidates = [
            dataclasses.replace(
                first, resources={**first.resources, **missing}, cost=0
            ),
            *(dataclasses.replace(o, cost=o.cost + 1) for o in others),
        ]
        found = cheapest_victims(candidates, missing, capacity=capacity)
        assert found is not None
        self.assertTrue(stays_cheapest(candidates, found))
        less = {
            name: data.draw(st.integers(0, amount))
            for name, amount in missing.items()
        }
        if any(less.values()):
            self.assertEqual(
                found.victims, exhaustive(candidates, less, capacity)
            )

    @LAW
    @hypothesis.given(support.problems())
    def test_other_sets_are_not_better(self, problem: Problem) -> None:
        candidates, missing, capacity = problem
        equal = [dataclasses.replace(c, cost=7) for c in candidates]
        found = cheapest_victims(equal, missing, capacity=capacity)
        if found is not None and len(equal) > 1 and found.victims:
            self.assertFalse(stays_cheapest(equal, found))

    @LAW
    @hypothesis.given(support.problems(), SMALL, st.data())
    def test_order_does_not_matter(
        self, problem: Problem, limits: SearchLimits, data: st.DataObject
    ) -> None:
        candidates, missing, capacity = problem
        shuffled = data.draw(st.permutations(candidates))
        backwards = dict(reversed(missing.items()))
        for given in (limits, SearchLimits()):
            self.assertEqual(
                cheapest_victims(
                    candidates, missing, capacity=capacity, limits=given
                ),
                cheapest_victims(
                    shuffled, backwards, capacity=capacity, limits=given
                ),
            )

    @LAW
    @hypothesis.given(support.problems(), SMALL)
    def test_no_victim_can_be_spared(
        self, problem: Problem, limits: SearchLimits
    ) -> None:
        """However small the budget: enough, minimal, and honest."""
        candidates, missing, capacity = problem
        expected = exhaustive(candidates, missing, capacity)
        found = cheapest_victims(
            candidates, missing, capacity=capacity, limits=limits
        )
        if found is None or expected is None:
            self.assertEqual(expected, found)
            return
        self.assertTrue(frees_enough(found.victims, missing))
        for victim in found.victims:
            others = [v for v in found.victims if v is not victim]
            self.assertFalse(frees_enough(others, missing))
        if found.optimal:
            self.assertEqual(expected, found.victims)

    @LAW
    @hypothesis.given(support.problems(), SMALL)
    def test_steps_are_bounded(
        self, problem: Problem, limits: SearchLimits
    ) -> None:
        """A step may exceed the limit by the work it has begun."""
        candidates, missing, capacity = problem
        found = cheapest_victims(
            candidates, missing, capacity=capacity, limits=limits
        )
        if found is not None:
            slack = 64 + 8 * len(candidates)
            self.assertLessEqual(
                found.steps, limits.branch_steps + limits.dp_labels + slack
            )

    @LAW
    @hypothesis.given(support.problems(), st.data())
    def test_more_room_never_costs_more(
        self, problem: Problem, data: st.DataObject
    ) -> None:
        candidates, missing, capacity = problem
        less = {
            rc: data.draw(st.integers(0, amount))
            for rc, amount in missing.items()
        }
        tight = cheapest_victims(candidates, missing, capacity=capacity)
        roomy = cheapest_victims(candidates, less, capacity=capacity)
        if tight is not None:
            assert roomy is not None
            self.assertLessEqual(roomy.cost, tight.cost)

    @LAW
    @hypothesis.given(support.problems())
    def test_one_more_candidate_never_costs_more(
        self, problem: Problem
    ) -> None:
        candidates, missing, capacity = problem
        all_of_them = cheapest_victims(candidates, missing, capacity=capacity)
        fewer = cheapest_victims(candidates[1:], missing, capacity=capacity)
        if fewer is not None:
            assert all_of_them is not None
            self.assertLessEqual(all_of_them.cost, fewer.cost)

    @LAW
    @hypothesis.given(support.problems())
    def test_lower_bound(self, problem: Problem) -> None:
        candidates, missing, capacity = problem
        bound = lower_bound(candidates, missing)
        found = cheapest_victims(candidates, missing, capacity=capacity)
        if bound is None or found is None:
            self.assertEqual(found, bound)
        else:
            self.assertGreaterEqual(bound, 0)
            self.assertLessEqual(bound, found.cost)

    @LAW
    @hypothesis.given(
        support.problems(most=7), st.integers(0, 2**32), st.floats(0, 1)
    )
    def test_accept(self, problem: Problem, seed: int, share: float) -> None:
        """The acceptance test may be arbitrary."""
        candidates, missing, capacity = problem

        def accept(victims: tuple[Candidate, ...]) -> bool:
            names = " ".join(uuids(victims))
            return random.Random(f"{seed} {names}").random() < share

        expected = exhaustive(candidates, missing, capacity, accept)
        for limits in METHODS:
            found = cheapest_victims(
                candidates,
                missing,
                capacity=capacity,
                accept=accept,
                limits=limits,
            )
            if found is None or expected is None:
                self.assertEqual(expected, found)
            elif found.optimal:
                self.assertEqual(expected, found.victims)
            else:
                self.assertGreater(found.steps, 0)
                self.assertTrue(accept(found.victims))

    @LAW
    @hypothesis.given(
        support.problems(), SMALL, st.sets(st.integers(0, 99), max_size=2)
    )
    def test_no_victim_can_be_spared_for_accept(
        self, problem: Problem, limits: SearchLimits, wanted: set[int]
    ) -> None:
        """However small the budget, a wish that can be met is met."""
        candidates, missing, capacity = problem
        names = {f"{number:02}" for number in wanted}

        def accept(victims: tuple[Candidate, ...]) -> bool:
            return names <= set(uuids(victims))

        found = cheapest_victims(
            candidates,
            missing,
            capacity=capacity,
            accept=accept,
            limits=limits,
        )
        possible = frees_enough(candidates, missing) and accept(
            tuple(candidates)
        )
        self.assertEqual(possible, found is not None)
        if found is None:
            return
        self.assertTrue(frees_enough(found.victims, missing))
        self.assertTrue(accept(found.victims))
        for victim in found.victims:
            others = tuple(v for v in found.victims if v is not victim)
            self.assertFalse(frees_enough(others, missing) and accept(others))


class TestLarge(unittest.TestCase):
    """More than can be tried: the methods must agree with each other."""

    def problem(self, seed: int, kind: int) -> Problem:
        """Return a host with 40 candidates, half of which have to go."""
        source = random.Random(seed)
        flavors = [
            {rc: source.randint(0, 9) for rc in ("A", "B", "C", "D")}
            for _ in range((6, 40)[kind % 2])
        ]
        candidates = []
        for number in range(40):
            resources = flavors[number % len(flavors)]
            size = sum(resources.values())
            cost = (source.randint(1, 999), size * 50 + source.randint(0, 9))
            candidates.append(
                Candidate(f"{number:02}", resources, cost[kind // 2])
            )
        missing = {
            rc: support.total(candidates, rc) * source.randint(10, 50) // 100
            for rc in ("A", "B", "C", "D")
        }
        return candidates, missing, dict.fromkeys("ABCD", 200)

    def test_methods_agree(self) -> None:
        for kind in range(4):
            for seed in range(6):
                candidates, missing, capacity = self.problem(seed, kind)
                with self.subTest(kind=kind, seed=seed):
                    results = [
                        cheapest_victims(
                            candidates,
                            missing,
                            capacity=capacity,
                            limits=limits,
                        )
                        for limits in (
                            SearchLimits(branch_steps=0),
                            SearchLimits(dp_labels=2_000_000),
                        )
                    ]
                    first, second = results
                    assert first is not None and second is not None
                    self.assertTrue(second.optimal)
                    self.assertLessEqual(second.cost, first.cost)
                    if first.optimal:
                        self.assertEqual(first.victims, second.victims)

    def test_branch_and_bound_agrees(self) -> None:
        """This holds for searches that end within the limit."""
        for seed in range(6):
            candidates, missing, capacity = self.problem(seed, 0)
            with self.subTest(seed=seed):
                branch, labels = (
                    cheapest_victims(
                        candidates, missing, capacity=capacity, limits=limits
                    )
                    for limits in (
                        SearchLimits(branch_steps=100_000, dp_labels=0),
                        SearchLimits(branch_steps=0),
                    )
                )
                assert branch is not None and labels is not None
                self.assertTrue(branch.optimal and labels.optimal)
                self.assertEqual(branch.victims, labels.victims)

    def test_tiny_budgets(self) -> None:
        """The answer may be worse, but is minimal; more is not worse."""
        candidates, missing, capacity = self.problem(0, 3)
        costs = []
        for labels in (0, 100, 3_000, 30_000, 300_000):
            found = cheapest_victims(
                candidates,
                missing,
                capacity=capacity,
                limits=SearchLimits(branch_steps=10, dp_labels=labels),
            )
            assert found is not None
            costs.append(found.cost)
            for victim in found.victims:
                others = [v for v in found.victims if v is not victim]
                self.assertFalse(frees_enough(others, missing))
        self.assertEqual(sorted(costs, reverse=True), costs)

    def test_more_than_a_host_holds(self) -> None:
        candidates = [
            Candidate(f"{n:04}", {"A": 1 + n % 3, "B": 1 + n % 5}, n)
            for n in range(600)
        ]
        found = cheapest_victims(candidates, {"A": 90, "B": 150})
        assert found is not None
        self.assertTrue(frees_enough(found.victims, {"A": 90, "B": 150}))
