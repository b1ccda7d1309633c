# SPDX-License-Identifier: Apache-2.0
"""Starts of many requests during an outage of a service."""

import datetime
import tempfile
import types
import unittest
from unittest import mock

from cryptography import fernet
from oslo_db import exception as db_exc

from nova_preempt.backlog import launcher
from nova_preempt.backlog import secret_encryption
from nova_preempt.backlog import user_nova_clients
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import parallel_calls
from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import batch_plans
from nova_preempt.core.backlog import boot_outcome
from tests.unit.core.backlog import base


class TestAway(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.users, self.records = mock.Mock(), mock.Mock()
        self.options = types.SimpleNamespace(
            ask_timeout_s=60, secret_key_file='')
        self.launcher = launcher.Launcher(
            self.options,
            self.users, self.records, lambda: base.NOW)
        self.records.choose.return_value = {}
        self.requests = {str(number): base.request(str(number))
                         for number in range(100)}
        self.records.body.side_effect = lambda uuid: self.requests[uuid].body

    def start(self, *uuids):
        self.launcher.start([
            backlog_controller.Launch(
                self.requests[uuid], batch_plans.PlannedBoot(uuid, 'small', 1))
            for uuid in uuids or self.requests])

    def test_our_database(self):
        """Few calls are made, as each is retried for long."""
        self.records.begin.side_effect = db_exc.DBConnectionError
        self.assertRaises(db_exc.DBConnectionError, self.start)
        self.assertLessEqual(self.records.begin.call_count,
                             parallel_calls.THREADS)
        self.users.nova.return_value.create.assert_not_called()

    def test_keystone(self):
        self.users.nova.side_effect = keystone_trusts.KeystoneUnavailable(
            'away')
        self.start()
        self.assertLessEqual(self.users.nova.call_count,
                             parallel_calls.THREADS)
        self.records.begin.assert_not_called()
        self.records.record.assert_not_called()

    def test_an_outage_for_one_user_only(self):
        """Other requests start, and it does not come first in each pass."""
        nova = mock.Mock(**{'create.return_value': mock.Mock(
            status=202, kind='', text='', server_uuid='s')})
        self.records.begin.side_effect = lambda request, boot: request

        def ask(request):
            if request.uuid == '0':
                raise user_nova_clients.UserUnavailable('no endpoint')
            return nova

        self.users.nova.side_effect = ask
        self.start()
        self.assertEqual(99, nova.create.call_count)
        (verdict,) = [call.args[1] for call
                      in self.records.record.call_args_list
                      if call.args[0].uuid == '0']
        self.assertEqual(
            (backlog_model.WAITING, boot_outcome.NO_ANSWER, 1,
             base.NOW + datetime.timedelta(seconds=30)),
            (verdict.state, verdict.values['waits_for']['code'],
             verdict.values['tries'], verdict.values['next_try_at']))

    def test_a_fault_of_one_request_does_not_stop_others(self):
        nova = mock.Mock(**{'create.return_value': mock.Mock(
            status=202, kind='', text='', server_uuid='s')})
        self.records.begin.side_effect = lambda request, boot: request

        def ask(request):
            if request.uuid == '0':
                raise TypeError('no text')
            return nova

        self.users.nova.side_effect = ask
        with self.assertLogs(launcher.__name__, 'ERROR') as logs:
            self.start()
        self.assertIn('Starting request 0 failed', logs.output[0])
        self.assertEqual(99, nova.create.call_count)
        (verdict,) = [call.args[1] for call
                      in self.records.record.call_args_list
                      if call.args[0].uuid == '0']
        self.assertEqual(boot_outcome.NO_ANSWER,
                         verdict.values['waits_for']['code'])

    def test_a_boot_has_the_whole_body(self):
        """A pass reads only a part of the body."""
        self.records.body.side_effect = {'0': {'server': {'name': 'a'}},
                                         '1': None}.get
        self.records.begin.side_effect = lambda request, boot: request
        nova = self.users.nova.return_value
        nova.create.return_value = mock.Mock(
            status=202, kind='', text='', server_uuid='s')
        self.start('1', '0')
        (call,) = nova.create.call_args_list
        self.assertEqual('a', call.args[0]['server']['name'])

    def test_no_secret_of_the_body_is_written_down(self):
        """Nova's schema quotes the value, on as many lines as it has."""
        with tempfile.NamedTemporaryFile('w') as file:
            file.write(fernet.Fernet.generate_key().decode())
            file.flush()
            self.options.secret_key_file = file.name
            self.refuse_for_a_secret()

    def refuse_for_a_secret(self):
        request = self.requests['0'] = base.request(
            '0', body={'server': {'user_data': '***'}})
        self.records.sealed.return_value = secret_encryption.SecretCipher(
            self.options).seal('0', {'user_data': 'hunter2\n'})
        self.records.begin.side_effect = lambda request, boot: request
        nova = self.users.nova.return_value
        nova.create.return_value = mock.Mock(
            status=400, kind='badRequest', server_uuid='',
            text='Invalid input for user_data. Value: hunter2\n. No base64.')
        self.start('0')
        self.assertEqual('hunter2\n', nova.create.call_args.args[0][
            'server']['user_data'])
        (found, verdict, _now), _ = self.records.record.call_args
        self.assertEqual(request, found)
        self.assertEqual('Invalid input for user_data. Value: ***. No '
                         'base64.', verdict.values['reason'])

    def test_secrets_that_cannot_be_decrypted(self):
        """The request starts once the operator has added the key."""
        self.requests['0'] = base.request(
            '0', body={'server': {'user_data': '***'}})
        self.records.sealed.return_value = 'other'
        with self.assertLogs('nova_preempt.backlog.launcher') as logs:
            self.start('0')
        self.users.nova.assert_not_called()
        self.records.begin.assert_not_called()
        verdict = self.records.record.call_args.args[1]
        self.assertEqual(backlog_model.WAITING, verdict.state)
        # How that is configured is for the operator to know.
        self.assertIn('secret_key_file is not set', logs.output[0])
        text = verdict.values['waits_for']['text']
        self.assertIn('cannot be decrypted now', text)
        self.assertNotIn('secret_key_file', text)
        self.assertEqual(1, verdict.values['tries'])


if __name__ == '__main__':
    unittest.main()
