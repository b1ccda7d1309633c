# SPDX-License-Identifier: Apache-2.0
"""Rare answers of Nova to calls as a user."""

import logging
import types
import unittest
from unittest import mock

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.conf import preemption

NOT_ASKED = AssertionError('Nova was asked')


def answer(status, body):
    return types.SimpleNamespace(status_code=status, reason='',
                                 json=lambda: body)


class TestGroups(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.nova = nova_as_user.UserNova.__new__(nova_as_user.UserNova)
        fault = {'itemNotFound': {'message': 'No such thing.'}}
        patch = mock.patch.object(nova_as_user.UserNova, '_call',
                                  return_value=answer(404, fault))
        self.call = patch.start()
        self.addCleanup(patch.stop)

    def test_nova_knows_nothing_of_them(self):
        with self.assertRaises(nova_as_user.ServerGroupNotCreated) as caught:
            self.nova.group('g')
        self.assertEqual(
            nova_as_user.Reply(404, 'No such thing.', 'itemNotFound'),
            caught.exception.reply)
        self.assertEqual(['GET', 'POST'], [
            call.args[0] for call in self.call.call_args_list])

    def test_there_is_none_to_delete(self):
        self.nova.delete_group('g')
        self.assertEqual(1, self.call.call_count)

    def test_no_answer_is_told_from_a_refusal(self):
        for status, expected in ((403, nova_api.NovaError),
                                 (503, nova_api.NoAnswer)):
            self.call.return_value = answer(status, {})
            with self.assertRaises(nova_api.NovaError) as caught:
                self.nova.limits()
            self.assertIs(expected, type(caught.exception))
        self.call.side_effect = ks_exc.ConnectTimeout()
        self.assertRaises(nova_api.NoAnswer, self.nova.limits)


class TestSecrets(unittest.TestCase):

    def test_are_not_logged(self):
        """Secrets of the body, and the password in Nova's answer."""
        requests_session = mock.Mock()
        response = requests_session.request.return_value
        response.configure_mock(
            status_code=202, headers={'content-type': 'application/json'},
            text='{"server": {"id": "s", "adminPass": "hunter2"}}',
            **{'json.return_value': {
                'server': {'id': 's', 'adminPass': 'hunter2'}}})
        nova = nova_as_user.UserNova(
            ks_session.Session(
                token_endpoint.Token('http://nova', 'token'),
                session=requests_session),
            {preemption.GROUP: types.SimpleNamespace(
                service_type='compute', region_name=None,
                valid_interfaces=None, endpoint_override='http://nova')}, 9)
        with self.assertLogs(None, 'DEBUG') as logs:
            logging.getLogger('keystoneauth').debug('something')
            reply = nova.create({'server': {
                'adminPass': 'hunter2', 'user_data': 'aHVudGVyMg=='}}, '2.90')
        self.assertEqual('s', reply.server_uuid)
        requests_session.request.assert_called_once()
        for secret in ('hunter2', 'aHVudGVyMg'):
            self.assertNotIn(secret, '\n'.join(logs.output))


if __name__ == '__main__':
    unittest.main()


class TestNames(unittest.TestCase):

    def test_a_key_pair_may_be_called_detail(self):
        reading = nova_as_user.ResourceLookup(None)
        with mock.patch.object(reading, '_ask') as ask:
            reading.key_pair('token', 'detail')
        self.assertEqual('detail', ask.call_args.args[-1])

    def test_no_error_has_them(self):
        reading = nova_as_user.ResourceLookup(None)
        with (mock.patch.object(reading, '_own') as own,
              self.assertRaises(nova_api.NovaError) as caught):
            own.return_value.get.side_effect = ks_exc.HttpError('too long')
            reading.key_pair('token', 'mine')
        self.assertEqual('GET /os-keypairs: too long (HTTP 0)',
                         str(caught.exception))

    def test_that_nothing_can_have(self):
        reading = nova_as_user.ResourceLookup(None)
        with mock.patch.object(reading, '_ask', side_effect=NOT_ASKED):
            for read in (reading.flavor, reading.image):
                for name in ('detail', '..', '\ud800'):
                    with self.assertRaises(nova_as_user.NotFound):
                        read('token', name)

    def test_wrong_credentials_of_ours_are_no_refusal(self):
        reading = nova_as_user.ResourceLookup(None)
        with mock.patch.object(reading, '_own') as own:
            own.return_value.get_endpoint.side_effect = ks_exc.Unauthorized()
            self.assertRaises(nova_api.NovaError, reading.image, 'token', 'i')
            own.return_value.get_endpoint.side_effect = None
            own.return_value.get.side_effect = ks_exc.Unauthorized()
            self.assertRaises(nova_as_user.Refused, reading.image, 'token',
                              'i')
