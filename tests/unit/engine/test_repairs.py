# SPDX-License-Identifier: Apache-2.0
"""Tests of repairs of servers without allocation."""

import types
import unittest
from unittest import mock

from nova_preempt.cloud import instances
from nova_preempt.cloud import placement_api
from nova_preempt.engine import repairs
from nova_preempt.engine import standalone_evictions
from nova_preempt.handover import allocation_audit
from tests.unit.engine import test_server_expiry


class TestWhoseSpaceWasTaken(unittest.TestCase):

    def repair(self, inventories=('VCPU',), code=placement_api.NO_ROOM,
               stopped=(), **values):
        """Return (whether it was repaired, uuids of ended servers)."""
        server = test_server_expiry.server('a', **values)
        ends = standalone_evictions.Evictions(
            mock.Mock(options=types.SimpleNamespace(
                actions=['delete'], honored_locks='admin',
                minimum_runtime_s=0)),
            mock.Mock(), mock.Mock(), mock.Mock(), 1)
        self.addCleanup(ends.close)
        clients = mock.MagicMock()
        self.placement = clients.placement
        clients.placement.get_consumer.return_value = placement_api.Consumer(
            'a', {'former': {}, 'shared': {}})
        clients.placement.get_provider_state.return_value = (
            None if inventories is None else types.SimpleNamespace(
                inventories=dict.fromkeys(inventories)))
        clients.placement.post_allocations.side_effect = (
            placement_api.Conflict('no', code))
        made = repairs.AllocationRepair(clients, mock.Mock(
            **{'get.return_value': server}), mock.Mock(**{
                'get_decisions.return_value': [
                    types.SimpleNamespace(provider_uuid='former')],
                'get_victims.return_value': [
                    ('d', types.SimpleNamespace(server_uuid=uuid))
                    for uuid in stopped]}), ends, None)
        with mock.patch.object(instances, 'expected_allocation',
                               return_value=({'VCPU': 1}, 'node', {})), \
                mock.patch.object(ends, 'begin') as begin:
            return made._allocate('a'), [
                call.args[0].uuid for call in begin.mock_calls]

    def test_a_server_whose_space_was_taken_is_evicted(self):
        self.assertEqual((True, ['a']), self.repair())

    def test_what_a_late_claim_has_left_on_its_former_host_is_freed(self):
        self.repair()
        (consumer,), = self.placement.post_allocations.call_args.args
        self.assertEqual({'shared', 'node'}, consumer.allocations.keys())

    def test_no_eviction_if_an_administrator_started_or_locked_it(self):
        self.assertEqual((False, []), self.repair(stopped=['a']))
        self.assertEqual((True, ['a']), self.repair(stopped=['b']))
        self.assertEqual((False, []), self.repair(locked_by='admin'))

    def test_no_eviction_on_a_generation_conflict(self):
        for code in placement_api.CONCURRENT_UPDATE, '':
            self.assertEqual((False, []), self.repair(code=code))

    def test_no_eviction_of_a_class_server_that_would_not_return(self):
        self.assertEqual((False, []), self.repair(
            class_name='gold', action='shelve'))

    def test_no_eviction_if_other_providers_are_involved(self):
        self.assertEqual((False, []), self.repair(inventories=()))

    def test_no_eviction_if_the_host_is_gone(self):
        self.assertEqual((False, []), self.repair(inventories=None))


class TestNobodyNeedsIt(unittest.TestCase):
    """Allocations are deleted when they are found twice."""

    def freed(self, kind, of=None):
        """Return how many allocations are deleted after each of two audits.

        :param of: by what our decisions name the consumer
        """
        clients, database, audits = mock.Mock(), mock.Mock(), mock.Mock()
        database.get_decisions.side_effect = (
            lambda **values: [object()] if values == {of: 'a'} else [])
        audits.look.return_value = [allocation_audit.Problem(kind, 'a', '')]
        made = repairs.AllocationRepair(clients, mock.Mock(), database,
                                        mock.Mock(), audits)
        counts = []
        for _ in range(2):
            made.clean()
            counts.append(clients.placement.delete_allocations.call_count)
        return counts

    def test_an_allocation_of_an_ended_migration_is_deleted(self):
        self.assertEqual([0, 1], self.freed(allocation_audit.ENDED_MIGRATION))

    def test_an_allocation_of_our_decision_is_deleted(self):
        for of in 'server_uuid', 'victim_uuid', 'stand_in':
            self.assertEqual([0, 1],
                             self.freed(allocation_audit.NO_SERVER, of))

    def test_a_failed_deletion_does_not_delay_others(self):
        clients, audits = mock.Mock(), mock.Mock()
        audits.look.return_value = [
            allocation_audit.Problem(allocation_audit.ENDED_MIGRATION, uuid,
                                     '') for uuid in 'ab']
        clients.placement.delete_allocations.side_effect = [
            placement_api.PlacementError('500'), None]
        made = repairs.AllocationRepair(clients, mock.Mock(), mock.Mock(),
                                        mock.Mock(), audits)
        made.clean()
        with self.assertRaises(placement_api.PlacementError):
            made.clean()
        self.assertEqual(['a', 'b'], [
            call.args[0] for call in
            clients.placement.delete_allocations.mock_calls])

    def test_foreign_allocations_stay(self):
        self.assertEqual([0, 0], self.freed(allocation_audit.NO_SERVER))


class TestGoneMeanwhile(unittest.TestCase):
    """A server deleted after the audit does not delay others."""

    def clean(self, known, expected):
        """Return the uuids of servers that got their allocations."""
        clients = mock.MagicMock()
        clients.placement.get_consumer.side_effect = (
            lambda uuid: placement_api.Consumer(uuid, {}))
        clients.placement.get_provider_state.return_value = (
            types.SimpleNamespace(inventories={'VCPU': None}))
        servers = mock.Mock()
        servers.get.side_effect = known.get
        audits = mock.Mock()
        audits.look.return_value = [
            allocation_audit.Problem(allocation_audit.NO_ALLOCATION, uuid, '')
            for uuid in 'ab']
        made = repairs.AllocationRepair(clients, servers, mock.MagicMock(),
                                        mock.Mock(), audits)
        with mock.patch.object(instances, 'expected_allocation', expected):
            made.clean()
            made.clean()
        return [consumer.uuid for call in
                clients.placement.post_allocations.mock_calls
                for consumer in call.args[0]]

    def expected(self, cell, server):
        if server.uuid == 'a':
            raise instances.ServerNotOnHost('a')
        return {'VCPU': 1}, 'node', {}

    def test_nova_has_no_such_server_any_more(self):
        known = {uuid: test_server_expiry.server(uuid) for uuid in 'ab'}
        self.assertEqual(['b'], self.clean(known, self.expected))

    def test_the_cache_has_no_such_server_any_more(self):
        self.assertEqual(['b'], self.clean(
            {'b': test_server_expiry.server('b')}, self.expected))


if __name__ == '__main__':
    unittest.main()
