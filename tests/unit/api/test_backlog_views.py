# SPDX-License-Identifier: Apache-2.0
"""Tests of the views of backlog requests."""

import unittest

from nova_preempt.api import backlog_handlers
from tests.unit.core.backlog import base


class TestRequest(unittest.TestCase):

    def test_secrets_are_masked_whatever_was_stored(self):
        found = backlog_handlers.view(base.request(body={
            'server': {'name': 'a', 'adminPass': 'hunter2',
                       'user_data': 'c2VjcmV0'}, 'hints': {}}), [])
        self.assertEqual(
            {'server': {'name': 'a', 'adminPass': '***',
                        'user_data': '***'}, 'hints': {}}, found['body'])
