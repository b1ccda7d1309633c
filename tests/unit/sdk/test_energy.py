# SPDX-License-Identifier: Apache-2.0

import datetime

from openstack import exceptions
from oslo_utils import timeutils

from nova_preempt.db import energy_store
from tests.unit.sdk import base


class TestEnergy(base.SdkTestCase):

    microversion = '1.2'

    def setUp(self):
        super().setUp()
        self.inventory.add('a %1')
        self.now = timeutils.utcnow().replace(microsecond=0)

    def set_power(self, state, *from_states):
        energy_store.set_power(self.db, 'a %1', state, self.now,
                               from_states=from_states)

    def test_totals(self):
        energy_store.add_sample(self.db, energy_store.EnergySample(
            self.now - datetime.timedelta(minutes=1), 3, 1, 2, 20, 8, 4,
            300.0, 200.0))
        self.assertEqual(300.0, self.admin.get_energy().watts)
        report = self.admin.get_energy_report(
            since=f'{(self.now - datetime.timedelta(1)).isoformat()}Z')
        self.assertEqual(1, len(report.series))
        self.assertGreater(report.saved_kwh, 0)
        self.raised(exceptions.ForbiddenException, self.member.get_energy)

    def test_figures(self):
        made = self.admin.set_energy_figures('a %1', flops=1e12, watts=400)
        self.assertEqual((1e12, 2.5e9), (made.flops, made.flops_per_watt))
        host, = self.admin.energy_hosts()
        self.assertEqual(('a %1', made.answer()), (host.name, host.figures))
        self.assertIn('1000 must be at most watts', self.raised(
            exceptions.BadRequestException, self.admin.set_energy_figures,
            host, watts=400, idle_watts=1000))
        self.admin.delete_energy_figures(host)
        self.assertEqual({}, energy_store.get_figures(self.db))
        self.admin.delete_energy_figures(host)
        self.raised(exceptions.NotFoundException,
                    self.admin.delete_energy_figures, host,
                    ignore_missing=False)

    def test_boot_again(self):
        self.set_power('failed', 'on')
        self.assertEqual('failed', self.admin.get_energy_host('a %1').state)
        self.raised(exceptions.ResourceFailure,
                    self.admin.wait_for_energy_host, 'a %1', wait=20)
        self.admin.retry_energy_host('a %1')
        self.soon(self.set_power, 'on', 'waking')
        host = self.admin.wait_for_energy_host('a %1', interval=0.05, wait=20)
        self.assertEqual('on', host.state)
        self.raised(exceptions.ConflictException,
                    self.admin.retry_energy_host, host)
        self.assertIn("'b'", self.raised(
            exceptions.NotFoundException, self.admin.get_energy_host, 'b'))
