# SPDX-License-Identifier: Apache-2.0
"""Retention of stopped victims."""

import unittest

from nova_preempt.core import observed_server
from nova_preempt.core.eviction import stopped_victim_controller
from nova_preempt.core.model import SECOND


class TestStopped(unittest.TestCase):
    """Tests of stopped victims."""

    def step(self, seen, now_s=0, **values):
        return stopped_victim_controller.step(
            stopped_victim_controller.Observed(seen, 0, **values), None,
            now_s * SECOND)

    def found(self, vm_state, task_state=None, kept=False, ours=True):
        intents = self.step(observed_server.ObservedServer(
            'a', vm_state, task_state, 'h'),
                            retention_s=int(kept), ours=ours).intents
        return intents[0] if intents else None

    def test_they_are_kept_for_a_while(self):
        seen = observed_server.ObservedServer('a', 'stopped', None, 'h')
        self.assertEqual([60 * SECOND, None, None], [
            self.step(seen, now_s, retention_s=60).wake_at_us
            for now_s in (59, 60, 61)])
        self.assertEqual([0, 1, 1], [
            len(self.step(seen, now_s, retention_s=60).intents)
            for now_s in (59, 60, 61)])

    def test_no_victim_is_deleted_while_paused(self):
        self.assertEqual((), self.step(observed_server.ObservedServer(
            'a', 'stopped', None, 'h'), 61,
                                       retention_s=60, paused=True).intents)

    def test_a_running_victim_is_never_deleted(self):
        for vm_state in ('active', 'paused', 'suspended', 'rescued',
                         'resized'):
            for kept in (False, True):
                self.assertEqual(
                    stopped_victim_controller.NextAction.GIVE_BACK,
                    self.found(vm_state, kept=kept))

    def test_a_victim_with_a_task_is_left(self):
        for vm_state in ('stopped', 'active', 'shelved_offloaded'):
            self.assertIsNone(self.found(vm_state, 'migrating'))

    def test_a_stopped_victim_is_deleted_in_the_end(self):
        for vm_state in ('stopped', 'error', 'shelved', 'soft-delete'):
            self.assertEqual(stopped_victim_controller.NextAction.DELETE,
                             self.found(vm_state))
            self.assertIsNone(self.found(vm_state, kept=True))

    def test_a_victim_without_our_lock_is_not_deleted(self):
        for vm_state in ('stopped', 'error', 'shelved', 'soft-delete'):
            self.assertEqual(stopped_victim_controller.NextAction.NOT_OURS,
                             self.found(vm_state, ours=False))
            self.assertIsNone(self.found(vm_state, kept=True, ours=False))
        self.assertIsNone(self.found('stopped', 'deleting', ours=False))
        self.assertEqual(stopped_victim_controller.NextAction.GIVE_BACK,
                         self.found('active', ours=False))

    def test_a_victim_that_is_gone_or_offloaded(self):
        self.assertEqual(stopped_victim_controller.NextAction.GONE,
                         self.step(None, retention_s=1).intents[0])
        self.assertEqual(stopped_victim_controller.NextAction.SHELVED,
                         self.found('shelved_offloaded'))
