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
"""Hosts of the embedded cloud are powered off and on."""

import datetime
import threading

import fixtures

from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.db import energy as db_energy
from nova_preempt.power import errors
from tests.functional import base

ON, EMPTYING, SLEEPING, ASLEEP, WAKING, FAILED = db_energy.STATES


class Machines:
    """A nova-compute is what is left of a machine in the embedded cloud.

    To power one off is to stop it, as the shutdown of a host does. Nova sees
    what it sees then: no more reports, and no answers.
    """

    def __init__(self, case):
        self._case = case
        # Fixtures know one thread only.
        self._lock = threading.Lock()
        self.off = {}         # name: its stopped service
        self.broken = set()   # those that never come up
        self.calls = []

    def is_on(self, host):
        return host not in self.off

    def power_off(self, host):
        with self._lock:
            self.calls.append(('off', host))
            if host not in self.off:
                self.off[host] = self._case.computes.pop(host)
                self.off[host].stop()

    def power_on(self, host):
        with self._lock:
            self.calls.append(('on', host))
            if host in self.broken:
                raise errors.PowerError(host, 'its power supply is broken')
            if host in self.off:
                del self.off[host]
                self._case._start_compute(host)


class EnergyTestCase(base.PreemptionTestCase):

    HOSTS = ('host1', 'host2', 'host3', 'host4')

    def setUp(self):
        super().setUp()
        # Real ones, but nobody wants to wait for them.
        self.flags(report_interval=1)
        self.useFixture(fixtures.MonkeyPatch(
            'nova.servicegroup.api.INITIAL_REPORTING_DELAY', 0.1))
        self.flags(group='energy', enabled=True, spare_hosts=0,
                   max_sleeps_per_minute=10, boot_time_s=120)
        self.add_hosts(*self.HOSTS)
        self.machines = Machines(self)
        self.start_engine()

    def start_engine(self):
        self.engine = cmd_engine.make_engine(
            cmd_engine.CONF, lambda: self.scheduler.host_manager.cells,
            lambda: self.now, self.machines)
        self.addCleanup(self.engine.ends.close)
        self.addCleanup(self.engine._leadership.close)
        self.addCleanup(self.engine.power.close)

    # -- time goes by ----------------------------------------------------

    def tick(self, seconds=10):
        """Let time go by, and the engine do what it does then."""
        self.now += datetime.timedelta(seconds=seconds)
        self.engine.power.control.step()
        self.engine.power.switcher.wait()

    def minutes(self, number):
        """As many notes."""
        for _ in range(number):
            self.tick(60)

    def until_asleep(self, *names):
        """Let idle hosts be powered off, these and no others."""
        self.tick(0)
        self.minutes(5)
        self.tick()
        self.tick()
        self.assertEqual(set(names), self.in_state(ASLEEP))

    # -- what is seen ----------------------------------------------------

    def states(self):
        """{host: state} of all."""
        known = db_energy.get_power(self.db)
        return {host: known[host].state if host in known else ON
                for host in self.HOSTS}

    def in_state(self, state):
        return {host for host, found in self.states().items()
                if found == state}

    def services(self):
        """{host: service as Nova's API shows it}."""
        return {service['host']: service for service in
                self.api.get_services() if service['binary'] ==
                'nova-compute'}

    def wait_reported(self, *hosts):
        """Wait until services report once more, in real time."""
        def read():
            fleet = self.engine.power.switcher._fleet.read()
            return {host: fleet[host].seen_at for host in hosts}

        before = read()
        self.wait_for(lambda: all(
            seen_at != before[host] for host, seen_at in read().items()),
            'services to report')

    def until_on(self, *hosts):
        """Let hosts boot that are waking."""
        self.tick()
        self.wait_reported(*hosts)
        self.tick()
        self.assertLessEqual(set(hosts), self.in_state(ON))


class TestSleep(EnergyTestCase):

    def test_idle_cloud_goes_to_its_minimum(self):
        self.flags(minimum_hosts=1, group='energy')
        self.tick(0)
        self.minutes(4)
        self.assertEqual(set(self.HOSTS), self.in_state(ON))
        # Five intervals at the second decision.
        self.tick(60)
        emptying = self.in_state(EMPTYING)
        self.assertEqual(3, len(emptying))
        for host in emptying:
            service = self.services()[host]
            self.assertEqual('disabled', service['status'])
            self.assertIn('nova-preempt-engine: ',
                          service['disabled_reason'])
        self.assertEqual([], self.machines.calls)
        self.tick()
        self.assertEqual([], self.machines.calls)
        self.tick()
        self.assertEqual(emptying, self.in_state(ASLEEP))
        self.assertEqual(emptying, self.machines.off.keys())
        # And there it stays.
        self.minutes(10)
        self.assertEqual(emptying, self.in_state(ASLEEP))
        self.assertEqual(3, len(self.machines.calls))
