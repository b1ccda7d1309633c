# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""nova-preempt-simulate, from its arguments to what it prints."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import pickle
import sys
import tempfile
import unittest
from unittest import mock

from nova_preempt.cmd import simulate
from nova_preempt.cmd import simulation_files
from nova_preempt.cmd import simulation_policy
from nova_preempt.core import costs
from nova_preempt.core.model import Inventory
from nova_preempt.embedded import yaml_file
from nova_preempt.simulator import setting
from nova_preempt.simulator import sweep

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
        """(what is returned, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), (
                contextlib.redirect_stderr(err)):
            try:
                code = simulate.main(args)
            except SystemExit as exc:
                code = exc.code
        return code, out.getvalue(), err.getvalue()


class TestRun(Case):

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
        self.assertEqual(['defaults', off],
                         [with_it['policy'], without['policy']])
        self.assertEqual(0, with_it['classes']['normal'].get('refused', 0))
        self.assertEqual(1, without['classes']['normal']['refused'])
        code, out, _ = self.run_it('--policy', off, '--compare', off)
        self.assertEqual([off, off], out.splitlines()[0].split())

    def test_a_picture_of_all_policies(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        path = self.directory / 'pictures'
        code, _, err = self.run_it('--compare', off, '--plot', str(path),
                                   '--plot-format', 'svg')
        self.assertEqual(0, code)
        file = path / 'simulation.svg'
        self.assertIn(f'{file} is drawn', err)
        self.assertIn('Evictions', file.read_text())

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

    def test_what_is_not_simulated_is_said(self):
        path = self.write('nova.conf', '[DEFAULT]\nx = 1\n[preemption]\n'
                          'headroom = VCPU:5%\nactions = migrate,delete\n'
                          'auth_url = x\nnotise_s = 3\n')
        code, _, err = self.run_it('--policy', path)
        self.assertEqual(0, code)
        self.assertEqual(
            [f'nova-preempt-simulate: {path}: not simulated: {what}'
             for what in ('migrate in [preemption]actions',
                          '[preemption]notise_s, which is not known')],
            err.splitlines())

    def test_which_groups_count_is_said(self):
        _, out, _ = self.main('run', '--help')
        for group in ('preemption', 'preemption_engine', 'backlog',
                      'classes', 'reservation', 'energy'):
            self.assertIn(f'[{group}]', out)

    def test_what_is_wrong_is_said(self):
        bad = self.write('bad.conf', '[preemption]\nnotice_s = -1\n')
        nothing = self.write('cost.conf', '[preemption]\ncost = gold\n')
        text = self.write('trace', TRACE)
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
                ([other], "'huge', which is not known; there are: small, sp"),
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

    def test_progress(self):
        times = iter(range(100))
        stream = io.StringIO()
        trace = mock.Mock(share=lambda: 0.25)
        events = [mock.Mock(at_us=864 * 10**8)] * 3
        self.assertEqual(events, list(simulate._followed(
            iter(events), trace, None, lambda: next(times), stream)))
        self.assertEqual(
            '1 events, 1 a second, day 1.00, 25 %, 3 s left',
            stream.getvalue().split('\r')[1].strip())


class TestTraces(Case):

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
        self.assertEqual('nova-preempt-simulate: 1 records are left out: '
                         'did not run\n', err)


class TestCloud(Case):

    def test_all_of_it(self):
        found, workers = simulation_files.read_cloud(self.cloud)
        self.assertEqual(2, workers)
        self.assertFalse(found.spread)
        self.assertEqual((setting.HostKind('a', 2, {
            'VCPU': Inventory(8, max_unit=8),
            'MEMORY_MB': Inventory(4096, 512, max_unit=4096,
                                   allocation_ratio=1.5)}),),
            found.hosts)
        self.assertEqual({
            'small': setting.Flavor({'VCPU': 1}),
            'spot': setting.Flavor({'VCPU': 8}, setting.Terms(
                0, None, 5, 'shelve', True))}, found.flavors)
        self.assertEqual(setting.Terms(60), found.classes['best'])
        self.assertIsNone(found.classes['bronze'])
        self.assertEqual(setting.Terms(), found.classes['preemptible'])
        self.assertEqual('constant:3', found.delays.shelve.text)

    def test_the_one_in_the_documentation(self):
        found, _ = simulation_files.read_cloud(str(
            pathlib.Path(__file__).parents[3] / 'doc' / 'source'
            / 'simulating-cloud.yaml'))
        self.assertEqual(120, sum(kind.count for kind in found.hosts))
        self.assertTrue(found.flavors['spot.small'].terms.restore)
        self.assertEqual(60, found.classes['batch'].notice_s)

    def test_what_is_wrong_is_said(self):
        good = 'hosts: [{name: a, count: 1, resources: {VCPU: 4}}]\n'
        for content, why in (
                ('', ':1: is empty'),
                ('hosts: []', 'hosts: must be from 1 to'),
                ('hosts: [{name: a, count: 0, resources: {VCPU: 4}}]',
                 'hosts[0].count: must be from 1'),
                ('hosts: [{name: a, count: 1, resources: {VCPU: -4}}]',
                 'hosts[0].resources.VCPU: must be from 1'),
                (good.replace('}}]', '}, reserved: {X: 1}}]'),
                 'there is no X among'),
                (good + 'host: 1', ':2: host: unknown key'),
                (good.replace('}}]', '}, watts: 3}]'),
                 'watts needs idle_watts'),
                (good.replace('}}]', '}, watts: 3, idle_watts: 5}]'),
                 'idle_watts: is more than watts'),
                (good + 'workers: 0', ':2: workers: must be from 1'),
                (good + 'spread: 1', ':2: spread: must be true or false'),
                (good + 'delays: {boot: "normal:1"}', "delays.boot: 'normal"),
                (good + 'delays: {boot: "uniform:2,1"}', 'LOW is above'),
                (good + 'delays: {boot: "constant:1e9"}', 'delays.boot'),
                (good + 'delays: {boot: "constant:90000"}', 'delays.boot'),
                (good + 'classes: {a: {extra_specs: {x: [1]}}}',
                 'classes.a.extra_specs.x: must be text')):
            with self.subTest(why):
                path = self.write('bad.yaml', content)
                with self.assertRaises(yaml_file.BadFile) as raised:
                    simulation_files.read_cloud(path)
                self.assertIn(why, str(raised.exception))


class TestPolicy(Case):

    def test_options(self):
        path = self.write('nova.conf', """
