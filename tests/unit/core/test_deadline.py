# SPDX-License-Identifier: Apache-2.0
"""How long one request may take."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core import deadline
from nova_preempt.core import notice_period


class TestTimes(unittest.TestCase):

    def test_defaults_of_nova(self) -> None:
        """1800 s, less the minute that it may have been in a queue."""
        times = deadline.make_times(1800, 60, 120)
        self.assertEqual(deadline.Times(1740, 120), times)
        self.assertEqual(1560, times.notice_limit_s)

    def test_short(self) -> None:
        """Little time is shared by all that has to happen in it."""
        times = deadline.make_times(10, 60, 120)
        self.assertEqual(deadline.Times(9, 2.25), times)
        self.assertEqual(6, times.notice_limit_s)

    def test_none(self) -> None:
        self.assertEqual(0, deadline.make_times(0, 0, 1).notice_limit_s)

    @given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e5))
    def test_the_longest_notice_fits(self, patience_s: float, sign_s: float,
                                     termination_timeout_s: float) -> None:
        """A request that chooses at once can always wait for it."""
        times = deadline.make_times(patience_s, sign_s,
                                    termination_timeout_s)
        self.assertLessEqual(times.whole_s, patience_s)
        self.assertGreaterEqual(times.whole_s - times.end_s,
                                times.notice_limit_s)


class TestNotice(unittest.TestCase):

    def test_bounds(self) -> None:
        rule = notice_period.NoticeRule(30, 10, 60)
        self.assertEqual([30, 10, 60, 45], [
            rule.length_s(asked_s) for asked_s in (None, 0, 90, 45)])

    def test_the_longest_counts_first(self) -> None:
        self.assertEqual(5, notice_period.NoticeRule(30, 10, 5).length_s(None))
