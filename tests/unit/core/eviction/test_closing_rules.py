# SPDX-License-Identifier: Apache-2.0

"""Victims of rolled back preemptions, and outcomes of preemptors."""

import datetime
import unittest

from nova_preempt.core.eviction import closing_rules
from nova_preempt.core.observed_server import ObservedServer

RAN = datetime.datetime(2026, 1, 1)


class TestTakenBack(unittest.TestCase):

    def test_victims_that_need_their_space(self):
        for vm_state, task_state, host, there in (
                ('active', None, 'here', True),
                ('active', 'deleting', 'here', True),
                ('active', 'shelving', 'here', True),
                ('shelved', None, 'here', True),
                ('stopped', None, 'here', True),
                ('shelved_offloaded', None, None, False),
                ('active', None, 'there', False)):
            self.assertEqual(there, closing_rules.is_there(ObservedServer(
                'a', vm_state, task_state, host), 'here'))
        self.assertFalse(closing_rules.is_there(None, 'here'))

    def test_victims_that_are_moving(self):
        for task_state, moving in (
                ('migrating', True), ('resize_prep', True),
                ('resize_migrated', True), ('rebuilding', True),
                (None, False), ('deleting', False), ('powering-off', False)):
            self.assertEqual(moving, closing_rules.is_moving(ObservedServer(
                'a', 'active', task_state, 'here')))

    def test_victims_without_their_space(self):
        had = {'here': {'VCPU': 2, 'MEMORY_MB': 2}, 'shared': {'DISK_GB': 5}}
        for has, lacks in (
                ({}, True),
                (had, False),
                ({'shared': {'DISK_GB': 5}}, True),
                ({**had, 'here': {'VCPU': 1, 'MEMORY_MB': 2}}, True),
                # It was resized on its host.
                ({**had, 'here': {'VCPU': 4, 'MEMORY_MB': 1}}, False),
                # A migration has failed, and left it this.
                ({'there': {'VCPU': 2}, 'shared': {'DISK_GB': 5}}, True),
                ({**had, 'there': {'VCPU': 2}}, False)):
            self.assertEqual(lacks,
                             closing_rules.lacks_space(has, had, 'here'), has)

    def test_stopped_victims_without_their_space(self):
        had = {'here': {'VCPU': 2, 'MEMORY_MB': 2, 'DISK_GB': 5}}
        for has, lacks in (
                ({'here': {'DISK_GB': 5}}, True),
                ({}, True),
                # Given back already.
                (had, False),
                # Resized since.
                ({'here': {'VCPU': 4, 'MEMORY_MB': 4, 'DISK_GB': 5}}, False),
                ({'here': {'VCPU': 1, 'MEMORY_MB': 1, 'DISK_GB': 1}}, False),
                ({'here': {'DISK_GB': 9}}, False),
                ({'there': {'DISK_GB': 5}}, False)):
            self.assertEqual(
                lacks, closing_rules.lacks_what_stop_freed(has, had), has)

    def test_closing_statuses(self):
        for vm_state, task_state, host, status in (
                ('error', None, 'here', 'kept'),
                ('active', None, 'there', 'migrated'),
                ('active', 'deleting', 'here', 'ending'),
                ('active', 'shelving', 'here', 'ending'),
                ('shelved', 'shelving_offloading', 'here', 'ending'),
                ('shelved', None, 'here', 'shelved'),
                ('shelved_offloaded', None, None, 'shelved')):
            self.assertEqual(status, closing_rules.closing_status(
                ObservedServer('a', vm_state, task_state, host),
                'here', 'shelve'))
        self.assertEqual('gone',
                         closing_rules.closing_status(None, 'here', ''))

    def test_a_victim_shelved_by_its_owner_stays_shelved(self):
        seen = ObservedServer('a', 'shelved', None, 'here')
        for asked in ('', 'shelve_offload'):
            self.assertEqual('kept', closing_rules.closing_status(
                seen, 'here', asked))
        for asked in ('shelve', 'unrescue', 'confirm_resize',
                      'live_migrate'):
            self.assertEqual('shelved', closing_rules.closing_status(
                seen, 'here', asked))

    def test_an_eviction_that_does_not_show_yet(self):
        """Nova confirms a resize first, or the call is late, for example."""
        # The lock of a stopped one may be late, too.
        self.assertEqual('ending', closing_rules.closing_status(
            ObservedServer('a', 'stopped', None, 'here'), 'here', 'stop'))
        for asked in ('force_delete', 'shelve', 'stop'):
            for host, status in (('here', 'ending'), ('there', 'migrated')):
                self.assertEqual(status, closing_rules.closing_status(
                    ObservedServer('a', 'active', None, host), 'here', asked))
        for vm_state, task_state, asked in (
                ('active', None, ''), ('active', None, 'live_migrate'),
                ('stopped', None, ''), ('error', None, 'shelve')):
            self.assertEqual('kept', closing_rules.closing_status(
                ObservedServer('a', vm_state, task_state, 'here'), 'here',
                asked))

    def test_closing_statuses_of_victims_that_were_leaving(self):
        for vm_state, task_state, host, status in (
                ('active', 'deleting', 'here', None),
                ('active', 'shelving_image_uploading', 'here', None),
                ('shelved', 'shelving_offloading', 'here', None),
                ('shelved_offloaded', 'unshelving', None, None),
                ('shelved', None, 'here', 'shelved'),
                ('shelved_offloaded', None, 'here', 'shelved'),
                ('shelved_offloaded', None, None, 'shelved'),
                ('deleted', None, 'here', 'gone'),
                ('error', None, 'here', 'kept'),
                ('active', None, 'here', 'kept')):
            self.assertEqual(status, closing_rules.last_status(ObservedServer(
                'a', vm_state, task_state, host), 'shelve', 60))
        self.assertEqual('gone', closing_rules.last_status(None, '', 0))

    def test_an_unchanged_victim_is_kept_once_no_call_can_be_late(self):
        seen = ObservedServer('a', 'active', None, 'here')
        for age_s, status in ((0, None), (59.9, None), (60, 'kept')):
            self.assertEqual(status, closing_rules.last_status(
                seen, 'stop', age_s))

    def test_victims_that_a_failed_shelve_has_switched_off(self):
        shelve = ('shelve', 'Error', 'service')
        by_nova, by_owner = (('stop', None, project)
                             for project in (None, 'own'))
        not_by_nova, not_by_owner = (('stop', 'Error', project)
                                     for project in (None, 'own'))
        for vm_state, actions, is_off in (
                ('active', [shelve], True),
                ('active', [shelve, shelve], True),
                ('active', [('lock', None, 'own'), shelve], True),
                ('paused', [shelve], True),
                ('active', [], False),
                # Nova refused our call, or is about to shelve it.
                ('active', [('create', None, 'own')], False),
                ('active', [('shelve', None, 'service')], False),
                ('active', [('reboot', None, 'own'), shelve], False),
                # Nova keeps the memory of its guest.
                ('suspended', [shelve], False),
                ('shelved', [shelve], False),
                # Nova has seen it off, and has stopped it.
                ('stopped', [by_nova, shelve], True),
                ('stopped', [shelve, by_nova, shelve], True),
                # It could not stop it at once.
                ('active', [not_by_nova, shelve], True),
                ('stopped', [by_nova, not_by_nova, shelve], True),
                ('active', [not_by_nova], False),
                # Its owner wants it off.
                ('active', [not_by_owner, shelve], False),
                ('active', [('live-migration', 'Error', 'own'), shelve],
                 True),
                # It was off before.
                ('stopped', [shelve], False),
                ('stopped', [shelve, by_owner], False),
                ('stopped', [by_owner, shelve], False),
                ('stopped', [shelve, by_nova], False)):
            with self.subTest(vm_state=vm_state, actions=actions):
                self.assertIs(is_off, closing_rules.is_left_off(
                    vm_state, actions))


