# SPDX-License-Identifier: Apache-2.0
"""Tests of missing allocations and of the expected ones."""

import dataclasses
import datetime
import types
import unittest
from unittest import mock

from nova import context as nova_context
from nova import objects
from nova.scheduler import utils

from nova_preempt import db
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.cloud import placement_api
from nova_preempt.core import model
from nova_preempt.core import observed_server
from nova_preempt.db import decisions
from nova_preempt.engine import repairs
from nova_preempt.handover import allocation_audit
from tests.unit.engine import test_server_expiry

NOW = datetime.datetime(2030, 1, 1)


class TestWithoutAllocation(unittest.TestCase):

    def found(self, stopped=(), **values):
        """The kinds of problems of a server that holds nothing."""
        root = types.SimpleNamespace(uuid='p', root_uuid='p', name='h')
        listed = mock.Mock(**{
            'list_all_providers.return_value': [root],
            'get_provider_state.return_value': model.Provider('p', 1, {}, {})})
        known = mock.Mock(**{
            'get_decisions.return_value': [],
            'get_open_decisions.return_value': [],
            'get_victims.return_value': [
                ('d', types.SimpleNamespace(server_uuid=uuid))
                for uuid in stopped]})
        view = mock.Mock(**{'servers.return_value': [
            test_server_expiry.server('a', **values)]})
        return [problem.kind for problem in allocation_audit.Audit(
            listed, view, known, dict, 60).look()]

    def test_a_running_server_without_allocation(self):
        self.assertEqual([allocation_audit.NO_ALLOCATION], self.found())

    def test_a_server_that_leaves_is_no_problem(self):
        """Its record may still have a host if its compute died."""
        for vm_state in 'soft-delete', 'shelved_offloaded', 'deleted':
            self.assertEqual([], self.found(vm_state=vm_state))
        self.assertEqual([], self.found(task_state='migrating'))

    def test_a_stopped_victim_that_was_started_again(self):
        self.assertEqual([], self.found(['a'], vm_state='stopped'))
        for vm_state in 'active', 'paused', 'rescued':
            self.assertEqual([allocation_audit.NO_ALLOCATION],
                             self.found(['a'], vm_state=vm_state))


class TestWithoutSpace(unittest.TestCase):
    """A claim whose allocation is gone, as after an audit by Nova."""

    def found(self, holders, status=decisions.CLAIMED,
              later=decisions.CLAIMED):
        claimed = db.Decision('d', 's', status=status, record={
            'stand_in': 'i', 'allocations': {'p': {'VCPU': 1}}})
        made = allocation_audit.Audit(
            mock.Mock(**{
                'list_all_providers.return_value': [],
                'get_consumer.side_effect': lambda uuid: (
                    placement_api.Consumer(
                        uuid, {'p': {}} if uuid in holders else {}))}),
            mock.Mock(**{'servers.return_value': []}),
            mock.Mock(**{
                'get_decisions.return_value': [claimed],
                'get_open_decisions.return_value': [],
                'get_victims.return_value': [],
                'get_decision.return_value': dataclasses.replace(
                    claimed, status=later)}), dict, 60)
        return [(problem.kind, problem.uuid) for problem in made.look()]

    def test_a_claim_without_allocation(self):
        self.assertEqual([(allocation_audit.NO_SPACE, 'd')], self.found(''))

    def test_a_claim_held_by_a_stand_in_or_the_server(self):
        self.assertEqual([], self.found('i'))
        self.assertEqual([], self.found('s'))

    def test_no_claim_before_or_after_the_decision(self):
        self.assertEqual([], self.found('', status=decisions.INTENT))
        self.assertEqual([], self.found('', later=decisions.ROLLED_BACK))


class TestInvariants(unittest.TestCase):
    """Tests of breaches of the core's invariants."""

    def found(self, inventories=None, allocations=None, victims=()):
        root = types.SimpleNamespace(uuid='p', root_uuid='p', name='h')
        open_ones = [db.Decision(uuid, 's', status=decisions.CLAIMED,
                                 record={}, victims=[db.Victim(victim, 'h')])
                     for uuid, victim in victims]
        made = allocation_audit.Audit(
            mock.Mock(**{
                'list_all_providers.return_value': [root],
                'get_provider_state.return_value': model.Provider(
                    'p', 1, inventories or {}, allocations or {})}),
            mock.Mock(**{'servers.return_value': []}),
            mock.Mock(**{
                'get_decisions.side_effect': lambda statuses=(), **_: (
                    open_ones if statuses else [
                        db.Decision('d', 's', status=decisions.CLAIMED)]),
                'get_open_decisions.return_value': [],
                'get_victims.return_value': []}), dict, 60)
        with mock.patch.object(made, '_known', lambda *_: (set(), {})):
            return [(item.kind, item.uuid, item.text)
                    for item in made.look()]

    def test_a_provider_over_its_capacity(self):
        inventories = {'VCPU': model.Inventory(2)}
        self.assertEqual([], self.found(inventories, {'a': {'VCPU': 2}}))
        self.assertEqual(
            [(allocation_audit.OVER_CAPACITY, 'p',
              'allocations_fit: h has VCPU 3 of 2 allocated')],
            self.found(inventories, {'a': {'VCPU': 2}, 'b': {'VCPU': 1}}))
        self.assertEqual(
            [(allocation_audit.OVER_CAPACITY, 'p',
              'allocations_fit: h has DISK_GB 1 of 0 allocated')],
            self.found(inventories, {'a': {'DISK_GB': 1}}))

    def test_a_victim_of_two_decisions(self):
        self.assertEqual([], self.found(victims=[('d', 'a'), ('e', 'b')]))
        text = 'victims_end_once: a is a victim of 2 open decisions'
        self.assertEqual([(allocation_audit.BROKEN, text, text)],
                         self.found(victims=[('d', 'a'), ('e', 'a')]))


