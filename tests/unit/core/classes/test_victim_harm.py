# SPDX-License-Identifier: Apache-2.0

"""Order of victims by the harm to promises."""

from __future__ import annotations

import dataclasses
import fractions
import itertools
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import victims
from nova_preempt.core.classes import victim_harm
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.model import SECOND, Candidate
from tests.unit.core.classes.support import CLASSES
from tests.unit.core.classes.support import seconds
from tests.unit.core.classes.support import standing
from tests.unit.core.support import LAW
from tests.unit.core.support import frees_enough

#: A margin in seconds is Q less the safety margin.
SAFETY_S = 30


def unfold(folded: int, count: int) -> tuple[int, ...]:
    """Return the levels of a folded cost or of a sum."""
    mask = (1 << victim_harm.LEVEL_BITS) - 1
    return tuple(
        folded >> victim_harm.LEVEL_BITS * number & mask
        for number in reversed(range(count))
    )


def of_margin(name: str, margin_s: str | int, uuid: str = "") -> Standing:
    return standing(
        name, fractions.Fraction(margin_s) + SAFETY_S, uuid=uuid
    )


#: 002-C1: the best host first.
HOSTS = (
    ("bronze", "1.52"), ("bronze", "-5.37"), ("bronze", "-13.37"),
    ("silver", "-1"),
)


class TestOrder(unittest.TestCase):
    def test_002_c1_the_least_harm_to_the_most_important(self) -> None:
        found = [of_margin(*host) for host in HOSTS]
        for cost in (
            lambda each: victim_harm.published_cost(CLASSES, [each]),
            lambda each: victim_harm.levels(CLASSES, each),
            lambda each: victim_harm.harm_cost(CLASSES, each),
        ):
            costs = [cost(each) for each in found]
            self.assertEqual(sorted(costs), costs)
            self.assertEqual(4, len(set(costs)))

    def test_002_c1_the_published_figures(self) -> None:
        self.assertEqual(
            [
                (0, 0, 0, "-1.52"),
                (0, 0, "5.37", "5.37"),
                (0, 0, "13.37", "13.37"),
                (0, 1, 0, 1),
            ],
            [
                tuple(
                    value if value == int(value) else str(value)
                    for value in (
                        float(seconds(level))
                        for level in victim_harm.published_cost(
                            CLASSES, [of_margin(*host)]
                        )
                    )
                )
                for host in HOSTS
            ],
        )

    def test_002_c2_no_harm_is_best(self) -> None:
        """The text has reciprocals of empty sums there."""
        harmless = [of_margin("gold", 1), of_margin("bronze", 0)]
        for name in ("gold", "silver", "bronze"):
            harmed = [of_margin(name, "-0.000001")]
            self.assertLess(
                victim_harm.published_cost(CLASSES, harmless),
                victim_harm.published_cost(CLASSES, harmed),
            )
            self.assertLess(
                sum(victim_harm.harm_cost(CLASSES, each) for each in harmless),
                sum(victim_harm.harm_cost(CLASSES, each) for each in harmed),
            )

    def test_many_less_important_victims_before_an_important_one(self) -> None:
        many = [of_margin("bronze", -(10**6))] * 1000
        one = of_margin("silver", "-0.000001")
        self.assertLess(
            sum(victim_harm.harm_cost(CLASSES, each) for each in many),
            victim_harm.harm_cost(CLASSES, one),
        )

    def test_fewer_before_larger_margins(self) -> None:
        one = of_margin("bronze", 1)
        two = [of_margin("bronze", 10**6)] * 2
        self.assertLess(
            victim_harm.harm_cost(CLASSES, one),
            sum(victim_harm.harm_cost(CLASSES, each) for each in two),
        )

    def test_beyond_the_horizon_all_margins_are_the_same(self) -> None:
        far_s = 2 * victim_harm.HORIZON_US // SECOND
        self.assertEqual(
            (0, 0, 0, 0), victim_harm.levels(CLASSES, of_margin("gold", far_s))
        )
        self.assertEqual(
            (0, victim_harm.HORIZON_US, 0, 2 * victim_harm.HORIZON_US),
            victim_harm.levels(CLASSES, of_margin("silver", -far_s)),
        )


MARGINS = st.integers(-9, 9) | st.integers(-(10**8), 10**8)


@st.composite
def hosts(
    draw: st.DrawFn,
) -> tuple[list[tuple[Standing, dict[str, int]]], dict[str, int]]:
    """Draw candidates, their freed amounts and the shortfall."""
    found = [
        (
            of_margin(name, margin_s, uuid=str(number)),
            {"VCPU": vcpus, "MEMORY_MB": memory_mb},
        )
        for number, (name, margin_s, vcpus, memory_mb) in enumerate(
            draw(
                st.lists(
                    st.tuples(
                        st.sampled_from(("gold", "silver", "bronze")),
                        MARGINS,
                        st.integers(0, 4),
                        st.integers(0, 4),
                    ),
                    max_size=7,
                )
            )
        )
    ]
    missing = {
        "VCPU": draw(st.integers(-1, 9)),
        "MEMORY_MB": draw(st.integers(0, 9)),
    }
    return found, missing


