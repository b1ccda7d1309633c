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
"""What is shown of requests that wait."""

import unittest

from nova_preempt.api import backlog_views
from tests.unit.core.backlog import base


class TestRequest(unittest.TestCase):

    def test_secrets_are_masked_whatever_was_stored(self):
        found = backlog_views.request(base.request(body={
            'server': {'name': 'a', 'adminPass': 'hunter2',
                       'user_data': 'c2VjcmV0'}, 'hints': {}}), [])
        self.assertEqual(
            {'server': {'name': 'a', 'adminPass': '***',
                        'user_data': '***'}, 'hints': {}}, found['body'])
