# SPDX-License-Identifier: Apache-2.0
import datetime
from unittest import mock

import fixtures
import testtools

from nova_preempt.core import observed_server
from nova_preempt.reservation import server_migrator

NOW = datetime.datetime(2026, 11, 28, 12)


def server(host='host1', vm_state='active', task_state=None):
    return observed_server.ObservedServer(
        'a', vm_state, task_state, host, host)


class TestServerMigrator(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())

    def move(self, seen, now):
        """Move a server that was seen a while ago, and return its Nova."""
        nova = mock.Mock()
        nova.get.return_value = now
        self.store, self.occupancy = mock.Mock(), mock.Mock(dark=())
        self.now = NOW
        self.migrator = server_migrator.ServerMigrator(
            nova, self.occupancy, self.store, lambda: self.now)
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

    def follow(self, seen, after_s=0):
        """Let time pass; the server is seen as given then."""
        self.now += datetime.timedelta(seconds=after_s)
        self.occupancy.get.return_value = seen
        self.migrator.follow()

    def test_a_server_that_stays_without_a_task_is_refused(self):
        for vm_state, node, task_state, after_s, expected in (
                ('active', 'host1', None, 9, ''),
                ('active', 'host1', None, 10, 'Nova gave up its migration'),
                ('stopped', 'host1', None, 10, 'Nova gave up its migration'),
                ('active', 'host1', 'migrating', 60, ''),
                ('active', 'host2', None, 10, ''),
                ('resized', 'host2', None, 10, '')):
            with self.subTest(vm_state=vm_state, node=node,
                              task_state=task_state, after_s=after_s):
                before = server(vm_state='stopped' if vm_state == 'resized'
                                else vm_state)
                self.move(before, before)
                self.follow(server(node, vm_state, task_state), after_s)
                self.assertEqual(expected, self.migrator.why_not('a'))

    def test_a_refusal_counts_until_a_later_attempt_is_under_way(self):
        self.move(server(), server())
        self.follow(server(), 30)
        self.migrator.move(server())
        self.follow(server(task_state='migrating'), 9)
        self.assertNotEqual('', self.migrator.why_not('a'))
        self.follow(server(task_state='migrating'), 1)
        self.assertEqual('', self.migrator.why_not('a'))

    def test_its_own_migration_is_confirmed(self):
        stopped = server(vm_state='stopped')
        nova = self.move(stopped, stopped)
        self.follow(server(vm_state='stopped', task_state='resize_prep'), 600)
        self.follow(server('host2', 'resized'), 600)
        nova.confirm_resize.assert_called_once_with('a')
        self.store.remove.assert_not_called()
        self.follow(server('host2', 'stopped'))
        self.store.remove.assert_called_once_with('a')

    def test_a_later_resize_of_its_owner_is_not_confirmed(self):
        stopped = server(vm_state='stopped')
        nova = self.move(stopped, stopped)
        # Nova's conductor has found no host for it.
        self.follow(stopped, 60)
        self.store.remove.assert_not_called()
        self.follow(stopped, 61)
        self.store.remove.assert_called_once_with('a')
        self.follow(server('host2', 'resized'))
        nova.confirm_resize.assert_not_called()
