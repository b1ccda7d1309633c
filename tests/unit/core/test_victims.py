# SPDX-License-Identifier: Apache-2.0

"""Cheapest victims: cases."""

from __future__ import annotations

from collections.abc import Callable
import unittest

from nova_preempt.core.model import Candidate, VictimSet
from nova_preempt.core.victims import SearchLimits
from nova_preempt.core.victims import cheapest_victims
from nova_preempt.core.victims import lower_bound
from tests.unit.core.support import candidate
from tests.unit.core.support import uuids


def chosen(
    candidates: list[Candidate], capacity: dict[str, int], **missing: int
) -> list[str]:
    """Return the uuids of the victims."""
    found = cheapest_victims(candidates, missing, capacity=capacity)
    assert found is not None and found.optimal
    return uuids(found.victims)


class TestOrder(unittest.TestCase):
    """Cost, then number, then surplus, then uuids."""

    def test_cost(self) -> None:
        pool = [candidate("a", 5, VCPU=2), candidate("b", 4, VCPU=4)]
        self.assertEqual(["b"], chosen(pool, {"VCPU": 8}, VCPU=2))

    def test_003_e(self) -> None:
        """10 + 12 for two small ones, 15 for the medium one; whoever takes
        the cheapest first takes the two."""
        pool = [
            candidate("S10", 10, VCPU=1, MEMORY_MB=2000),
            candidate("S12", 12, VCPU=1, MEMORY_MB=2000),
            candidate("M15", 15, VCPU=2, MEMORY_MB=4000),
        ]
        found = cheapest_victims(pool, {"VCPU": 2, "MEMORY_MB": 4000})
        assert found is not None
        self.assertEqual((["M15"], 15), (uuids(found.victims), found.cost))

    def test_number(self) -> None:
        pool = [
            candidate("a", 2, VCPU=1),
            candidate("b", 2, VCPU=1),
            candidate("c", 4, VCPU=8),
        ]
        self.assertEqual(["c"], chosen(pool, {"VCPU": 8}, VCPU=2))

    def test_number_of_free_ones(self) -> None:
        pool = [candidate(uuid, 0, VCPU=1) for uuid in "abcd"]
        pool.append(candidate("e", 0, VCPU=4))
        self.assertEqual(["e"], chosen(pool, {"VCPU": 8}, VCPU=3))

    def test_surplus(self) -> None:
        pool = [candidate("a", 4, VCPU=4), candidate("b", 4, VCPU=3)]
        self.assertEqual(["b"], chosen(pool, {"VCPU": 8}, VCPU=2))

    def test_surplus_in_classes_that_are_not_missing(self) -> None:
        """Both free the same of the shortfall, but one is larger."""
        pool = [
            candidate("a", 4, VCPU=2, MEMORY_MB=10),
            candidate("b", 4, VCPU=2, MEMORY_MB=9),
        ]
        self.assertEqual(["a"], chosen(pool, {"VCPU": 8}, VCPU=2))
        self.assertEqual(
            ["b"], chosen(pool, {"VCPU": 8, "MEMORY_MB": 100}, VCPU=2)
        )

    def test_surplus_as_a_share(self) -> None:
        """10 of 100 weighs less than 1 of 8."""
        pool = [
            candidate("a", 4, VCPU=3, MEMORY_MB=10),
            candidate("b", 4, VCPU=2, MEMORY_MB=20),
        ]
        capacity = {"VCPU": 8, "MEMORY_MB": 100}
        self.assertEqual(["b"], chosen(pool, capacity, VCPU=2))

    def test_class_without_capacity(self) -> None:
        pool = [candidate("a", 4, VCPU=2, X=9), candidate("b", 4, VCPU=2)]
        self.assertEqual(["a"], chosen(pool, {"VCPU": 8, "X": 0}, VCPU=2))

    def test_uuids(self) -> None:
        pool = [candidate(uuid, 4, VCPU=1) for uuid in "dbca"]
        self.assertEqual(["a", "b"], chosen(pool, {"VCPU": 8}, VCPU=2))

    def test_uuids_of_different_ones(self) -> None:
        """{a, d} is before {b, c}."""
        pool = [
            candidate("a", 1, VCPU=1, DISK_GB=2),
            candidate("b", 1, VCPU=2),
            candidate("c", 1, DISK_GB=2, VCPU=1),
            candidate("d", 1, VCPU=2),
        ]
        self.assertEqual(
            ["a", "b"], chosen(pool, {"VCPU": 8}, VCPU=3, DISK_GB=2)
        )


