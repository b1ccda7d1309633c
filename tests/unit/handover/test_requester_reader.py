# SPDX-License-Identifier: Apache-2.0
"""Tests of polls whether requests with victims still exist."""

import unittest
from unittest import mock

from nova_preempt.cloud import nova_api
from nova_preempt.handover import requester_reader


class TestRequests(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.not_wanted = {'c'}
        self.find = mock.Mock(side_effect=lambda uuids: (
            self.not_wanted & set(uuids)))
        self.requests = requester_reader.RequesterReader(
            self.find, None, None, lambda: self.now)

    def test_one_reading_serves_all_requests(self):
        self.requests.add(['a'])
        self.requests.add(['b', 'c'])
        self.assertEqual([False, False, True],
                         [self.requests.is_gone(uuid) for uuid in 'abc'])
        self.find.assert_called_once_with(['a', 'b', 'c'])
        self.not_wanted = {'a', 'b', 'c'}
        self.now = 0.4
        self.assertFalse(self.requests.is_gone('a'))
        self.now = 0.5
        self.assertTrue(self.requests.is_gone('a'))

    def test_a_new_request_is_read_at_once(self):
        self.requests.add(['a'])
        self.requests.is_gone('a')
        self.requests.add(['c'])
        self.assertTrue(self.requests.is_gone('c'))

    def test_forgotten_by_the_last_one(self):
        self.requests.add(['a', 'b'])
        self.requests.remove(['a'])
        self.requests.is_gone('b')
        self.find.assert_called_once_with(['b'])

    def test_a_failed_reading_raises(self):
        self.find.side_effect = OSError('away')
        self.requests.add(['a'])
        self.assertRaises(nova_api.NovaError, self.requests.is_gone, 'a')
