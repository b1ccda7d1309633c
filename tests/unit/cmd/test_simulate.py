# SPDX-License-Identifier: Apache-2.0
"""Arguments and output of nova-preempt-simulate."""

import contextlib
import importlib.util
import io
import json
import pathlib
import re
import sys
import unittest
from unittest import mock

from nova_preempt.cmd import simulate
from nova_preempt.pictures import progress_bar
from tests.unit.cmd import simulation


class TestRun(simulation.Case):

    def run_it(self, *args):
        return self.main('run', '--cloud', self.cloud, self.trace, *args)

    def test_a_table(self):
        code, out, err = self.run_it()
        self.assertEqual((0, ''), (code, err))
        rows = dict(line.rsplit('  ', 1) for line in out.splitlines())
        rows = {name.strip(): value for name, value in rows.items()}
        self.assertEqual('400 s', rows['simulated'])
        self.assertEqual('1', rows['preemptions'])
        self.assertEqual('1', rows['s: back'])
        # 5 s of notice, 3 s until it is shelved, 10 s to boot.
        self.assertEqual('18.0 s', rows['normal: wait, most'])

    def test_json_and_records(self):
        path = str(self.directory / 'records')
        code, out, _ = self.run_it('--json', '--records', path,
                                   '--until-s', '130')
        self.assertEqual(0, code)
        found = json.loads(out)
        self.assertEqual(130, found['seconds'])
        self.assertEqual({'VCPU': 16, 'MEMORY_MB': 10752}, found['capacity'])
        records = [json.loads(line) for line
                   in pathlib.Path(path).read_text().splitlines()]
        self.assertIn({'t': 100, 'event': 'preempted', 'id': 'n',
                       'class': 'normal', 'host': 'a-1',
                       'victims': ['one']}, records)

    def test_several_policies(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        code, out, _ = self.run_it('--compare', off, '--json')
        self.assertEqual(0, code)
        with_it, without = json.loads(out)
        self.assertEqual(['defaults', 'off'],
                         [with_it['policy'], without['policy']])
        self.assertEqual(0, with_it['classes']['normal'].get('refused', 0))
        self.assertEqual(1, without['classes']['normal']['refused'])
        code, out, _ = self.run_it('--policy', off, '--compare', off)
        self.assertEqual(['off', '(1)', 'off', '(2)'],
                         out.splitlines()[0].split())

    def test_a_picture_of_all_policies(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        path = self.directory / 'pictures'
        code, _, err = self.run_it('--compare', off, '--plot', str(path),
                                   '--plot-format', 'svg')
        self.assertEqual(0, code)
        for name, text in (('use', 'Mean use of vCPUs'),
                           ('servers', 'Evictions')):
            file = path / f'simulation-{name}.svg'
            self.assertIn(f'{file} is drawn', err)
            self.assertIn(text, file.read_text())

    def test_without_matplotlib_nothing_is_simulated(self):
        with mock.patch.dict(sys.modules, {'matplotlib.figure': None}):
            code, out, err = self.run_it('--plot', str(self.directory))
        self.assertEqual((1, ''), (code, out))
        self.assertIn('pip install nova-preempt[report]', err)

    @unittest.skipUnless(importlib.util.find_spec('pyarrow'),
                         'the extra parquet is not installed')
    def test_records_as_parquet(self):
        import pyarrow.parquet
        path = str(self.directory / 'records.parquet')
        self.assertEqual(0, self.run_it('--records', path)[0])
        rows = pyarrow.parquet.read_table(path).to_pylist()
        self.assertIn({'t': 100, 'event': 'preempted', 'id': 'n',
                       'class': 'normal', 'host': 'a-1', 'victims': ['one'],
                       'why': None, 'decision': None, 'policy': None,
                       'hosts': None, 'start': None, 'end': None,
                       'on': None}, rows)
        self.assert_same_as_lines(rows)

    @unittest.skipUnless(importlib.util.find_spec('pyarrow'),
                         'the extra parquet is not installed')
    def test_records_of_reservations_as_parquet(self):
        import pyarrow.parquet
        path = str(self.directory / 'records.parquet')
        self.trace = self.write('reserved.jsonl', '\n'.join((
            '{"t": 0, "kind": "reserve", "id": "r", "duration": 100}',
            '{"t": 0, "kind": "reserve", "id": "q", "hosts": 3, "end": 9}',
            '{"t": 200, "kind": "end", "id": "r"}')))
        policy = ('--policy', self.write(
            'on.conf', '[reservation]\nenabled = true\n'
            'reservable_default = true\n'))
        self.assertEqual(0, self.run_it('--records', path, *policy)[0])
        rows = pyarrow.parquet.read_table(path).to_pylist()
        self.assertIn(['a-1'], [row['on'] for row in rows])
        self.assert_same_as_lines(rows, *policy)

    def assert_same_as_lines(self, rows, *args):
        lines = str(self.directory / 'records')
        self.run_it('--records', lines, *args)
        self.assertEqual(
            [json.loads(line) for line
             in pathlib.Path(lines).read_text().splitlines()],
            [{name: value for name, value in row.items()
              if value is not None} for row in rows])

    def test_without_pyarrow(self):
        with mock.patch.dict(sys.modules, {'pyarrow': None}):
            code, _, err = self.run_it('--records', str(
                self.directory / 'records.parquet'))
        self.assertEqual(1, code)
        self.assertIn('pip install nova-preempt[parquet]', err)

    def test_options_that_are_not_simulated_are_reported(self):
        path = self.write('nova.conf', '[DEFAULT]\nx = 1\n[preemption]\n'
                          'headroom = VCPU:5%\nactions = migrate,delete\n'
                          'auth_url = x\nnotise_s = 3\n')
        code, _, err = self.run_it('--policy', path)
        self.assertEqual(0, code)
        self.assertEqual(
            [f'nova-preempt-simulate: {path}: not simulated: {what}'
             for what in ('migrate in [preemption]actions',
                          '[preemption]notise_s, an unknown option')],
            err.splitlines())

    def test_help_names_the_groups_of_options(self):
        _, out, _ = self.main('run', '--help')
        for group in ('preemption', 'preemption_engine', 'backlog',
                      'classes', 'reservation', 'energy'):
            self.assertIn(f'[{group}]', out)

    def test_errors_name_the_mistake(self):
        bad = self.write('bad.conf', '[preemption]\nnotice_s = -1\n')
        nothing = self.write('cost.conf', '[preemption]\ncost = gold\n')
        text = self.write('trace', simulation.TRACE)
        broken = self.write('broken.jsonl', '{}')
        other = self.write(
            'other.jsonl',
            '{"t": 0, "kind": "boot", "id": "x", "flavor": "huge"}')
        for args, why in (
                (['--policy', bad], 'notice_s'),
                (['--policy', nothing], "[preemption]cost is 'gold'"),
                (['--policy', 'not/there'], 'not/there'),
                ([text], '--format'),
                ([broken], 'line 1: kind is None'),
                ([other], "'huge'; the known flavors are: small, sp"),
                ([self.trace, '--machine-vcpus', '0'], 'vcpus of a machine')):
            with self.subTest(why):
                first = [] if args[0].startswith('/') else [self.trace]
                code, out, err = self.main('run', '--cloud', self.cloud,
                                           *first, *args)
                self.assertEqual((1, ''), (code, out))
                self.assertIn(why, err)
                self.assertEqual(1, err.count('\n'))

    def test_bad_arguments(self):
        for args in (['--seed', '-1'], ['--until-s', 'nan'],
                     ['--format', 'x']):
            self.assertEqual(2, self.run_it(*args)[0])

    def test_names_of_policies(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        for args, names in (
                ((), ['defaults (1)', 'off (2)', 'off (3)']),
                (('--name', 'a', '--name', 'b'), ['a', 'b', 'off'])):
            _, out, _ = self.run_it('--compare', off, '--compare', off, *args)
            self.assertEqual(names, re.split(
                ' {2,}', out.splitlines()[0].strip()))
        code, _, err = self.run_it('--name', 'a', '--name', 'b')
        self.assertEqual(1, code)
        self.assertIn('2 names are given with --name for 1 policies', err)

    def test_one_html_file(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n'
                                     '[database]\nconnection = secret\n')
        path = self.directory / 'page.html'
        code, out, err = self.run_it('--compare', off, '--html', str(path),
                                     '--name', '<script>x()</script>')
        self.assertEqual(0, code)
        self.assertIn(f'{path} is written', err)
        self.assertIn('preemptions', out)
        page = path.read_text(encoding='utf-8')
        for text in ('[preemption]enabled', 'preemptions', 'constant:10',
                     'trace.jsonl', '&lt;script&gt;x()&lt;/script&gt;'):
            self.assertIn(text, page)
        self.assertEqual(2, page.count('src="data:image/svg+xml;base64,'))
        self.assertNotIn('<script', page)
        self.assertNotIn('secret', page)

    def test_progress_on_a_terminal(self):
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        for args in ((), ('--no-progress',)):
            with mock.patch.object(progress_bar, '_INTERVAL_S', 0), (
                    mock.patch.object(sys, 'stderr', terminal)), (
                    contextlib.redirect_stdout(io.StringIO())):
                self.assertEqual(0, simulate.main([
                    'run', '--cloud', self.cloud, self.trace, *args]))
            self.assertEqual(not args, 'events a second'
                             in terminal.getvalue())
            terminal.truncate(0)


class TestTraces(simulation.Case):

    def test_generate_and_run(self):
        path = str(self.directory / 'made.jsonl')
        code, _, _ = self.main('generate', '--hours', '2', '--per-hour',
                               '30', '--seed', '5', '--output', path)
        self.assertEqual(0, code)
        code, one, _ = self.main('run', '--cloud', self.cloud, path)
        self.assertEqual(0, code)
        _, other, _ = self.main('run', '--cloud', self.cloud, path)
        self.assertEqual(one, other)
        _, another, _ = self.main('generate', '--hours', '2', '--per-hour',
                                  '30', '--seed', '5')
        self.assertEqual(pathlib.Path(path).read_text(), another)

    def test_generate_refuses(self):
        for args in (['--preemptible', '2'], ['--sigma', '-1'],
                     ['--hours', 'nan']):
            self.assertEqual(1, self.main('generate', *args)[0])

    def test_convert(self):
        path = self.write(
            'jobs.swf', '1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 0 -1 -1 -1\n'
            '2 0 0 -1 1 -1 -1 1 60 -1 1 1 1 -1 0 -1 -1 -1\n')
        code, out, err = self.main('convert', path)
        self.assertEqual(0, code)
        self.assertEqual('1', json.loads(out)['id'])
        self.assertEqual('nova-preempt-simulate: 1 records are omitted: '
                         'did not run\n', err)
