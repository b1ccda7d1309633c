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
"""One sign of life for all decisions of a process."""

import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.termination import heartbeat


class TestHeartbeat(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 10.0
        self.owned = {'a', 'b', 'c'}
        self.db = mock.Mock(spec=db.Database)
        self.db.touch.side_effect = lambda uuids, owner: uuids <= self.owned
        self.db.get_owned.side_effect = lambda uuids, owner: (
            uuids & self.owned)
        self.heartbeat = heartbeat.Heartbeat(self.db, 'me', 5,
                                             lambda: self.now)

    def test_shared(self):
        self.heartbeat.add(['a'])
        self.heartbeat.add(['b', 'c'])
        self.now += 4.9
        self.assertTrue(self.heartbeat.keeps(['a']))
        self.db.touch.assert_not_called()
        self.now += 0.1
        for uuids in (['a'], ['b', 'c']):
            self.assertTrue(self.heartbeat.keeps(uuids))
        self.db.touch.assert_called_once_with({'a', 'b', 'c'}, 'me')
        self.now += 5
        self.heartbeat.keeps(['a'])
        self.assertEqual(2, self.db.touch.call_count)

    def test_lost(self):
        """Who loses a decision learns it, whoever asks first."""
        self.heartbeat.add(['a'])
        self.heartbeat.add(['b', 'c'])
        self.owned.discard('b')
        self.now += 5
        self.assertTrue(self.heartbeat.keeps(['a']))
        self.assertFalse(self.heartbeat.keeps(['b', 'c']))
        self.heartbeat.remove(['b', 'c'])
        self.now += 5
        self.assertTrue(self.heartbeat.keeps(['a']))
        self.assertEqual(1, self.db.get_owned.call_count)

    def test_after_a_pause(self):
        self.heartbeat.add(['a'])
        self.heartbeat.remove(['a'])
        self.now += 100
        self.heartbeat.add(['b'])
        self.assertTrue(self.heartbeat.keeps(['b']))
        self.db.touch.assert_not_called()

    def test_a_database_that_is_away_is_tried_again(self):
        self.heartbeat.add(['a'])
        self.now += 5
        self.db.touch.side_effect = OSError
        for _ in range(2):
            self.assertRaises(OSError, self.heartbeat.keeps, ['a'])
        self.assertEqual(2, self.db.touch.call_count)
