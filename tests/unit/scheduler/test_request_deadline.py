# SPDX-License-Identifier: Apache-2.0
"""Tests of deadlines and of the limit of waiting requests."""

import threading
import unittest

from nova_preempt import metrics
from nova_preempt.core import poll_timing
from nova_preempt.scheduler import request_deadline


class TestDeadline(unittest.TestCase):

    def setUp(self):
        self.now = 1000
        self.slots = threading.Semaphore(1)
        self.deadline = self.make()

    def make(self):
        return request_deadline.Deadline(poll_timing.TimeBudget(100, 20),
                                         self.slots, lambda: self.now)

    def test_time_passes(self):
        self.assertEqual(1000, self.deadline.began)
        self.assertEqual((100, 80), (self.deadline.left_s(),
                                     self.deadline.longest_notice_s()))
        self.now = 1081
        self.assertEqual(-1, self.deadline.longest_notice_s())
        self.now = 1099
        self.assertFalse(self.deadline.is_over())
        self.deadline.check()
        self.now = 1101
        self.assertTrue(self.deadline.is_over())
        self.assertEqual(0, self.deadline.left_s())
        self.assertRaisesRegex(request_deadline.TimeIsUp, 'could claim',
                               self.deadline.check, 'claim')

    def test_one_slot(self):
        other = self.make()
        with self.deadline, other:
            self.assertTrue(self.deadline.may_wait())
            self.assertTrue(self.deadline.may_wait())
            self.assertFalse(other.may_wait())
        self.assertTrue(other.is_refused)
        self.assertTrue(self.make().may_wait())

    def test_gauge(self):
        gauge = metrics.WAITING._value.get
        before = gauge()
        with self.deadline, self.make() as other:
            self.deadline.may_wait()
            other.may_wait()
            self.assertEqual(before + 1, gauge())
        self.assertEqual(before, gauge())

    def test_queries_have_no_slot(self):
        asks = request_deadline.Deadline(
            poll_timing.TimeBudget(100, 20), None, lambda: self.now)
        with self.deadline, asks:
            self.assertTrue(self.deadline.may_wait())
            self.assertTrue(asks.may_wait())
