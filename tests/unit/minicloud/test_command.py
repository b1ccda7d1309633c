# SPDX-License-Identifier: Apache-2.0

import argparse
import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

from minicloud import __main__ as command
from minicloud import layout as layouts
from minicloud import steps


class TestUp(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        self.layout = layouts.Layout(directory, directory / 'venv')
        self.started = self.enterContext(mock.patch.object(
            command.cloud, 'up'))

    def up(self, port_base=None, private=False, computes=None,
           dashboard=False):
        with contextlib.redirect_stdout(io.StringIO()):
            command._up(self.layout, argparse.Namespace(
                port_base=port_base, private=private, computes=computes,
                devstack=False, dashboard=dashboard))
        layout = self.started.call_args.args[0]
        layout.save()
        return layout.settings

    def test_the_same_once_more(self):
        first = self.up(20200, private=True)
        self.assertEqual(first, self.up(20200, private=True))
        self.assertEqual(first, self.up())

    def test_a_dashboard_is_added_and_stays(self):
        self.assertFalse(self.up(private=True).dashboard)
        self.assertTrue(self.up(dashboard=True).dashboard)
        self.assertTrue(self.up().dashboard)

    def test_more_computes(self):
        self.up(private=True)
        self.assertEqual(7, self.up(computes=7).computes)

    def test_settings_that_cannot_be_changed(self):
        self.up(private=True)
        with self.assertRaisesRegex(
                steps.StepFailed, '--port-base is 1, but the ports of the '
                'existing cloud begin at 20000: run "down --wipe" first'):
            self.up(1)
        layouts.Layout(
            self.layout.directory, self.layout.venv,
            layouts.Settings(private=('mariadb',))).save()
        with self.assertRaisesRegex(
                steps.StepFailed,
                "existing cloud uses the machine's rabbitmq"):
            self.up(private=True)
