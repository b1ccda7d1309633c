# SPDX-License-Identifier: Apache-2.0
"""A cloud and a trace in files, for nova-preempt-simulate."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from nova_preempt.cmd import simulate

CLOUD = """
hosts:
- name: a
  count: 2
  resources: {VCPU: 8, MEMORY_MB: 4096}
  allocation_ratios: {MEMORY_MB: 1.5}
  reserved: {MEMORY_MB: 512}
flavors:
  small: {resources: {VCPU: 1}}
  spot:
    resources: {VCPU: 8}
    extra_specs: {"preemptible:enabled": true, "preemptible:notice_s": 5,
                  "preemptible:action": shelve, "preemptible:restore": "yes"}
classes:
  best: {extra_specs: {"preemptible:enabled": "true",
                       "preemptible:minimum_runtime_s": 60}}
  bronze: {extra_specs: {}}
delays: {boot: "constant:10", shelve: "constant:3"}
spread: false
workers: 2
"""

TRACE = """
{"t": 0, "kind": "boot", "id": "one", "flavor": "spot", "class": "s"}
{"t": 0, "kind": "boot", "id": "two", "flavor": "spot", "class": "s"}
{"t": 100, "kind": "boot", "id": "n", "flavor": "small", "duration": 50}
{"t": 400, "kind": "end", "id": "one"}
"""


class Case(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.cloud = self.write('cloud.yaml', CLOUD)
        self.trace = self.write('trace.jsonl', TRACE)

    def write(self, name, content):
        path = self.directory / name
        path.write_text(content)
        return str(path)

    def main(self, *args):
        """Return (exit status, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), (
                contextlib.redirect_stderr(err)):
            try:
                code = simulate.main(args)
            except SystemExit as exc:
                code = exc.code
        return code, out.getvalue(), err.getvalue()
