# SPDX-License-Identifier: Apache-2.0

"""Requests of classes in order, all at once as one by one."""

from __future__ import annotations

from fractions import Fraction
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.classes import class_order
from nova_preempt.core.classes.availability_margin import QosClass
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.classes.class_order import WaitingRequest
from nova_preempt.core.classes.server_clocks import ClockState
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.classes.server_clocks import Times
from nova_preempt.core.model import SECOND
from tests.unit.core.classes import support

# Whose numbers have so many factors that 64 bits are soon too few.
ODD = QosClasses(*(
    QosClass(str(number), number, Fraction(10**number - 1, 10**number), 30)
    for number in range(1, 9)
))
NAMES = ("gold", "silver", "bronze")

# Few different values, so that some are alike.
TIMES = st.integers(0, 4).map(lambda each: each * 100 * SECOND)


@st.composite
def requests(draw: st.DrawFn, classes: QosClasses) -> list[WaitingRequest]:
    found = []
    for number in range(draw(st.integers(0, 8))):
        running_us = draw(TIMES)
        found.append(WaitingRequest(
            f"{number}", draw(st.integers(-2, len(classes) - 1)), running_us,
            running_us + draw(TIMES), draw(TIMES), draw(st.integers(0, 2)),
            draw(st.integers(0, 2))))
    return draw(st.permutations(found))


def one_by_one(classes: QosClasses,
               waiting: list[WaitingRequest]) -> list[str]:
    """Return the order by the standing of each request."""

    def key(item: WaitingRequest) -> tuple[object, ...]:
        if item.rank < 0:
            return (0 if item.rank == class_order.NORMAL else 2,
                    item.admitted_us, item.serial, item.uuid)
        times = Times(item.running_us, item.total_us - item.running_us)
        stands = classes.stand(
            # Only where all else is equal they are told apart by it.
            f"{item.serial} {item.uuid}", list(classes)[item.rank],
            ServerClocks((),
                ClockState(Kind.QUEUED, times, item.admitted_us, 0, 0)),
            0, item.overhead_us)
        return 1, stands.order

    return [item.uuid for item in sorted(waiting, key=key)]


class TestOrder(unittest.TestCase):
    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(requests(support.CLASSES))
    def test_all_at_once_as_one_by_one(
        self, waiting: list[WaitingRequest]
    ) -> None:
        self.assertEqual(
            one_by_one(support.CLASSES, waiting),
            class_order.ordered(support.CLASSES, waiting))

    @hypothesis.settings(max_examples=100, deadline=None)
    @hypothesis.given(requests(ODD), st.integers(0, 2**70))
    def test_huge_numbers(
        self, waiting: list[WaitingRequest], more_us: int
    ) -> None:
        waiting = [
            item._replace(total_us=item.total_us + more_us)
            for item in waiting
        ]
        self.assertEqual(
            one_by_one(ODD, waiting), class_order.ordered(ODD, waiting))

    def test_002_k1(self) -> None:
        # Q of 8, 5 and 20 s, with a safety margin of 10 s.
        classes = QosClasses(*(
            QosClass(name, number, Fraction(1, 2), 10)
            for number, name in enumerate(NAMES, start=1)))
        waiting = [
            WaitingRequest(NAMES[rank], rank, q_s * SECOND, q_s * SECOND, 0, 0)
            for rank, q_s in ((1, 20), (2, 5), (0, 8))]
        self.assertEqual(["gold", "bronze", "silver"],
                         class_order.ordered(classes, waiting))

    def test_requests_without_class(self) -> None:
        waiting = [
            WaitingRequest("none", class_order.NO_CLASS, 0, 10**12, 0, 0),
            WaitingRequest("late", class_order.NORMAL, 0, 0, 0, 9),
            WaitingRequest("bronze", 2, 0, 10**9, 0, 5),
            WaitingRequest("calm", 2, 10**9, 10**9, 0, 5),
            WaitingRequest("early", class_order.NORMAL, 10**12, 10**12, 0, 8),
            WaitingRequest("gold", 0, 0, 10**6, 0, 5)]
        for _ in range(10):
            random.Random(_).shuffle(waiting)
            self.assertEqual(
                ["early", "late", "gold", "bronze", "calm", "none"],
                class_order.ordered(support.CLASSES, waiting))

    def test_no_requests(self) -> None:
        self.assertEqual([], class_order.ordered(support.CLASSES, []))

    def test_100_000_are_put_in_order(self) -> None:
        chance = random.Random(1)
        waiting = []
        for number in range(100_000):
            running_us = chance.choice((0, chance.randrange(10**12)))
            waiting.append(WaitingRequest(
                f"{number:06}", chance.randrange(3), running_us,
                running_us + chance.randrange(10**11), 60 * SECOND,
                chance.randrange(10**15)))
        found = class_order.ordered(support.CLASSES, waiting)
        self.assertEqual(one_by_one(support.CLASSES, waiting[:500]),
                         class_order.ordered(support.CLASSES, waiting[:500]))
        self.assertEqual(
            [item.uuid for item in waiting], sorted(found))
