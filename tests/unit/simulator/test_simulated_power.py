# SPDX-License-Identifier: Apache-2.0
"""Sleeping hosts and the power draw."""

import dataclasses
import unittest

from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import power_plan
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation as run
from tests.unit.simulator import small

FIGURES = efficiency_ranking.Figures(1e12, 300.0, 100.0)
#: As by default, but for one interval of idleness, no spare host, and a
#: forecast that knows no better than what there is.
POWER = energy_observation.Options(
    power_plan.PowerPolicy(idle_intervals=1, minimum=1),
    forecast=lambda history, now_s, step_s: max(
        load.busy for load in history if load.time_s >= now_s - 60))


def simulated(*trace, hosts=3, options=POWER, until_s=3600, delay=None,
              **values):
    cloud = small.cloud(hosts, spread=False)
    cloud = dataclasses.replace(
        cloud, hosts=(dataclasses.replace(
            cloud.hosts[0], figures=FIGURES, asleep_watts=10.0),),
        delays=dataclasses.replace(
            small.DELAYS, power_on=delays.Delay(delay or 'constant:120'),
            power_off=delays.Delay('constant:25')))
    records = []
    simulation = run.Simulation(cloud, small.options(power=options, **values),
                                0, records.append)
    summary = simulation.run(trace, until_s * run.SECOND)
    return [f'{item["t"]:g} {item["event"]} {item.get("id") or item["host"]}'
            for item in records if item['event'] != 'asked'], summary


class TestPower(unittest.TestCase):

    def test_idle_hosts_sleep_and_wake_on_demand(self):
        found, summary = simulated(
            small.boot(1, 'one', 4), small.boot(1000, 'two', 4),
            small.boot(1001, 'three', 4, for_s=600))
        self.assertEqual([
            '0 emptying h-1', '0 emptying h-2', '1 placed one',
            '11 active one', '20 sleeping h-1', '20 sleeping h-2',
            '45 asleep h-1', '45 asleep h-2', '1000 waking h-1',
            '1000 woken two', '1001 waking h-2', '1001 woken three',
            '1130 on h-1', '1130 on h-2', '1130 placed two',
            '1130 placed three', '1140 active two', '1140 active three',
            '1740 finished three'], found[:19])
        self.assertEqual('1800 emptying h-2', found[19])
        self.assertEqual(2, summary['energy']['waited'])

    def test_energy(self):
        """A full host for an hour, and two that are idle, on or asleep."""
        trace = small.boot(0, 'one', 4)
        _, on = simulated(trace, options=None)
        self.assertEqual({'hosts_on': 3.0, 'used_kwh': 0.5}, on['energy'])
        _, off = simulated(trace)
        self.assertAlmostEqual(
            off['energy']['used_kwh'] + off['energy']['saved_kwh'], 0.5,
            places=2)
        self.assertLess(off['energy']['hosts_on'], 1.3)

    def test_a_host_with_a_stopped_server_stays_on(self):
        """Though that has no disk there."""
        found, _ = simulated(
            small.boot(0, 'spot', 4, spot=True),
            small.boot(100, 'normal', 4, for_s=100), hosts=1,
            options=dataclasses.replace(
                POWER,
                policy=power_plan.PowerPolicy(idle_intervals=3, minimum=0)),
            actions=('stop',), stop_retention_s=1000)
        self.assertIn('133 stopped spot', found)
        asleep = [float(line.split()[0]) for line in found
                  if line.endswith(' emptying h-1')]
        self.assertLess(1133, asleep[0])

    def test_no_preemptible_server_wakes_a_host(self):
        found, _ = simulated(small.boot(1, 'one', 4),
                             small.boot(1000, 'spot', spot=True))
        self.assertIn('1000 refused spot', found)

    def test_not_for_longer_than_a_request_waits(self):
        options = dataclasses.replace(POWER, demand_wait_s=60)
        found, summary = simulated(small.boot(1, 'one', 4),
                                   small.boot(1000, 'two', 4),
                                   options=options)
        self.assertIn('1060 refused two', found)
        self.assertEqual(0, summary['energy']['waited'])

    def test_a_repeated_request_uses_the_promised_host(self):
        """Two give up before the second host has had its turn to wake."""
        options = dataclasses.replace(POWER, demand_wait_s=30,
                                      max_wakes_per_minute=1)
        found, _ = simulated(small.boot(1, 'one', 4),
                             small.boot(1000, 'two', 4),
                             small.boot(1000, 'three', 4),
                             small.boot(1250, 'again', 4), options=options)
        self.assertEqual(['1030 refused two', '1030 refused three'],
                         [line for line in found if ' refused ' in line])
        self.assertEqual(['1000 waking h-1', '1060 waking h-2'],
                         [line for line in found if ' waking ' in line])
        self.assertIn('1250 placed again', found)

    def test_the_owner_cancels_a_waiting_server(self):
        found, _ = simulated(small.boot(1, 'one', 4),
                             small.boot(1000, 'two', 4),
                             small.end(1050, 'two'))
        self.assertEqual(['1000 woken two', '1050 ended two'],
                         [line for line in found if line.endswith(' two')])

    def test_a_host_that_does_not_boot(self):
        options = dataclasses.replace(POWER, boot_timeout_s=100)
        found, _ = simulated(small.boot(1, 'one', 4),
                             small.boot(1000, 'two', 4), hosts=2,
                             options=options, delay='constant:200')
        self.assertIn('failed h', ' '.join(found))

    def test_left_alone(self):
        options = dataclasses.replace(POWER, excluded=('h-*',))
        _, summary = simulated(small.boot(1, 'one', 4), options=options)
        self.assertEqual(3.0, summary['energy']['hosts_on'])
