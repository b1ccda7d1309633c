# SPDX-License-Identifier: Apache-2.0
"""Handlers of energy, for administrators."""

import datetime
import json
import os
import tempfile
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.api import energy_handlers
from nova_preempt.core.energy import power_savings
from nova_preempt.core.energy import power_steps
from nova_preempt.db import energy_store
from tests.unit.api import base

ADMIN = 'admin:z'
VERSION = {'headers': {'OpenStack-API-Version': 'preemption 1.1'}}
HOUR = datetime.timedelta(hours=1)


class EnergyTestCase(base.AnsweringTestCase):

    def setUp(self):
        super().setUp()
        for name in ('host1', 'host2'):
            self.inventory.add(name)
        patch = mock.patch.object(timeutils, 'utcnow',
                                  return_value=base.NOW)
        patch.start()
        self.addCleanup(patch.stop)

    def read(self, path, code=200):
        return self.get(f'/v1/energy{path}', ADMIN, code, **VERSION)

    def change(self, method, path, code, body=None, token=ADMIN):
        values = dict(VERSION)
        if body is not None:
            values.update(body=json.dumps(body).encode(),
                          content_type='application/json')
        answer = self.request(f'/v1/energy/hosts/{path}', method, token,
                              **values)
        self.assertEqual(code, answer.status_int, answer.text)
        return answer

    def set_figures(self, name='host1', code=200, **figures):
        return self.change('PUT', f'{name}/figures', code,
                           {'figures': figures})

    def sample(self, ago, **values):
        energy_store.add_sample(self.db,
                                energy_store.EnergySample(base.NOW - ago, **{
                                    'hosts_on': 3, 'hosts_busy': 1,
                                    'hosts_asleep': 2,
                                    'cores_total': 20, 'cores_off': 8,
                                    'cores_used': 4,
                                    'watts': 300.0, 'watts_saved': 200.0,
                                    **values}))

    def to(self, name, state):
        energy_store.set_power(self.db, name, state, base.NOW, reason='why',
                               from_states=power_steps.STATES)


class TestFigures(EnergyTestCase):

    def test_are_kept(self):
        answer = self.set_figures(flops=1e12, watts=400, idle_watts=100.5,
                                  source='benchmark').json
        self.assertEqual({'figures': {
            'flops': 1e12, 'watts': 400, 'idle_watts': 100.5,
            'flops_per_watt': 2.5e9, 'source': 'benchmark',
            'measured_at': '2026-11-20T12:00:00Z'}}, answer)
        host, = self.read('/hosts')['hosts']
        self.assertEqual(('host1', 'on', answer['figures']), (
            host['name'], host['state'], host['figures']))
        self.set_figures(flops=2e12)
        host, = self.read('/hosts')['hosts']
        self.assertEqual((2e12, None, None), tuple(
            host['figures'][name]
            for name in ('flops', 'watts', 'flops_per_watt')))
        self.change('DELETE', 'host1/figures', 204)
        self.assertEqual([], self.read('/hosts')['hosts'])
        self.change('DELETE', 'host1/figures', 404)

    def test_figures_of_a_file(self):
        self.set_figures(flops=1e12, watts=400)
        self.set_figures('host2', flops=1e12, watts=500, source='benchmark')
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, 'figures.yaml')
        with open(path, 'w') as file:
            file.write('host1: {watts: 250}\nhost3: {flops: 1e12}\n')
        self.conf.set_override('figures_file', path, 'energy')
        self.assertEqual([
            ('host1', 1e12, 250, 4e9, None, 'figures_file'),
            ('host2', 1e12, 500, 2e9, '2026-11-20T12:00:00Z', 'benchmark'),
            ('host3', 1e12, None, None, None, 'figures_file'),
        ], [(host['name'], *(host['figures'][name] for name in (
            'flops', 'watts', 'flops_per_watt', 'measured_at', 'source')))
            for host in self.read('/hosts')['hosts']])
        # A file with a mistake: what was known before goes on to count.
        with open(path, 'w') as file:
            file.write('host1: {watts: -1}\n')
        self.assertEqual(3, len(self.read('/hosts')['hosts']))

    def test_invalid(self):
        for name, value in (('flops', -1), ('watts', 'many'), ('watts', 1e22),
                            ('idle_watts', True), ('source', 1),
                            ('volts', 230)):
            self.assertIn(name, self.set_figures(
                code=400, **{name: value}).json['error']['message'])
        self.set_figures('x' * 256, 404, watts=1)
        self.set_figures('%0A', 404, watts=1)

    def test_implausible_figures(self):
        for figures, told in (
                ({'watts': 400, 'idle_watts': 400.5},
                 "'figures.idle_watts': 400.5 must be at most watts, 400"),
                ({'flops': 0}, "field 'figures.flops': 0 must be above 0"),
                ({'watts': 0}, "field 'figures.watts': 0 must be above 0"),
                ({'idle_watts': 60000}, (
                    "field 'figures.idle_watts': 60000 must be at "
                    'most 50000'))):
            self.assertIn(told, self.set_figures(
                code=400, **figures).json['error']['message'])
        self.assertEqual({}, energy_store.get_figures(self.db))
        self.set_figures(watts=400, idle_watts=400)

    def test_figures_of_an_unknown_host(self):
        message = self.set_figures('host3', 404, watts=1).json[
            'error']['message']
        self.assertIn("There is no host 'host3' in Nova", message)
        self.assertEqual({}, energy_store.get_figures(self.db))
        # Nobody knows, so nothing is kept.
        self.inventory.list_hosts = mock.Mock(side_effect=ValueError)
        self.set_figures('host1', 503, watts=1)
        self.assertEqual({}, energy_store.get_figures(self.db))
        # What is kept of one that has gone can be forgotten.
        energy_store.put_figures(self.db, [energy_store.HostEfficiency(
            'host4', 1.0, 1.0, None, base.NOW, '')])
        self.change('DELETE', 'host4/figures', 204)

    def test_only_administrators(self):
        self.change('PUT', 'host1/figures', 403, {'figures': {}}, 'u:p')
        self.change('DELETE', 'host1/figures', 403, token='u:p')
        self.change('POST', 'host1/retry', 403, token='u:p')
        for path in ('', '/hosts', '/report'):
            self.get(f'/v1/energy{path}', 'u:p', 403, **VERSION)


