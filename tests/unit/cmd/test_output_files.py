# SPDX-License-Identifier: Apache-2.0
"""A file that is written as a whole, or not at all."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

from nova_preempt.cmd import output_files
from nova_preempt.cmd import simulate
from nova_preempt.cmd import simulation_sweep

_CLOUD = """
hosts:
  - {name: h, count: 1, resources: {VCPU: 8, MEMORY_MB: 16384, DISK_GB: 100}}
"""


class FilesTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def write(self, name, text=''):
        (self.directory / name).write_text(text)
        return str(self.directory / name)

    def names(self):
        return sorted(path.name for path in self.directory.iterdir())


class TestWritten(FilesTestCase):

    def put(self, path, text):
        with output_files.replacement(path) as name:
            pathlib.Path(name).write_text(text)

    def test_a_new_file(self):
        self.put(self.directory / 'a', 'x')
        self.assertEqual(['a'], self.names())
        self.assertEqual('x', (self.directory / 'a').read_text())

    def test_an_existing_file_keeps_its_mode(self):
        path = self.write('a', 'old')
        os.chmod(path, 0o640)
        self.put(path, 'new')
        self.assertEqual('new', pathlib.Path(path).read_text())
        self.assertEqual(0o640, os.stat(path).st_mode & 0o777)

    def test_a_link_stays(self):
        self.write('a', 'old')
        link = self.directory / 'b'
        link.symlink_to('a')
        self.put(link, 'new')
        self.assertTrue(link.is_symlink())
        self.assertEqual('new', (self.directory / 'a').read_text())

    def test_a_device(self):
        self.put(os.devnull, 'x')
        self.assertFalse(os.path.isfile(os.devnull))

    def test_nothing_changes_where_it_fails(self):
        path = self.write('a', 'old')
        with self.assertRaises(KeyboardInterrupt), \
                output_files.replacement(path) as name:
            pathlib.Path(name).write_text('half')
            raise KeyboardInterrupt
        self.assertEqual(['a'], self.names())
        self.assertEqual('old', pathlib.Path(path).read_text())


class TestSimulate(FilesTestCase):
    """An empty trace, which no command can read."""

    def test_nothing_is_written(self):
        trace = self.write('empty.jsonl')
        cloud = self.write('cloud.yaml', _CLOUD)
        old = self.write('old.jsonl', 'old')
        before = self.names()
        for argv in (['convert', trace, '--output', old],
                     ['convert', trace, '--output', f'{old}.new'],
                     ['run', '--cloud', cloud, trace, '--records', old],
                     ['run', '--cloud', cloud, trace, '--records',
                      f'{old}.parquet']):
            with self.subTest(argv):
                with contextlib.redirect_stderr(io.StringIO()) as err:
                    self.assertEqual(1, simulate.main(argv))
                self.assertIn('the trace is empty', err.getvalue())
                self.assertEqual(before, self.names())
                self.assertEqual('old', pathlib.Path(old).read_text())


class TestCodeDigest(FilesTestCase):

    def test_the_digest_differs_after_each_change(self):
        found = [simulation_sweep.code_digest(self.directory)]
        for name, text in (('a.py', ''), ('a.py', 'x = 1'), ('b.py', ''),
                           ('.a.py', '')):
            self.write(name, text)
            found.append(simulation_sweep.code_digest(self.directory))
        self.assertEqual(len(found), len(set(found)))
        self.write('a.txt', 'x')
        self.assertEqual(found[-1],
                         simulation_sweep.code_digest(self.directory))
