# SPDX-License-Identifier: Apache-2.0
"""Length of a notice."""

import unittest

from nova_preempt.core import notice_period


class TestNotice(unittest.TestCase):

    def test_bounds(self) -> None:
        rule = notice_period.NoticeRule(30, 10, 60)
        self.assertEqual([30, 10, 60, 45], [
            rule.length_s(asked_s) for asked_s in (None, 0, 90, 45)])

    def test_the_longest_counts_first(self) -> None:
        self.assertEqual(5, notice_period.NoticeRule(30, 10, 5).length_s(None))
