# SPDX-License-Identifier: Apache-2.0
"""Exploration finds each mended fault that is put back."""

import pathlib
import subprocess
import sys
import unittest

from tests.exploration import mended_faults

TOOL = pathlib.Path(__file__).parents[2] / 'tools' / 'mended_faults.py'


class TestMendedFaults(unittest.TestCase):

    def test_each_is_found_within_a_thousand_seeds(self):
        """A change of the exploration changes what a seed finds."""
        found = subprocess.run(
            [sys.executable, '-W', 'ignore', str(TOOL), '--known', '--check'],
            capture_output=True, text=True)
        lines = dict(line.split(': ') for line in found.stdout.splitlines())
        self.assertEqual(
            {name for name, each in mended_faults.ALL.items()
             if each.seed is not None}, lines.keys(), found.stderr)
        self.assertEqual({}, {name: line for name, line in lines.items()
                              if line == 'no seed'})
