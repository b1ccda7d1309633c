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
"""Ending victims, in a time of the tests' own."""

import types
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt import placement as placement_api
from nova_preempt.db import api
from nova_preempt.termination import nova_api
from nova_preempt.termination import terminator

FREE = placement_api.Consumer('a', {})
HOLDING = placement_api.Consumer('a', {'rp': {'resources': {'VCPU': 1}}}, 1)
ALIVE = nova_api.ServerStatus('ACTIVE', None, 'host1')
ENDING = nova_api.ServerStatus('ACTIVE', 'deleting', 'host1')
ERROR = nova_api.ServerStatus('ERROR', None, 'host1')


class FakeNova:
    """Servers that end as long after they are asked as they are told."""

    def __init__(self, clock, seconds, refuse=0):
        self.clock = clock
        self.seconds = seconds
        self.refuse = refuse
        self.asked = {}

    def force_delete(self, uuid):
        self.asked.setdefault(uuid, []).append(self.clock.now)
        if len(self.asked[uuid]) <= self.refuse:
            raise nova_api.NovaError('409')

    def get(self, uuid):
        times = self.asked[uuid][self.refuse:]
        if not times:
            return ALIVE
        if self.clock.now - times[0] >= self.seconds[uuid]:
            return None
        return ENDING


class Clock:

    def __init__(self):
        self.now = 100.0

    def sleep(self, seconds):
        self.now += seconds


class TestTerminator(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        self.db = mock.Mock(spec=db.Database)
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.get_consumer.return_value = FREE

    def end(self, nova, *uuids):
        options = types.SimpleNamespace(termination_timeout_s=60,
                                        poll_interval_s=1.0)
        decision = db.Decision('d', 's', victims=tuple(
            db.Victim(uuid) for uuid in uuids))
        return terminator.Terminator(
            nova, self.placement, self.db, 'me', options,
            lambda: self.clock.now, self.clock.sleep).end([decision])

    def statuses(self, uuid):
        return [call.args[2] for call in self.db.update_victim.mock_calls
                if call.args[1] == uuid]

    def test_all_at_once(self):
        nova = FakeNova(self.clock, {'a': 5, 'b': 7})
        self.assertEqual(set(), self.end(nova, 'a', 'b'))
        self.assertEqual({'a': [100.0], 'b': [100.0]}, nova.asked)
        self.assertEqual(107.0, self.clock.now)
        self.assertEqual([api.ENDING, api.GONE], self.statuses('a'))

    def test_signs_of_life(self):
        self.end(FakeNova(self.clock, {'a': 30}), 'a')
        self.assertGreaterEqual(self.db.touch.call_count, 5)

    def test_one_that_never_ends(self):
        nova = FakeNova(self.clock, {'a': 1, 'b': 1000})
        self.assertEqual({'b'}, self.end(nova, 'a', 'b'))
        self.assertEqual(160.0, self.clock.now)
        self.assertEqual([api.ENDING], self.statuses('b'))

    def test_refused_at_first(self):
        nova = FakeNova(self.clock, {'a': 1}, refuse=2)
        self.assertEqual(set(), self.end(nova, 'a'))
        self.assertEqual(3, len(nova.asked['a']))

    def test_failed_end_is_asked_for_again(self):
        nova = mock.Mock(spec=nova_api.NovaAPI)
        nova.get.side_effect = [ENDING] + [ERROR] * 9 + [None]
        self.assertEqual(set(), self.end(nova, 'a'))
        self.assertEqual(2, nova.force_delete.call_count)

    def test_nova_api_away_for_a_while(self):
        nova = mock.Mock(spec=nova_api.NovaAPI)
        nova.get.side_effect = [nova_api.NovaError('502')] * 5 + [None]
        self.assertEqual(set(), self.end(nova, 'a'))
        self.assertEqual(1, nova.force_delete.call_count)

    def test_waits_until_nova_has_freed_the_space(self):
        self.placement.get_consumer.side_effect = [HOLDING, HOLDING, FREE]
        self.assertEqual(set(), self.end(FakeNova(self.clock, {'a': 1}), 'a'))
        self.assertEqual(103.0, self.clock.now)
        self.placement.delete_allocations.assert_not_called()

    def test_space_that_nova_forgets_is_freed(self):
        self.placement.get_consumer.return_value = HOLDING
        self.assertEqual(set(), self.end(FakeNova(self.clock, {'a': 1}), 'a'))
        self.placement.delete_allocations.assert_called_once_with('a')

    def test_placement_away(self):
        self.placement.get_consumer.side_effect = (
            placement_api.PlacementError('503'))
        self.assertEqual(set(), self.end(FakeNova(self.clock, {'a': 1}), 'a'))
        self.assertEqual([api.ENDING, api.GONE], self.statuses('a'))
