# SPDX-License-Identifier: Apache-2.0
"""Explorations of one process do not depend on each other."""

import pathlib
import re
import subprocess
import sys
import unittest

TOOL = pathlib.Path(__file__).parents[3] / 'tools' / 'explore.py'


class TestExplore(unittest.TestCase):

    def test_a_seed_takes_the_same_course_again(self):
        """Both explorations have the same ids, and so the same lock files."""
        found = subprocess.run(
            [sys.executable, '-W', 'ignore', str(TOOL), '--seeds=2,2',
             '--operations=40', '--hosts=2', '--rate=0.04', '--evictions',
             '--features=', '--fault=minimum_runtimes_are_ignored',
             '--digest', '--no-shortening'],
            capture_output=True, text=True)
        digests = re.findall(r'^seed 2: ([0-9a-f]{64})$', found.stdout,
                             re.MULTILINE)
        self.assertEqual(2, len(digests), found.stderr)
        self.assertEqual(digests[0], digests[1])
