# SPDX-License-Identifier: Apache-2.0

"""PROMETHEE II: cases, laws and published results."""

from __future__ import annotations

import fractions
import math
import random
import unittest
import warnings

import hypothesis
from hypothesis import strategies as st
import numpy

from nova_preempt.core.classes import promethee
from nova_preempt.core.classes.promethee import Alternative
from nova_preempt.core.classes.promethee import Criterion
from tests.unit.core.support import LAW

Fraction = fractions.Fraction

SLA = tuple(
    map(Criterion, ("time", "reputation", "cores", "redundancy"))
)


def flows(
    rows: list[tuple[int, ...]], criteria: tuple[Criterion, ...] = SLA
) -> list[Fraction]:
    """The net flows as published: parts of all that can be won or lost."""
    most = (max(1, len(rows) - 1) * sum(each.weight for each in criteria)
            * math.lcm(*[each.preference for each in criteria]))
    return [Fraction(int(found), most)
            for found in promethee.net_flows(rows, criteria)]


def preference(criterion: Criterion, difference: int) -> Fraction:
    """Return the flows by their definition."""
    part = Fraction(difference, criterion.preference)
    return min(Fraction(1), max(Fraction(0), part))


def naive(
    rows: list[tuple[int, ...]], criteria: tuple[Criterion, ...]
) -> list[Fraction]:
    """Compare all pairs."""
    weights = sum(criterion.weight for criterion in criteria)
    return [
        sum(
            (
                criterion.weight
                * (preference(criterion, x - y) - preference(criterion, y - x))
                for other in rows
                for criterion, x, y in zip(criteria, row, other, strict=True)
            ),
            Fraction(0),
        )
        / (max(1, len(rows) - 1) * weights)
        for row in rows
    ]


@st.composite
def criteria(draw: st.DrawFn) -> tuple[Criterion, ...]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        found.append(
            Criterion(
                str(number),
                draw(st.integers(1, 5) | st.sampled_from((10**12,))),
                draw(st.integers(1, 6) | st.sampled_from((10**9,))),
            )
        )
    return tuple(found)


@st.composite
def problems(
    draw: st.DrawFn,
) -> tuple[list[tuple[int, ...]], tuple[Criterion, ...]]:
    chosen = draw(criteria())
    value = draw(
        st.sampled_from(
            (
                st.integers(1, 3),
                st.integers(-20, 20),
                st.integers(-(2**70), 2**70),
                st.sampled_from((0, 1, 2**62, -(2**62), 2**63, 10**9)),
            )
        )
    )
    rows = draw(
        st.lists(st.tuples(*[value] * len(chosen)), min_size=1, max_size=12)
    )
    return rows, chosen


