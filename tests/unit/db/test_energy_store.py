# SPDX-License-Identifier: Apache-2.0
"""Energy in the database, on the same databases as the rest."""

import datetime
import os
import threading
import unittest

from nova_preempt.core.energy import power_steps
from nova_preempt.db import energy_store
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 11, 20, 12)


def at(seconds):
    return NOW + datetime.timedelta(seconds=seconds)


class TestEnergy(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def note(self, seconds, *idle):
        return energy_store.note_idle(self.db, idle, at(seconds), 90)

    def test_004_j_idle_intervals_start_again(self):
        counted = []
        for minute, idle in enumerate((1, 1, 1, 0, 1)):
            names = ('a',) if idle else ()
            counted.append(self.note(60 * minute, *names).get('a'))
        self.assertEqual([1, 2, 3, None, 1], counted)
        self.assertEqual(1,
                         energy_store.get_power(self.db)['a'].idle_intervals)

    def test_idle_intervals_of_many_hosts(self):
        hosts = [f'h{number:04}' for number in range(1200)]
        self.note(0, *hosts)
        counted = self.note(60, *hosts[:1100])
        self.assertEqual(({2}, 1100), (set(counted.values()), len(counted)))
        self.assertEqual(
            counted | dict.fromkeys(hosts[1100:], 0),
            {host: power.idle_intervals
             for host, power in energy_store.get_power(self.db).items()})

    def test_idle_intervals_start_again_after_a_pause(self):
        self.note(0, 'a', 'b')
        self.assertEqual({'a': 2}, self.note(90, 'a'))
        self.assertEqual({'a': 1}, self.note(181, 'a'))

    def test_states(self):
        self.assertEqual({}, energy_store.get_power(self.db))
        self.note(0, 'a')
        for host in 'ab':
            self.assertTrue(energy_store.set_power(
                self.db, host, power_steps.SLEEPING, at(60),
                from_states=[power_steps.ON], reason='idle'))
        self.assertFalse(energy_store.set_power(
            self.db, 'a', power_steps.SLEEPING, at(70),
            from_states=[power_steps.ON]))
        self.assertFalse(energy_store.set_power(
            self.db, 'c', power_steps.WAKING, at(70),
            from_states=[power_steps.ASLEEP]))
        self.assertTrue(energy_store.set_power(
            self.db, 'b', power_steps.ON, at(99), boot_s=12.5,
            from_states=[power_steps.SLEEPING, power_steps.WAKING]))
        self.assertEqual({
            'a': energy_store.HostPower('a', power_steps.SLEEPING, at(60),
                                        'idle', noted_at=NOW),
            'b': energy_store.HostPower('b', power_steps.ON, at(99),
                                        boot_s=12.5)},
                         energy_store.get_power(self.db))
        self.assertEqual(['a'], list(energy_store.get_power(
            self.db, [power_steps.SLEEPING, power_steps.ASLEEP])))
        energy_store.forget_power(self.db, ['a', 'x'])
        self.assertEqual(['b'], list(energy_store.get_power(self.db)))

    def test_one_of_many_processes_changes_a_state(self):
        for host in ('a', 'b'):
            won = []
            barrier = threading.Barrier(8)

            def work(host=host, barrier=barrier, won=won):
                barrier.wait()
                won.append(energy_store.set_power(
                    self.db, host, power_steps.SLEEPING, NOW,
                    from_states=[power_steps.ON]))

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([False] * 7 + [True], sorted(won))

    def test_figures(self):
        first = [energy_store.HostEfficiency('b', 1e12, 250.5, None, NOW,
                                             'api'),
                 energy_store.HostEfficiency('a', None, 1.0, 2.0, NOW)]
        energy_store.put_figures(self.db, first)
        second = energy_store.HostEfficiency('a', 2e15, 3.0, None, at(1),
                                             'hpl')
        energy_store.put_figures(self.db, [second])
        self.assertEqual([('a', second), ('b', first[0])],
                         list(energy_store.get_figures(self.db).items()))
        self.assertTrue(energy_store.delete_figures(self.db, 'a'))
        self.assertFalse(energy_store.delete_figures(self.db, 'a'))

    def test_readings(self):
        old = energy_store.HostPowerReading('a', 100.0, NOW, 'kwapi')
        energy_store.put_readings(self.db, [
            old, energy_store.HostPowerReading('b', 0.25, NOW, 'kwapi')])
        new = energy_store.HostPowerReading('b', 7.0, at(60), 'static')
        energy_store.put_readings(self.db, [new])
        self.assertEqual({'a': old, 'b': new},
                         energy_store.get_readings(self.db))
        self.assertEqual({'b': new}, energy_store.get_readings(self.db, at(1)))

    def test_samples(self):
        samples = [energy_store.EnergySample(at(60 * number), 3, number, 1, 40,
                                             10, 8, watts=None if number
                                             else 300.0, watts_saved=90.5)
                   for number in range(4)]
        for sample in reversed(samples):
            energy_store.add_sample(self.db, sample)
        again = energy_store.EnergySample(at(180.7), 9, 9, 9, 9, 9, 9)
        energy_store.add_sample(self.db, again)
        self.assertEqual(samples[:3], energy_store.get_samples(self.db)[:3])
        self.assertEqual([(at(180), 9)], [
            (item.sampled_at, item.hosts_on)
            for item in energy_store.get_samples(self.db, since=at(180))])
        self.assertEqual(samples[1:2], energy_store.get_samples(
            self.db, since=at(60), until=at(120)))
        self.assertEqual(2, energy_store.purge(self.db, at(120)))
        self.assertEqual(2, len(energy_store.get_samples(self.db)))

    def test_wakes(self):
        for number, uuid in enumerate(('s1', 's2', 's1')):
            energy_store.add_wake(self.db, energy_store.WakeWait(
                                      uuid, at(number), 8, 180.0))
        energy_store.set_duration(self.db, 's1', 3600.0)
        energy_store.set_duration(self.db, 's1', 1.0)
        self.assertEqual(
            [('s1', 3600.0), ('s2', None), ('s1', 3600.0)],
            [(wake.server_uuid, wake.duration_s)
             for wake in energy_store.get_wakes(self.db)])
        self.assertEqual(1, len(energy_store.get_wakes(self.db, since=at(2))))
        self.assertEqual(3, energy_store.purge(self.db, at(9)))


def load_tests(loader, tests, pattern):
    """Run the own tests of each class on each database."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        for name in vars(TestEnergy):
            if name.startswith('test_'):
                case = TestEnergy(name)
                case.url = url
                suite.addTest(case)
    return suite
