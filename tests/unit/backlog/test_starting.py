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
"""Starting many requests where somebody is away."""

import datetime
import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.backlog import starting
from nova_preempt.backlog import users
from nova_preempt.cloud import parallel
from nova_preempt.cloud import trusts
from nova_preempt.core.backlog import answers
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import passing
from tests.unit.core.backlog import base


class TestAway(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.users, self.records = mock.Mock(), mock.Mock()
        self.starting = starting.Starting(
            types.SimpleNamespace(ask_timeout_s=60, build_timeout_s=3600,
                                  retry_interval_s=30),
            self.users, self.records, lambda: base.NOW,
            mock.Mock(**{'hints.return_value': {}}))
        self.requests = {str(number): base.request(str(number))
                         for number in range(100)}
        self.starts = [passing.Start(uuid, 'small', 1)
                       for uuid in self.requests]

    def start(self):
        self.starting.start(self.starts, self.requests)

    def test_our_database(self):
        """Each would wait for as long as transactions are tried again."""
        self.records.begin.side_effect = db_exc.DBConnectionError
        self.assertRaises(db_exc.DBConnectionError, self.start)
        self.assertLessEqual(self.records.begin.call_count,
                             parallel.THREADS)
        self.users.nova.return_value.create.assert_not_called()

    def test_keystone(self):
        self.users.nova.side_effect = trusts.KeystoneError('away')
        self.start()
        self.assertLessEqual(self.users.nova.call_count, parallel.THREADS)
        self.records.begin.assert_not_called()
        self.records.record.assert_not_called()

    def test_for_one_user_only(self):
        """Others start, and it is not the first of each pass."""
        nova = mock.Mock(**{'create.return_value': mock.Mock(
            status=202, kind='', text='', server_uuid='s')})
        self.records.begin.side_effect = lambda request, boot: request

        def ask(request):
            if request.uuid == '0':
                raise users.NotNow('no endpoint')
            return nova

        self.users.nova.side_effect = ask
        self.start()
        self.assertEqual(99, nova.create.call_count)
        (verdict,) = [call.args[1] for call
                      in self.records.record.call_args_list
                      if call.args[0].uuid == '0']
        self.assertEqual(
            (model.WAITING, answers.NO_ANSWER, 1,
             base.NOW + datetime.timedelta(seconds=30)),
            (verdict.state, verdict.values['waits_for']['code'],
             verdict.values['tries'], verdict.values['next_try_at']))


if __name__ == '__main__':
    unittest.main()
