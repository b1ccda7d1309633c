# SPDX-License-Identifier: Apache-2.0

"""Eligibility of servers in every state that owners bring about."""

import dataclasses
import unittest

from nova_preempt.core import eligibility

# What Nova 2025.1 to 2026.2 accept, and the state that follows.
NOVA = {
    'confirm_resize': ({'resized'}, 'active'),
    'unrescue': ({'rescued'}, 'active'),
    'unpause': ({'paused'}, 'active'),
    'resume': ({'suspended'}, 'active'),
    'stop': ({'active', 'error'}, 'stopped'),
    'shelve': ({'active', 'stopped', 'paused', 'suspended'}, 'shelved'),
    'shelve_offload': ({'shelved'}, 'shelved_offloaded'),
}
ENDED = ('stopped', 'shelved_offloaded')
STATES = ('active', 'paused', 'stopped', 'suspended', 'rescued', 'resized',
          'shelved', 'soft-delete')


@dataclasses.dataclass(frozen=True)
class Server:

    vm_state: str = 'active'
    task_state: str | None = None
    locked_by: str = ''
    one_time: bool = False
    minimum_runtime_s: int = 0


class TestSpace(unittest.TestCase):

    def test_servers_that_need_their_space(self):
        for expected, states in (
                (True, ('active', 'stopped', 'error', 'resized', 'shelved')),
                (False, ('soft-delete', 'shelved_offloaded', 'deleted'))):
            for vm_state in states:
                self.assertIs(expected, eligibility.needs_allocation(
                    vm_state, None), vm_state)
                self.assertFalse(eligibility.needs_allocation(
                    vm_state, 'migrating'))


class TestCalls(unittest.TestCase):

    def walk(self, action, vm_state):
        """The states on the way to an end, by calls that Nova accepts."""
        for _step in range(5):
            call = eligibility.next_call(action, vm_state)
            if call == eligibility.THERE:
                return vm_state
            if call == 'force_delete':
                return 'deleted'
            accepted, after = NOVA[call]
            self.assertIn(vm_state, accepted, call)
            vm_state = after
        raise AssertionError(f'{action} never ends')

    def test_every_state_leads_to_the_end(self):
        for action, ends in (('delete', ('deleted',)),
                             ('shelve', ('shelved_offloaded', 'deleted')),
                             ('stop', (*ENDED, 'deleted'))):
            for vm_state in STATES:
                end = self.walk(action, vm_state)
                self.assertIn(end, ends, (action, vm_state))
                # Nothing that its owner has not deleted is lost.
                if action != 'delete':
                    self.assertEqual(vm_state == 'soft-delete',
                                     end == 'deleted', (action, vm_state))

    def test_impossible(self):
        for action, vm_state in (('shelve', 'error'), ('shelve', 'building'),
                                 ('stop', 'building')):
            self.assertIsNone(eligibility.next_call(action, vm_state))


class TestRules(unittest.TestCase):

    def why_not(self, action='shelve', locks='admin', **values):
        return eligibility.Rules(locks).why_not(Server(**values), action)

    def test_states(self):
        for vm_state in STATES:
            for action in ('delete', 'shelve', 'stop'):
                self.assertEqual('', self.why_not(action, vm_state=vm_state))
        self.assertEqual('', self.why_not('delete', vm_state='error'))
        self.assertEqual('', self.why_not('stop', vm_state='error'))
        self.assertEqual('it is error', self.why_not(vm_state='error'))
        for vm_state in ('building', 'deleted', 'shelved_offloaded'):
            self.assertEqual(f'it is {vm_state}',
                             self.why_not('delete', vm_state=vm_state))

    def test_work_in_progress(self):
        self.assertEqual('it is resize_prep',
                         self.why_not(task_state='resize_prep'))

    def test_locks(self):
        self.assertEqual('', self.why_not(locked_by='owner'))
        self.assertEqual('it is locked by an administrator',
                         self.why_not(locked_by='admin'))
        for locked_by, who in (('owner', 'its owner'),
                               ('admin', 'an administrator')):
            self.assertEqual(f'it is locked by {who}',
                             self.why_not(locks='all', locked_by=locked_by))

    def test_a_device_that_can_be_used_once_is_not_wasted(self):
        self.assertEqual(
            'it has a one-time-use PCI device, which shelve would use '
            'up', self.why_not('shelve', one_time=True))
        for action in ('delete', 'stop'):
            self.assertEqual('', self.why_not(action, one_time=True))
        for action in ('shelve', 'migrate'):
            self.assertTrue(eligibility.wastes_device(action, one_time=True))
            self.assertFalse(eligibility.wastes_device(action, one_time=False))

    def test_promised_run_time(self):
        for operator_s, flavor_s in ((60, 0), (0, 60), (60, 59), (5, 60)):
            rules = eligibility.Rules(minimum_runtime_s=operator_s)
            server = Server(minimum_runtime_s=flavor_s)
            self.assertFalse(rules.may_be_victim(server, 'stop', 59_999_999))
            self.assertTrue(rules.may_be_victim(server, 'stop', 60_000_000))
        self.assertFalse(eligibility.Rules().may_be_victim(
            Server(locked_by='admin'), 'stop', 0))
