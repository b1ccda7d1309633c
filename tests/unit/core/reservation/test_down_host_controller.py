# SPDX-License-Identifier: Apache-2.0
"""Hosts are not replaced while many are down."""

import dataclasses
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import down_host_controller
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import reservation_model
from tests.unit.core.reservation import test_host_replacement

MINE = test_host_replacement.reservation(('a', reservation_model.READY),
                                      ('b', reservation_model.LOST))


class TestBrake(unittest.TestCase):

    def test_a_few_of_many(self) -> None:
        for down, total in ((0, 0), (0, 5), (1, 2), (2, 5), (2, 10),
                            (20, 100)):
            self.assertEqual('',
                             down_host_controller.brake_reason(20, down,
                                 total),
                             (down, total))

    def test_too_many_at_once(self) -> None:
        for down, total in ((1, 1), (2, 2), (2, 3), (2, 4), (3, 10),
                            (21, 100), (100, 100)):
            self.assertEqual(
                f'{down} of {total} hosts are down, disabled or gone at '
                'once', down_host_controller.brake_reason(20, down, total))

    def test_not_for_ever_where_others_are_free(self) -> None:
        for down, held_s, enough, braked in (
                (25, 1799, True, True), (25, 1800, True, False),
                (25, 10 ** 6, False, True), (50, 10 ** 6, True, True)):
            self.assertIs(braked, bool(down_host_controller.brake_reason(
                20, down, 100, held_s=held_s, enough=enough)))

    def test_released_by_an_operator(self) -> None:
        self.assertEqual('', down_host_controller.brake_reason(100, 50, 100))

    def test_reasons_for_the_owner(self) -> None:
        found = down_host_controller.owner_reasons(MINE, 'ab',
                                          '25 of 100 hosts are down')
        self.assertEqual(
            {'reason': 'a down, and not replaced yet: 25 of 100 hosts are '
                       'down', 'public_reason': down_host_controller.BRAKED},
                       found)
        known = dataclasses.replace(MINE, **found)
        self.assertEqual({},
            down_host_controller.owner_reasons(known, 'ab', 'more'))
        self.assertEqual({'reason': '', 'public_reason': ''},
                         down_host_controller.owner_reasons(known, 'b',
                             'more'))
        self.assertEqual({'reason': '', 'public_reason': ''},
                         down_host_controller.owner_reasons(known, 'a', ''))
        # What it was told before stays.
        missing = dataclasses.replace(MINE, public_reason='one is missing')
        self.assertEqual({},
            down_host_controller.owner_reasons(missing, 'a', 'many'))
        self.assertEqual({},
            down_host_controller.owner_reasons(missing, 'a', ''))

    def test_since_when_it_holds(self) -> None:
        """The time is the recorded one, also of another engine."""
        told = dataclasses.replace(
            MINE, public_reason=down_host_controller.BRAKED,
            updated_at=reservation_model.from_s(500))
        for reservations, down, known_s, expected in (
                ([], 'a', None, 900), ([], 'a', 800, 800),
                ([], 'a', 1000, 900), ([told], 'a', 800, 500),
                ([told], 'x', None, 900), ([MINE], 'a', None, 900)):
            with self.subTest(reservations=reservations, known_s=known_s):
                self.assertEqual(expected, down_host_controller.held_since(
                    reservations, frozenset(down), known_s, 900))

    def test_whether_there_are_enough_others(self) -> None:
        for wanted, expected in (
                ([], True), ([(1, 'a')], True), ([(2, 'a')], False),
                ([(1, 'ab'), (1, 'a')], True), ([(1, 'a'), (1, 'a')], False),
                ([(2, 'abc'), (1, 'ab')], True)):
            with self.subTest(wanted):
                self.assertIs(expected,
                              down_host_controller.are_enough(wanted))

    @hypothesis.given(st.integers(0, 50), st.integers(0, 100))
    def test_never_when_all_are_down(self, down: int, percent: int) -> None:
        self.assertEqual(
            down > 0,
                bool(down_host_controller.brake_reason(percent, down, down)))


@dataclasses.dataclass
class View:
    """Hosts that are down in a test."""

    held: str = ''
    number: int = 1
    seen: bool = True
    others: str = ''
    reservations: tuple = (MINE,)
    percent: float = 20

    @property
    def down(self) -> host_replacement.DownHosts:
        return host_replacement.DownHosts(frozenset(self.held), self.number,
                                          10)

    def blind(self) -> str:
        return '' if self.seen else 'the bus is away'

    def candidates(self, reservation) -> str:
        return self.others


class TestStep(unittest.TestCase):

    def setUp(self) -> None:
        self.memory = down_host_controller.Memory()
        self.enterContext(mock.patch.object(down_host_controller, 'GRACE_S',
                                            60))

    def step(self, view, at_s):
        found = down_host_controller.step(view, self.memory, at_s * SECOND)
        # Equal input gives an equal step.
        self.assertEqual(found, down_host_controller.step(view, self.memory,
                                                          at_s * SECOND))
        self.memory = found.memory
        return found.intents, self.memory.given_up(at_s * SECOND)

    def test_a_host_is_replaced_after_the_grace(self) -> None:
        for at_s, expected in ((0, []), (59, []), (60, ['a'])):
            self.assertEqual(((), expected), self.step(View('a'), at_s))
        self.assertEqual(((), []), self.step(View(), 61))

    def test_old_observations_are_ignored(self) -> None:
        """This includes observations before the clock was set back."""
        self.step(View('a'), 1000)
        for at_s in (1121, 100):
            self.assertEqual(((), []), self.step(View('a'), at_s))
        self.assertEqual(((), ['a']), self.step(View('a'), 160))

    def test_owners_are_told_once(self) -> None:
        many = View('a', 4)
        (told,), given_up = self.step(many, 0)
        self.assertEqual(('r1', True, []),
                         (told.reservation, told.waits, given_up))
        self.assertEqual(((), []), self.step(many, 60))
        (told,), _ = self.step(View('a'), 61)
        self.assertEqual(down_host_controller.TellOwner('r1', '', False), told)
        # It has its time from when it was braked last.
        self.assertEqual(((), []), self.step(View('a'), 119))
        self.assertEqual(((), ['a']), self.step(View('a'), 120))

    def test_an_owner_told_by_another_engine(self) -> None:
        known = dataclasses.replace(MINE,
                                    public_reason=down_host_controller.BRAKED)
        self.assertEqual(
            ((down_host_controller.TellOwner('r1', '', False),), []),
            self.step(View(reservations=(known,)), 0))

    def test_the_brake_is_released_if_others_are_free(self) -> None:
        for others, expected in (('', True), ('x', False)):
            self.memory = down_host_controller.Memory()
            for at_s in range(0, down_host_controller.BRAKE_S + 1, 60):
                self.step(View('a', 4, others=others), at_s)
            self.assertIs(expected, bool(self.memory.why))

    def test_an_engine_without_a_view_replaces_no_host(self) -> None:
        for at_s in (0, 60, 120):
            self.assertEqual(((), []), self.step(View('a', seen=False), at_s))
        self.assertEqual('the bus is away', self.memory.why)
        # It is not asked as long as all are up.
        self.step(View(seen=False), 180)
        self.assertEqual('', self.memory.why)
