# SPDX-License-Identifier: Apache-2.0
"""Tests of expired servers and victims in the engine."""

import dataclasses
import datetime
import types
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.cloud import clients
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import model
from nova_preempt.core import observed_server
from nova_preempt.db import decisions
from nova_preempt.engine import server_expiry
from nova_preempt.handover import victim_allocations

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
ALLOCATIONS = {'rp': {'resources': {'VCPU': 1, 'MEMORY_MB': 1024}}}
STOPPED = observed_server.ObservedServer(
    'a', 'stopped', None, 'h', status='SHUTOFF',
    locked_reason=victim_allocations.LOCKED)
RUNNING = observed_server.ObservedServer(
    'a', 'active', None, 'h', status='ACTIVE',
    locked_reason=victim_allocations.LOCKED)


def server(uuid, **values):
    return model.PreemptibleServer(**{
        'uuid': uuid, 'host': 'h', 'node': 'h', 'cell_uuid': 'c',
        'project_id': 'p', 'user_id': 'u', 'flavor': 'spot',
        'launched_at': NOW - datetime.timedelta(hours=2),
        'vm_state': 'active', 'task_state': None, 'minimum_runtime_s': 0,
        'maximum_runtime_s': 3600, 'vcpus': 1, 'memory_mb': 1024,
        'disk_mb': 1024, **values})


class TestMaximumRuntime(unittest.TestCase):

    def ended(self, *servers, actions=('delete', 'shelve'), ends=None):
        ends = ends or mock.Mock()
        server_expiry.ServerExpiry(
            mock.Mock(**{'pauses.why.return_value': '',
                         'clock.return_value': NOW,
                         'options': types.SimpleNamespace(
                             actions=actions, maximum_runtime_s=0)}),
            mock.Mock(**{'servers.return_value': servers}), None, ends,
        ).end_old_servers()
        return [call.args[0].uuid for call in ends.begin.mock_calls]

    def test_servers_at_their_maximum_run_time_end(self):
        self.assertEqual(['a'], self.ended(
            server('a'), server('b', maximum_runtime_s=9000),
            server('c', maximum_runtime_s=0)))

    def test_a_server_of_a_class_is_not_deleted(self):
        gold = server('a', action='shelve', class_name='gold')
        self.assertEqual(['a'], self.ended(gold))
        self.assertEqual(['b'], self.ended(
            gold, server('b'), actions=('stop', 'delete')))


    def test_an_unreadable_server_does_not_delay_others(self):
        ends = mock.Mock()
        ends.begin.side_effect = [placement_api.PlacementError('500'), 'd']
        self.assertRaises(placement_api.PlacementError, self.ended,
                          server('a'), server('b'), ends=ends)
        self.assertEqual(['a', 'b'], [call.args[0].uuid for call
                                      in ends.begin.mock_calls])

    def test_placement_is_away(self):
        ends = mock.Mock()
        ends.begin.side_effect = placement_api.NoAnswer('refused')
        self.assertRaises(placement_api.NoAnswer, self.ended, server('a'),
                          server('b'), ends=ends)
        ends.begin.assert_called_once()


