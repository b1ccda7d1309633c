# SPDX-License-Identifier: Apache-2.0
"""Processes that are told apart from others of the same pid."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from minicloud import processes

WAIT_S = 10
# A leader and a worker, which ends only if it is killed.
SERVICE = ('/bin/sh', '-c', 'trap "" TERM; sleep 100 & sleep 100; wait')


class TestProcesses(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.records = processes.Records(self.directory)

    def _start(self, command=('sleep', '100')):
        process = self.records.start(
            'one', command, dict(os.environ), self.directory / 'log')
        self.addCleanup(_reap, process)
        return process

    def test_a_process_is_found_again(self):
        process = self._start()
        self.assertEqual(process, self.records.find('one'))
        self.assertEqual(['one'], self.records.names())
        self.assertEqual('running', process.state())

    def test_a_process_that_cannot_be_recorded_is_ended(self):
        """It could not be found again."""
        started = []
        popen = subprocess.Popen

        def start(*args, **more):
            started.append(popen(*args, **more))
            self.addCleanup(started[0].kill)
            return started[0]

        with (mock.patch.object(subprocess, 'Popen', start),
              mock.patch.object(pathlib.Path, 'write_text',
                                side_effect=OSError('no space')),
              self.assertRaises(OSError)):
            self._start()
        self.assertEqual(-signal.SIGKILL, started[0].wait(WAIT_S))

    def test_a_process_stops_and_continues(self):
        process = self._start()
        process.signal(signal.SIGSTOP)
        self._wait_for('frozen', process)
        process.signal(signal.SIGCONT)
        self._wait_for('running', process)

    def test_workers_end_with_it(self):
        process = self._start(SERVICE)
        self._wait_until(lambda: len(process.members()) == 3)
        process.stop(patience_s=0.2)
        self.assertEqual([], process.members())
        self.assertEqual('gone', process.state())

    def test_workers_are_found_after_their_leader(self):
        process = self._start(SERVICE)
        self._wait_until(lambda: len(process.members()) == 3)
        os.kill(process.pid, signal.SIGKILL)
        self._wait_for('gone', process)
        self.assertEqual(2, len(process.members()))
        process.kill()
        self.assertEqual([], process.members())

    def test_another_one_with_its_pid_is_left_alone(self):
        process = self._start()
        earlier = dataclasses.replace(process, started=process.started - 1)
        self.assertEqual('gone', earlier.state())
        earlier.kill()
        self.assertEqual('running', process.state())

    def test_the_log_has_the_output(self):
        process = self._start((sys.executable, '-c', 'print("hello")'))
        self._wait_for('gone', process)
        self.assertEqual('hello\n', (self.directory / 'log').read_text())

    def _wait_for(self, state, process):
        self._wait_until(lambda: process.state() == state)

    def _wait_until(self, condition):
        until = time.monotonic() + WAIT_S
        while not condition():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)


def _reap(process):
    process.kill()
    # It is a child of ours here.
    os.waitpid(process.pid, 0)