class TestFlows(unittest.TestCase):
    def test_000_e_the_second_of_three_is_in_the_middle(self) -> None:
        self.assertEqual(
            [Fraction(-1, 2), 0, Fraction(1, 2)],
            flows([(3, 1, 1, 1), (2, 2, 2, 2), (1, 3, 3, 3)]),
        )

    def test_000_f_two_are_equal(self) -> None:
        rows = [(3, 1, 1, 1), (1, 3, 1, 1), (2, 2, 2, 1), (1, 1, 1, 3)]
        self.assertEqual(
            [Fraction(-1, 12), Fraction(-1, 12), Fraction(1, 3),
             Fraction(-1, 6)],
            flows(rows),
        )
        pool = [
            Alternative(uuid, submitted, row)
            for uuid, submitted, row in zip(
                "dcba", (4, 3, 2, 1), rows, strict=True
            )
        ]
        self.assertEqual(
            ["b", "c", "d", "a"],
            [each.uuid for each in promethee.ordered(pool, SLA)],
        )

    def test_000_h_weights_of_the_documentation_of_pymcdm(self) -> None:
        self.assertEqual(
            [Fraction(1, 10), Fraction(-3, 10), Fraction(1, 5)],
            flows(
                [(4, 3, 2), (3, 2, 4), (5, 1, 3)],
                (Criterion("a", 5), Criterion("b", 3), Criterion("c", 2)),
            ),
        )

    def test_a_single_alternative_has_a_flow_of_0(self) -> None:
        self.assertEqual([0], flows([(3, 3, 3, 3)]))
        self.assertEqual([], flows([]))
        self.assertEqual([], promethee.ordered([], SLA))

    def test_a_part_counts_below_the_preference(self) -> None:
        chosen = (Criterion("x", 1, preference=4),)
        for difference, flow in (
            (0, 0), (1, Fraction(1, 4)), (3, Fraction(3, 4)), (4, 1), (99, 1)
        ):
            self.assertEqual([flow, -flow], flows([(difference,), (0,)],
                                                  chosen), difference)

    @LAW
    @hypothesis.given(problems())
    @hypothesis.example(
        ([(0,), (2**63 - 1,)], (Criterion("x", preference=2**63),))
    )
    def test_as_if_all_pairs_were_compared(
        self, problem: tuple[list[tuple[int, ...]], tuple[Criterion, ...]]
    ) -> None:
        rows, chosen = problem
        self.assertEqual(naive(rows, chosen), flows(rows, chosen))

    @LAW
    @hypothesis.given(problems())
    def test_flows_add_up_to_0(
        self, problem: tuple[list[tuple[int, ...]], tuple[Criterion, ...]]
    ) -> None:
        self.assertEqual(0, sum(flows(*problem)))

    def test_as_pymcdm_has_it(self) -> None:
        # Not at the top: it is of use to this test alone.
        from pymcdm.methods import PROMETHEE_II

        chance = random.Random(1)
        for usual in (True, False) * 40:
            count = chance.randint(2, 12)
            chosen = [
                Criterion(str(number), chance.randint(1, 5))
                if usual
                else Criterion(
                    str(number), chance.randint(1, 5), chance.randint(2, 5)
                )
                for number in range(chance.randint(1, 4))
            ]
            rows = [
                tuple(chance.randint(1, 9) for _ in chosen)
                for _ in range(count)
            ]
            weights = numpy.array([each.weight for each in chosen], float)
            other = (
                PROMETHEE_II("usual")
                if usual
                else PROMETHEE_II(
                    "vshape_2",
                    p=[each.preference for each in chosen],
                    q=[0 for _ in chosen],
                )
            )
            with warnings.catch_warnings():
                # It warns of rows that others dominate.
                warnings.simplefilter("ignore")
                expected = other(
                    numpy.array(rows, float),
                    weights / weights.sum(),
                    numpy.ones(len(chosen)),
                )
            for theirs, ours in zip(
                expected, flows(rows, tuple(chosen)), strict=True
            ):
                self.assertAlmostEqual(float(theirs), float(ours), 9)


class TestOrder(unittest.TestCase):
    def test_000_d_by_service_and_first_come_first_served(self) -> None:
        pool = [
            Alternative(f"{99 - number}", number, (3 - number % 3,) * 4)
            for number in range(90)
        ]
        found = promethee.ordered(reversed(pool), SLA)
        self.assertEqual(
            [*range(0, 90, 3), *range(1, 90, 3), *range(2, 90, 3)],
            [each.submitted_us for each in found],
        )
        self.assertEqual(
            [Fraction(60, 89)] * 30 + [0] * 30 + [Fraction(-60, 89)] * 30,
            flows([each.values for each in found]),
        )

    @LAW
    @hypothesis.given(
        st.lists(
            st.builds(
                Alternative,
                st.sampled_from("abcdefgh"),
                st.integers(0, 2) | st.sampled_from((-(2**70), 2**70)),
                st.tuples(*[st.integers(1, 3)] * 4),
            ),
            max_size=8,
            unique_by=lambda each: each.uuid,
        ),
        st.randoms(use_true_random=False),
    )
    def test_by_flow_then_time_then_uuid(
        self, pool: list[Alternative], chance: random.Random
    ) -> None:
        phi = dict(zip([each.uuid for each in pool],
                       flows([each.values for each in pool]), strict=True))
        expected = sorted(
            pool,
            key=lambda each: (-phi[each.uuid], each.submitted_us, each.uuid),
        )
        chance.shuffle(pool)
        self.assertEqual(expected, promethee.ordered(pool, SLA))

    def test_100_000_are_put_in_order(self) -> None:
        """Comparing all pairs would take too long."""
        chance = random.Random(1)
        pool = [
            Alternative(
                str(number),
                number % 1000,
                (*(chance.randint(1, 3) for _ in SLA), chance.randrange(10**6))
            )
            for number in range(100_000)
        ]
        found = promethee.ordered(
            pool, (*SLA, promethee.ageing(SLA, 3600))
        )
        self.assertEqual(set(pool), set(found))


