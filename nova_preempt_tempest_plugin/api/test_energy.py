# SPDX-License-Identifier: Apache-2.0
"""Tests of the energy API."""

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions

from nova_preempt_tempest_plugin import base

CONF = config.CONF


class EnergyTest(base.PreemptionTest):

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.preemption_feature_enabled.energy:
            raise cls.skipException('energy is not tested')

    @classmethod
    def setup_clients(cls):
        super().setup_clients()
        cls.client = cls.os_primary.preemption_v1.EnergyClient()
        cls.admin_client = cls.os_admin.preemption_v1.EnergyClient()

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('aa1839ad-1cc2-4416-9750-7453099df2b1')
    def test_an_administrator_sees_it(self):
        self.assertIn('energy', self.admin_client.show_energy())
        self.assertIn('hosts', self.admin_client.list_hosts())
        self.assertIn('report', self.admin_client.show_report())

    @decorators.attr(type='negative')
    @decorators.idempotent_id('df1d9e97-4ae2-4ee7-9e59-cc811d2ac486')
    def test_a_member_does_not(self):
        for ask in (self.client.show_energy, self.client.list_hosts,
                    self.client.show_report):
            self.assertRaises(exceptions.Forbidden, ask)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('4e3c37aa-73b1-4413-9d42-4760ac0f26e4')
    def test_a_member_may_not_say_what_a_host_draws(self):
        self.assertRaises(exceptions.Forbidden, self.client.set_figures,
                          'any', flops=1e12, watts=1, idle_watts=1)
