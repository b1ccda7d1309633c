# SPDX-License-Identifier: Apache-2.0

"""Margins, and the preemption order of classes."""

from __future__ import annotations

import dataclasses
import fractions
import itertools
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.classes.availability_margin import QosClass
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.classes.availability_margin import may_preempt
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.classes.server_clocks import Times
from nova_preempt.core.model import SECOND
from tests.unit.core.classes.support import BRONZE
from tests.unit.core.classes.support import CLASSES
from tests.unit.core.classes.support import GOLD
from tests.unit.core.classes.support import SILVER
from tests.unit.core.classes.support import seconds
from tests.unit.core.classes.support import standing
from tests.unit.core.support import LAW

Fraction = fractions.Fraction


def q_s(qos: QosClass, running_s: int, total_s: int, overhead_s: str) -> float:
    """Return Q less the safety margin of 30 s, in seconds."""
    times = Times(running_s * SECOND, (total_s - running_s) * SECOND, 0)
    found = CLASSES.q(qos, times, int(Fraction(overhead_s) * SECOND))
    return float(seconds(found)) - 30


class TestQ(unittest.TestCase):
    def test_002_q_as_in_the_published_logs(self) -> None:
        for qos, running_s, total_s, overhead_s, expected in (
            (BRONZE, 200, 200, "2.371069", 167.62893),  # Q1
            (SILVER, 200, 200, "2.378136", -10.15591),  # Q2
            (SILVER, 1164, 1260, "2.371069", 0.96226),  # Q3
            (SILVER, 2468, 2727, "2.378136", -17.15591),  # Q4
            (BRONZE, 306, 566, "2.371069", 13.62893),  # Q5
            (GOLD, 100, 103, "2.4", -5.4 - 30),  # Q5
        ):
            self.assertAlmostEqual(
                expected, q_s(qos, running_s, total_s, overhead_s), 5
            )

    def test_q_is_exact(self) -> None:
        thirds = QosClass("t", 1, Fraction(2, 3))
        classes = QosClasses(thirds, QosClass("u", 2, Fraction(5, 7)))
        self.assertEqual(10, classes.scale)
        self.assertEqual(
            10 * 1 * 3 // 2 - 10 * 2, classes.q(thirds, Times(1, 1), 0)
        )

    def test_q_of_a_new_request_is_minus_the_overhead(self) -> None:
        clocks = ServerClocks((Event(7, Kind.QUEUED),))
        found = CLASSES.stand("a", SILVER, clocks, 7, 2_000_000)
        self.assertEqual(-2, seconds(found.q))
        self.assertEqual(-32, seconds(found.margin))
        self.assertEqual(7, found.admitted_us)


class TestPrecedence(unittest.TestCase):
    def test_002_k1_among_urgent_ones_the_more_important(self) -> None:
        classes = QosClasses(
            *(dataclasses.replace(qos, safety_margin_s=10)
              for qos in (GOLD, SILVER, BRONZE))
        )
        found = [
            standing(name, q_s=q, classes=classes)
            for name, q in (("silver", 20), ("bronze", 5), ("gold", 8))
        ]
        self.assertEqual(
            ["gold", "bronze", "silver"],
            [each.qos.name
             for each in sorted(found, key=lambda each: each.order)],
        )

    def test_equal_requests_keep_the_order_of_admission(self) -> None:
        found = [
            dataclasses.replace(standing("silver", q_s=9, uuid=uuid),
                                admitted_us=at)
            for uuid, at in (("c", 1), ("b", 2), ("a", 2))
        ]
        self.assertEqual(
            "cab",
            "".join(each.uuid
                    for each in sorted(found, key=lambda each: each.order)),
        )


class TestMayPreempt(unittest.TestCase):
    def test_002_l1_overhead_limit_of_an_urgent_request(self) -> None:
        one = standing("silver", q_s=-90)
        for binding_s, expected in ((12, False), (11, True)):
            # 100 s of running, urgent by the time that it waited first.
            clocks = ServerClocks(
                (
                    Event(0, Kind.QUEUED),
                    Event(10 * SECOND, Kind.ALLOCATING),
                    Event((10 + binding_s) * SECOND, Kind.RUNNING),
                )
            )
            other = CLASSES.stand(
                "k", SILVER, clocks, (110 + binding_s) * SECOND, 0
            )
            self.assertLess(other.margin, 0)
            self.assertLess(one.precedence, other.precedence)
            self.assertEqual(expected, may_preempt(one, other), binding_s)

    def test_a_request_with_a_margin_yields_to_a_more_urgent_one(self) -> None:
        one, other = standing("bronze", q_s=1), standing("gold", q_s=99)
        self.assertTrue(may_preempt(one, other))
        self.assertFalse(may_preempt(other, one))

    def test_equally_urgent_requests_do_not_preempt(self) -> None:
        one = standing("bronze", q_s=1, uuid="a")
        self.assertFalse(may_preempt(one, one))
        self.assertFalse(
            may_preempt(one, dataclasses.replace(one, uuid="b"))
        )

    def test_a_started_request_yields_to_more_important_classes_only(
        self,
    ) -> None:
        begun = standing("silver", q_s=50, yields=False)
        self.assertFalse(may_preempt(standing("bronze", q_s=1), begun))
        self.assertFalse(may_preempt(standing("silver", q_s=1), begun))
        self.assertTrue(may_preempt(standing("gold", q_s=1), begun))

    def test_least_run_s_counts_from_the_start(self) -> None:
        qos = dataclasses.replace(BRONZE, least_run_s=60)
        classes = QosClasses(qos)
        clocks = ServerClocks(
            (Event(0, Kind.QUEUED), Event(0, Kind.ALLOCATING),
             Event(0, Kind.RUNNING))
        )
        for now_us, expected in (
            (60 * SECOND - 1, False), (60 * SECOND, True)
        ):
            found = classes.stand("k", qos, clocks, now_us, 0)
            self.assertEqual(expected, found.yields)

    def test_gold_with_overhead_never_yields(self) -> None:
        clocks = ServerClocks(
            (Event(0, Kind.QUEUED), Event(0, Kind.ALLOCATING),
             Event(1, Kind.RUNNING))
        )
        gold = CLASSES.stand("k", GOLD, clocks, 9 * SECOND, 0)
        for name in ("gold", "silver", "bronze"):
            self.assertFalse(may_preempt(standing(name, q_s=-99), gold))


