# SPDX-License-Identifier: Apache-2.0
"""Tests of samples of the cloud."""

import datetime
from unittest import mock

import prometheus_client

from nova_preempt.db import energy_store
from nova_preempt.power import energy_sampler
from nova_preempt.power import power_readings
from tests.unit.power import base
from tests.unit.power import world

SERVER = '4e7a1d5c-7c4b-4b9e-9d53-0a8f2a4d7b11'


class TestObserver(world.WorldTestCase):

    def setUp(self):
        super().setUp()
        self.start(world.World('a', 'b', 'c'))
        self.source = mock.Mock()
        self.watts(a=100.0, b=150.0)
        self.observer = energy_sampler.EnergySampler(
            self.db, self.world,
            power_readings.PowerReader(self.conf, [('source', self.source)],
                                       base.clock),
            lambda: {'b': 90.0, 'c': 80.0}, dict, self.world.clock)

    def watts(self, **watts):
        self.source.read.return_value = {
            host: power_readings.Reading(host, value, base.NOW)
            for host, value in watts.items()}

    def observe(self):
        self.observer.observe()
        return energy_store.get_samples(self.db)[-1]

    def test_sample(self):
        self.world.change('a', servers=2, vcpus_used=3)
        energy_store.set_power(self.db, 'c', 'asleep', self.world.naive(),
                               from_states=('on',))
        energy_store.set_power(self.db, 'b', 'waking', self.world.naive(),
                               from_states=('on',))
        self.assertEqual(energy_store.EnergySample(
            self.world.naive(), hosts_on=2, hosts_busy=1, hosts_asleep=1,
            cores_total=12, cores_off=4, cores_used=3, watts=250.0,
            watts_saved=80.0), self.observe())
        self.assertEqual({'a': 100.0, 'b': 150.0}, {
            host: reading.watts for host, reading
            in energy_store.get_readings(self.db).items()})

        def value(name, **labels):
            return prometheus_client.REGISTRY.get_sample_value(name, labels)

        self.assertEqual((1, 1, 1, 250), (
            value('nova_preempt_power_hosts', state='on'),
            value('nova_preempt_power_hosts', state='asleep'),
            value('nova_preempt_power_hosts', state='waking'),
            value('nova_preempt_power_watts')))

    def test_a_server_that_waited_and_is_gone(self):
        """No cell has it any more, so its run time is unknown."""
        energy_store.add_wake(self.db, energy_store.WakeWait(
            SERVER, self.world.naive(), 2, 90.0))
        self.observe()
        self.assertEqual(
            [(SERVER, 0)], [(wake.server_uuid, wake.duration_s)
                            for wake in energy_store.get_wakes(self.db)])

    def test_no_reading(self):
        self.watts()
        self.assertIsNone(self.observe().watts)

    def test_purge(self):
        self.observe()
        self.world.now += datetime.timedelta(
            seconds=energy_sampler.RETENTION_S + 1)
        self.observe()
        self.assertEqual(1, len(energy_store.get_samples(self.db)))
