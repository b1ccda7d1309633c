# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""When many hosts that are down are not given up."""

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.reservation import brake
from nova_preempt.core.reservation import model
from tests.unit.core.reservation import test_healing

BRAKE = brake.Brake(20, 2)
MINE = test_healing.reservation(('a', model.READY), ('b', model.LOST))


class TestBrake(unittest.TestCase):

    def test_a_few_of_many(self) -> None:
        for down, total in ((0, 0), (0, 5), (1, 2), (2, 5), (2, 10),
                            (20, 100)):
            self.assertEqual('', BRAKE.why(down, total), (down, total))

    def test_too_many_at_once(self) -> None:
        for down, total in ((1, 1), (2, 2), (2, 3), (2, 4), (3, 10),
                            (21, 100), (100, 100)):
            self.assertEqual(
                f'{down} of {total} hosts are down, disabled or gone at '
                'once', BRAKE.why(down, total))

    def test_not_for_ever_where_others_are_free(self) -> None:
        for down, held_s, enough, braked in (
                (25, 1799, True, True), (25, 1800, True, False),
                (25, 10 ** 6, False, True), (50, 10 ** 6, True, True)):
            self.assertIs(braked, bool(BRAKE.why(
                down, 100, held_s=held_s, enough=enough)))

    def test_released_by_an_operator(self) -> None:
        self.assertEqual('', brake.Brake(100, 2).why(50, 100))

    def test_what_its_owner_is_told(self) -> None:
        found = brake.told(MINE, 'ab', '25 of 100 hosts are down')
        self.assertEqual(
            {'reason': 'a down, and not replaced yet: 25 of 100 hosts are '
                       'down', 'public_reason': brake.BRAKED}, found)
        known = dataclasses.replace(MINE, **found)
        self.assertEqual({}, brake.told(known, 'ab', 'more'))
        self.assertEqual({'reason': '', 'public_reason': ''},
                         brake.told(known, 'b', 'more'))
        self.assertEqual({'reason': '', 'public_reason': ''},
                         brake.told(known, 'a', ''))
        # What it was told before stays.
        missing = dataclasses.replace(MINE, public_reason='one is missing')
        self.assertEqual({}, brake.told(missing, 'a', 'many'))
        self.assertEqual({}, brake.told(missing, 'a', ''))

    def test_since_when_it_holds(self) -> None:
        """Its owner was told then, perhaps by another engine."""
        told = dataclasses.replace(
            MINE, public_reason=brake.BRAKED, updated_at=model.from_s(500))
        for reservations, down, known_s, expected in (
                ([], 'a', None, 900), ([], 'a', 800, 800),
                ([], 'a', 1000, 900), ([told], 'a', 800, 500),
                ([told], 'x', None, 900), ([MINE], 'a', None, 900)):
            with self.subTest(reservations=reservations, known_s=known_s):
                self.assertEqual(expected, brake.held_since(
                    reservations, frozenset(down), known_s, 900))

    def test_whether_there_are_enough_others(self) -> None:
        for wanted, expected in (
                ([], True), ([(1, 'a')], True), ([(2, 'a')], False),
                ([(1, 'ab'), (1, 'a')], True), ([(1, 'a'), (1, 'a')], False),
                ([(2, 'abc'), (1, 'ab')], True)):
            with self.subTest(wanted):
                self.assertIs(expected, brake.are_enough(wanted))

    @hypothesis.given(st.integers(0, 50), st.integers(0, 100))
    def test_never_when_all_are_down(self, down: int, percent: int) -> None:
        one = brake.Brake(percent, 100)
        self.assertEqual(down > 0, bool(one.why(down, down)))
