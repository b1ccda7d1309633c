# SPDX-License-Identifier: Apache-2.0
"""A preemption that its scheduler cannot roll back; repair() does it later."""

import time
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.db import decision_owners
from nova_preempt.db import decisions
from tests.functional import base
from tests.functional import test_failures


class TestLateRollBack(test_failures.Killing, base.PreemptionTestCase):
    """The request fails, and its victim keeps its space."""

    def setUp(self):
        super().setUp()
        self.flags(maximum_notice_s=1000, termination_timeout_s=60,
                   group='preemption')
        self.add_host('host1', 1, 1024, 10)
        self.victim = self.boot_spot('victim', 'host1', flavor=(
            self.create_flavor('noticed', 1, 1024, 10, preemptible=True,
                               **{'preemptible:notice_s': '1000'})))
        self.preemption = self.scheduler.preemption
        self.force_delete = self.patch(
            self.preemption.clients.nova, 'force_delete',
            side_effect=nova_api.NovaError('500'))

    def patch(self, target, name, **values):
        patch = mock.patch.object(target, name, **values)
        self.addCleanup(patch.stop)
        return patch.start()

    def boot_until_notice(self):
        server = self.boot('normal', self.small)
        self.wait_for(lambda: nova_api.NOTICE_KEY in self.api.get_server(
            self.victim)['metadata'], 'notice')
        return server

    def open_decision(self):
        (found, _age_s), = self.decisions.get_open_decisions()
        return found

    def assert_repaired(self):
        """The claim is released, and the victim stays."""
        asked = self.force_delete.call_count
        uuid = self.open_decision().uuid
        with self.as_of_later():
            self.assertEqual(1, self.preemption.handover.repair())
        self.assertEqual(decisions.ROLLED_BACK,
                         self.decisions.get_decision(uuid).status)
        self.assertEqual(asked, self.force_delete.call_count)
        self.assertEqual({'host1': [self.victim]}, {
            host: list(consumers)
            for host, consumers in self.allocations().items()})
        server = self.api.get_server(self.victim)
        self.assertEqual('ACTIVE', server['status'])
        self.assertNotIn(nova_api.NOTICE_KEY, server['metadata'])
        self.assert_consistent()

    def test_the_database_is_away_for_longer_than_the_lease(self):
        process = self.preemption.process
        process.heartbeat.stop()
        old = process.owner.name
        server = self.boot_until_notice()
        tried = []
        real = self.preemption.handover.recovery.roll_back

        def roll_back(*args):
            try:
                return real(*args)
            finally:
                tried.append(args)
                for patch in away:
                    patch.stop()

        self.patch(self.preemption.handover.recovery, 'roll_back',
                   side_effect=roll_back)
        away = [mock.patch.object(type(self.db), name,
                                  side_effect=db_exc.DBConnectionError)
                for name in ('reader', 'writer')]
        for patch in away:
            patch.start()
        self.patch(process.owner, '_monotonic', new=(
            lambda: time.monotonic() + process.owner.lease_s))
        self.wait_for(lambda: tried, 'the roll-back to fail')
        self.wait_failed(server)
        # By the clock of the database.
        decision_owners.end(self.db, [old])
        self.assertEqual(0, self.force_delete.call_count)
        self.assert_repaired()
        self.assertEqual(0, self.force_delete.call_count)

    def test_a_victim_does_not_end_and_placement_fails_once(self):
        jump = self.jumps(self.preemption.handover.terminator)

        def refuse(uuid):
            jump(60)
            raise nova_api.NovaError('500')

        self.force_delete.side_effect = refuse
        server = self.boot_until_notice()
        placement = self.preemption.clients.placement
        real, failed = placement.post_allocations, []

        def post(consumers):
            if not failed:
                failed.append(consumers)
                raise placement_api.PlacementError('500')
            return real(consumers)

        self.patch(placement, 'post_allocations', side_effect=post)
        jump(1000)
        self.wait_failed(server)
        self.assertEqual(1, len(failed))
        self.assert_repaired()