[preemption]
cost = youngest_first
minimum_runtime_s = 7
maximum_runtime_s = 8
notice_s = 9
max_waiting_requests = 3
project_budget = 4
group_budget = 2
budget_window_s = 60
headroom = VCPU:5%,MEMORY_MB:1024
consider = always
[preemption_engine]
restore_at_once = 5
""")
        found, left_out = simulation_policy.read_policy(path, 2)
        self.assertEqual([], left_out)
        self.assertEqual(
            (costs.youngest_first, 7, 9, True, 8, 6, 4, 5),
            (found.policy.cost, found.policy.rules.minimum_runtime_s,
             found.policy.notice.length_s(None), found.policy.always,
             found.maximum_runtime_s, found.max_waiting_requests,
             found.project_budget, found.restore_at_once))
        self.assertEqual((2, 60, {'VCPU': (5, True),
                                  'MEMORY_MB': (1024, False)}),
                         (found.group_budget, found.budget_window_s,
                          found.headroom))

    def test_no_notice_is_longer_than_a_request_waits(self):
        """As in schedulers: 300 s less what queueing and ends may take."""
        path = self.write('nova.conf', '[DEFAULT]\nlong_rpc_timeout = 300\n')
        found, _ = simulation_policy.read_policy(path, 1)
        self.assertEqual(189, found.policy.notice.length_s(3600))

    def test_a_headroom_that_cannot_be(self):
        path = self.write('nova.conf', '[preemption]\nheadroom = VCPU\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn("[preemption]headroom: 'VCPU': headroom is", err)

    def test_nova_conf_of_this_machine_does_not_count(self):
        with mock.patch.dict(os.environ, {'HOME': str(self.directory)}):
            self.write('nova.conf', '[preemption]\nnotice_s = 99\n')
            found, _ = simulation_policy.read_policy(None, 1)
        self.assertEqual(30, found.policy.notice.length_s(None))

    def test_reservations(self):
        """Side by side, refused where they are off; with records."""
        on = self.write('on.conf', '[reservation]\nenabled = true\n'
                        'reservable_default = true\nmax_hosts = 1\n'
                        'guard = 5\n')
        trace = self.write('reserved.jsonl', '\n'.join((
            ('{"t": 0, "kind": "reserve", "id": "r", "start": 3600, "end": '
            '7200, "resources": {"VCPU": 1}, "project": "p"}'),
            ('{"t": 0, "kind": "reserve", "id": "many", "hosts": 2, '
            '"start": 3600, "end": 7200, "project": "p"}'),
            ('{"t": 4000, "kind": "boot", "id": "own", "resources": '
            '{"VCPU": 1}, "reservation": "r", "project": "p"}'))))
        records = str(self.directory / 'records.jsonl')
        arguments = ('run', '--cloud', self.write('two.yaml', CLOUD), trace,
                     '--until-s', '10800', '--records', records,
                     '--compare', on)
        code, out, err = self.main(*arguments, '--json')
        self.assertEqual(0, code, err)
        self.assertIn('not simulated: [reservation]guard, which is not', err)
        off, with_them = (each['reservations'] for each in json.loads(out))
        self.assertEqual(2, off['refused'])
        self.assertEqual(0.0, off['host_hours'])
        self.assertEqual(
            {'asked': 2, 'granted': 1, 'refused': 1, 'started': 1,
             'ended': 1, 'late_s': 0.0, 'host_hours': 1.0,
             'host_hours_used': with_them['host_hours_used']}, with_them)
        self.assertAlmostEqual(3200 / 3600, with_them['host_hours_used'], 1)
        text = pathlib.Path(records).read_text()
        self.assertIn('The limit max_hosts would be exceeded', text)
        self.assertIn('reservations are off', text)
        code, out, _ = self.main(*arguments)
        self.assertRegex(out, r'reservations: granted +0 +1')
        self.assertRegex(out, r'reservations: host-hours +0.00 +1.00')

    def test_power(self):
        cloud = self.write('power.yaml', CLOUD.replace(
            'count: 2', 'count: 2\n  watts: 300\n  idle_watts: 100'))
        on = self.write('on.conf', '[energy]\nenabled = true\n'
                        'idle_intervals = 2\nforecast = max_window\n'
                        'forecast_window_s = 60\nspare_hosts = 0\n'
                        'minimum_hosts_per_aggregate = 1\n')
        code, out, err = self.main(
            'run', '--cloud', cloud, self.write('few.jsonl', '\n'.join(
                TRACE.strip().splitlines()[2:])), '--json', '--until-s',
            '7200', '--compare', on)
        self.assertEqual(0, code, err)
        self.assertIn('not simulated: [energy]minimum_hosts_per_aggregate',
                      err)
        off, on = (each['energy'] for each in json.loads(out))
        self.assertEqual(2, off['hosts_on'])
        self.assertGreaterEqual(off['used_kwh'], 0.4)
        self.assertLess(on['hosts_on'], 2)
        self.assertAlmostEqual(off['used_kwh'],
                               on['used_kwh'] + on['saved_kwh'], 2)

    def test_classes(self):
        cloud = self.write('classes.yaml', CLOUD.replace(
            '  bronze: {extra_specs: {}}', """
  bronze: {extra_specs: {"preemptible:enabled": true,
                         "preemptible:class": bronze}}
  gold: {extra_specs: {"preemptible:enabled": true,
                       "preemptible:class": gold}}"""))
        conf = self.write('classes.conf', """
