# SPDX-License-Identifier: Apache-2.0

"""Servers at their maximum run time."""

import dataclasses
import datetime
import unittest

from nova_preempt.core.eviction import expiry_controller
from nova_preempt.core.model import SECOND


@dataclasses.dataclass(frozen=True)
class Server:
    vm_state: str = 'active'
    task_state: str | None = None
    locked_by: str = ''
    one_time: bool = False
    minimum_runtime_s: int = 0
    class_name: str = ''
    action: str = ''
    restore: bool = True
    maximum_runtime_s: int | None = None
    launched_at: datetime.datetime = datetime.datetime(1970, 1, 1)


def step(server=None, limit_s=100, uptime_s=100, action='delete'):
    observed = expiry_controller.Observed(
        (server or Server(),), limit_s, lambda server: action)
    return expiry_controller.step(observed, None, uptime_s * SECOND)


def is_over(*args, **values):
    return bool(step(*args, **values).intents)


class TestExpiry(unittest.TestCase):

    def test_the_flavor_has_the_last_word(self):
        self.assertEqual([5, 0, 7], [
            expiry_controller.limit_s(None, 5),
            expiry_controller.limit_s(0, 5), expiry_controller.limit_s(7, 5)])

    def test_once_it_has_run_for_so_long(self):
        self.assertEqual([False, True, True], [
            is_over(uptime_s=seconds) for seconds in (99, 100, 101)])

    def test_a_server_is_due_at_its_limit(self):
        self.assertEqual(100 * SECOND, step(uptime_s=5).wake_at_us)
        self.assertEqual(100 * SECOND, step(uptime_s=-5).wake_at_us)
        self.assertIsNone(step(uptime_s=100).wake_at_us)
        self.assertIsNone(step(Server('stopped'), uptime_s=5).wake_at_us)

    def test_how_long_it_may_run_on(self):
        for uptime_us, expected in ((0, 100), (1_500_000, 99), (10**9, 0)):
            self.assertEqual(expected, expiry_controller.left_s(
                Server(), 100, 'delete', uptime_us))
        for server, limit_s in ((Server(), 0), (Server('stopped'), 100),
                                (Server(locked_by='admin'), 100)):
            self.assertIsNone(expiry_controller.left_s(server, limit_s,
                                                       'delete', 0))

    def test_without_a_limit_it_never_is(self):
        self.assertFalse(is_over(limit_s=0))

    def test_a_minimum_does_not_lengthen_it(self):
        self.assertTrue(is_over(Server(minimum_runtime_s=1000)))

    def test_states(self):
        for vm_state, expected in (
                ('paused', True), ('suspended', True), ('rescued', True),
                ('resized', True), ('stopped', False), ('error', False),
                ('shelved_offloaded', False), ('building', False)):
            with self.subTest(vm_state):
                self.assertIs(expected, is_over(Server(vm_state)))

    def test_locks_that_lengthen_the_run_time(self):
        self.assertTrue(is_over(Server(locked_by='owner')))
        self.assertFalse(is_over(Server(locked_by='admin')))

    def test_a_class_server_that_would_be_deleted_runs_on(self):
        server = Server(class_name='gold')
        self.assertFalse(is_over(server))
        self.assertTrue(is_over(server, action='shelve'))

    def test_not_while_something_is_done_with_it(self):
        self.assertFalse(is_over(Server(task_state='rebooting')))
