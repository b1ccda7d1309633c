# SPDX-License-Identifier: Apache-2.0
"""Hosts that are powered off and on.

The power of a host is its compute service: the driver ``command`` stops and
starts that. A host that is off reports nothing and answers nobody, and one
that boots takes its time.
"""

import time

from tests.cloud import base

IDLE_S = 2
CHECKS_S = 2
# What is paused, and does not happen meanwhile.
NOTHING_S = 15
POWERS = {'on': 'start', 'off': 'stop', 'force_off': 'kill',
          'status': 'state'}
FIGURES = {'flops': '1e12', 'watts': '300', 'idle-watts': '100'}


CONSTANTS = {
    'core.energy.power_plan.NOTE_INTERVAL_S': 2,
    'core.energy.power_steps.EMPTY_CHECKS_S': CHECKS_S,
    'core.energy.power_savings.INTERVAL_S': 2,
    'core.energy.energy_observation.BOOT_TIME_S': 30,
    'core.energy.demand_forecast.WINDOW_S': 1,
}


def _options(place, **more):
    return {
        'preemption_engine': {'interval_s': 2},
        'energy': {
            'enabled': 'true',
            'driver': 'command',
            **{f'command_{name}': place.minicloud_command(what, '{host}')
               for name, what in POWERS.items()},
            'command_on_pattern': 'running',
            'idle_intervals': IDLE_S,
            'switch_interval_s': 2,
            'demand_wait_s': 240,
            # What is needed now, and nothing beyond.
            'spare_hosts': 0,
            'forecast': 'max_window',
            **more,
        },
    }


class TestEnergy(base.CloudTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hosts = cls.place.layout.computes
        cls.addClassCleanup(cls._wake_all)
        cls.place.configure(_options(cls.place), CONSTANTS)

    @classmethod
    def _wake_all(cls):
        """Wake all hosts, as doc/source/energy.rst says."""
        try:
            cls.place.configure(_options(
                cls.place, minimum_hosts=len(cls.hosts)), CONSTANTS)
            until = time.monotonic() + base.PATIENCE_S
            while any(cls._states().get(name, 'on') != 'on'
                      for name in cls.hosts):
                if time.monotonic() > until:
                    raise AssertionError(f'not all wake: {cls._states()}')
                time.sleep(1)
        finally:
            cls.place.configure({})

    @classmethod
    def _states(cls):
        return {row['Name']: row['State'] for row
                in cls.place.openstack('energy', 'host', 'list')}

    def _asleep(self):
        """Names of all hosts but one, once these are asleep."""
        states = self._states()
        asleep = {name for name, state in states.items()
                  if state == 'asleep'}
        return asleep if len(asleep) == len(self.hosts) - 1 else None

    def _has_saved(self):
        """Return whether the rounded savings are above 0 already."""
        report = self._report()
        return report['e_savings_core_s'] > 0 and report['saved_kwh'] > 0

    def _fill_two_hosts(self, flavor='normal.half'):
        """Three servers: one more than a host takes."""
        before = self.ours.servers().keys()
        self.ours.boot_many('normal', self.flavor(flavor), 3)
        return self.ours.servers().keys() - before

    def _statuses(self, uuids):
        return [self.ours.wait(uuid, base.PATIENCE_S) for uuid in uuids]

    def test_idle_hosts_sleep_and_wake_on_demand(self):
        for name in self.hosts:
            self.place.openstack(
                'energy', 'figures', 'set', name, *(
                    word for key, value in FIGURES.items()
                    for word in (f'--{key}', value)))
        asleep = self.wait_until(self._asleep, 'hosts asleep')
        self._check_off(asleep)
        self.wait_until(self._has_saved, 'energy that is saved')

        uuids = self._fill_two_hosts()
        self.assertEqual(['ACTIVE'] * 3, self._statuses(uuids))
        used = {self.host_of(uuid) for uuid in uuids}
        self.assertEqual(2, len(used))
        woken = used & asleep
        self.assertTrue(woken)
        for name in woken:
            self._check_woken(name)
        self.assertLess(0, self._report()['delay_req'])

        # Nobody needs it any more.
        self.ours.delete(uuids)
        self._check_off(self.wait_until(self._asleep, 'hosts asleep again'))

    def _check_off(self, asleep):
        services_ = self.admin.compute.services(binary='nova-compute')
        for service in services_:
            if service.host in asleep:
                self.assertEqual('disabled', service.status)
                self.assertTrue(service.disabled_reason.startswith(
                    'nova-preempt-engine:'), service.disabled_reason)
        self.assertEqual(
            {name: 'gone' if name in asleep else 'running'
             for name in self.hosts},
            {name: self.place.services.state(name) for name in self.hosts})
        self.assertEqual(len(asleep), self.place.openstack(
            'energy', 'show')['hosts']['asleep'])

    def _check_woken(self, name):
        self.assertEqual('running', self.place.services.state(name))
        [row] = [row for row in self.place.openstack(
            'energy', 'hosts', '--long') if row['Name'] == name]
        self.assertEqual(('on', 'a request finds no other host'),
                         (row['State'], row['Reason']))
        self.assertLess(0, row['Boot (s)'])

    def _report(self):
        return self.place.openstack('energy', 'report')

    def test_preemptible_servers_wake_no_host(self):
        asleep = self.wait_until(self._asleep, 'hosts asleep')
        self.assertEqual(['ERROR'] * 3, self._statuses(
            self._fill_two_hosts('spot.half')))
        self.assertEqual(asleep, self._asleep())

    def test_no_host_is_switched_while_it_is_paused(self):
        asleep = self.wait_until(self._asleep, 'hosts asleep')
        self.pause('power')
        self.assertEqual(['ERROR'] * 3,
                         self._statuses(self._fill_two_hosts()))
        self.assertEqual(asleep, self._asleep())

        self.resume()
        uuids = self._fill_two_hosts()
        self.assertEqual(['ACTIVE'] * 3, self._statuses(uuids))
        self.pause('power')
        # The second host is idle from now on.
        self.ours.delete(list(self.ours.servers()))
        with self.assertRaises(AssertionError):
            self.wait_until(self._asleep, 'a change',
                            patience_s=NOTHING_S)
        self.resume()
        self.wait_until(self._asleep, 'hosts asleep again')
