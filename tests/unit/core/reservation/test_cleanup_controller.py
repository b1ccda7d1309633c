# SPDX-License-Identifier: Apache-2.0

"""Tests of servers whose reservation is over."""

import dataclasses
import unittest
from unittest import mock

from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import cleanup_controller
from nova_preempt.core.reservation import reservation_model

START, END = reservation_model.from_s(1000), reservation_model.from_s(2000)


def reservation(uuid, *hosts, status=reservation_model.ENDED):
    return reservation_model.Reservation(
        uuid, 'p', 1, 1000, START, 'delete', 0, status=status,
        start_at=START, end_at=END, hosts=tuple(
            reservation_model.Assignment(name, START, END, how) for name,
            how in hosts))


def server(uuid, *named, host='h1', vm_state='active', **values):
    return cleanup_controller.Server(uuid, host, named, vm_state,
                                     values.pop('task_state', None), **values)


@dataclasses.dataclass
class View:
    """View with the servers of a test."""

    there: tuple = ()
    to_come: tuple = ()
    reservation: reservation_model.Reservation = dataclasses.field(
        default_factory=lambda: reservation('r1',
                                            ('h1', reservation_model.READY)))
    running: dict = dataclasses.field(default_factory=dict)
    needed: frozenset = frozenset()
    dark: bool = False

    def servers(self, host):
        return [each for each in self.there if each.host == host]

    def coming(self):
        return self.to_come

    def homeless(self, coming):
        return coming


class TestWhoEnds(unittest.TestCase):

    def intents(self, *named, how=reservation_model.READY, preemptible=False,
                running=()):
        """Return the kinds of intents for a server that is there."""
        step = cleanup_controller.step(
            View((server('a', *named, preemptible=preemptible),),
                 reservation=reservation('r1', ('h1', how)),
                 running={item.uuid: item for item in running}),
            cleanup_controller.Memory(), 0)
        return [type(each) for each in step.intents]

    def test_servers_of_the_reservation_are_removed(self):
        for how in (reservation_model.READY, reservation_model.LOST):
            self.assertEqual([cleanup_controller.EndServer],
                             self.intents('r1', how=how))

    def test_servers_of_others_stay(self):
        for named in ((), ('r2',)):
            self.assertEqual([cleanup_controller.ReportStranger,
                              cleanup_controller.Release],
                             self.intents(*named))
        for values in ({'preemptible': True}, {'how': reservation_model.LOST}):
            self.assertEqual([cleanup_controller.Release],
                             self.intents(**values))

    def test_servers_of_a_running_reservation_stay(self):
        for status, host, how, expected in (
                (reservation_model.ACTIVE, 'h1', reservation_model.READY,
                 cleanup_controller.Release),
                (reservation_model.ACTIVE, 'h2', reservation_model.READY,
                 cleanup_controller.EndServer),
                (reservation_model.ACTIVE, 'h1', reservation_model.LOST,
                 cleanup_controller.EndServer),
                (reservation_model.ENDED, 'h1', reservation_model.READY,
                 cleanup_controller.EndServer)):
            with self.subTest(status=status, host=host, how=how):
                self.assertEqual([expected], self.intents(
                    'r1', 'r2', running=[reservation(
                        'r2', (host, how), status=status)]))


