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
"""What is tried again, and until when."""

import types
import unittest
from unittest import mock

from nova import exception

from nova_preempt.core import deadline as core_deadline
from nova_preempt.scheduler import deadline
from nova_preempt.scheduler import patience
from nova_preempt.scheduler import placing
from nova_preempt.scheduler import preemption
from nova_preempt.scheduler import surplus

TIMES = core_deadline.Times(whole_s=100, end_s=20)


class Attempt:
    """One that can be entered, and knows nothing."""

    refusal = ''
    candidates = None
    conflicts = 0
    decisions = ()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass


class TestPlacing(unittest.TestCase):

    def setUp(self):
        self.now = 0
        self.passes = []
        self.outcomes = []
        self.preemption = mock.Mock(
            view=[1], conf=types.SimpleNamespace(max_attempts=10))
        self.preemption.claims.active = set()
        self.placing = placing.Placing(self.preemption, None, mock.Mock())
        self.attempt = Attempt()
        self.placing.attempt = lambda *args: self.attempt

    def select(self, spec_obj):
        """A pass of 30 s that ends as the next of self.outcomes."""
        self.passes.append(self.now)
        self.now += 30
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def place(self, *outcomes):
        self.outcomes = list(outcomes)
        self.patience = patience.Patience(
            deadline.Deadline(TIMES, lambda: self.now), patience.Places())
        return self.placing.place(None, self.select, {}, ['s'],
                                  self.patience)

    def test_stuck_victims(self):
        stuck = preemption.VictimsStuck(['v'])
        self.assertEqual('there', self.place(stuck, stuck, 'there'))
        self.assertEqual([0, 30, 60], self.passes)

    def test_not_after_who_asked_has_given_up(self):
        stuck = preemption.VictimsStuck(['v'])
        self.assertRaises(exception.NoValidHost, self.place,
                          *5 * [stuck], 'there')
        self.assertEqual([0, 30, 60, 90], self.passes)

    def test_lost_races_take_time_too(self):
        self.attempt.conflicts = 1
        self.assertRaises(exception.NoValidHost, self.place,
                          *5 * [exception.NoValidHost(reason='')], 'there')
        self.assertEqual([0, 30, 60, 90], self.passes)

    def test_time_is_up_is_final(self):
        self.assertRaises(exception.NoValidHost, self.place,
                          deadline.TimeIsUp(), 'there')
        self.assertEqual([0], self.passes)

    def test_waits_with_the_time_of_the_request(self):
        coming = surplus.RoomComing(mock.Mock(uuid='d', host='h'), {})
        self.assertEqual('there', self.place(coming, 'there'))
        self.preemption.surplus.wait.assert_called_once_with(
            coming, self.patience.limit)
        self.assertEqual({'d'}, self.patience.waited)
