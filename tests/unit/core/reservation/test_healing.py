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
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.reservation import healing

BRAKE = healing.Brake(20, 2)


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

    def test_the_clock_begins_anew_when_it_lets_go(self) -> None:
        since = healing.down_since({}, ['a'], 100, braked=False)
        since = healing.down_since(since, ['a', 'b'], 110, braked=False)
        self.assertEqual({'a': 100, 'b': 110}, since)
        since = healing.down_since(since, ['a', 'b'], 120, braked=True)
        since = healing.down_since(since, ['b'], 130, braked=False)
        self.assertEqual({'b': 120}, since)

    @hypothesis.given(st.integers(0, 50), st.integers(0, 100))
    def test_never_when_all_are_down(self, down: int, percent: int) -> None:
        brake = healing.Brake(percent, 100)
        self.assertEqual(down > 0, bool(brake.why(down, down)))


class TestReturns(unittest.TestCase):

    def check(self, quantity, held, former, *expected) -> None:
        self.assertEqual(
            tuple(healing.Return(*item) for item in expected),
            healing.returns(quantity, held, former))

    def test_only_where_its_servers_are(self) -> None:
        self.check(2, {'a': 1}, {'b': 0})

    def test_where_one_is_missing(self) -> None:
        self.check(2, {'a': 0}, {'b': 1}, ('b',))

    def test_in_place_of_one_that_is_not_used(self) -> None:
        self.check(2, {'a': 1, 'b': 0}, {'c': 2}, ('c', 'b'))

    def test_on_top_where_all_are_used(self) -> None:
        self.check(1, {'a': 1}, {'b': 1}, ('b', None))

    def test_those_with_most_servers_first(self) -> None:
        self.check(3, {'a': 0, 'b': 0}, {'c': 1, 'd': 3, 'e': 1},
                   ('d',), ('c', 'a'), ('e', 'b'))
