# SPDX-License-Identifier: Apache-2.0
"""openstack energy, against the API on a real socket."""

import datetime
import re
import struct
import sys
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.db import energy_store
from tests.unit.client import test_preemption_commands

ADMIN = {'token': 'admin:z'}


class TestEnergy(test_preemption_commands.ClientTestCase):

    def setUp(self):
        super().setUp()
        for name in ('a', 'b'):
            self.inventory.add(name)
        self.now = timeutils.utcnow().replace(microsecond=0)
        for minute in range(3):
            energy_store.add_sample(self.db, energy_store.EnergySample(
                self.now - datetime.timedelta(minutes=3 - minute), 3, 1, 2,
                20, 8, 4, 300.0 if minute else None, 200.0))

    def test_show(self):
        shown = self.json('energy', 'show', **ADMIN)
        self.assertEqual(300.0, shown['watts'])
        self.assertAlmostEqual(0.01, shown['saved_kwh'], 3)
        self.assertAlmostEqual(8 * 180, shown['e_savings_core_s'], -2)
        self.assertEqual(0, self.json(
            'energy', 'show', '--since', f'{self.now.isoformat()}Z',
            **ADMIN)['saved_kwh'])

    def test_hosts(self):
        self.openstack('energy', 'host', 'set', 'b', '--flops', '1e12',
                  '--watts', '400', '--source', 'by hand', **ADMIN)
        self.openstack('energy', 'host', 'set', 'a', '--flops', '1e12',
                  '--watts', '500', **ADMIN)
        energy_store.set_power(self.db, 'c', 'failed', self.now,
                               from_states=('on',), reason='it did not boot')
        found = self.json('energy', 'host', 'list', '--long', **ADMIN)
        self.assertEqual(
            [('b', 2.5e9, 'on'), ('a', 2e9, 'on'), ('c', None, 'failed')],
            [(row['Name'], row['FLOPS per Watt'], row['State'])
             for row in found])
        self.assertEqual('it did not boot', found[2]['Reason'])
        self.openstack('energy', 'host', 'retry', 'c', **ADMIN)
        self.assertEqual('waking', energy_store.get_power(self.db)['c'].state)
        self.openstack('energy', 'host', 'retry', 'c', code=1, **ADMIN)
        self.openstack('energy', 'host', 'unset', 'a', **ADMIN)
        text = self.openstack('energy', 'host', 'show', 'b', **ADMIN)
        self.assertRegex(text, r'Value +\|\n\+[-+]+\n\| why .* host is on\.')
        self.assertIn('| figures        | flops: 1 T ', text)
        found = self.json('energy', 'host', 'list', **ADMIN)
        self.assertEqual(['b', 'c'], [row['Name'] for row in found])

    def test_figures_that_cannot_be(self):
        for host, arguments, told in (
                ('c', ('--watts', '400'), "There is no host 'c' in Nova"),
                ('a', ('--watts', '400', '--idle-watts', '500'),
                 '500 must be at most watts, 400')):
            self.assertIn(told, self.openstack(
                'energy', 'host', 'set', host, *arguments, code=1,
                **ADMIN))

    def test_report(self):
        found = self.json('energy', 'report', **ADMIN)
        self.assertEqual(3, found['points'])
        found = self.json('energy', 'report', '--series', '--until',
                          f'{self.now - datetime.timedelta(minutes=2)}Z'
                          .replace(' ', 'T'), **ADMIN)
        self.assertEqual([None], [point['watts']
                                  for point in found['series']])

    def plot(self, name, **values):
        file = self.directory / name
        text = self.openstack('energy', 'report', '--plot', str(file),
                              **ADMIN, **values)
        return file.read_bytes() if file.exists() else text

    def test_plots(self):
        svg = self.plot('a.svg').decode()
        self.assertIn('<svg', svg)
        for text in ('Power', 'W', 'asleep', 'with servers'):
            self.assertRegex(svg, re.escape(text))
        png = self.plot('a.png')
        self.assertEqual(b'\x89PNG', png[:4])
        self.assertEqual(1000, struct.unpack('>I', png[16:20])[0])

    def test_no_plot(self):
        with self.assertRaises(SystemExit):
            self.plot('a.pdf')
        self.assertIn('No such file', self.plot('no/a.svg', code=1))
        with mock.patch.dict(sys.modules, {'matplotlib.figure': None}):
            self.assertIn('pip install nova-preempt[report]',
                          self.plot('a.svg', code=1))
        energy_store.purge(self.db, self.now)
        self.assertIn('nothing to plot', self.plot('a.svg', code=1))

    def test_needs_an_administrator(self):
        for arguments in (('show',), ('host', 'list'), ('report',)):
            self.assertEqual(
                'Policy does not allow preemption:energy to be performed.\n',
                self.openstack('energy', *arguments, code=1))
