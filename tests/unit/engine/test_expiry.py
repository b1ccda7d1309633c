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

from nova_preempt import db
from nova_preempt.cloud import nova_api
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


class TestRetention(unittest.TestCase):

    def test_one_that_nova_does_not_delete_keeps_none_of_the_others(self):
        nova = mock.Mock()
        nova.get.side_effect = [nova_api.NovaError('its cell is away'),
                                mock.Mock(), mock.Mock()]
        nova.force_delete.side_effect = [nova_api.NovaError('409'), None]
        process = mock.Mock(options=types.SimpleNamespace(
            stop_retention_s=0, maximum_runtime_s=0))
        process.pauses.why.return_value = ''
        process.decisions.get_victims.return_value = [
            ('d', db.Victim(uuid, ended_at=NOW.replace(tzinfo=None)))
            for uuid in 'abc']
        keeper = expiry.Expiry(process, None, nova, None)
        with self.assertLogs(expiry.__name__) as logs:
            keeper.delete_stopped()
        self.assertEqual(['b', 'c'], [
            call.args[0] for call in nova.force_delete.mock_calls])
        self.assertEqual(2, ''.join(logs.output).count('WARNING'))


if __name__ == '__main__':
    unittest.main()
