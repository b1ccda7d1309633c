# SPDX-License-Identifier: Apache-2.0
"""The command nova-preempt-demo, as far as it needs no cloud."""

import contextlib
import io
import os
from unittest import mock

import fixtures
import testtools

from nova_preempt.cmd import demo

KNOWN = ('fgcs-1, fgcs-2, fgcs-3, fgcs-4, mixed, saturation, short')


class TestCommand(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def run_demo(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = demo.main(list(argv))
        return status, out.getvalue(), err.getvalue()

    def assert_bad(self, error, *argv):
        self.assertEqual((2, '', f'nova-preempt-demo: {error}\n'),
                         self.run_demo(*argv))

    def write(self, content):
        path = os.path.join(self.folder, 'a.yaml')
        with open(path, 'wb') as file:
            file.write(content)
        return path

    def test_list(self):
        status, out, err = self.run_demo('--list')
        self.assertEqual((0, ''), (status, err))
        self.assertEqual(
            KNOWN.split(', '), [line.split()[0] for line in out.splitlines()])
        self.assertTrue(all(len(line.split()) > 1 and len(line) <= 100
                            for line in out.splitlines()))

    def test_every_known_scenario_is_one(self):
        for name in KNOWN.split(', '):
            self.assertTrue(demo.load(name).hosts, name)

    def test_a_known_scenario_by_its_file(self):
        path = str(demo._shipped()['fgcs-1'])
        self.assertEqual(demo.load('fgcs-1'), demo.load(path))

    def test_the_default_is_known(self):
        self.assertIn(demo.DEFAULT, demo._shipped())

    def test_help(self):
        status, out, err = self.run_demo('--help')
        self.assertEqual((0, ''), (status, err))
        self.assertIn('--scenario', out)

    def test_one_after_the_other(self):
        with mock.patch.object(demo, '_run', side_effect=[1, 0]) as run:
            status, _out, _err = self.run_demo(
                '--scenario', 'fgcs-2', '--scenario', 'fgcs-1')
        # One that did not come as expected is not forgotten.
        self.assertEqual(1, status)
        self.assertEqual(['fgcs-2', 'fgcs-1'],
                         [call.args[0] for call in run.call_args_list])

    def test_all_are_known_before_any_is_played(self):
        with mock.patch.object(demo, '_run') as run:
            self.assert_bad(
                'unknown scenario fgcs-5; the included scenarios are: '
                f'{KNOWN}', '--scenario', 'fgcs-1', '--scenario', 'fgcs-5')
        run.assert_not_called()

    def test_bad_arguments(self):
        status, out, err = self.run_demo('--what')
        self.assertEqual((2, ''), (status, out))
        self.assertIn('--what', err)

    def test_unknown_name(self):
        self.assert_bad(
            f'unknown scenario fgcs-5; the included scenarios are: {KNOWN}',
            '--scenario', 'fgcs-5')

    def test_missing_file(self):
        path = os.path.join(self.folder, 'missing.yaml')
        self.assert_bad(f'{path}: cannot be read: No such file or directory',
                        '--scenario', path)

    def test_folder(self):
        self.assert_bad(f'{self.folder}: cannot be read: Is a directory',
                        '--scenario', self.folder)

    def test_bad_file(self):
        path = self.write(b'hosts: []\nflavors: {}\nrequest: []\n')
        self.assert_bad(f'{path}:3: request: unknown key', '--scenario', path)

    def test_bad_file_and_json(self):
        path = self.write(b'')
        self.assert_bad(f'{path}:1: must not be empty',
                        '--json', '--scenario', path)
