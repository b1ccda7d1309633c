# SPDX-License-Identifier: Apache-2.0
"""Exploration finds each mended fault that is put back."""

import pathlib
import re
import subprocess
import sys
import unittest

from tests.exploration import mended_faults

TOOL = pathlib.Path(__file__).parents[2] / 'tools' / 'explore.py'


def explore(*arguments):
    """Run the tool; returns the completed process."""
    return subprocess.run(
        [sys.executable, '-W', 'ignore', str(TOOL), '--first',
         '--no-shortening', *mended_faults.ARGUMENTS, *arguments],
        capture_output=True, text=True)


class TestMendedFaults(unittest.TestCase):

    def test_each_is_found_within_a_thousand_seeds(self):
        known = {name: each for name, each in mended_faults.ALL.items()
                 if each.seed is not None}
        for name, each in known.items():
            with self.subTest(name):
                # A change of the exploration changes what a seed finds.
                found = explore('--fault', name,
                                '--seeds', f'{each.seed},1-1000')
                seed = re.search(r'^seed (\d+): ', found.stdout, re.M)
                self.assertIsNotNone(seed, found.stdout + found.stderr)
                without = explore('--seeds', seed[1])
                self.assertEqual(0, without.returncode,
                                 without.stdout + without.stderr)
