# SPDX-License-Identifier: Apache-2.0

"""Actions of evictions, and the resources that they free."""

import types
import unittest

from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions
from nova_preempt.core import notice_period

NOTICE = notice_period.NoticeRule(30, 10, 60)
STATES = ('active', 'paused', 'stopped', 'suspended', 'rescued', 'resized',
          'error', 'shelved', 'soft-delete')


class TestChoose(unittest.TestCase):

    def test_the_action_of_the_flavor_if_it_is_allowed(self):
        for asked, allowed, chosen in (
                ('', ['shelve', 'stop'], 'shelve'),
                ('stop', ['shelve', 'stop'], 'stop'),
                ('delete', ['shelve', 'stop'], 'shelve'),
                ('migrate', ['migrate', 'stop'], 'stop'),
                ('stop', ['migrate'], 'delete'), ('', [], 'delete')):
            self.assertEqual(chosen, eviction_actions.choose(asked, allowed))

    def test_servers_that_keep_parts_of_their_host_are_not_stopped(self):
        for asked, allowed, chosen in (
                ('stop', ['delete', 'shelve', 'stop'], 'delete'),
                ('stop', ['stop', 'shelve', 'delete'], 'shelve'),
                ('stop', ['delete', 'stop', 'migrate', 'shelve'], 'shelve'),
                ('', ['stop', 'delete'], 'delete'),
                ('migrate', ['stop', 'migrate', 'shelve'], 'shelve'),
                ('shelve', ['stop', 'shelve'], 'shelve'),
                # Nothing else is allowed.
                ('', ['migrate', 'stop'], 'stop')):
            self.assertEqual(chosen, eviction_actions.choose(asked, allowed,
                                                             pinned=True))


class TestNextCall(unittest.TestCase):

    def test_the_own_action_while_it_is_possible(self):
        allowed = ['delete', 'shelve', 'stop']
        for vm_state in STATES:
            if vm_state not in ('error', 'soft-delete'):
                self.assertNotEqual('force_delete', eviction_actions.next_call(
                    'shelve', allowed, vm_state), vm_state)

    def test_the_next_allowed_action(self):
        for allowed, call in ((['shelve', 'delete'], 'force_delete'),
                              (['delete', 'shelve'], 'force_delete'),
                              (['shelve', 'stop', 'migrate'], None),
                              ([], None)):
            self.assertEqual(call,
                             eviction_actions.next_call('shelve', allowed,
                                                              'error'))


class TestFreed(unittest.TestCase):

    def test_everything_unless_it_is_stopped(self):
        resources = {'VCPU': 1, 'MEMORY_MB': 2, 'DISK_GB': 3, 'PCPU': 4,
                     'VGPU': 5, 'NET_BW_EGR_KILOBIT_PER_SEC': 6}
        for action in ('delete', 'shelve'):
            self.assertEqual(resources,
                             eviction_actions.freed(resources, action))
            self.assertEqual({}, eviction_actions.kept(resources, action))

    def test_a_stopped_server_frees_vcpus_and_memory(self):
        resources = {'VCPU': 1, 'MEMORY_MB': 2, 'DISK_GB': 3, 'PCPU': 4,
                     'VGPU': 5, 'CUSTOM_PCI': 0}
        self.assertEqual({'VCPU': 1, 'MEMORY_MB': 2},
                         eviction_actions.freed(resources, 'stop'))
        self.assertEqual({'DISK_GB': 3, 'PCPU': 4, 'VGPU': 5},
                         eviction_actions.kept(resources, 'stop'))

    def test_is_plain(self):
        self.assertTrue(eviction_actions.is_plain(['VCPU', 'MEMORY_MB',
                                                   'DISK_GB']))
        self.assertTrue(eviction_actions.is_plain([]))
        self.assertFalse(eviction_actions.is_plain(['VCPU', 'VGPU']))


class TestShelvedVictims(unittest.TestCase):

    def test_a_shelved_victim_is_offloaded_by_each_action(self):
        for action in ('delete', 'shelve', 'stop'):
            self.assertEqual('shelve_offload',
                             eviction_actions.call(action, 'shelved'))
            self.assertEqual('shelve_offload', eviction_actions.next_call(
                action, ('delete', 'stop'), 'shelved'))
        # A reservation that deletes its servers in the end deletes them all.
        self.assertEqual('force_delete',
                         eligibility.next_call('delete', 'shelved'))


def of(*allowed, action='', notice_s=None, restore=False, pinned=False,
       one_time=False):
    return eviction_actions.terms_of(types.SimpleNamespace(
        action=action, notice_s=notice_s, restore=restore, pinned=pinned,
        one_time=one_time), allowed, NOTICE)


class TestTerms(unittest.TestCase):

    def test_terms_of_the_flavor(self):
        self.assertEqual(
            eviction_actions.EvictionTerms('stop', 45, restore=False),
            of('shelve', 'stop', action='stop', notice_s=45))

    def test_terms_within_the_limits_of_the_operator(self):
        self.assertEqual(
            eviction_actions.EvictionTerms('shelve', 60, restore=False),
            of('shelve', 'stop', action='delete', notice_s=9999))
        self.assertEqual(eviction_actions.EvictionTerms('delete', 30,
                                                        restore=False),
                         of('migrate', action='stop'))

    def test_only_shelved_servers_come_back(self):
        self.assertTrue(of('shelve', restore=True).restore)
        self.assertFalse(of('stop', restore=True).restore)

    def test_terms_with_the_action_migrate(self):
        self.assertEqual(
            eviction_actions.EvictionTerms('shelve', 30, restore=True,
                                           migrate=True),
            of('shelve', 'migrate', action='migrate', restore=True))
        # Where nobody may be moved it is no more than another name.
        self.assertFalse(of('shelve', action='migrate').migrate)

    def test_a_server_with_a_one_time_device_is_not_migrated(self):
        """The server would use another device on its new host."""
        self.assertEqual(
            eviction_actions.EvictionTerms('delete', 30, restore=False),
            of('delete', 'migrate', action='migrate', one_time=True))
        for allowed in (['migrate', 'delete'], ['delete', 'migrate']):
            self.assertFalse(
                eviction_actions.is_migrated_first('migrate', allowed,
                                                   one_time=True))
        self.assertFalse(
            eviction_actions.is_migrated_first('delete', ['migrate'],
                                               one_time=True))

    def test_servers_that_are_migrated_first(self):
        for allowed, asking, others in (
                (['migrate', 'stop'], True, True),
                (['stop', 'migrate'], True, False), ([], True, False)):
            for action, expected in (('migrate', asking), ('stop', others)):
                self.assertEqual(
                    expected,
                    eviction_actions.is_migrated_first(action, allowed),
                    (allowed, action))
