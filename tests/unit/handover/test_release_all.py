# SPDX-License-Identifier: Apache-2.0
"""Tests of the hand-back before a return to nova-scheduler."""

import contextlib
import io
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.cloud import host_records
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.cmd import hand_back_to_nova as cmd
from nova_preempt.core import observed_server
from nova_preempt.db import decisions
from nova_preempt.handover import release_all
from nova_preempt.handover import victim_allocations
from nova_preempt.power import compute_hosts

FULL = {'p': {'resources': {'VCPU': 2, 'DISK_GB': 9}}}
DISK = {'p': {'resources': {'DISK_GB': 9}}}


def host(name, up, reason=compute_hosts.REASON + 'idle'):
    made = mock.Mock(spec=host_records.ComputeHost, up=up,
                     service_uuid=f's-{name}',
                     disabled_reason=reason,
                     is_ours=reason.startswith(compute_hosts.REASON))
    made.name = name
    return made


class TestHandBack(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.decisions = mock.Mock(spec=db.Decisions)
        self.decisions.get_open_decisions.return_value = []
        self.victims = {decisions.STOPPED: [], decisions.SHELVED: []}
        self.decisions.get_victims.side_effect = self.victims.get
        self.nova = mock.Mock(spec=nova_api.NovaAPI)
        self.show()
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, DISK, 3, 'shared', 'u'))
        self.hosts = []
        self.servers = []

    def run_command(self, apply=True, **values):
        """(exit status, lines)."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = cmd.run(release_all.ReleaseAll(
                self.decisions, self.nova, self.placement, self.hosts,
                self.servers,
                **values), apply)
        return status, output.getvalue().splitlines()

    def stop(self):
        self.victims[decisions.STOPPED].append(('d', db.Victim(
            'v', 'own', 'u', allocations=FULL, consumer_project_id='shared',
            consumer_user_id='u')))

    def show(self, vm_state='stopped', reason=victim_allocations.LOCKED,
             locked_by='admin', host='h'):
        self.nova.get.return_value = observed_server.ObservedServer(
            'v', vm_state, None, host, status=vm_state.upper(),
            locked_by=locked_by, locked_reason=reason)

    def test_nothing_to_hand_back(self):
        status, (line,) = self.run_command()
        self.assertEqual(0, status)
        self.assertIn('Nothing is left', line)

    def test_a_stopped_server(self):
        self.stop()
        status, lines = self.run_command()
        self.assertEqual(0, status)
        self.assertIn('done: server v was stopped and locked', lines[0])
        (posted,), _ = self.placement.post_allocations.call_args
        self.assertEqual([placement_api.Consumer('v', FULL, 3, 'shared',
                                                 'u')], posted)
        self.nova.unlock.assert_called_once_with('v')
        self.nova.start.assert_not_called()
        self.assertEqual(('d', 'v', decisions.KEPT),
                         self.decisions.update_victim.call_args.args)

    def test_a_stopped_server_is_started_with_start(self):
        self.stop()
        self.run_command(start=True)
        self.nova.start.assert_called_once_with('v')

    def test_a_lock_of_an_administrator_stays(self):
        self.stop()
        self.show(reason='evidence')
        self.assertEqual(0, self.run_command(start=True)[0])
        self.placement.post_allocations.assert_called_once()
        self.nova.unlock.assert_not_called()
        self.nova.start.assert_not_called()

    def test_a_server_that_is_unlocked_or_runs_already(self):
        self.stop()
        self.show(reason=None, locked_by='')
        self.run_command(start=True)
        self.show('active')
        self.run_command(start=True)
        self.nova.start.assert_called_once_with('v')
        self.nova.unlock.assert_called_once_with('v')

    def test_an_offloaded_server_gets_no_allocation(self):
        self.stop()
        self.show('shelved_offloaded', host=None)
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, {}))
        self.assertEqual(0, self.run_command()[0])
        self.placement.post_allocations.assert_not_called()
        self.decisions.update_victim.assert_called_once_with(
            'd', 'v', decisions.SHELVED)

    def test_a_server_without_space_stays_locked(self):
        """Starting it would overcommit its host."""
        self.stop()
        self.placement.post_allocations.side_effect = placement_api.Conflict(
            'full', placement_api.NO_ROOM)
        status, lines = self.run_command(start=True)
        self.assertEqual(1, status)
        self.assertIn('no capacity for it', lines[0])
        self.placement.post_allocations.assert_called_once()
        self.nova.unlock.assert_not_called()
        self.nova.start.assert_not_called()
        self.decisions.update_victim.assert_not_called()

    def test_a_conflict_is_retried(self):
        """Allocations are read again, for each kind of step."""
        self.stop()
        self.servers.append(mock.Mock(uuid='a', project_id='own'))
        moved = placement_api.Conflict(
            'generation', placement_api.CONCURRENT_UPDATE)
        self.placement.post_allocations.side_effect = [
            moved, moved, None, moved, None]
        status, _lines = self.run_command(project_id='shared')
        self.assertEqual(0, status)
        self.assertEqual(['v'] * 3 + ['a'] * 3, [
            call.args[0] for call in self.placement.get_consumer.mock_calls])
        self.nova.unlock.assert_called_once_with('v')

    def test_conflicts_are_retried_a_limited_number_of_times(self):
        self.stop()
        self.placement.post_allocations.side_effect = placement_api.Conflict(
            'generation', placement_api.CONCURRENT_UPDATE)
        status, lines = self.run_command()
        self.assertEqual(1, status)
        self.assertIn('generation', lines[0])
        self.assertNotIn('no capacity', lines[0])
        self.nova.unlock.assert_not_called()

    def test_a_moved_server_has_its_space(self):
        self.stop()
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, {'q': FULL['p']}, 3))
        self.assertEqual(0, self.run_command()[0])
        self.placement.post_allocations.assert_not_called()
        self.nova.unlock.assert_called_once_with('v')

    def test_a_deleted_server(self):
        self.stop()
        self.nova.get.return_value = None
        self.assertEqual(0, self.run_command()[0])
        self.decisions.update_victim.assert_called_once_with('d', 'v',
                                                             decisions.GONE)
        self.nova.unlock.assert_not_called()

    def test_a_shelved_server_is_left_to_its_owner(self):
        self.victims[decisions.SHELVED] += [('d',
                                             db.Victim('a', restore=True)),
                                            ('d', db.Victim('b'))]
        status, lines = self.run_command()
        self.assertEqual((0, 1), (status, len(lines) - 1))
        self.decisions.update_victim.assert_called_once_with('d', 'a',
                                                             decisions.LEFT)

    def test_hosts_disabled_by_power_control(self):
        self.hosts += [host('on', True), host('off', False),
                       host('theirs', True, 'broken fan')]
        status, lines = self.run_command()
        self.assertEqual(1, status)
        self.assertEqual([('s-on',)], [
            call.args for call in self.nova.enable_service.mock_calls])
        self.assertIn('left: host off was powered off', lines[0])

    def test_allocations_under_another_project(self):
        self.servers += [mock.Mock(uuid='a', project_id='own'),
                         mock.Mock(uuid='b', project_id='shared')]
        status, _lines = self.run_command(project_id='shared')
        self.assertEqual(0, status)
        (posted,), _ = self.placement.post_allocations.call_args
        self.assertEqual([('a', 'own')], [
            (item.uuid, item.project_id) for item in posted])

    def test_an_open_preemption(self):
        self.decisions.get_open_decisions.return_value = [
            (db.Decision('d', 's', status=decisions.CLAIMED), 1.0)]
        status, lines = self.run_command()
        self.assertEqual(1, status)
        self.assertIn('preemption d is claimed', lines[0])

    def test_without_apply_it_only_reports(self):
        self.stop()
        self.hosts.append(host('on', True))
        status, lines = self.run_command(apply=False)
        self.assertEqual((1, 2), (status, len(lines)))
        self.assertEqual([], self.nova.mock_calls)
        self.placement.post_allocations.assert_not_called()

    def test_refused_calls_are_reported_as_left(self):
        self.stop()
        self.nova.unlock.side_effect = nova_api.NovaError('503')
        self.hosts.append(host('on', True))
        status, lines = self.run_command()
        self.assertEqual(1, status)
        self.assertIn('503', lines[0])
        self.nova.enable_service.assert_called_once_with('s-on')
