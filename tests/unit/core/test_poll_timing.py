# SPDX-License-Identifier: Apache-2.0
"""Poll intervals, time budgets and retries."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core import poll_timing
from nova_preempt.core.poll_timing import AttemptFailure


class TestWait(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.wait = poll_timing.BoundedWait(
            began=100, longest_s=10, interval_s=4)

    def test_pauses(self):
        for now, expected in ((100, 4), (106, 4), (107, 3), (109.5, 0.5),
                              (110, 0), (111, 0)):
            with self.subTest(now):
                self.assertEqual(expected, self.wait.pause_s(now))
                self.assertIs(expected == 0, self.wait.is_over(now))

    def test_a_wait_has_a_limit(self):
        self.assertEqual([4, 1, 0, 0], [
            self.wait.pause_s(100, left_s) for left_s in (9, 1, 0, -1)])

    def test_a_look_at_the_end_is_the_last(self):
        """However times are rounded."""
        wait = poll_timing.BoundedWait(0.1, 0.7, 0.2)
        now, looks = 0.1, 1
        while pause_s := wait.pause_s(now):
            now += pause_s
            looks += 1
        self.assertAlmostEqual(0.8, now)
        self.assertLessEqual(looks, 6)

    def test_nothing_is_waited_for(self):
        self.assertTrue(poll_timing.BoundedWait(5, 0, 1).is_over(5))


class TestReading(unittest.TestCase):

    def test_the_longer_it_takes_the_later_it_is_due(self):
        for took_s, max_age_s, expected in (
                (0, 1, 1), (0, 0, 0), (0.4, 0, 4), (0.4, 1, 4), (0.01, 1, 1),
                # However long it takes, and however old it may be.
                (60, 0, 5), (0, 60, 5)):
            reading = poll_timing.SharedRead(100, took_s)
            with self.subTest(took_s=took_s, max_age_s=max_age_s):
                self.assertTrue(reading.is_due(100 + expected, max_age_s))
                if expected:
                    self.assertFalse(
                        reading.is_due(99.9 + expected, max_age_s))


class TestTryAgain(unittest.TestCase):

    def again(self, failure, conflicts=0, attempts_left=1, left_s=1,
              outdated=False):
        return poll_timing.should_retry(
            failure, conflicts=conflicts, attempts_left=attempts_left,
            left_s=left_s, outdated=outdated)

    def test_after_a_race(self):
        for failure, conflicts, expected in (
                (AttemptFailure.NO_HOST, 0, False),
                (AttemptFailure.NO_HOST, 1, True), (
                    AttemptFailure.STUCK, 0, True),
                (AttemptFailure.LOST, 0, True),
                (AttemptFailure.OTHER, 1, False)):
            with self.subTest(failure=failure, conflicts=conflicts):
                self.assertIs(expected, self.again(failure, conflicts))

    def test_where_hosts_have_more_room_than_was_known(self):
        for failure, expected in ((AttemptFailure.NO_HOST, True),
                                  (AttemptFailure.OTHER, False)):
            self.assertIs(expected, self.again(failure, outdated=True))
        self.assertFalse(self.again(AttemptFailure.NO_HOST, outdated=True,
                                    left_s=0))

    def test_not_without_end(self):
        self.assertFalse(self.again(AttemptFailure.STUCK, attempts_left=0))
        self.assertFalse(self.again(AttemptFailure.STUCK, left_s=0))


class TestTimeBudget(unittest.TestCase):

    def test_defaults_of_nova(self) -> None:
        """1800 s, less the minute that it may have been in a queue."""
        times = poll_timing.make_time_budget(1800, 60, 120)
        self.assertEqual(poll_timing.TimeBudget(1740, 120), times)
        self.assertEqual(1560, times.notice_limit_s)

    def test_short(self) -> None:
        """Little time is shared by all that has to happen in it."""
        times = poll_timing.make_time_budget(10, 60, 120)
        self.assertEqual(poll_timing.TimeBudget(9, 2.25), times)
        self.assertEqual(6, times.notice_limit_s)

    def test_none(self) -> None:
        self.assertEqual(
            0, poll_timing.make_time_budget(0, 0, 1).notice_limit_s)

    @given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e5))
    def test_the_longest_notice_fits(self, patience_s: float, sign_s: float,
                                     termination_timeout_s: float) -> None:
        """A request that chooses at once can always wait for it."""
        times = poll_timing.make_time_budget(patience_s, sign_s,
                                    termination_timeout_s)
        self.assertLessEqual(times.whole_s, patience_s)
        self.assertGreaterEqual(times.whole_s - times.end_s,
                                times.notice_limit_s)
