# SPDX-License-Identifier: Apache-2.0
"""The files of a cloud and of options that nova-preempt-simulate reads."""

import json
import os
import pathlib
from unittest import mock

from nova_preempt.cmd import simulation_cloud_file
from nova_preempt.cmd import simulation_policy
from nova_preempt.core import costs
from nova_preempt.core.model import Inventory
from nova_preempt.embedded import checked_yaml
from nova_preempt.simulator import simulation_settings
from tests.unit.cmd import simulation


class TestCloud(simulation.Case):

    def test_all_of_it(self):
        found, workers = simulation_cloud_file.read_cloud(self.cloud)
        self.assertEqual(2, workers)
        self.assertFalse(found.spread)
        self.assertEqual((simulation_settings.HostKind('a', 2, {
            'VCPU': Inventory(8, max_unit=8),
            'MEMORY_MB': Inventory(4096, 512, max_unit=4096,
                                   allocation_ratio=1.5)}),),
                         found.hosts)
        self.assertEqual({
            'small': simulation_settings.Flavor({'VCPU': 1}),
            'spot': simulation_settings.Flavor(
                {'VCPU': 8}, simulation_settings.PreemptibleTerms(
                    0, None, 5, 'shelve', True))}, found.flavors)
        self.assertEqual(simulation_settings.PreemptibleTerms(60),
                         found.classes['best'])
        self.assertIsNone(found.classes['bronze'])
        self.assertEqual(simulation_settings.PreemptibleTerms(),
                         found.classes['preemptible'])
        self.assertEqual('constant:3', found.delays.shelve.text)

    def test_the_one_in_the_documentation(self):
        found, _ = simulation_cloud_file.read_cloud(str(
            pathlib.Path(__file__).parents[3] / 'doc' / 'source'
            / 'simulating-cloud.yaml'))
        self.assertEqual(120, sum(kind.count for kind in found.hosts))
        self.assertTrue(found.flavors['spot.small'].terms.restore)
        self.assertEqual(60, found.classes['batch'].notice_s)

    def test_errors_name_the_mistake(self):
        good = 'hosts: [{name: a, count: 1, resources: {VCPU: 4}}]\n'
        for content, why in (
                ('', ':1: must not be empty'),
                ('hosts: []', 'hosts: must have 1 to'),
                ('hosts: [{name: a, count: 0, resources: {VCPU: 4}}]',
                 'hosts[0].count: must be from 1'),
                ('hosts: [{name: a, count: 1, resources: {VCPU: -4}}]',
                 'hosts[0].resources.VCPU: must be from 1'),
                (good.replace('}}]', '}, reserved: {X: 1}}]'),
                 'its resources must include X'),
                (good + 'host: 1', ':2: host: unknown key'),
                (good.replace('}}]', '}, watts: 3}]'),
                 'watts requires idle_watts'),
                (good.replace('}}]', '}, watts: 3, idle_watts: 5}]'),
                 'idle_watts: must be at most watts'),
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
                with self.assertRaises(checked_yaml.BadFile) as raised:
                    simulation_cloud_file.read_cloud(path)
                self.assertIn(why, str(raised.exception))


class TestPolicy(simulation.Case):

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
        """The limit is 300 s minus the time of queueing and evictions."""
        path = self.write('nova.conf', '[DEFAULT]\nlong_rpc_timeout = 300\n')
        found, _ = simulation_policy.read_policy(path, 1)
        self.assertEqual(189, found.policy.notice.length_s(3600))

    def test_a_headroom_that_cannot_be(self):
        path = self.write('nova.conf', '[preemption]\nheadroom = VCPU\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn("[preemption]headroom: 'VCPU' must be", err)

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
        arguments = ('run', '--cloud', self.write(
            'two.yaml', simulation.CLOUD), trace, '--until-s', '10800',
            '--records', records, '--compare', on)
        code, out, err = self.main(*arguments, '--json')
        self.assertEqual(0, code, err)
        self.assertIn('not simulated: [reservation]guard, an unknown', err)
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
        self.assertIn('[reservation]enabled is false', text)
        code, out, _ = self.main(*arguments)
        self.assertRegex(out, r'reservations: granted +0 +1')
        self.assertRegex(out, r'reservations: host-hours +0.00 +1.00')

    def test_power(self):
        cloud = self.write('power.yaml', simulation.CLOUD.replace(
            'count: 2', 'count: 2\n  watts: 300\n  idle_watts: 100'))
        on = self.write('on.conf', '[energy]\nenabled = true\n'
                        'idle_intervals = 2\nforecast = max_window\n'
                        'spare_hosts = 0\n'
                        'minimum_hosts_per_aggregate = 1\n')
        code, out, err = self.main(
            'run', '--cloud', cloud, self.write('few.jsonl', '\n'.join(
                simulation.TRACE.strip().splitlines()[2:])), '--json',
            '--until-s', '7200', '--compare', on)
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
        cloud = self.write('classes.yaml', simulation.CLOUD.replace(
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
        self.assertIn('class gold: field availability is missing', err)
        self.write('nova.conf', '[preemption]\nactions = delete\n'
                   '[classes]\nenabled = true\nqos_class = '
                   'name:gold,importance:1,availability:1\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn('[preemption]actions is delete; with', err)

    def test_no_such_forecast(self):
        path = self.write('nova.conf', '[energy]\nenabled = true\n'
                                       'forecast = stars\n')
        code, _, err = self.main('run', '--cloud', self.cloud, self.trace,
                                 '--policy', path)
        self.assertEqual(1, code)
        self.assertIn("[energy]forecast is 'stars'; known are: ewma", err)

    def test_classes_that_wait_in_the_backlog(self):
        cloud = self.write('waits.yaml', simulation.CLOUD + 'waiting: [s]\n')
        on = self.write('on.conf', '[backlog]\nenabled = true\n'
                                   'pass_interval_s = 10\n')
        exact = self.write('exact.conf', '[backlog]\nenabled = true\n'
                           'ladders = true\nbatch_mode = exact\n')
        first = simulation.TRACE.strip().splitlines()[0]
        trace = self.write('more.jsonl', simulation.TRACE + first.replace(
            '"one"', '"three"').replace('"t": 0', '"t": 400'))
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
        self.assertIn("order is 'nobody'; known are: ", err)
