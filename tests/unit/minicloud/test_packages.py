# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from minicloud import packages
from minicloud import steps

APT_GET = """#!/bin/sh
echo "$@" >> {calls}
case $1 in
update) exit {update} ;;
*) grep -q update {calls} || exit 100 ;;
esac
test "$4" != moon || {{ echo Unable to locate package moon; exit 100; }}
"""


class TestInstall(unittest.TestCase):
    """Runs on a fake machine with a given list of packages."""

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        for patch in (
                mock.patch.dict(os.environ, {
                    'PATH': f'{directory.name}:{os.environ["PATH"]}'}),
                mock.patch('os.geteuid', return_value=0)):
            patch.start()
            self.addCleanup(patch.stop)

    def install(self, name, update=0):
        program = self.directory / 'apt-get'
        calls = self.directory / 'calls'
        program.write_text(APT_GET.format(calls=calls, update=update))
        program.chmod(0o755)
        packages.install([name], self.directory / 'log')
        return calls.read_text().splitlines()

    def test_a_machine_that_knows_no_packages_yet(self):
        self.assertEqual(
            ['update', 'install --yes --no-install-recommends rabbit'],
            self.install('rabbit'))

    def test_a_machine_without_network(self):
        """It may have the packages."""
        self.assertEqual(2, len(self.install('rabbit', update=100)))

    def test_a_package_that_is_not_there(self):
        with self.assertRaises(steps.StepFailed) as caught:
            self.install('moon')
        self.assertIn('Unable to locate package moon',
                      caught.exception.tail())

    def test_a_user_who_may_not_install(self):
        with (mock.patch('os.geteuid', return_value=1000),
              self.assertRaisesRegex(steps.StepFailed, 'as root: apt-get')):
            self.install('rabbit')
