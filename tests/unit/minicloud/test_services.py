# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands of the services."""

import pathlib
import tempfile
import unittest

from minicloud import layout as layouts
from minicloud import services


class TestNovaApi(unittest.TestCase):

    def threads(self, version):
        directory = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))
        layout = layouts.Layout(
            directory, directory / 'venv',
            layouts.Settings(computes=1, port_base=30000, private=()))
        (directory / 'venv' / 'lib' / 'python3.11' / 'site-packages'
         / f'nova-{version}.dist-info').mkdir(parents=True)
        command = services.describe(layout)['nova-api'].command
        return command[command.index('--threads') + 1]

    def test_threads(self):
        """Under eventlet it has one a process."""
        self.assertEqual(
            ['1', '1', '8', '8'],
            [self.threads(version) for version in (
                '31.3.1', '32.2.1', '33.0.2', '34.0.0')])
