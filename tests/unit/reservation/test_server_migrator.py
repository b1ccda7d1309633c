# SPDX-License-Identifier: Apache-2.0
import datetime
from unittest import mock

import testtools

from nova_preempt.core import observed_server
from nova_preempt.reservation import server_migrator

NOW = datetime.datetime(2026, 11, 28, 12)


def server(host='host1', vm_state='active', task_state=None):
    return observed_server.ObservedServer(
        'a', vm_state, task_state, host, host)


class TestServerMigrator(testtools.TestCase):

    def move(self, seen, now):
        """Move a server that was seen a while ago, and return its Nova."""
        nova = mock.Mock()
        nova.get.return_value = now
        self.store = mock.Mock()
        self.migrator = server_migrator.ServerMigrator(
            nova, mock.Mock(), self.store, lambda: NOW)
        self.migrator.move(seen)
        return nova

    def test_unchanged(self):
        self.move(server(), server()).live_migrate.assert_called_once_with('a')
        self.assertIsNotNone(self.migrator.asked_us(server()))

    def test_stopped(self):
        self.move(server(vm_state='stopped'), server(vm_state='stopped')
                  ).cold_migrate.assert_called_once_with('a')

    def test_changed_meanwhile(self):
        for now in (None, server('host2'), server(vm_state='shelved'),
                    server(task_state='shelving'),
                    server(vm_state='stopped')):
            nova = self.move(server(), now)
            nova.live_migrate.assert_not_called()
            nova.cold_migrate.assert_not_called()
            self.store.remove.assert_called_once_with('a')
            self.assertIsNone(self.migrator.asked_us(server()))
