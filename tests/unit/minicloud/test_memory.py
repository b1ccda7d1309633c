# SPDX-License-Identifier: Apache-2.0
"""Tests of the report of memory growth."""

import unittest

from tests.cloud import memory

NAME = 'nova-preempt-engine-1'


class TestReport(unittest.TestCase):

    def report(self, *sizes_mb):
        watched = memory.Memory(None, [])
        watched.read[NAME, 7] = [
            (60 * minute, size * memory.MB)
            for minute, size in enumerate(sizes_mb)]
        return list(watched.report())

    def test_halves_are_told_apart(self):
        line, = self.report(90, 95, 99, 100, 101, 102, 103, 103, 103)
        self.assertEqual(
            f'{NAME} 7: 100.0 MB at 3 min, 103.0 MB at 6 min, 103.0 MB at 8 '
            'min, at most 103.0 MB, +60.0, then +0.0 MB an hour',
            ' '.join(line.split()))

    def test_processes_that_ran_shortly_are_omitted(self):
        self.assertEqual([], self.report(90, 95, 99, 100, 101, 102))
