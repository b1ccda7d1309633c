# SPDX-License-Identifier: Apache-2.0
"""[preemption]marks, which was allow_hint."""

import pathlib
import tempfile
import unittest

from oslo_config import cfg

import nova_preempt.conf


class TestMarks(unittest.TestCase):

    def read(self, line):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / 'nova.conf'
            path.write_text(f'[preemption]\n{line}\n')
            conf = cfg.ConfigOpts()
            nova_preempt.conf.register_opts(conf)
            conf([], default_config_files=[str(path)], default_config_dirs=[])
            return conf.preemption.marks

    def test_values(self):
        for line, expected in (
                ('', []), ('marks =', []), ('marks = hint', ['hint']),
                ('marks = lifecycle, hint', ['lifecycle', 'hint']),
                ('allow_hint = True', ['hint']), ('allow_hint = 1', ['hint']),
                ('allow_hint = false', [])):
            self.assertEqual(expected, self.read(line), line)

    def test_unknown(self):
        with self.assertRaisesRegex(cfg.ConfigFileValueError, 'lifecycle'):
            self.read('marks = hints')