class TestHosts(EnergyTestCase):

    def test_list(self):
        self.to('b', 'asleep')
        energy_store.put_readings(self.db, [
            energy_store.HostPowerReading('a', 120.0, base.NOW),
            energy_store.HostPowerReading('b', 5.0, base.NOW - HOUR)])
        self.assertEqual([
            ('a', 'on', None, '', 120.0),
            ('b', 'asleep', '2026-11-20T12:00:00Z', 'why', None),
        ], [tuple(host[name] for name in ('name', 'state', 'since', 'reason',
                                          'watts_now'))
            for host in self.read('/hosts')['hosts']])

    def test_retry(self):
        self.to('a', 'failed')
        self.to('b', 'asleep')
        self.change('POST', 'a/retry', 202)
        self.assertEqual('waking', energy_store.get_power(self.db)['a'].state)
        self.change('POST', 'a/retry', 409)
        self.change('POST', 'b/retry', 409)
        self.change('POST', 'c/retry', 404)


class TestReport(EnergyTestCase):

    def test_nothing(self):
        shown = self.read('')['energy']
        self.assertEqual((None, None, 0), (
            shown['watts'], shown['sampled_at'], shown['saved_kwh']))
        self.assertEqual([], self.read('/report')['report']['series'])

    def test_numbers(self):
        # Long enough for samples to hold until the next one.
        patch = mock.patch.object(power_savings, 'INTERVAL_S', 720)
        patch.start()
        self.addCleanup(patch.stop)
        self.sample(2 * HOUR)
        self.sample(HOUR, cores_off=0, watts=None, watts_saved=0)
        energy_store.add_wake(self.db, energy_store.WakeWait(
            'v1', base.NOW - HOUR, 8, 180, 3600))
        energy_store.add_wake(self.db, energy_store.WakeWait(
            'v2', base.NOW - HOUR, 4, 120, 600))
        energy_store.add_wake(self.db, energy_store.WakeWait(
            'v3', base.NOW - HOUR, 1, 360))
        self.to('a', 'asleep')
        shown = self.read('')['energy']
        self.assertEqual({'on': 3, 'asleep': 1}, {
            name: number for name, number in shown['hosts'].items()
            if number})
        found = self.read('/report')['report']
        for answer in (shown, found):
            self.assertEqual((86400.0, 28800.0, 0.3, 0.2), tuple(
                answer[name] for name in (
                    'res_idle_core_s', 'e_savings_core_s', 'used_kwh',
                    'saved_kwh')))
            # Case 004-c, and one that still runs.
            self.assertAlmostEqual(1.2 + 0.1, answer['delay_req'])
        self.assertEqual([('2026-11-20T10:00:00Z', 300.0),
                          ('2026-11-20T11:00:00Z', None)], [
            (point['time'], point['watts']) for point in found['series']])

    def test_interval(self):
        self.sample(2 * HOUR)
        self.sample(HOUR)
        for query, number in (('since=2026-11-20T11:00:00', 1),
                              ('until=2026-11-20T11:00:00', 1),
                              ('since=2026-11-20T09:00:00Z', 2),
                              ('until=9999-12-31T23:59:59', 2),
                              ('until=0001-01-01T00:00:00', 0)):
            self.assertEqual(number, len(self.read(
                f'/report?{query}')['report']['series']), query)

    def test_no_more_points_than_can_be_drawn(self):
        for number in range(25):
            self.sample(datetime.timedelta(seconds=60 * number),
                        hosts_on=number % 3)
        with mock.patch.object(energy_handlers, 'POINTS', 10):
            series = self.read('/report')['report']['series']
        # The last one is not over yet.
        self.assertEqual(8, len(series))
        self.assertEqual({1.0}, {point['hosts_on'] for point in series})
