# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Which shelved victims come back, in which order, and when."""

import datetime
import unittest

from nova_preempt.core import returns

SIZE = {'VCPU': 1}


def shelved(*uuids, **resources):
    return [returns.Shelved(uuid, resources or SIZE) for uuid in uuids]


class TestWhoReturns(unittest.TestCase):

    def test_who_was_shelved_to_give_way(self):
        for asked in ('shelve', 'unrescue', 'confirm_resize', 'live_migrate'):
            self.assertTrue(returns.comes_back(True, asked))
            self.assertFalse(returns.comes_back(False, asked))

    def test_not_what_its_owner_has_shelved(self):
        """Before it was chosen, or in answer to its notice."""
        for asked in ('', 'shelve_offload'):
            self.assertFalse(returns.comes_back(True, asked))


class TestChoose(unittest.TestCase):

    def test_as_many_as_there_is_room_for(self):
        self.assertEqual(['a', 'b', 'c'], returns.choose(
            shelved(*'abcd'), [], {'h1': {'VCPU': 1}, 'h2': {'VCPU': 2}}, 9))

    def test_no_more_than_may_come_at_once(self):
        self.assertEqual(['a'], returns.choose(
            shelved(*'abcd'), shelved('x'), {'h1': {'VCPU': 9}}, 2))

    def test_those_on_their_way_take_their_room_first(self):
        self.assertEqual(['a'], returns.choose(
            shelved('a', 'b'), shelved('x'), {'h1': {'VCPU': 2}}, 9))

    def test_one_without_room_lets_others_pass(self):
        self.assertEqual(['small'], returns.choose(
            [*shelved('big', VCPU=4), *shelved('small')], [],
            {'h1': {'VCPU': 3}}, 9))

    def test_room_is_that_of_one_host(self):
        self.assertEqual([], returns.choose(
            shelved('a', VCPU=2), [],
            {'h1': {'VCPU': 1}, 'h2': {'VCPU': 1, 'PCPU': 8}}, 9))

    def test_what_is_free_is_not_changed(self):
        room = {'h1': {'VCPU': 2}}
        returns.choose(shelved('a'), [], room, 9)
        self.assertEqual({'h1': {'VCPU': 2}}, room)


class TestTurn(unittest.TestCase):

    def test_whose_turn_it_is(self):
        for tries, to_next_s, ended_s, expected in (
                (0, 0, 10, returns.Turn.NOW),
                # Nobody has asked it, whatever is written of a next time.
                (0, 50, 10, returns.Turn.NOW),
                (1, 50, 10, returns.Turn.ASKED),
                (1, 0, 10, returns.Turn.NOW),
                (1, -5, 99, returns.Turn.NOW),
                (1, -5, 100, returns.Turn.TOO_LATE),
                (0, 0, 100, returns.Turn.TOO_LATE),
                # What was asked may still come.
                (1, 50, 100, returns.Turn.ASKED)):
            with self.subTest(tries=tries, to_next_s=to_next_s,
                              ended_s=ended_s):
                self.assertIs(expected, returns.turn(
                    tries, to_next_s, ended_s, timeout_s=100))

    def test_pauses(self):
        self.assertEqual([60, 120, 240, 3600, 3600], [
            returns.pause_s(60, tries) for tries in (0, 1, 2, 6, 10_000)])

    def test_the_clock_was_set_back(self):
        self.assertEqual([240, 300, 0], [
            returns.to_next_s(left_s, 240) for left_s in (240, 300, 301)])

    def test_just_asked(self):
        # The third try is followed by a pause of 240 s.
        self.assertEqual([True, True, False, False], [
            returns.is_just_asked(240, to_next_s)
            for to_next_s in (240, 180, 179, 1)])

    def test_what_is_seen(self):
        for status, task_state, expected in (
                (None, None, returns.Sight.GONE),
                ('SOFT_DELETED', None, returns.Sight.GONE),
                ('DELETED', None, returns.Sight.GONE),
                ('SHELVED', None, returns.Sight.SHELVED),
                ('SHELVED', 'unshelving', returns.Sight.COMING),
                ('SHELVED', 'powering-on', returns.Sight.BUSY),
                ('SHELVED_OFFLOADED', None, returns.Sight.SHELVED),
                ('SHELVED_OFFLOADED', 'unshelving', returns.Sight.COMING),
                ('SHELVED_OFFLOADED', 'spawning', returns.Sight.COMING),
                ('SHELVED_OFFLOADED', 'deleting', returns.Sight.BUSY),
                ('ACTIVE', 'rebooting', returns.Sight.BUSY),
                ('ACTIVE', None, returns.Sight.BACK),
                ('ERROR', None, returns.Sight.BACK)):
            with self.subTest(status=status, task_state=task_state):
                self.assertIs(expected, returns.seen(status, task_state,
                                                     None, 0))

    def test_its_host_has_not_let_go_of_it(self):
        for held_s, expected in ((0, returns.Sight.BUSY),
                                 (returns.LET_GO_S - 1, returns.Sight.BUSY),
                                 (returns.LET_GO_S, returns.Sight.SHELVED)):
            self.assertIs(expected, returns.seen(
                'SHELVED_OFFLOADED', None, 'host', held_s))
        self.assertIs(returns.Sight.SHELVED, returns.seen(
            'SHELVED', None, 'host', 0))

    def test_its_owner_has_shelved_it_again(self):
        ended = datetime.datetime(2026, 1, 1, 12)
        before = ended - datetime.timedelta(hours=1)
        later = ended + datetime.timedelta(seconds=9)
        for launched, known, expected in (
                (before, before, False), (later, before, True),
                (None, before, False), (later, None, True),
                # The clock of its compute is ahead of ours.
                (later, later, False)):
            self.assertIs(expected, returns.has_run_since(
                launched, known, ended))
        self.assertIs(returns.Sight.BACK, returns.seen(
            'SHELVED_OFFLOADED', None, None, 0, has_run=True))
        self.assertIs(returns.Sight.COMING, returns.seen(
            'SHELVED_OFFLOADED', 'spawning', None, 0, has_run=True))