STANDINGS = st.builds(
    standing,
    st.sampled_from(("gold", "silver", "bronze")),
    q_s=st.integers(-5, 5) | st.integers(25, 35),
    yields=st.booleans() | st.none(),
)


class TestLaws(unittest.TestCase):
    @LAW
    @hypothesis.given(STANDINGS, STANDINGS)
    def test_preemption_is_asymmetric(
        self, one: Standing, other: Standing
    ) -> None:
        self.assertFalse(may_preempt(one, one))
        if may_preempt(one, other):
            self.assertFalse(may_preempt(other, one))

    @LAW
    @hypothesis.given(st.lists(STANDINGS, min_size=2, max_size=5))
    def test_preemption_has_no_cycles(self, found: list[Standing]) -> None:
        for ring in itertools.permutations(found):
            links = zip(ring, (*ring[1:], ring[0]), strict=True)
            self.assertFalse(all(may_preempt(*link) for link in links))

    @LAW
    @hypothesis.given(STANDINGS, STANDINGS)
    def test_preemption_follows_the_order(
        self, one: Standing, other: Standing
    ) -> None:
        if may_preempt(one, other):
            self.assertLess(one.order, other.order)

    @LAW
    @hypothesis.given(
        st.integers(0, 10**10), st.integers(0, 10**10),
        st.integers(0, 10**9), st.integers(1, 10**9),
    )
    def test_running_moves_away_from_violation_and_waiting_towards_it(
        self, running_us: int, waiting_us: int, overhead_us: int, more_us: int
    ) -> None:
        for qos in CLASSES:
            now = CLASSES.q(qos, Times(running_us, waiting_us), overhead_us)
            ran = CLASSES.q(
                qos, Times(running_us + more_us, waiting_us), overhead_us
            )
            waited = CLASSES.q(
                qos, Times(running_us, waiting_us + more_us), overhead_us
            )
            self.assertGreaterEqual(ran, now)
            self.assertLess(waited, now)

    @LAW
    @hypothesis.given(st.integers(0, 10**12), st.integers(0, 10**12))
    def test_q_is_the_time_until_the_promise_is_broken(
        self, running_us: int, waiting_us: int
    ) -> None:
        for qos in CLASSES:
            q = CLASSES.q(qos, Times(running_us, waiting_us), 0)
            if q >= 0:
                left_us = q // CLASSES.scale
                for more_us, kept in ((left_us, True), (left_us + 1, False)):
                    times = Times(running_us, waiting_us + more_us)
                    if times.total_us:
                        self.assertEqual(
                            kept, times.availability >= qos.availability
                        )


class TestTable(unittest.TestCase):
    def test_the_most_important_class_comes_first(self) -> None:
        table = QosClasses(BRONZE, GOLD, SILVER)
        self.assertEqual([GOLD, SILVER, BRONZE], list(table))
        self.assertEqual(CLASSES, table)
        self.assertEqual(hash(CLASSES), hash(table))
        self.assertNotEqual(CLASSES, QosClasses(GOLD))
        self.assertNotEqual(CLASSES, 1)
        self.assertEqual(3, len(table))
        self.assertEqual(SILVER, table.find("silver"))
        self.assertIsNone(table.find("none"))

    def test_overhead_limit_defaults_to_the_unpromised_share(self) -> None:
        self.assertEqual(
            Fraction(1, 10), QosClass("silver", 2, Fraction(9, 10)).limit)

    def test_errors_name_invalid_fields(self) -> None:
        for changed, text in (
            ({"name": ""}, "name of class (without a name) is ; it must be a"),
            ({"importance": 0},
             "importance of class gold is 0; it must be 1 or more"),
            ({"availability": Fraction(3, 2)},
             ("availability of class gold is 3/2; it must be more than 0 "
              "and at most 1")),
            ({"availability": Fraction(0)}, "availability of class gold is 0"),
            ({"safety_margin_s": -1},
             "safety_margin_s of class gold is -1; it must be 0 or more"),
            ({"overhead_limit": Fraction(2)},
             "overhead_limit of class gold is 2; it must be from 0 to 1"),
            ({"least_run_s": -1},
             "least_run_s of class gold is -1; it must be 0 or more"),
        ):
            with self.assertRaises(ValueError) as caught:
                dataclasses.replace(GOLD, **changed)
            self.assertIn(text, str(caught.exception))

    def test_invalid_tables(self) -> None:
        for table, text in (
            ((), "0 classes are defined; there must be 1 to 8"),
            ([QosClass(str(n), n, Fraction(1)) for n in range(1, 10)],
             "9 classes are defined"),
            ((GOLD, dataclasses.replace(SILVER, name="gold")),
             "two classes have the name gold"),
            ((GOLD, dataclasses.replace(SILVER, importance=1)),
             "classes gold and silver have the same importance, 1"),
        ):
            with self.assertRaises(ValueError) as caught:
                QosClasses(*table)
            self.assertIn(text, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
