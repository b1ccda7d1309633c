# SPDX-License-Identifier: Apache-2.0
"""Order of steps by their requirements, and failures."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from minicloud import steps


class TestSteps(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.taken = []
        self.said = []

    def _step(self, name, *after):
        return steps.Step(name, lambda: self.taken.append(name), after)

    def _fail(self, name, log=None):
        def fail():
            raise steps.StepFailed('no', log)
        return steps.Step(name, fail)

    def test_requirements_come_first(self):
        steps.run([self._step('c', 'b', 'a'), self._step('b', 'a'),
                   self._step('a')], self.said.append)
        self.assertEqual(['a', 'b', 'c'], self.taken)
        self.assertEqual(3, len(self.said))

    def test_nothing_comes_after_a_failure(self):
        with self.assertRaises(steps.StepFailed):
            steps.run([self._fail('a'), self._step('b', 'a')],
                      self.said.append)
        self.assertEqual([], self.taken)
        self.assertRegex(self.said[0], '^a .*FAILED: no')

    def test_a_full_disk_is_a_failure_of_its_step(self):
        step = steps.Step('a', mock.Mock(side_effect=OSError('no space')))
        with self.assertRaises(OSError):
            steps.run([step, self._step('b', 'a')], self.said.append)
        self.assertEqual([], self.taken)
        self.assertRegex(self.said[0], '^a .*FAILED: no space')

    def test_a_failed_command_shows_the_end_of_its_log(self):
        with tempfile.TemporaryDirectory() as directory:
            log = pathlib.Path(directory) / 'log'
            with self.assertRaises(steps.StepFailed) as caught:
                steps.call(['sh', '-c', 'seq 100; exit 3'],
                           dict(os.environ), log)
            self.assertEqual([f'    {number}' for number in range(76, 101)],
                             caught.exception.tail().splitlines())
        self.assertIn('sh exits with 3', str(caught.exception))

    def test_a_check_that_fails_while_a_command_runs(self):
        def check():
            raise steps.StepFailed('a service has ended')

        with tempfile.TemporaryDirectory() as directory, (
                mock.patch.object(steps, 'CHECK_S', 0.01)), (
                self.assertRaisesRegex(steps.StepFailed, 'has ended')):
            steps.call(['sleep', '60'], dict(os.environ),
                       pathlib.Path(directory) / 'log', check=check)

    def test_a_warning_may_be_good(self):
        with tempfile.TemporaryDirectory() as directory:
            steps.call(['sh', '-c', 'exit 1'], dict(os.environ),
                       pathlib.Path(directory) / 'log', good=(0, 1))