def serve(
    waiting: Criterion, arrivals: list[tuple[int, ...]], length: int
) -> list[int]:
    """Add and serve a request each second; return the served numbers.

    :param length: how many wait all the time; the first is the poorest
    """
    queue: list[tuple[int, tuple[int, ...]]] = [(0, (1, 1, 1, 1))]
    served = []
    for now, row in enumerate(arrivals, start=1):
        queue.append((now, row))
        if len(queue) > length:
            best = promethee.ordered(
                [
                    Alternative(f"{since:06}", since, (*each, now - since))
                    for since, each in queue
                ],
                (*SLA, waiting),
            )[0]
            served.append(best.submitted_us)
            queue = [each for each in queue if each[0] != best.submitted_us]
    return served


class TestAgeing(unittest.TestCase):
    @LAW
    @hypothesis.given(
        st.lists(
            st.tuples(*[st.integers(1, 3)] * 4, st.integers(0, 1000)),
            min_size=2,
            max_size=12,
        ),
        st.integers(1, 400),
    )
    def test_a_longer_wait_by_the_patience_comes_first(
        self, rows: list[tuple[int, ...]], patience_s: int
    ) -> None:
        found = promethee.net_flows(
            rows, (*SLA, promethee.ageing(SLA, patience_s))
        )
        newest = min(row[-1] for row in rows)
        oldest = max(row[-1] for row in rows)
        for one, score in zip(rows, found, strict=True):
            for other, others in zip(rows, found, strict=True):
                if (
                    one[-1] >= other[-1] + patience_s
                    and other[-1] <= newest + patience_s
                    and one[-1] >= oldest - patience_s
                ):
                    self.assertGreater(score, others, (one, other))

    def test_no_request_starves_under_better_ones(
        self,
    ) -> None:
        arrivals = [(3, 3, 3, 3)] * 150
        # 30 wait at a time, so that each of them does for about 30 seconds.
        self.assertNotIn(
            0, serve(Criterion("waiting_s", 5), arrivals, length=30)
        )
        self.assertNotIn(
            0, serve(Criterion("waiting_s", 0), arrivals, length=30)
        )
        served = serve(promethee.ageing(SLA, 40), arrivals, length=30)
        self.assertIn(0, served)
        self.assertLess(served.index(0), 40)

    def test_no_request_starves_in_a_mixed_stream(self) -> None:
        chance = random.Random(3)
        arrivals = [
            tuple(chance.choice((1, 2, 3, 3, 3)) for _ in SLA)
            for _ in range(300)
        ]
        served = serve(promethee.ageing(SLA, 40), arrivals, length=30)
        first = [number for number in range(200) if number not in served]
        self.assertEqual([], first)


class TestRefusals(unittest.TestCase):
    def test_a_criterion_that_cannot_be(self) -> None:
        for arguments, text in (
            ({"weight": -1}, "weight of x is -1; it must be 0 or more"),
            ({"preference": 0},
             "preference of x is 0; it must be more than 0"),
        ):
            with self.assertRaises(ValueError) as caught:
                Criterion("x", **arguments)
            self.assertEqual(text, str(caught.exception))

    def test_a_patience_that_cannot_be(self) -> None:
        with self.assertRaisesRegex(ValueError, "patience_s is 0; it must"):
            promethee.ageing(SLA, 0)

    def test_no_weight_at_all(self) -> None:
        with self.assertRaisesRegex(ValueError, r"weights of \['x'\] are"):
            promethee.net_flows([(1,)], (Criterion("x", 0),))

    def test_a_row_of_another_length(self) -> None:
        with self.assertRaisesRegex(
            ValueError, r"\(1, 2\) has 2 values; it must have 4"
        ):
            promethee.ordered([Alternative("a", 0, (1, 2))], SLA)


if __name__ == "__main__":
    unittest.main()
