# SPDX-License-Identifier: Apache-2.0
"""Tests of "make cloud-up"."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).parents[3]


@unittest.skipUnless(shutil.which('make'), 'there is no make')
class TestCloudUp(unittest.TestCase):

    def commands(self, *variables):
        """Return the commands for a cloud that does not exist yet."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        env = {name: value for name, value in os.environ.items()
               if name not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL')}
        return subprocess.run(
            ['make', '--dry-run', 'cloud-up', f'CLOUD={directory}/cloud',
             *variables], cwd=TOP, env=env, check=True, text=True,
            capture_output=True).stdout

    def test_extras_of_the_guide_are_installed(self):
        (extras,) = re.findall(r"--editable '\.\[(.*)\]'", self.commands())
        # Those of numpy, scipy, matplotlib and the commands.
        self.assertLessEqual({'batch', 'classes', 'client', 'report',
                              'simulator'}, set(extras.split(',')))

    def test_the_first_port(self):
        self.assertNotIn('--port-base', self.commands())
        self.assertIn('--port-base 21000', self.commands('PORT_BASE=21000'))