class TestPreemptorOutcome(unittest.TestCase):

    def outcome(self, vm_state='active', task_state=None, host='h',
                operation='create', **values):
        return closing_rules.preemptor_outcome(
            ObservedServer('s', vm_state, task_state, host, **{
                'flavor': 'f', 'launched_at': RAN, **values}),
            'h', operation, 'f')

    def test_outcomes_of_the_new_server(self):
        for expected, args, values in (
                (closing_rules.SERVED, ('active',), {}),
                (closing_rules.SERVED, ('resized',),
                 {'operation': 'resize'}),
                (closing_rules.SERVED, ('stopped',),
                 {'operation': 'evacuate'}),
                (closing_rules.ELSEWHERE, ('active', None, 'other'), {}),
                (closing_rules.FAILED, ('error',), {}),
                (closing_rules.FAILED, ('error', None, None), {}),
                (closing_rules.FAILED, ('shelved_offloaded', None, None),
                 {'operation': 'unshelve'}),
                # Its flavor is the old one.
                (closing_rules.FAILED, ('active',),
                 {'operation': 'resize', 'flavor': 'small'}),
                (closing_rules.SERVED, ('deleted',), {'deleted': True}),
                (closing_rules.DELETED, ('deleted',),
                 {'deleted': True, 'launched_at': None}),
                (closing_rules.DELETED, ('deleted', None, None),
                 {'deleted': True}),
                # Nova frees what it has before it is gone.
                (None, ('deleted',), {}),
                (None, ('deleted',), {'launched_at': None}),
                # It is what it was until it has been rebuilt.
                (None, ('error', 'rebuilding'), {'operation': 'evacuate'}),
                (None, ('error', 'rebuild_spawning'),
                 {'operation': 'evacuate'}),
                (closing_rules.FAILED, ('error',),
                 {'operation': 'evacuate'}),
                (closing_rules.FAILED, ('error', 'deleting'),
                 {'operation': 'evacuate'}),
                # By its owner, who was not served.
                (closing_rules.FAILED, ('error', 'rebuilding'), {}),
                (None, ('building', 'spawning'), {}),
                (None, ('building',), {}),
                (None, ('active', 'resize_migrating'),
                 {'operation': 'resize'})):
            self.assertEqual(expected, self.outcome(*args, **values),
                             (args, values))
        self.assertEqual(closing_rules.DELETED,
                         closing_rules.preemptor_outcome(None, 'h', 'create',
                                                         'f'))
