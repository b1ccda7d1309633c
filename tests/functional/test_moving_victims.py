# SPDX-License-Identifier: Apache-2.0
"""A preemption is taken back while Nova moves its victim."""

import threading
import time
from unittest import mock

from nova.virt import fake

from nova_preempt.db import decisions
from tests.functional import base
from tests.functional import test_failures


class TestMovingVictims(test_failures.Killing, base.PreemptionTestCase):
    """Its user deletes the new server during the live migration."""

    def setUp(self):
        super().setUp()
        self.flags(actions=['migrate', 'delete'], group='preemption')
        self.add_host('host1', 1, 1024, 10)
        self.victim = self.boot_spot('victim', 'host1')
        self.add_host('host2', 1, 1024, 10)

    def begin(self, method):
        """Take the preemption back; returns an Event that ends the migration.

        :param method: of the driver's callbacks, by which it ends
        """
        end = threading.Event()
        # Under eventlet the wait of an Event would stop everybody.
        self.addCleanup(end.set)

        def migrate(driver, context, instance, dest, post_method,
                    recover_method, block_migration=False, migrate_data=None):
            while not end.is_set():
                time.sleep(0.05)
            if method == 'recover':
                recover_method(context, instance, dest, migrate_data)
            else:
                post_method(context, instance, dest, block_migration,
                            migrate_data)

        patch = mock.patch.object(fake.FakeDriver, 'live_migration', migrate)
        patch.start()
        self.addCleanup(patch.stop)
        server = self.boot('normal', self.small, host='host1')
        self.wait_for(lambda: 'host2' in self.where(), 'the migration')
        self.api.delete_server(server)
        preemption = self.scheduler.preemption
        self.wait_for(
            lambda: self.decision().status == decisions.ROLLING_BACK
            and not preemption.handover.claims.active,
            'the roll-back to wait')
        self.assertEqual(preemption.process.owner.name, self.decision().owner)
        self.assertEqual(0, self.repair())
        self.wait_failed(self.boot('third', self.small, host='host1'))
        return end

    def decision(self):
        found, = self.decisions.get_decisions(victim_uuid=self.victim)
        return found

    def where(self):
        """The hosts of which the victim has allocations."""
        return [host for host, consumers in self.allocations().items()
                if self.victim in consumers]

    def repair(self):
        """The owning scheduler repairs it before its lease expires."""
        return self.scheduler.preemption.handover.repair()

    def assert_repaired(self, host, status):
        self.wait_for(lambda: self.api.get_server(self.victim)[
            'OS-EXT-STS:task_state'] is None, 'the migration to end')
        self.assertEqual(1, self.repair())
        self.assertEqual((decisions.ROLLED_BACK, status), (
            self.decision().status, self.decision().victims[0].status))
        server = self.api.get_server(self.victim)
        self.assertEqual(('ACTIVE', host), (
            server['status'], server['OS-EXT-SRV-ATTR:host']))
        self.wait_consistent()
        self.assertEqual([host], self.where())

    def test_the_migration_succeeds(self):
        self.begin('post').set()
        self.assert_repaired('host2', decisions.MIGRATED)

    def test_the_migration_fails(self):
        """Nova does not free its allocation on the other host."""
        self.begin('recover').set()
        self.assert_repaired('host1', decisions.KEPT)
