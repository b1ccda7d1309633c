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
"""Whose time is over, as the engine sees it."""

import datetime
import types
import unittest
from unittest import mock

from nova_preempt.core import model
from nova_preempt.engine import expiry

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)


def server(uuid, **values):
    return model.Server(**{
        'uuid': uuid, 'host': 'h', 'node': 'h', 'cell_uuid': 'c',
        'project_id': 'p', 'user_id': 'u', 'flavor': 'spot',
        'launched_at': NOW - datetime.timedelta(hours=2),
        'vm_state': 'active', 'task_state': None, 'minimum_runtime_s': 0,
        'maximum_runtime_s': 3600, 'vcpus': 1, 'memory_mb': 1024,
        'disk_mb': 1024, **values})


class TestMaximumRuntime(unittest.TestCase):

    def ended(self, *servers, actions=('delete', 'shelve')):
        ends = mock.Mock()
        expiry.Expiry(
            mock.Mock(**{'pauses.why.return_value': '',
                         'clock.return_value': NOW,
                         'options': types.SimpleNamespace(
                             actions=actions, maximum_runtime_s=0)}),
            mock.Mock(**{'servers.return_value': servers}), None, ends,
        ).end_old_servers()
        return [call.args[0].uuid for call in ends.begin.mock_calls]

    def test_whose_time_is_over(self):
        self.assertEqual(['a'], self.ended(
            server('a'), server('b', maximum_runtime_s=9000),
            server('c', maximum_runtime_s=0)))

    def test_who_is_promised_to_come_back_is_not_deleted(self):
        gold = server('a', action='shelve', class_name='gold')
        self.assertEqual(['a'], self.ended(gold))
        self.assertEqual(['b'], self.ended(
            gold, server('b'), actions=('stop', 'delete')))


if __name__ == '__main__':
    unittest.main()
