# SPDX-License-Identifier: Apache-2.0
"""Progress on a terminal."""

import io
import sys
import unittest
from unittest import mock

from nova_preempt.pictures import progress_bar


class TestFollowed(unittest.TestCase):

    def follow(self, share, is_terminal=True, **given):
        """Return the lines that are shown for three items, one a second."""
        times = iter(range(100))
        stream = io.StringIO()
        stream.isatty = lambda: is_terminal
        with mock.patch.object(sys, 'stderr', stream):
            self.assertEqual([4, 5, 6], list(progress_bar.followed(
                [4, 5, 6], lambda count, item, took_s: (
                    share, f'{count} {item} {took_s}'),
                clock=lambda: next(times), **given)))
        return [line.strip() for line in stream.getvalue().split('\r')[1:]]

    def test_a_bar(self):
        self.assertEqual(
            '[######..................] 25 %, 3 s left, 1 4 1',
            self.follow(0.25)[0])
        self.assertEqual('[########################] 100 %, 0 s left, 3 6 3',
                         self.follow(1.5)[2])

    def test_an_unknown_share(self):
        self.assertEqual(['1 4 1', '2 5 2', '3 6 3'], self.follow(None))

    def test_nothing_is_shown(self):
        self.assertEqual([], self.follow(0.5, is_terminal=False))
        self.assertEqual([], self.follow(0.5, is_wanted=False))
