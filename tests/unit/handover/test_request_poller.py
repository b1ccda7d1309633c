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
"""Whether the requests that victims give way for still exist."""

import unittest
from unittest import mock

from nova_preempt.cloud import nova_api
from nova_preempt.handover import request_poller


class TestRequests(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.not_wanted = {'c'}
        self.find = mock.Mock(side_effect=lambda uuids: (
            self.not_wanted & set(uuids)))
        self.requests = request_poller.RequestPoller(
            0.5, self.find, lambda: self.now)

    def test_one_reading_for_all(self):
        self.requests.add(['a'])
        self.requests.add(['b', 'c'])
        self.assertEqual(set(), self.requests.unwanted(['a']))
        self.assertEqual({'c'}, self.requests.unwanted(['b', 'c']))
        self.find.assert_called_once_with(['a', 'b', 'c'])
        self.not_wanted = {'a', 'b', 'c'}
        self.now = 0.4
        self.assertEqual(set(), self.requests.unwanted(['a']))
        self.now = 0.5
        self.assertEqual({'a'}, self.requests.unwanted(['a']))

    def test_a_new_one_is_read_at_once(self):
        self.requests.add(['a'])
        self.requests.unwanted(['a'])
        self.requests.add(['c'])
        self.assertEqual({'c'}, self.requests.unwanted(['c']))

    def test_forgotten_by_the_last_one(self):
        self.requests.add(['a', 'b'])
        self.requests.remove(['a'])
        self.requests.unwanted(['b'])
        self.find.assert_called_once_with(['b'])

    def test_without_a_server_nothing_is_read(self):
        self.assertEqual(set(), self.requests.unwanted([]))
        self.find.assert_not_called()

    def test_nobody_knows(self):
        self.find.side_effect = OSError('away')
        self.requests.add(['a'])
        self.assertRaises(nova_api.NovaError, self.requests.unwanted, ['a'])