class TestOpenDecisions(unittest.TestCase):

    def found(self, status, hours, age_s=0):
        made = allocation_audit.Audit(
            mock.Mock(**{'list_all_providers.return_value': []}),
            mock.Mock(**{'servers.return_value': []}),
            mock.Mock(**{
                'get_decisions.return_value': [],
                'get_victims.return_value': [],
                'get_open_decisions.return_value': [(db.Decision(
                    'd', 's', status=status,
                    reason='test; not yet: server a is still being moved',
                    created_at=NOW - datetime.timedelta(hours=hours)),
                    age_s)]}), dict, 60)
        with mock.patch('oslo_utils.timeutils.utcnow', return_value=NOW):
            return [problem.text for problem in made.look()]

    def test_a_decision_without_progress(self):
        self.assertIn('no process has worked on it for 60 s',
                      self.found(decisions.ROLLING_BACK, 0, 60)[0])

    def test_a_long_notice_is_no_problem(self):
        self.assertEqual([], self.found(decisions.CLAIMED, 9))

    def test_a_roll_back_without_end(self):
        """Its process is alive and waits for a task in Nova."""
        # The space of an intent may have been taken, or not.
        for status in decisions.INTENT, decisions.ROLLING_BACK:
            self.assertEqual([], self.found(status, 0.9))
            self.assertIn('server a is still being moved',
                          self.found(status, 1.1)[0])


class TestExpected(unittest.TestCase):
    """Tests of a server that was seen on node h of host h."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.instance = types.SimpleNamespace(
            host='h', node='h', vm_state='active', task_state=None,
            flavor=types.SimpleNamespace(extra_specs={}))
        for target, name, value in (
                (objects.Instance, 'get_by_uuid', self.instance),
                (objects.ComputeNode, 'get_by_host_and_nodename',
                 types.SimpleNamespace(uuid='p')),
                (utils, 'resources_from_flavor', {'VCPU': 1})):
            patch = mock.patch.object(target, name, return_value=value)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(nova_context, 'target_cell')
        patch.start()
        self.addCleanup(patch.stop)

    def expected(self):
        return instances.expected_allocation(
            types.SimpleNamespace(uuid='c', identity='c'),
            test_server_expiry.server('a'))

    def test_expected_allocation_of_a_server_on_its_host(self):
        self.assertEqual(({'VCPU': 1}, 'p', {}), self.expected())

    def test_no_expected_allocation_of_a_server_that_leaves(self):
        for name, value in (('host', 'other'), ('node', 'other'),
                            ('host', None), ('task_state', 'migrating'),
                            ('vm_state', 'shelved_offloaded')):
            with mock.patch.object(self.instance, name, value):
                self.assertRaises(instances.ServerNotOnHost, self.expected)

    def test_a_moved_server_gets_no_allocation_on_its_old_host(self):
        clients = mock.Mock(**{'get_cells.return_value': {
            'c': types.SimpleNamespace(uuid='c', identity='c')}})
        clients.placement.get_consumer.return_value = placement_api.Consumer(
            'a', {})
        clients.placement.get_provider_state.return_value = model.Provider(
            'p', 1, {'VCPU': model.Inventory(1)}, {})
        made = repairs.AllocationRepair(clients, mock.Mock(
            **{'get.return_value': test_server_expiry.server('a')}),
                                        mock.MagicMock(), mock.Mock(), None)
        self.assertTrue(made._allocate('a'))
        clients.placement.post_allocations.assert_called_once()
        self.instance.node = 'other'
        self.assertFalse(made._allocate('a'))
        clients.placement.post_allocations.assert_called_once()


A = observed_server.ObservedServer('a', 'active')


class TestCellAway(unittest.TestCase):

    def known(self, *answers):
        made = allocation_audit.Audit(None, None, None, dict, 60)
        with mock.patch.object(cell_calls, 'gather', side_effect=[
                dict(enumerate(found)) for found in answers]), (
                mock.patch.object(instances, 'find_cells',
                                  return_value={})):
            return made._known(['a', 'b'])[0]

    def test_consumers_of_an_unreadable_cell_are_known(self):
        away = cell_calls.CellDown(cell='c', limit=1)
        self.assertEqual({'a'}, self.known([[A]], [[]]))
        for servers, migrations in (([[A], away], [[], []]),
                                    ([[A], []], [[], away])):
            with self.assertLogs(allocation_audit.__name__, 'WARNING'):
                self.assertEqual({'a', 'b'}, self.known(servers, migrations))


if __name__ == '__main__':
    unittest.main()
