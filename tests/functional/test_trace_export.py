# SPDX-License-Identifier: Apache-2.0
"""Tests of the export of a trace from the embedded cloud."""

import contextlib
import io
import json

from nova_preempt.cloud import instances
from nova_preempt.cmd import engine
from nova_preempt.cmd import simulate
from tests.functional import test_manage


class TestTraceExport(test_manage.ManageTestCase):
    """Two hosts, and a deleted server of each kind."""

    def setUp(self):
        super().setUp()
        self.trace = self.useFixture(
            test_manage.fixtures.TempDir()).join('trace.jsonl')
        self.cloud = self.trace + '.yaml'

    def test_the_exported_trace_can_be_simulated(self):
        first = self.wait(self.boot('a', self.spot, host='host1'))['id']
        normal = self.boot_normal()['id']
        self.delete(first)
        second = self.wait(self.boot('b', self.spot, host='host1'))['id']
        self.delete(normal)
        self.add_hosts('host2')
        status, out, err = self.manage(
            'trace', 'export', '--output', self.trace, '--cloud', self.cloud)
        self.assertEqual((0, ''), (status, out))
        self.assertEqual('3 servers are written; 0 that have never run are '
                         'omitted.\n', err)
        with open(self.trace, encoding='utf-8') as stream:
            content = stream.read()
        found = [json.loads(line) for line in content.splitlines()]
        self.assertEqual(['s1', 's2', 's3'], [each['id'] for each in found])
        # Those of one second are there in any order.
        self.assertCountEqual(['preemptible', 'normal', 'preemptible'],
                              [each['class'] for each in found])
        self.assertEqual(2, sum('duration' in each for each in found))
        self.assertEqual({'p1'}, {each['project'] for each in found})
        for secret in (first, second, normal, 'host1', 'host2'):
            self.assertNotIn(secret, content)
        self.check_pages()
        self.simulate()

    def check_pages(self):
        """However few are read at once, all are there, and in order."""
        cells = engine.get_cells()
        expected = list(instances.recorded(cells))
        self.assertEqual(3, len(expected))
        for page in (1, 2, 3):
            self.assertEqual(expected, list(instances.recorded(cells, page)))

    def simulate(self):
        """The answer before the first risk: they all have room now."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(0, simulate.main([
                'run', '--cloud', self.cloud, self.trace, '--json']))
        found = json.loads(out.getvalue())
        self.assertEqual({'DISK_GB': 40, 'MEMORY_MB': 4096, 'VCPU': 4},
                         found['capacity'])
        self.assertEqual(2, found['classes']['preemptible']['placed'])
        self.assertEqual(1, found['classes']['normal']['placed'])