class TestStep(unittest.TestCase):

    def setUp(self):
        self.memory = cleanup_controller.Memory()
        self.enterContext(mock.patch.object(cleanup_controller, 'TIMEOUT_S',
                                            60))

    def step(self, view, at_s):
        found = cleanup_controller.step(view, self.memory, at_s * SECOND)
        # Equal input gives an equal step.
        self.assertEqual(found, cleanup_controller.step(view, self.memory,
                                                        at_s * SECOND))
        self.memory = found.memory
        is_over = any(isinstance(intent, cleanup_controller.Release)
                      for intent in found.intents)
        self.assertEqual(None if is_over else (at_s + 1) * SECOND,
                         found.wake_at_us)
        return found.intents

    def end(self, uuid):
        return cleanup_controller.EndServer(uuid, 'force_delete')

    def test_hosts_without_servers_are_released(self):
        self.assertEqual((cleanup_controller.Release(()),),
                         self.step(View(), 0))

    def test_calls_are_repeated_every_ten_seconds(self):
        view = View((server('a', 'r1'), server('b', 'r1')))
        ended = (self.end('a'), self.end('b'))
        for at_s, expected in ((0, ended), (9, ()), (10, ended), (59, ended),
                               (60,
                                (cleanup_controller.Release(view.there),))):
            self.assertEqual(expected, self.step(view, at_s))

    def test_strangers_are_reported(self):
        self.assertEqual(
            (cleanup_controller.ReportStranger('n', 'h1'),
             cleanup_controller.Release(())),
            self.step(View((server('n'), server('p', preemptible=True))), 0))

    def test_a_server_that_comes_late(self):
        coming = (server('a', 'r1', vm_state='building'),)
        view = View((), coming)
        for at_s, expected in ((0, ()), (29, ()), (30, (self.end('a'),)),
                               (60, (cleanup_controller.Release(coming),))):
            self.assertEqual(expected, self.step(view, at_s))

    def test_a_cell_that_cannot_be_read(self):
        self.step(View((server('a', 'r1'),)), 0)
        for there in ((), (server('a', 'r1'),)):
            self.assertEqual((), self.step(View(there, dark=True), 100))
        # That was no time in which nothing could leave.
        (release,) = self.step(View((server('a', 'r1'),)), 101)
        self.assertEqual(1, len(release.left))

    def test_servers_that_appear_after_the_release(self):
        released = dataclasses.replace(View().reservation, released_at=END)
        view = View((server('a', 'r1'),), reservation=released)
        for at_s, expected in ((0, (self.end('a'),)), (9, ()),
                               (10, (self.end('a'),))):
            found = cleanup_controller.step(view, self.memory, at_s * SECOND)
            self.memory = found.memory
            self.assertEqual((expected, None),
                             (found.intents, found.wake_at_us))

    def test_a_clock_that_was_turned_back(self):
        view = View((server('a', 'r1'),))
        self.step(view, 1000)
        for at_s, expected in ((100, ()), (109, ()),
                               (110, (self.end('a'),)),
                               (160,
                                (cleanup_controller.Release(view.there),))):
            self.assertEqual(expected, self.step(view, at_s))

    def test_a_server_that_is_gone_is_forgotten(self):
        self.step(View((server('a', 'r1'), server('b', 'r1'))), 0)
        self.step(View((server('b', 'r1'),)), 9)
        self.assertEqual({'a', 'b'}, {*self.memory.asked_us})
        self.step(View((server('b', 'r1'),)), 10)
        self.assertEqual({'b'}, {*self.memory.asked_us})

    def test_outcome(self):
        self.assertEqual({'status': reservation_model.ENDED},
                         cleanup_controller.outcome(reservation_model.ENDED,
                                                    []))
        said = 'servers were not removed within 60 s: '
        self.assertEqual(
            {'status': reservation_model.ERROR,
             'reason': f'{said}a (active) on h1, b (error) on h2',
             'public_reason': f'{said}a (active), b (error)'},
            cleanup_controller.outcome(reservation_model.ENDED, [
                server('a'), server('b', host='h2', vm_state='error')]))


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
                self.assertEqual(expected, cleanup_controller.call(
                    action, vm_state, task_state))

    def test_an_unshelvable_server_is_deleted_after_half_the_time(self):
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
                self.assertEqual(expected, cleanup_controller.call(
                    'shelve', vm_state, task_state, spent=spent,
                    needed=True))

    def test_a_server_on_a_needed_host_is_deleted_in_the_end(self):
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
                self.assertEqual(expected, cleanup_controller.call(
                    'shelve', vm_state, task_state,
                    cleanup_controller.ASK_AGAIN_S, spent=0.9, needed=True))
        self.assertEqual(['shelve', 'shelve'], [
            cleanup_controller.call('shelve', 'active', None,
                                    cleanup_controller.ASK_AGAIN_S, **values)
            for values in ({'spent': 0.89, 'needed': True}, {'spent': 1.0})])

    def test_no_server_is_deleted_before_it_was_asked_to_shelve(self):
        self.assertEqual(['shelve', 'force_delete'], [
            cleanup_controller.call('shelve', 'active', task_state, spent=0.9,
                                    needed=True)
            for task_state in (None, 'rebooting')])

    def test_no_server_locked_by_an_administrator_is_deleted(self):
        for action, vm_state, expected in (
                ('delete', 'active', ''), ('shelve', 'error', ''),
                ('shelve', 'soft-delete', ''), ('shelve', 'resized', ''),
                ('shelve', 'active', '')):
            with self.subTest(action=action, vm_state=vm_state):
                self.assertEqual(expected, cleanup_controller.call(
                    action, vm_state, None, cleanup_controller.ASK_AGAIN_S,
                    spent=0.9, needed=True, is_kept=True))
        self.assertEqual('shelve', cleanup_controller.call(
            'shelve', 'active', None, is_kept=True))

    def test_needed_hosts(self):
        self.assertEqual({'h1'}, cleanup_controller.needed([
            reservation('r1', ('h1', reservation_model.READY),
                        ('h2', reservation_model.LOST))]))

    def test_a_call_is_repeated_after_a_pause(self):
        self.assertEqual(['', 'force_delete'], [
            cleanup_controller.call('delete', 'active', None, asked_s)
            for asked_s in (9, 10)])
