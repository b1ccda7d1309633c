# SPDX-License-Identifier: Apache-2.0
"""Commands where no extra is installed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

#: What the extras install that the services do not require.
LIBRARIES = ('distributed', 'matplotlib', 'numpy', 'pyarrow',
             'scipy')
#: The engine comes first: Nova wants to be imported before eventlet is.
COMMANDS = ('engine', 'scheduler', 'manage', 'status', 'simulate',
            'reproduce', 'api', 'benchmark')

#: Imports all commands, then runs nova-preempt-simulate by the arguments in
#: each line; prints {command: exit code}.
_SCRIPT = """
import importlib, json, sys

for name in sys.argv[1].split():
    importlib.import_module(f'nova_preempt.cmd.{name}')
codes = []
for line in sys.stdin:
    name, *argv = line.split()
    codes.append(sys.modules[f'nova_preempt.cmd.{name}'].main(argv))
print(json.dumps(codes))
"""

_CLOUD = """
hosts:
  - {name: h, count: 1, resources: {VCPU: 8, MEMORY_MB: 16384, DISK_GB: 100}}
"""
_POLICY = """
[backlog]
enabled = true
"""


class TestWithoutExtras(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def write(self, name, text):
        (self.path / name).write_text(text, encoding='utf-8')
        return str(self.path / name)

    def run_commands(self, *lines):
        """([exit code], standard error) of commands with their arguments."""
        for name in LIBRARIES:
            self.write(f'{name}.py', 'raise ModuleNotFoundError('
                       f'"No module named {name!r}", name={name!r})\n')
        paths = [str(self.path), *filter(None, sys.path)]
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', _SCRIPT,
             ' '.join(COMMANDS)], input='\n'.join(lines), text=True,
            capture_output=True, check=False, cwd=self.path,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)})
        self.assertEqual(0, done.returncode, done.stderr)
        return (json.loads(done.stdout.splitlines()[-1]),
                done.stderr.splitlines())

    def test_all_start_and_each_want_names_its_extra(self):
        run = f'--cloud {self.write("cloud.yaml", _CLOUD)} trace.jsonl'
        batch = self.write('batch.conf', _POLICY + 'batch_mode = exact\n')
        ranked = self.write('order.conf', _POLICY + 'order = promethee\n')
        codes, errors = self.run_commands(
            'simulate generate --hours 1 --per-hour 4 --output trace.jsonl',
            'simulate convert trace.jsonl --output again.jsonl',
            f'simulate run {run}', f'simulate sweep {run} --seeds 0-3',
            f'simulate run {run} --policy {batch}',
            f'simulate sweep {run} --policy {ranked}',
            f'simulate run {run} --plot pictures',
            'reproduce sla', 'reproduce opie --scale 0.01',
            f'benchmark --config-file {self.write("nova.conf", "")}')
        self.assertEqual([0, 0, 1, 1, 1, 1, 1, 1, 1, 1], codes, errors)
        self.assertEqual(8, len(errors), errors)
        for error, text in zip(errors, (
                'numpy is needed: pip install nova-preempt[simulator]',
                'numpy is needed: pip install nova-preempt[simulator]',
                ('mode exact needs numpy, which cannot be imported: install '
                 'nova-preempt[batch]'),
                ("[backlog]order is 'promethee', which cannot be loaded: No "
                 "module named 'numpy'; it comes with nova-preempt[classes]"),
                'matplotlib is needed: pip install nova-preempt[report]',
                ('numpy is needed: pip install '
                 'nova-preempt[simulator,batch,classes]'),
                ('numpy is needed: pip install '
                 'nova-preempt[simulator,batch,classes]'),
                ("numpy cannot be imported (No module named 'numpy'); it "
                 "comes with: pip install 'nova-preempt[benchmark]'")),
                strict=True):
            self.assertIn(text, error)
