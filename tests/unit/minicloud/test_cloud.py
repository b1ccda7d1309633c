# SPDX-License-Identifier: Apache-2.0
"""Tests of a cloud that could not be started."""

import errno
import pathlib
import signal
import socket
import tempfile
import unittest
from unittest import mock

from minicloud import __main__ as command
from minicloud import broker
from minicloud import cloud
from minicloud import layout as layouts
from minicloud import steps

FULL = OSError(errno.ENOSPC, 'No space left on device')


class CloudTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))
        self.layout = layouts.Layout(directory, directory / 'venv')
        self.said = []


class TestUp(CloudTestCase):

    def up(self, say=None):
        cloud.up(self.layout, say or self.said.append)

    def test_a_port_that_is_taken(self):
        """The remedy that the message names."""
        with socket.create_server((layouts.ADDRESS, 0)) as taken:
            self.layout = layouts.Layout(
                self.layout.directory, self.layout.venv,
                layouts.Settings(port_base=taken.getsockname()[1]))
            with self.assertRaisesRegex(steps.StepFailed, '--port-base'):
                self.up()
        self.assertIsNone(self.layout.load())

    def test_a_failed_start_with_a_closed_output_stops_all(self):
        with (mock.patch.object(cloud, '_require_ports',
                                side_effect=steps.StepFailed('no')),
              mock.patch.object(cloud, '_stop_all') as stopped,
              self.assertRaises(BrokenPipeError)):
            self.up(mock.Mock(side_effect=BrokenPipeError))
        stopped.assert_called_once_with(self.layout)


class TestSettings(CloudTestCase):

    def test_they_stay_where_a_disk_is_full(self):
        """Else no cloud could be taken down any more."""
        self.layout.save()
        write = pathlib.Path.write_text

        def fail(path, text):
            write(path, text[:5])
            raise FULL

        with (mock.patch.object(pathlib.Path, 'write_text', fail),
              self.assertRaises(OSError)):
            self.layout.save()
        self.assertEqual(self.layout, self.layout.load())


class TestWipe(CloudTestCase):

    def test_virtual_hosts_that_were_never_made(self):
        """RabbitMQ refuses to delete them."""
        self.layout.make_directories()
        made = set()

        def call(asked, *_args, **_more):
            *_options, verb, argument = asked
            if verb == 'import_definitions':
                text = pathlib.Path(argument).read_text()
                made.update(name for name in map(
                    self.layout.virtual_host, layouts.VIRTUAL_HOSTS)
                    if name in text)
            else:
                made.remove(argument)

        with mock.patch.object(steps, 'call', call):
            broker.remove_virtual_hosts(self.layout, {})
        self.assertEqual(set(), made)


class TestMain(CloudTestCase):

    def main(self, fault):
        arguments = ['minicloud', '--dir', str(self.layout.directory), 'up',
                     '--private']
        for number in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        with (mock.patch('sys.argv', arguments),
              mock.patch('sys.stderr.write') as written,
              mock.patch.object(cloud, 'up', side_effect=fault)):
            return command.main(), ''.join(
                call.args[0] for call in written.call_args_list)

    def test_a_full_disk(self):
        code, text = self.main(FULL)
        self.assertEqual(1, code)
        self.assertIn('No space left', text)

    def test_an_interruption(self):
        """A second interruption must not orphan started processes."""
        def interrupt(*_args):
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGTERM)
                self.said.append('down')
                raise

        self.assertEqual((130, ''), self.main(interrupt))
        self.assertEqual(['down'], self.said)