class TestEdges(unittest.TestCase):
    """The smallest problems."""

    def test_nothing_missing(self) -> None:
        nothing = VictimSet((), 0, optimal=True, steps=0)
        pool = [candidate("a", 0, VCPU=1)]
        for missing in ({}, {"VCPU": 0}, {"VCPU": -3}):
            self.assertEqual(nothing, cheapest_victims(pool, missing))
            self.assertEqual(0, lower_bound(pool, missing))

    def test_not_enough(self) -> None:
        pool = [candidate("a", 0, VCPU=1)]
        for candidates, missing in (
            ([], {"VCPU": 1}),
            (pool, {"VCPU": 2}),
            (pool, {"VCPU": 1, "VGPU": 1}),
        ):
            self.assertIsNone(cheapest_victims(candidates, missing))
            self.assertIsNone(lower_bound(candidates, missing))

    def test_all_are_needed(self) -> None:
        pool = [candidate("b", 2, VCPU=1), candidate("a", 3, VGPU=1)]
        found = cheapest_victims(pool, {"VCPU": 1, "VGPU": 1})
        assert found is not None
        self.assertEqual(
            (["a", "b"], 5, True),
            (uuids(found.victims), found.cost, found.optimal),
        )

    def test_same_uuid(self) -> None:
        pool = [candidate("a", 0, VCPU=1)] * 2
        with self.assertRaisesRegex(ValueError, "same uuid"):
            cheapest_victims(pool, {"VCPU": 1})

    def test_candidates_may_come_one_by_one(self) -> None:
        pool = [candidate("a", 3, VCPU=1)]
        found = cheapest_victims(iter(pool), {"VCPU": 1})
        assert found is not None
        self.assertEqual(3, found.cost)
        self.assertEqual(3, lower_bound(iter(pool), {"VCPU": 1}))

    def test_huge_costs(self) -> None:
        """The costs differ by less than floats can represent."""
        pool = [
            candidate("a", 10**30 + 1, VCPU=1),
            candidate("b", 10**30, VCPU=1),
        ]
        found = cheapest_victims(pool, {"VCPU": 1})
        assert found is not None
        self.assertEqual(10**30, found.cost)

    def test_bound_of_costs_that_no_float_holds(self) -> None:
        pool = [
            candidate("a", 3 * 10**400, VCPU=3),
            candidate("b", 2 * 10**400, VCPU=1),
        ]
        self.assertEqual(2 * 10**400, lower_bound(pool, {"VCPU": 1}))
        self.assertEqual(5 * 10**400, lower_bound(pool, {"VCPU": 4}))

    def test_huge_amounts(self) -> None:
        pool = [
            candidate("a", 3, CUSTOM_B=2**60, VCPU=1),
            candidate("b", 2, CUSTOM_B=2**60 - 1, VCPU=1),
            candidate("c", 2, CUSTOM_B=1, VCPU=1),
        ]
        found = cheapest_victims(pool, {"CUSTOM_B": 2**60, "VCPU": 1})
        assert found is not None
        self.assertEqual(["a"], uuids(found.victims))

    def test_divisible_bound(self) -> None:
        """3 of 2 at 3 each: four and a half, so at least 5."""
        pool = [candidate(uuid, 3, VCPU=2) for uuid in "abc"]
        self.assertEqual(5, lower_bound(pool, {"VCPU": 3}))

    def test_bound_of_the_worst_class(self) -> None:
        pool = [
            candidate("a", 1, VCPU=4),
            candidate("b", 9, VGPU=1),
            candidate("c", 8, VGPU=1),
        ]
        self.assertEqual(8, lower_bound(pool, {"VCPU": 4, "VGPU": 1}))


