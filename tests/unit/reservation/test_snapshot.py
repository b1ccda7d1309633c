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
"""What a snapshot says of hosts and of requests."""

import math
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.reservation import snapshot
from tests.unit.reservation import support

lease = support.lease


def view(leases=(), now_s=0, fresh=True, fail_open=False):
    return snapshot.View(leases if leases is None
                         else snapshot.Snapshot(leases), fresh, fail_open,
                         now_s)


class TestFreeTime(unittest.TestCase):

    def test_until_the_next_start(self):
        """004-e: A is reserved, B until 50, C until 200."""
        found = snapshot.Snapshot((lease('r1', 0, 100, 'A'),
                                   lease('r2', 50, 150, 'B'),
                                   lease('r3', 200, 300, 'C')))
        self.assertEqual([0, 50, 200, math.inf],
                         [found.free_s(host, 0) for host in 'ABCD'])

    def test_intervals_are_half_open(self):
        found = snapshot.Snapshot((lease('r1', 10, 20, 'A'),))
        self.assertEqual([1, 0, 0, math.inf],
                         [found.free_s('A', now_s)
                          for now_s in (9, 10, 19, 20)])

    def test_one_after_the_other(self):
        found = snapshot.Snapshot((lease('r2', 20, 30, 'A'),
                                   lease('r1', 10, 20, 'A', 'B'),
                                   lease('r3', 40, 50, 'A')))
        self.assertEqual(0, found.free_s('A', 25))
        self.assertEqual(10, found.free_s('A', 30))
        self.assertEqual(math.inf, found.free_s('B', 25))

    @hypothesis.given(
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)),
                 max_size=8), st.integers(-5, 45))
    def test_is_what_counting_gives(self, intervals, now_s):
        found = snapshot.Snapshot(tuple(
            lease(f'r{number}', start_s, start_s + length_s, 'A')
            for number, (start_s, length_s) in enumerate(intervals)))
        taken = {second for start_s, length_s in intervals
                 for second in range(start_s, start_s + length_s)}
        expected = next((second - now_s for second in range(now_s, 50)
                         if second in taken), math.inf)
        self.assertEqual(expected, found.free_s('A', now_s))


class TestView(unittest.TestCase):

    leases = (lease('soon', 10, 20, 'A'),
              lease('now', 0, 20, 'B', 'C', status=snapshot.ACTIVE),
              lease('late', 4, 20, 'D', status=snapshot.PENDING),
              lease('other', 0, 20, 'E', status=snapshot.ACTIVE, project='q'),
              lease('over', 0, 3, 'F', status=snapshot.ACTIVE),
              lease('empty', 0, 20, status=snapshot.ACTIVE))

    def answer(self, *lease_ids, project='p', now_s=5, **kwargs):
        return view(self.leases, now_s, **kwargs).answer(lease_ids, project)

    def test_hosts_of_an_active_reservation(self):
        self.assertEqual(snapshot.Answer(frozenset('BC')),
                         self.answer('now'))
        self.assertEqual(snapshot.Answer(frozenset('E')),
                         self.answer('other', project='q'))

    def test_of_several_all_must_be_good(self):
        self.assertEqual(self.answer('soon'), self.answer('now', 'soon'))

    def test_reasons(self):
        for lease_id, reason in (
                ('none', 'There is no reservation none of this project.'),
                ('soon', ('Reservation soon is not active yet: it starts at '
                         '1970-01-01T00:00:10Z.')),
                # Its hosts may not be empty yet.
                ('late', ('Reservation late is not active yet: it starts at '
                         '1970-01-01T00:00:04Z.')),
                ('over', ('Reservation over has ended at '
                         '1970-01-01T00:00:03Z.')),
                ('empty', 'Reservation empty has no host left.')):
            with self.subTest(lease_id):
                self.assertEqual(snapshot.Answer(reason=reason),
                                 self.answer(lease_id))

    def test_a_foreign_one_is_as_unknown(self):
        self.assertEqual(self.answer('none').reason.replace('none', 'other'),
                         self.answer('other').reason)

    def test_a_long_id_is_not_repeated(self):
        self.assertLess(len(self.answer('x' * 10 ** 6).reason), 120)

    def test_one_that_was_asked_after(self):
        past = lease('gone', 0, 3, project='p', status=snapshot.ENDED)
        found = snapshot.Snapshot(self.leases).with_past([past])
        self.assertEqual(
            'Reservation gone has ended at 1970-01-01T00:00:03Z.',
            snapshot.View(found, True, False, 5).answer(['gone'], 'p').reason)
        self.assertIs(found, found.with_past([]))

    def test_old_and_fail_closed(self):
        """What was known last goes on to be obeyed, but nobody gets in."""
        old = view(self.leases, 5, fresh=False)
        self.assertEqual(5, old.free_s('A'))
        self.assertEqual(0, old.free_s('B'))
        answer = old.answer(['now'], 'p')
        self.assertFalse(answer.known)
        self.assertIn('does not answer', answer.reason)

    def test_old_and_fail_open(self):
        old = view(self.leases, 5, fresh=False, fail_open=True)
        self.assertEqual(math.inf, old.free_s('A'))
        self.assertEqual(math.inf, old.free_s('B'))
        self.assertEqual(snapshot.Answer(frozenset('BC')),
                         old.answer(['now'], 'p'))

    def test_nothing_known(self):
        self.assertEqual(0, view(None, fresh=False).free_s('A'))
        self.assertEqual(
            math.inf, view(None, fresh=False, fail_open=True).free_s('A'))
        for fail_open in (False, True):
            answer = view(None, fresh=False, fail_open=fail_open).answer(
                ['now'], 'p')
            self.assertTrue(answer.reason)
            self.assertFalse(answer.known)
