# SPDX-License-Identifier: Apache-2.0
"""Lock around the selection of victims."""

import unittest

from nova_preempt.scheduler import scheduler_context


class TestSelectionLock(unittest.TestCase):

    def setUp(self):
        self.now = 0.0
        self.waited = []
        self.meanwhile = []
        self.lock = scheduler_context.VictimSelectionLock(
            10, lambda: self.now, self.wait)

    def wait(self, condition, seconds):
        """Run the next function of the test, or let time pass."""
        self.waited.append(seconds)
        if self.meanwhile:
            self.meanwhile.pop(0)()
        else:
            self.now += seconds

    def test_no_other_thread(self):
        for _ in range(2):
            self.lock.release(self.lock.acquire())
        self.assertEqual([], self.waited)

    def test_one_after_the_other(self):
        first = self.lock.acquire()
        self.now = 3
        self.meanwhile = [lambda: None, lambda: self.lock.release(first)]
        self.lock.acquire()
        self.assertEqual([7, 7], self.waited)
        self.assertEqual(3, self.now)

    def test_a_thread_that_hangs_delays_others_once(self):
        hangs = self.lock.acquire()
        with self.assertLogs(scheduler_context.__name__, 'WARNING'):
            second = self.lock.acquire()
        self.assertEqual(10, self.now)
        # Whatever becomes of the first one, it is not its turn any more.
        self.lock.release(hangs)
        self.meanwhile = [lambda: self.lock.release(second)]
        self.lock.acquire()
        self.assertEqual([10, 10], self.waited)
        self.assertEqual(10, self.now)