class TestAccept(unittest.TestCase):
    """A further test of a whole set."""

    def setUp(self) -> None:
        self.pool = [
            candidate("a", 1, VCPU=1),
            candidate("b", 2, VCPU=1),
            candidate("c", 4, VCPU=1),
            candidate("d", 8),
        ]
        self.offers: list[list[str]] = []

    def search(
        self,
        test: Callable[[list[str]], bool],
        checks: int = 32,
        vcpus: int = 1,
    ) -> VictimSet | None:
        """Return the best set that passes the test; keep what it saw."""

        def accept(victims: tuple[Candidate, ...]) -> bool:
            self.offers.append(uuids(victims))
            return test(self.offers[-1])

        return cheapest_victims(
            self.pool,
            {"VCPU": vcpus},
            accept=accept,
            limits=SearchLimits(accept_checks=checks),
        )

    def found(self, victim_set: VictimSet | None) -> tuple[str, int, bool]:
        assert victim_set is not None
        names = "".join(uuids(victim_set.victims))
        return names, victim_set.cost, victim_set.optimal

    def test_the_best_is_accepted(self) -> None:
        found = self.search(lambda names: True)
        self.assertEqual(("a", 1, True), self.found(found))
        self.assertEqual([["a"]], self.offers)

    def test_offers_ascend(self) -> None:
        """Each sufficient set is offered once, in order of cost."""
        found = self.search(lambda names: len(names) == 4)
        self.assertEqual(("abcd", 15, True), self.found(found))
        self.assertEqual(
            [
                "a", "b", "ab", "c", "ac", "bc", "abc",
                "ad", "bd", "abd", "cd", "acd", "bcd", "abcd",
            ],
            ["".join(names) for names in self.offers],
        )  # fmt: skip

    def test_a_victim_that_frees_nothing_may_be_needed(self) -> None:
        found = self.search(lambda names: "d" in names)
        self.assertEqual(("ad", 9, True), self.found(found))

    def test_nothing_missing(self) -> None:
        """Even then the set has to be accepted."""
        found = self.search(lambda names: True, vcpus=0)
        self.assertEqual(("", 0, True), self.found(found))
        found = self.search(lambda names: "d" in names, vcpus=0)
        self.assertEqual(("d", 8, True), self.found(found))

    def test_all_are_refused(self) -> None:
        self.assertIsNone(self.search(lambda names: False))
        self.assertIsNone(self.search(lambda names: False, checks=2))

    def test_not_enough(self) -> None:
        self.assertIsNone(self.search(lambda names: True, vcpus=4))
        self.assertEqual([], self.offers)

    def test_gives_back_from_all(self) -> None:
        """After the last offer the most expensive are spared first."""
        found = self.search(lambda names: "b" in names, checks=1)
        self.assertEqual(("b", 2, False), self.found(found))
        self.assertEqual(
            ["a", "abcd", "abc", "ab", "a", "b"],
            ["".join(names) for names in self.offers],
        )

    def test_no_offers(self) -> None:
        found = self.search(lambda names: True, checks=0)
        self.assertEqual(("a", 1, False), self.found(found))

    def test_reprieves_are_repeated_until_none_is_possible(self) -> None:
        """d can only be spared after c."""
        found = self.search(
            lambda names: names in (list("abcd"), list("abd"), list("ab")),
            checks=1,
        )
        self.assertEqual(("ab", 3, False), self.found(found))

    def test_budget_is_shared(self) -> None:
        """However many searches a test leads to, the work is bounded."""
        pool = [
            candidate(
                f"{n:02}", 90 + n * 7 % 11, A=10 + n * 3 % 7, B=10 + n * 5 % 9
            )
            for n in range(40)
        ]
        found = cheapest_victims(
            pool,
            {"A": 200, "B": 200},
            accept=lambda victims: len(victims) > 30,
            limits=SearchLimits(branch_steps=50, dp_labels=500),
        )
        assert found is not None
        self.assertFalse(found.optimal)
        self.assertEqual(31, len(found.victims))
        self.assertLess(found.steps, 20_000)