class TestRetention(unittest.TestCase):

    def test_a_failed_deletion_does_not_delay_others(self):
        self.nova.get.side_effect = [nova_api.NovaError('its cell is away'),
                                     STOPPED, STOPPED]
        self.nova.force_delete.side_effect = [nova_api.NovaError('409'), None]
        keeper = self.make('abc')
        with self.assertLogs(server_expiry.__name__) as logs:
            keeper.delete_stopped()
        self.assertEqual(['b', 'c'], self.deleted())
        self.assertEqual(2, ''.join(logs.output).count('WARNING'))

    def test_nova_is_away(self):
        self.nova.get.side_effect = nova_api.NoAnswer('503')
        with self.assertRaises(nova_api.NoAnswer):
            self.make('abc').delete_stopped()
        self.nova.get.assert_called_once_with('a')

    def setUp(self):
        super().setUp()
        self.nova = mock.Mock()
        self.placement = mock.Mock()
        self.placement.get_consumer.return_value = placement_api.Consumer(
            'a', {}, 7)
        self.known = {}

    def make(self, uuids, retention_s=0, leads=lambda: True):
        self.process = mock.Mock(options=types.SimpleNamespace(
            stop_retention_s=retention_s, maximum_runtime_s=0))
        self.process.pauses.why.return_value = ''
        self.process.decisions.get_victims.return_value = [
            ('d', db.Victim(uuid, ended_at=NOW.replace(tzinfo=None),
                            allocations=ALLOCATIONS, project_id='p',
                            user_id='u')) for uuid in uuids]
        self.known.update((uuid, server(uuid, vm_state='stopped'))
                          for uuid in uuids)
        return server_expiry.ServerExpiry(
            self.process, mock.Mock(get=self.known.get),
            clients.Clients(self.nova, self.placement, None), None, leads)

    def deleted(self):
        return [call.args[0] for call in self.nova.force_delete.mock_calls]

    def statuses(self):
        return [call.args[2] for call
                in self.process.decisions.update_victim.mock_calls]

    def test_a_started_victim_gets_its_space_back(self):
        """This holds before and after the end of the retention."""
        for retention_s in (0, 10 ** 10):
            keeper = self.make('a', retention_s)
            self.known['a'] = server('a')
            self.nova.get.return_value = RUNNING
            keeper.delete_stopped()
            (changes,), _ = self.placement.post_allocations.call_args
            self.assertEqual([placement_api.Consumer(
                'a', ALLOCATIONS, 7, 'p', 'u')], changes)
            self.assertEqual([decisions.KEPT], self.statuses())
            self.nova.unlock.assert_called_with('a')
            self.assertEqual([], self.deleted())

    def test_a_resized_victim_keeps_its_new_allocation(self):
        self.placement.get_consumer.return_value = placement_api.Consumer(
            'a', {'rp': {'resources': {'VCPU': 4, 'MEMORY_MB': 4096}}}, 9)
        keeper = self.make('a')
        self.known['a'] = server('a')
        self.nova.get.return_value = RUNNING
        keeper.delete_stopped()
        self.placement.post_allocations.assert_not_called()
        self.assertEqual([decisions.KEPT], self.statuses())

    def test_a_pause_stops_only_deletions(self):
        keeper = self.make('ab')
        self.process.pauses.why.return_value = 'by an operator'
        self.known['a'] = server('a')
        self.nova.get.side_effect = {'a': RUNNING, 'b': STOPPED}.get
        keeper.delete_stopped()
        self.assertEqual([decisions.KEPT], self.statuses())
        self.placement.post_allocations.assert_called_once()
        self.assertEqual([], self.deleted())

    def test_a_pause_in_the_middle(self):
        keeper = self.make('abc')
        self.nova.get.return_value = STOPPED
        self.process.pauses.why.side_effect = lambda what: (
            'by an operator' if self.deleted() else '')
        keeper.delete_stopped()
        self.assertEqual(['a'], self.deleted())

    def test_another_engine_leads_from_the_middle_of_a_round(self):
        self.nova.get.return_value = STOPPED
        self.make('abc', leads=lambda: not self.deleted()).delete_stopped()
        self.assertEqual(['a'], self.deleted())

    def test_a_victim_that_is_started_as_the_database_is_slow(self):
        def start(*_args):
            self.nova.get.return_value = RUNNING
            return True

        def pause(_what):
            if self.process.pauses.why.call_count > 1:
                start()
            return ''

        for slow in ('pauses', 'leader'):
            keeper = self.make('a', leads=start if slow == 'leader'
                               else lambda: True)
            self.nova.get.return_value = STOPPED
            if slow == 'pauses':
                self.process.pauses.why.side_effect = pause
            keeper.delete_stopped()
            self.assertEqual([], self.deleted(), slow)
            self.assertEqual([decisions.KEPT], self.statuses(), slow)

    def test_a_started_victim_without_space_is_reported_once(self):
        """It is never deleted."""
        self.nova.get.return_value = RUNNING
        self.placement.post_allocations.side_effect = placement_api.Conflict(
            'no', placement_api.NO_ROOM)
        keeper = self.make('a')
        with self.assertLogs(server_expiry.__name__) as logs:
            for _ in range(3):
                keeper.delete_stopped()
        self.assertEqual(1, ''.join(logs.output).count('WARNING'))
        self.assertEqual([], self.deleted() + self.statuses())

    def test_nova_is_not_asked_about_kept_victims(self):
        self.make('abc', 10 ** 10).delete_stopped()
        self.nova.get.assert_not_called()

    def test_a_server_that_is_not_preemptible_any_more_is_not_deleted(self):
        self.nova.get.return_value = STOPPED
        keeper = self.make('a')
        self.known.clear()
        keeper.delete_stopped()
        self.assertEqual([], self.deleted() + self.statuses())

    def test_a_victim_without_our_lock_is_reported_once(self):
        """An administrator has unlocked it, or locked it again."""
        for reason in (None, 'evidence'):
            self.nova.get.return_value = dataclasses.replace(
                STOPPED, locked_reason=reason)
            keeper = self.make('a')
            with self.assertLogs(server_expiry.__name__) as logs:
                for _ in range(3):
                    keeper.delete_stopped()
            self.assertEqual(1, ''.join(logs.output).count('WARNING'))
            self.assertEqual([], self.deleted() + self.statuses())

    def test_final_statuses_of_victims(self):
        for status, expected in (
                (None, [decisions.GONE]),
                (observed_server.ObservedServer(
                    'a', 'shelved_offloaded', status='SHELVED_OFFLOADED'),
                 [decisions.SHELVED]),
                (observed_server.ObservedServer(
                    'a', 'stopped', 'powering-on', 'h',
                    status='SHUTOFF'), [])):
            self.nova.get.return_value = status
            self.make('a').delete_stopped()
            self.assertEqual(expected, self.statuses())
        self.assertEqual([], self.deleted())

    def test_a_victim_that_was_shelved_is_unlocked(self):
        for locked_reason, expected in (
                (victim_allocations.LOCKED, [mock.call('a')]), ('mine', [])):
            self.nova.get.return_value = observed_server.ObservedServer(
                'a', 'shelved_offloaded', status='SHELVED_OFFLOADED',
                locked_by='admin', locked_reason=locked_reason)
            self.make('a').delete_stopped()
            self.assertEqual(expected, self.nova.unlock.mock_calls)
            self.assertEqual([decisions.SHELVED], self.statuses())
            self.nova.unlock.reset_mock()


if __name__ == '__main__':
    unittest.main()
