# SPDX-License-Identifier: Apache-2.0
"""Tests of eviction terms from flavors and options."""

import datetime
import types
import unittest

from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions
from nova_preempt.core import model
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.handover import eviction_policy


def server(**values):
    return model.PreemptibleServer(**{
        'uuid': 'a', 'host': 'h', 'node': 'h', 'cell_uuid': 'c',
        'project_id': 'p', 'user_id': 'u', 'flavor': 'spot',
        'launched_at': datetime.datetime(2026, 1, 1), 'vm_state': 'active',
        'task_state': None, 'minimum_runtime_s': 0,
        'vcpus': 1, 'memory_mb': 1024, 'disk_mb': 1024, **values})


class TestTerms(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.options = types.SimpleNamespace(
            honored_locks='admin', minimum_runtime_s=0,
            actions=['migrate', 'shelve', 'stop'], notice_s=30,
            minimum_notice_s=10, maximum_notice_s=60)

    def terms(self, **values):
        return eviction_policy.get_terms(server(**values), self.options)

    def test_defaults(self):
        self.assertEqual(eviction_actions.EvictionTerms('shelve', 30, False),
                         self.terms())

    def test_flavor(self):
        self.assertEqual(
            eviction_actions.EvictionTerms('stop', 45, False),
            self.terms(action='stop', notice_s=45, restore=True))
        self.assertEqual(eviction_actions.EvictionTerms('shelve', 30, True),
                         self.terms(restore=True))

    def test_a_flavor_that_asks_to_be_migrated(self):
        self.assertEqual(
            eviction_actions.EvictionTerms('shelve', 30, False, migrate=True),
            self.terms(action='migrate'))
        # It is shelved where it cannot be moved: then it comes back.
        self.assertTrue(self.terms(action='migrate', restore=True).restore)
        self.options.actions = ['stop', 'shelve']
        self.assertEqual(eviction_actions.EvictionTerms('stop', 30, False),
                         self.terms(action='migrate', restore=True))

    def victim(self, action):
        return eviction_policy.make_victim(server(action=action), self.options)

    def test_servers_that_are_migrated_first(self):
        for allowed, asking, others in (
                (['migrate', 'stop'], True, True),
                (['stop', 'migrate'], True, False),
                (['stop'], False, False), ([], False, False)):
            self.options.actions = allowed
            for action, expected in (('migrate', asking), ('stop', others),
                                     ('', others)):
                self.assertEqual(expected, eviction_actions.is_migrated_first(
                    self.victim(action).action, self.options.actions),
                    (allowed, action))

    def test_the_last_resort_of_a_victim(self):
        self.options.actions = ['shelve', 'stop', 'migrate']
        for action, expected in (('migrate', 'shelve'), ('stop', 'stop'),
                                 ('', 'shelve')):
            self.assertEqual(expected, eviction_actions.last_resort(
                self.victim(action).action, self.options.actions))

    def test_bounds(self):
        for asked, given in ((0, 10), (9, 10), (60, 60), (9999, 60)):
            self.assertEqual(given, self.terms(notice_s=asked).notice_s)
        for action in ('delete', 'nonsense', ''):
            self.assertEqual('shelve', self.terms(action=action).action)

    def test_delete_follows_if_only_migrate_is_allowed(self):
        self.options.actions = ['migrate']
        self.assertEqual('delete', self.terms(action='stop').action)
        self.assertEqual('delete', self.terms(action='migrate').action)

    def test_states(self):
        for action, vm_state, possible in (
                ('shelve', 'suspended', True), ('shelve', 'error', False),
                ('stop', 'error', True), ('stop', 'building', False),
                # What its owner can bring it into is no refuge.
                ('shelve', 'rescued', True), ('shelve', 'resized', True),
                ('stop', 'paused', True), ('stop', 'suspended', True),
                ('stop', 'rescued', True), ('stop', 'resized', True),
                ('stop', 'shelved', True), ('stop', 'soft-delete', True),
                ('shelve', 'soft-delete', True)):
            self.assertEqual(not possible, bool(eviction_policy.why_not(
                server(action=action, vm_state=vm_state), self.options)),
                (action, vm_state))
        self.options.actions = ['delete']
        self.assertFalse(eviction_policy.why_not(server(vm_state='error'),
                                                 self.options))

    def test_actions_that_vacate_a_host(self):
        self.options.actions = ['delete', 'shelve', 'stop']
        for action, vm_state, left in (
                ('delete', 'rescued', 'delete'),
                ('shelve', 'active', 'shelve'),
                ('shelve', 'rescued', 'shelve'),
                ('stop', 'resized', 'shelve'),
                ('stop', 'active', 'shelve'), ('stop', 'stopped', 'shelve'),
                ('stop', 'error', 'delete')):
            self.assertEqual(left, eviction_policy.vacating_action(
                server(action=action, vm_state=vm_state), self.options),
                (action, vm_state))
        # Who is promised to come back is never deleted in its place, also
        # where the operator has taken shelve from the list since.
        self.options.actions = ['delete']
        for class_name, left in (('gold', 'shelve'), ('', 'delete')):
            self.assertEqual(left, eviction_policy.vacating_action(
                server(action='shelve', class_name=class_name),
                self.options))

    def test_servers_that_stay_on_a_needed_host(self):
        self.options.actions = ['shelve', 'delete']
        for values, stays in (
                ({'class_name': 'gold', 'vm_state': 'error'}, True),
                ({'class_name': 'gold', 'vm_state': 'rescued'}, False),
                # Its owner has deleted it.
                ({'class_name': 'gold', 'vm_state': 'soft-delete'}, False),
                ({'vm_state': 'error'}, False),
                ({'one_time': True}, True),
                ({'one_time': True, 'vm_state': 'error'}, False),
                ({'locked_by': 'admin'}, True),
                ({'locked_by': 'owner'}, False)):
            self.assertEqual(stays, bool(eviction_policy.why_stays(
                server(action='shelve', **values), self.options)), values)

    def test_servers_of_a_class_are_only_shelved(self):
        for allowed, possible in ((['stop', 'shelve'], True),
                                  (['delete'], False), (['stop'], False)):
            self.options.actions = allowed
            self.assertEqual(not possible, bool(eviction_policy.why_not(
                server(action='shelve', class_name='gold'), self.options)))
            self.assertFalse(eviction_policy.why_not(
                server(action='shelve'), self.options))

    def test_servers_that_keep_parts_of_a_host_are_not_stopped(self):
        """The next action applies, in the choice and in the eviction."""
        self.options.actions = ['delete', 'stop', 'shelve']
        plain, pinned = (server(action='stop', pinned=value)
                         for value in (False, True))
        self.assertEqual('stop', self.victim_of(plain).last_resort)
        victim = self.victim_of(pinned)
        self.assertEqual(('shelve', 'shelve'),
                         (victim.action, victim.last_resort))
        policy = preemption_policy.Policy(eligibility.Rules(),
                                          tuple(self.options.actions), None)
        held = {('rp', name): 1 for name in ('VCPU', 'VGPU', 'DISK_GB')}
        self.assertEqual({('rp', 'VCPU'): 1}, policy.freed(plain, held))
        self.assertEqual(held, policy.freed(pinned, held))

    def test_only_stop_is_allowed(self):
        policy = preemption_policy.Policy(eligibility.Rules(), ('stop',), None)
        now = datetime.datetime(2026, 1, 2)
        for pinned in (False, True):
            self.assertEqual(not pinned, policy.may_be_victim(
                server(pinned=pinned), now))

    def victim_of(self, item):
        return eviction_policy.make_victim(item, self.options)

    def test_freed_resources(self):
        resources = {'VCPU': 1, 'DISK_GB': 10}
        for action in ('delete', 'shelve'):
            self.assertEqual(resources,
                             eviction_actions.freed(resources, action))
        self.assertEqual({'VCPU': 1},
                         eviction_actions.freed(resources, 'stop'))
