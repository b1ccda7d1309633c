# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What becomes of servers whose reservation is over."""

import unittest

from nova_preempt.core.reservation import cleanup
from nova_preempt.core.reservation import model

START, END = model.from_s(1000), model.from_s(2000)


def reservation(uuid, *hosts, status=model.ENDED):
    return model.Reservation(
        uuid, 'p', 1, 1000, START, 'delete', 0, status=status,
        start_at=START, end_at=END, hosts=tuple(
            model.Assignment(name, START, END, how) for name, how in hosts))


class TestFate(unittest.TestCase):

    def fate(self, *named, how=model.READY, preemptible=False, running=()):
        mine = reservation('r1', ('h1', how))
        return cleanup.fate(mine, mine.hosts[0], named,
                            {item.uuid: item for item in running},
                            preemptible=preemptible)

    def test_its_own_ends(self):
        self.assertIs(cleanup.Fate.END, self.fate('r1'))
        self.assertIs(cleanup.Fate.END, self.fate('r1', how=model.LOST))

    def test_others_stay(self):
        self.assertIs(cleanup.Fate.STAY, self.fate())
        self.assertIs(cleanup.Fate.STAY, self.fate('r2'))
        for values in ({'preemptible': True}, {'how': model.LOST}):
            self.assertIs(cleanup.Fate.PASS, self.fate(**values))

    def test_one_that_another_reservation_has(self):
        for status, host, how, expected in (
                (model.ACTIVE, 'h1', model.READY, cleanup.Fate.PASS),
                (model.ACTIVE, 'h2', model.READY, cleanup.Fate.END),
                (model.ACTIVE, 'h1', model.LOST, cleanup.Fate.END),
                (model.ENDED, 'h1', model.READY, cleanup.Fate.END)):
            with self.subTest(status=status, host=host, how=how):
                self.assertIs(expected, self.fate('r1', 'r2', running=[
                    reservation('r2', (host, how), status=status)]))


class TestStep(unittest.TestCase):

    def step(self, left, **values):
        return cleanup.step(cleanup.State(left, **values), 60)

    def test_steps(self):
        self.assertIs(cleanup.Step.RELEASE, self.step(False))
        self.assertIs(cleanup.Step.END, self.step(True, asked_s=59))
        self.assertIs(cleanup.Step.RELEASE, self.step(True, asked_s=60))

    def test_waits(self):
        self.assertIs(cleanup.Step.WAIT, self.step(False, coming=True))
        self.assertIs(cleanup.Step.END, self.step(True, coming=True))
        for asked_s, expected in ((29, cleanup.Step.WAIT),
                                  (30, cleanup.Step.END),
                                  (60, cleanup.Step.RELEASE)):
            self.assertIs(expected, self.step(False, coming=True,
                                              asked_s=asked_s))
        for left in (False, True):
            self.assertIs(cleanup.Step.WAIT, self.step(left, dark=True))

    def test_outcome(self):
        self.assertEqual({'status': model.ENDED},
                         cleanup.outcome(model.ENDED, [], 60))
        said = 'servers did not leave in 60 s: '
        self.assertEqual(
            {'status': model.ERROR,
             'reason': f'{said}a (active) on h1, b (error) on h2',
             'public_reason': f'{said}a (active), b (error)'},
            cleanup.outcome(model.ENDED, [
                ('a', 'active', 'h1'), ('b', 'error', 'h2')], 60))