def candidates(
    found: list[tuple[Standing, dict[str, int]]],
) -> list[Candidate]:
    return [
        Candidate(each.uuid, freed, victim_harm.harm_cost(CLASSES, each))
        for each, freed in found
    ]


class TestVictims(unittest.TestCase):
    @LAW
    @hypothesis.given(hosts())
    def test_the_existing_search_finds_the_best_of_all_sets(
        self,
        host: tuple[list[tuple[Standing, dict[str, int]]], dict[str, int]],
    ) -> None:
        found, missing = host
        by_uuid = {each.uuid: each for each, _ in found}

        def sums(chosen: tuple[Candidate, ...]) -> tuple[int, ...]:
            """Return the sums without merging equal terms."""
            of_each = [victim_harm.levels(CLASSES, by_uuid[c.uuid])
                       for c in chosen]
            return tuple(sum(level) for level in zip(*of_each, strict=True))

        pool = candidates(found)
        expected = min(
            (
                sums(chosen)
                for count in range(1, len(pool) + 1)
                for chosen in itertools.combinations(pool, count)
                if frees_enough(chosen, missing)
            ),
            default=None,
        )
        best = victims.cheapest_victims(pool, missing)
        if all(amount <= 0 for amount in missing.values()):
            expected = ()
        if expected is None or best is None:
            self.assertIs(expected, best)
        else:
            self.assertTrue(best.optimal)
            self.assertEqual(expected, sums(best.victims))
            if expected:
                self.assertEqual(
                    expected, unfold(best.cost, len(CLASSES) + 1)
                )

    @LAW
    @hypothesis.given(hosts(), st.randoms(use_true_random=False))
    def test_no_chosen_victim_can_be_spared(
        self,
        host: tuple[list[tuple[Standing, dict[str, int]]], dict[str, int]],
        chance: object,
    ) -> None:
        found, missing = host
        chosen = victim_harm.reprieve(found, missing)
        best = victims.cheapest_victims(candidates(found), missing)
        self.assertEqual(best is None, chosen is None)
        if chosen is None or best is None:
            return
        freed = {each.uuid: Candidate(each.uuid, amounts, 0)
                 for each, amounts in found}
        self.assertTrue(
            frees_enough([freed[each.uuid] for each in chosen], missing)
        )
        for spared in chosen:
            rest = [freed[each.uuid] for each in chosen if each != spared]
            self.assertFalse(frees_enough(rest, missing))
        chance.shuffle(found)  # type: ignore[attr-defined]
        self.assertEqual(chosen, victim_harm.reprieve(found, missing))
        self.assertLessEqual(
            best.cost,
            sum(victim_harm.harm_cost(CLASSES, each) for each in chosen)
        )

    def test_the_most_precious_are_reprieved_first(self) -> None:
        found = [
            (of_margin("bronze", 50, uuid="b"), {"VCPU": 2}),
            (of_margin("silver", 20, uuid="s"), {"VCPU": 1}),
            (of_margin("silver", -2, uuid="t"), {"VCPU": 1}),
        ]
        for missing, expected in ((1, "b"), (2, "b"), (3, "bs"), (4, "bst")):
            chosen = victim_harm.reprieve(found, {"VCPU": missing})
            assert chosen is not None
            self.assertEqual(
                expected, "".join(each.uuid for each in chosen), missing
            )
        self.assertIsNone(victim_harm.reprieve(found, {"VCPU": 5}))

    def test_the_best_set_may_be_better_than_the_reprieve(self) -> None:
        found = [
            (of_margin("bronze", 50, uuid="b"), {"VCPU": 1}),
            (of_margin("bronze", 40, uuid="c"), {"VCPU": 2}),
            (of_margin("bronze", 30, uuid="d"), {"VCPU": 3}),
        ]
        chosen = victim_harm.reprieve(found, {"VCPU": 3})
        assert chosen is not None
        self.assertEqual(["b", "c"], [each.uuid for each in chosen])
        best = victims.cheapest_victims(candidates(found), {"VCPU": 3})
        assert best is not None
        self.assertEqual(["d"], [each.uuid for each in best.victims])

    def test_sixty_of_mixed_classes_are_settled(self) -> None:
        found = [
            (
                dataclasses.replace(
                    of_margin(
                        ("gold", "silver", "bronze")[number % 3],
                        (number * 7919) % 997 - 300,
                    ),
                    uuid=f"{number:02}",
                ),
                {"VCPU": 1 << number % 4, "MEMORY_MB": 512 << number % 5},
            )
            for number in range(60)
        ]
        best = victims.cheapest_victims(
            candidates(found), {"VCPU": 16, "MEMORY_MB": 32768}
        )
        assert best is not None
        self.assertTrue(best.optimal)


if __name__ == "__main__":
    unittest.main()
