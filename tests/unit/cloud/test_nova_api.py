# SPDX-License-Identifier: Apache-2.0
"""Tests of the client of Nova's API."""

import types
import unittest
from unittest import mock

from keystoneauth1 import exceptions as ks_exc
from novaclient import exceptions as nova_exc

from nova_preempt.cloud import nova_api
from nova_preempt.core import observed_server


def action(name, project_id, message=None):
    return types.SimpleNamespace(action=name, project_id=project_id,
                                 message=message)


class TestLockedBy(unittest.TestCase):
    """Nova's API says only that a server is locked."""

    def setUp(self):
        super().setUp()
        self.client = mock.Mock()
        self.nova = nova_api.NovaAPI(None)
        self.nova._client = self.client
        self.show(locked=True)

    def show(self, **values):
        self.client.servers.get.return_value = types.SimpleNamespace(
            id='a', status='ACTIVE', tenant_id='own', **values)

    def locked_by(self, *actions):
        self.client.instance_action.list.return_value = actions
        return self.nova.get('a').locked_by

    def test_the_latest_lock_counts(self):
        """Nova tells the latest action first."""
        owner, admin = action('lock', 'own'), action('lock', 'service')
        self.assertEqual('owner', self.locked_by(owner))
        self.assertEqual('admin', self.locked_by(admin, owner))
        self.assertEqual('owner', self.locked_by(
            action('reboot', 'service'), owner, action('unlock', 'own'),
            admin))

    def test_an_unknown_lock_counts_as_administrators(self):
        self.assertEqual('admin', self.locked_by())
        self.client.instance_action.list.side_effect = nova_exc.NotFound(404)
        self.assertEqual('admin', self.locked_by())

    def test_nova_does_not_tell(self):
        self.client.instance_action.list.side_effect = (
            nova_exc.ClientException(500))
        with self.assertRaisesRegex(nova_api.NovaError, 'server a'):
            self.nova.get('a')

    def test_actions_of_an_unlocked_server_are_not_read(self):
        for values in ({'locked': False}, {}):
            self.show(**values)
            self.assertEqual('', self.locked_by())
        self.client.instance_action.list.assert_not_called()

    def test_a_failed_shelve_leaves_a_server_off(self):
        server = observed_server.ObservedServer('a', 'active')
        for message, is_off in ((None, False), ('Error', True)):
            self.client.instance_action.list.return_value = [
                action('shelve', 'service', message)]
            self.assertIs(is_off, self.nova.is_left_off(server))
        self.client.instance_action.list.assert_called_with('a')
        self.client.instance_action.list.side_effect = nova_exc.NotFound(404)
        self.assertFalse(self.nova.is_left_off(server))

    def test_a_hard_reboot(self):
        self.nova.hard_reboot('a')
        self.client.servers.reboot.assert_called_once_with(
            'a', reboot_type='HARD')


class TestFailures(unittest.TestCase):

    def test_a_notice_is_withdrawn_later_where_nova_is_away(self):
        nova = nova_api.NovaAPI(None)
        nova._client = mock.Mock()
        delete_meta = nova._client.servers.delete_meta
        delete_meta.side_effect = nova_exc.ClientException(503)
        with self.assertRaises(nova_api.NoAnswer):
            nova.clear_notice('a')
        # In another state of the server Nova may do it.
        delete_meta.side_effect = nova_exc.Conflict(409)
        with self.assertLogs('nova_preempt.cloud', 'WARNING'):
            self.assertFalse(nova.clear_notice('a'))
        # To ask again would not help.
        delete_meta.side_effect = nova_exc.Forbidden(403)
        with self.assertLogs('nova_preempt.cloud', 'WARNING'):
            self.assertTrue(nova.clear_notice('a'))
        delete_meta.side_effect = nova_exc.NotFound(404)
        self.assertTrue(nova.clear_notice('a'))

    def test_only_the_notice_of_its_decision_is_withdrawn(self):
        nova = nova_api.NovaAPI(None)
        nova._client = mock.Mock()
        servers = nova._client.servers
        for metadata, deleted in (({}, []), ({'preemption': '{"d2"}'}, []),
                                  ({'preemption': '{"d1"}'},
                                   [mock.call('a', ['preemption'])])):
            servers.get.return_value.metadata = metadata
            self.assertTrue(nova.clear_notice('a', 'd1'))
            self.assertEqual(deleted, servers.delete_meta.mock_calls)
        servers.get.return_value = None
        self.assertTrue(nova.clear_notice('a', 'd1'))

    def test_whether_others_would_fail_too(self):
        nova = nova_api.NovaAPI(None)
        nova._client = mock.Mock()
        for failure, expected in (
                (nova_exc.ClientException(500), nova_api.NovaError),
                (nova_exc.Conflict(409), nova_api.NovaError),
                (nova_exc.Forbidden(403), nova_api.NotAllowed),
                (nova_exc.ClientException(503), nova_api.NoAnswer),
                (ks_exc.ConnectFailure(), nova_api.NoAnswer)):
            with self.subTest(failure=failure):
                nova._client.servers.get.side_effect = failure
                with self.assertRaises(nova_api.NovaError) as raised:
                    nova.get('a')
                self.assertIs(expected, type(raised.exception))


class TestCellAway(unittest.TestCase):

    def test_no_migration_is_aborted_in_a_cell_that_hangs(self):
        """Nova would wait a minute for it."""
        nova = nova_api.NovaAPI(None)
        nova._client = mock.Mock()
        nova.is_away = lambda uuid: uuid == 'a'
        with self.assertRaisesRegex(nova_api.NovaError, 'cell does not'):
            nova.abort_migration('a')
        nova._client.server_migrations.list.assert_not_called()


if __name__ == '__main__':
    unittest.main()
