# SPDX-License-Identifier: Apache-2.0
"""Tests of moves that pass on Nova and on the Nova in memory."""

from nova_preempt.cloud import instances
from tests.cloud_port import server_tests


class MoveTests(server_tests.ServerTestCase):
    """Live migrations and resizes from host1 to host2."""

    def setUp(self):
        super().setUp()
        self.server = self.boot_active()

    def migration(self, host='host1'):
        """Return the Migration that has allocations on a host."""
        uuids = self.port.get_provider_state(self.node(host)).allocations
        with self.cell_context() as context:
            found, = instances.read_migrations(context, list(uuids))
        return found

    def consumers(self, host):
        return set(self.port.get_provider_state(self.node(host)).allocations)

    def allocated(self, *hosts):
        """Wait until the server alone has allocations, on these hosts."""
        self.wait_for(lambda: [self.consumers(host) for host in (
            'host1', 'host2')] == [{self.server} if host in hosts else set()
                                   for host in ('host1', 'host2')])

    def test_live_migration(self):
        with self.held('migrate'):
            self.nova.live_migrate(self.server)
            self.reach(self.server, 'active', 'migrating')
            self.wait_for(lambda: self.held_by(self.server) == {'host2': 1})
            self.wait_for(lambda: self.migration().dest_compute == 'host2')
            move = self.migration()
            self.assertEqual({'host1': 1}, self.held_by(move.uuid))
            self.assertEqual((self.server, 'host1'),
                             (move.instance_uuid, move.source_compute))
            self.assertEqual('host1', self.read(self.server).host)
            self.refusals_of(self.server, [
                'stop', 'shelve', 'live_migrate', 'confirm_resize'])
        self.assertEqual('host2', self.reach(self.server, 'active').host)
        self.allocated('host2')
        self.assertEqual('completed', self.status_of(move.uuid))

    def status_of(self, uuid):
        with self.cell_context() as context:
            found, = instances.read_migrations(context, [uuid])
        return found.status

    def test_live_migration_without_a_host(self):
        other = self.boot_active(4, 'host2')
        self.nova.live_migrate(self.server)
        self.assertEqual('host1', self.reach(self.server, 'active').host)
        self.wait_for(lambda: self.held_by(self.server) == {'host1': 1})
        self.assertEqual({self.server}, self.consumers('host1'))
        self.assertEqual({other}, self.consumers('host2'))

    def test_resize(self):
        self.owner.servers.resize(self.server, self.flavor(2))
        found = self.reach(self.server, 'resized')
        self.assertEqual('host2', found.host)
        self.assertEqual({'host2': 2}, self.held_by(self.server))
        move = self.migration()
        self.assertEqual({'host1': 1}, self.held_by(move.uuid))
        self.assertEqual('finished', move.status)
        self.assertEqual('VERIFY_RESIZE', self.nova.get(self.server).status)
        self.refusals_of(self.server, [
            'stop', 'start', 'shelve', 'live_migrate', 'set_meta'])
        self.nova.confirm_resize(self.server)
        self.reach(self.server, 'active')
        self.allocated('host2')
        self.assertEqual('confirmed', self.status_of(move.uuid))

    def test_revert(self):
        self.owner.servers.resize(self.server, self.flavor(2))
        self.reach(self.server, 'resized')
        self.owner.servers.revert_resize(self.server)
        self.assertEqual('host1', self.reach(self.server, 'active').host)
        self.allocated('host1')
        self.assertEqual({'host1': 1}, self.held_by(self.server))

    def test_cold_migration_of_a_stopped_server(self):
        self.nova.stop(self.server)
        self.reach(self.server, 'stopped')
        self.nova.cold_migrate(self.server)
        self.reach(self.server, 'resized')
        self.nova.confirm_resize(self.server)
        self.assertEqual('host2', self.reach(self.server, 'stopped').host)
        self.allocated('host2')

    def test_resize_without_a_host(self):
        other = self.boot_active(4, 'host2')
        self.owner.servers.resize(self.server, self.flavor(3))
        self.assertEqual('host1', self.reach(self.server, 'active').host)
        self.wait_for(lambda: self.held_by(self.server) == {'host1': 1})
        self.assertEqual({other}, self.consumers('host2'))

    def test_delete_a_resized_one(self):
        self.owner.servers.resize(self.server, self.flavor(2))
        self.reach(self.server, 'resized')
        self.owner.servers.delete(self.server)
        self.gone(self.server)
        self.allocated()