class TestCall(unittest.TestCase):

    def test_calls(self):
        for action, vm_state, task_state, expected in (
                ('delete', 'active', None, 'force_delete'),
                ('delete', 'shelved', None, 'force_delete'),
                ('delete', 'error', 'rebooting', 'force_delete'),
                ('delete', 'active', 'deleting', ''),
                ('delete', 'active', 'soft-deleting', ''),
                ('shelve', 'active', None, 'shelve'),
                ('shelve', 'stopped', None, 'shelve'),
                ('shelve', 'paused', None, 'shelve'),
                ('shelve', 'suspended', None, 'shelve'),
                ('shelve', 'shelved', None, 'shelve_offload'),
                ('shelve', 'shelved_offloaded', None, ''),
                ('shelve', 'resized', None, 'confirm_resize'),
                ('shelve', 'resized', 'resize_confirming', ''),
                ('shelve', 'rescued', None, 'unrescue'),
                ('shelve', 'soft-delete', None, 'force_delete'),
                ('shelve', 'error', None, ''),
                ('shelve', 'building', 'spawning', ''),
                ('shelve', 'active', 'shelving', '')):
            with self.subTest(action=action, vm_state=vm_state,
                              task_state=task_state):
                self.assertEqual(expected, cleanup.call(
                    action, vm_state, task_state))

    def test_who_is_not_shelved_in_half_its_time_is_deleted(self):
        for vm_state, task_state, spent, expected in (
                ('error', None, 0.49, ''),
                ('error', None, 0.5, 'force_delete'),
                ('building', 'spawning', 0.5, 'force_delete'),
                ('error', 'deleting', 0.5, ''),
                ('error', 'rebuilding', 0.5, ''),
                ('active', 'shelving_image_uploading', 0.5, ''),
                ('active', None, 0.5, 'shelve'),
                ('rescued', None, 0.5, 'unrescue')):
            with self.subTest(vm_state=vm_state, task_state=task_state):
                self.assertEqual(expected, cleanup.call(
                    'shelve', vm_state, task_state, spent=spent,
                    needed=True))

    def test_who_keeps_the_host_of_another_is_deleted_in_the_end(self):
        for vm_state, task_state, expected in (
                ('active', None, 'force_delete'),
                ('active', 'rescuing', 'force_delete'),
                ('active', 'deleting', ''),
                ('active', 'shelving_image_uploading', ''),
                ('active', 'migrating', ''),
                ('active', 'rebuilding', ''),
                ('shelved', 'shelving_offloading', ''),
                ('shelved', None, 'shelve_offload'),
                ('shelved_offloaded', 'spawning', ''),
                ('resized', None, 'force_delete'),
                ('rescued', None, 'force_delete')):
            with self.subTest(vm_state=vm_state, task_state=task_state):
                self.assertEqual(expected, cleanup.call(
                    'shelve', vm_state, task_state, cleanup.ASK_AGAIN_S,
                    spent=0.9, needed=True))
        self.assertEqual(['shelve', 'shelve'], [
            cleanup.call('shelve', 'active', None, cleanup.ASK_AGAIN_S,
                         **values)
            for values in ({'spent': 0.89, 'needed': True}, {'spent': 1.0})])

    def test_nobody_is_deleted_who_was_not_asked_before(self):
        self.assertEqual(['shelve', 'force_delete'], [
            cleanup.call('shelve', 'active', task_state, spent=0.9,
                         needed=True)
            for task_state in (None, 'rebooting')])

    def test_nobody_is_deleted_whom_an_administrator_has_locked(self):
        for action, vm_state, expected in (
                ('delete', 'active', ''), ('shelve', 'error', ''),
                ('shelve', 'soft-delete', ''), ('shelve', 'resized', ''),
                ('shelve', 'active', '')):
            with self.subTest(action=action, vm_state=vm_state):
                self.assertEqual(expected, cleanup.call(
                    action, vm_state, None, cleanup.ASK_AGAIN_S, spent=0.9,
                    needed=True, is_kept=True))
        self.assertEqual('shelve', cleanup.call(
            'shelve', 'active', None, is_kept=True))

    def test_which_hosts_others_need(self):
        self.assertEqual({'h1'}, cleanup.needed([
            reservation('r1', ('h1', model.READY), ('h2', model.LOST))]))

    def test_again_after_a_while(self):
        self.assertEqual(['', 'force_delete'], [
            cleanup.call('delete', 'active', None, asked_s)
            for asked_s in (9, 10)])