[preemption]
notice_s = 0
[classes]
enabled = true
qos_class = name:gold,importance:1,availability:0.9
qos_class = name:bronze,importance:2,availability:0.1,least_run_s:0
[backlog]
enabled = true
order = qos
""")
        trace = self.write('classes.jsonl', '\n'.join(
            json.dumps({'t': 10 * number, 'kind': 'boot', 'id': str(number),
                        'resources': {'VCPU': 8}, 'class': name,
                        'duration': 600})
            for number, name in enumerate(('bronze', 'bronze', 'gold'))))
        code, out, err = self.main(
            'run', '--cloud', cloud, trace, '--policy', conf, '--json',
            '--until-s', '1000')
        self.assertEqual(0, code, err)
        found = json.loads(out)
        self.assertEqual(1, found['promises']['gold']['kept'])
        self.assertEqual(1, found['classes']['gold']['preempted'])

    def test_classes_that_cannot_be(self):
        path = self.write('nova.conf', '[classes]\nenabled = true\n'
                          'qos_class = name:gold,importance:1\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn('qos_class: class gold: availability is missing', err)
        self.write('nova.conf', '[preemption]\nactions = delete\n'
                   '[classes]\nenabled = true\nqos_class = '
                   'name:gold,importance:1,availability:1\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn('[preemption]actions is delete, with', err)

    def test_no_such_forecast(self):
        path = self.write('nova.conf', '[energy]\nenabled = true\n'
                                       'forecast = stars\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn("[energy]forecast is 'stars'; known are: ewma", err)

    def test_who_waits_in_the_backlog(self):
        cloud = self.write('waits.yaml', CLOUD + 'waiting: [s]\n')
        on = self.write('on.conf', '[backlog]\nenabled = true\n'
                                   'pass_interval_s = 10\n')
        exact = self.write('exact.conf', '[backlog]\nenabled = true\n'
                           'ladders = true\nbatch_mode = exact\n')
        trace = self.write('more.jsonl', TRACE + TRACE.strip().splitlines()[
            0].replace('"one"', '"three"').replace('"t": 0', '"t": 400'))
        code, out, err = self.main(
            'run', '--cloud', cloud, trace, '--json', '--compare', on,
            '--compare', exact)
        self.assertEqual(0, code)
        self.assertIn('exact.conf: not simulated: [backlog]ladders', err)
        off, *waits = (each['classes']['s'] for each in json.loads(out))
        self.assertNotIn('queued', off)
        for each in waits:
            self.assertEqual((3, 0), (each['queued'],
                                      each.get('refused', 0)))

    def test_a_backlog_that_cannot_be(self):
        path = self.write('nova.conf', '[backlog]\nenabled = true\n'
                                       'order = nobody\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn("order is 'nobody', not one of", err)


class TestSweep(Case):

    def sweep(self, *args):
        def in_order(jobs, count):
            # As processes would, which tests of their own have.
            for job in jobs:
                yield job, sweep.run(pickle.loads(pickle.dumps(job)))

        with mock.patch.object(sweep, 'in_processes', in_order):
            return self.main('sweep', '--cloud', self.cloud, self.trace,
                             *args)

    def test_means_of_all_seeds(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        code, out, _ = self.sweep('--policy', off, '--seeds', '0-2')
        self.assertEqual(0, code)
        lines = out.splitlines()
        self.assertEqual('means of 3 seeds', lines[0])
        rows = dict(line.rsplit('  ', 1) for line in lines[1:])
        rows = {name.strip(): value for name, value in rows.items()}
        self.assertEqual('1', rows['normal: refused'])

    def test_a_line_for_each_run(self):
        off = self.write('off.conf', '[preemption]\nenabled = false\n')
        other = self.write('other.jsonl', TRACE)
        code, out, _ = self.sweep(other, '--policy', off, '--policy',
                                  self.write('on.conf', ''), '--seeds', '3-4',
                                  '--json')
        self.assertEqual(0, code)
        found = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(8, len(found))
        self.assertEqual({self.trace, other},
                         {each['trace'] for each in found})
        for each in found:
            self.assertEqual(
                1 if each['policy'] == off else 0,
                each['classes']['normal'].get('refused', 0))

    def test_whatever_a_policy_has_goes_to_other_processes(self):
        policy = self.write(
            'all.conf', '[preemption]\nactions = shelve\n'
            '[backlog]\nenabled = true\norder = qos\n'
            'batch_mode = greedy\n[reservation]\nenabled = true\n'
            '[energy]\nenabled = true\n[classes]\nenabled = true\n'
            'qos_class = name:gold,importance:1,availability:0.9\n')
        code, _, err = self.sweep('--policy', policy, '--seeds', '1')
        self.assertEqual((0, ''), (code, err))

    def test_a_trace_that_does_not_fit_the_cloud(self):
        self.trace = self.write(
            'other.jsonl',
            '{"t": 0, "kind": "boot", "id": "x", "flavor": "huge"}')
        code, out, err = self.sweep('--seeds', '1')
        self.assertEqual((1, ''), (code, out))
        self.assertEqual(
            f"nova-preempt-simulate: {self.trace}: server x has the flavor "
            "'huge', which is not known; there are: small, spot\n", err)

    def test_an_interrupted_one_goes_on(self):
        ran = []

        def two_at_most(jobs, count):
            for job in jobs[:2]:
                ran.append(job.seed)
                yield job, sweep.run(job)
            raise KeyboardInterrupt

        keep = str(self.directory / 'new' / 'kept')
        expected = self.sweep('--seeds', '0-2')[1]
        with mock.patch.object(sweep, 'in_processes', two_at_most):
            code, out, _ = self.main('sweep', '--cloud', self.cloud,
                                     self.trace, '--seeds', '0-2',
                                     '--keep', keep)
        self.assertEqual((130, '', [0, 1]), (code, out, ran))
        for found in (2, 3):
            self.assertEqual(
                (0, expected, (f'nova-preempt-simulate: {found} of 3 runs '
                               f'are in {keep}\n')),
                self.sweep('--seeds', '0-2', '--keep', keep))

    def test_a_run_of_which_something_has_changed_is_another(self):
        keep = str(self.directory / 'kept')
        policy = self.write('a.conf', '')
        args = ['--policy', policy, '--seeds', '1', '--keep', keep, '--json']

        def found(*more):
            code, out, err = self.sweep(*args, *more)
            self.assertEqual(0, code, err)
            return err.rpartition(': ')[2][:1], json.loads(out)

        count, first = found()
        self.assertEqual('0', count)
        self.assertEqual(('1', first), found())
        for change in (lambda: self.write('a.conf', '[preemption]\n'
                                                    'enabled = false\n'),
                       lambda: self.write(pathlib.Path(self.trace).name,
                                          TRACE + '\n'),
                       lambda: self.write(pathlib.Path(self.cloud).name,
                                          CLOUD + '\n')):
            change()
            self.assertEqual('0', found()[0])
            self.assertEqual('1', found()[0])
        for more in (['--until-s', '100'], ['--sort'], ['--seeds', '2'],
                     ['--machine-vcpus', '9']):
            self.assertEqual('0', found(*more)[0], more)

    def test_a_damaged_run_is_made_again(self):
        keep = self.directory / 'kept'
        args = ['--seeds', '1', '--keep', str(keep)]
        expected = self.sweep(*args)[1]
        (file,) = keep.iterdir()
        for damage in (b'', b'{"run": {}', b'[]', b'{"summary": {}}'):
            file.write_bytes(damage)
            code, out, err = self.sweep(*args)
            self.assertEqual((0, expected), (code, out))
            self.assertIn('0 of 1 runs', err)
        self.assertEqual([file], list(keep.iterdir()))
        file.unlink()
        code, _, err = self.sweep('--seeds', '1', '--keep', self.trace)
        self.assertEqual(1, code)
        self.assertIn(f'File exists: {self.trace!r}', err)

    def test_seeds(self):
        for wrong in ('a', '3-1', '1-2-3', '0-100000', '-1'):
            code, _, _ = self.sweep(f'--seeds={wrong}')
            self.assertEqual(2, code, wrong)
