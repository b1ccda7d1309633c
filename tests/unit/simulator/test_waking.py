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
"""Which hosts wake in a simulation for a server that waits."""

from types import SimpleNamespace
import unittest

from nova_preempt.core.energy import candidates
from nova_preempt.core.energy import steps
from nova_preempt.simulator import run
from nova_preempt.simulator import waking
from nova_preempt.simulator.servers import Server
from tests.unit.simulator import small
from tests.unit.simulator import test_power


class Fleet:
    """Hosts in states that a test sets."""

    def __init__(self, cloud):
        self.hosts = {host.name: SimpleNamespace(
            name=host.name, host=host, state=steps.ASLEEP, efficiency=None)
            for host in cloud.hosts.values()}
        self.late = set()
        self.woken = []

    def coming(self):
        return (host for host in self.hosts.values()
                if host.state in steps.COMING)

    def is_on(self, name):
        return self.hosts[name].state == steps.ON

    def off(self, name):
        return candidates.Off('late' if name in self.late else '')

    def wake_some(self, names, why):
        self.woken += names


class TestWaking(unittest.TestCase):

    def setUp(self):
        super().setUp()
        simulation = run.Simulation(
            small.cloud(3), small.options(power=test_power.POWER))
        self.kinds = simulation._kinds
        self.fleet = Fleet(simulation._parts.cloud)
        self.waking = waking.Waking(simulation._parts, self.fleet,
                                    lambda server: None, lambda server: None)
        boot = small.boot(0, 'one', 4)
        self.server = Server(boot, self.kinds.of(boot))

    def wait(self):
        return self.waking.wait(self.server, None, may_wait=True)

    def end(self):
        """What is on did not help the server."""
        self.waking._end(self.waking._waits['one'])

    def test_one_whose_boot_hangs_comes_last(self):
        self.fleet.hosts['h-1'].state = steps.WAKING
        self.fleet.late = {'h-1', 'h-2'}
        self.assertTrue(self.wait())
        self.assertEqual(['h-3'], self.fleet.woken)

    def test_what_is_on_is_kept_for_it(self):
        self.wait()
        self.fleet.hosts['h-1'].state = steps.ON
        self.end()
        self.wait()
        self.assertEqual(['h-2', 'h-1'], self.waking.promised_hosts())

    def test_what_still_comes_is_not_where_nothing_else_is_found(self):
        self.wait()
        for name in ('h-2', 'h-3'):
            self.fleet.hosts[name].state = steps.FAILED
        self.waking._waits['one'].tried.add('h-1')
        self.assertFalse(self.wait())
        self.assertEqual([], self.waking.promised_hosts())
