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
"""What happens in a cloud is what the simulator says would happen."""

import datetime
import random

from nova_preempt.core.model import SECOND, Inventory
from nova_preempt.core.notice import NoticeRule
from nova_preempt.simulator import run
from nova_preempt.simulator import setting
from nova_preempt.simulator.traces import model
from tests.functional import base
from tests.unit.simulator import small

SEED = 20261123
EVENTS = 26
_SECOND = datetime.timedelta(seconds=1)

#: No two hosts ever have the same memory free, so that it is always known
#: which comes first: Nova leaves the order of equal ones to chance.
HOSTS = {f'host{number}': (vcpus, vcpus * 1024 + 32 * number, vcpus * 10)
         for number, vcpus in enumerate((4, 6, 8))}


class TestLiveSimulation(base.PreemptionTestCase):
    """An afternoon, recorded and simulated: the same hosts and victims."""

    def setUp(self):
        super().setUp()
        self.flags(group='filter_scheduler', weight_classes=[
            'nova.scheduler.weights.ram.RAMWeigher',
            'nova_preempt.scheduler.weights.all_weighers'])
        self.restart_scheduler()
        self.random = random.Random(SEED)
        for name, amounts in HOSTS.items():
            self.add_host(name, *amounts)
        self.begin = self.now
        self.kinds = {
            (size, spot): self.create_flavor(
                f'{"spot" if spot else "normal"}{size}', size, size * 1024,
                size * 5, preemptible=spot)
            for size in (1, 2, 3) for spot in (True, False)}
        self.ids = {}            # name: uuid
        self.trace, self.happened = [], []

    def at_us(self):
        return (self.now - self.begin) // datetime.timedelta(
            microseconds=1)

    def boot_one(self, name):
        size = self.random.choice((1, 1, 2, 3))
        spot = self.random.random() < 0.6
        self.trace.append(model.Boot(
            self.at_us(), name, {'VCPU': size, 'MEMORY_MB': size * 1024,
                                 'DISK_GB': size * 5}, '',
            'preemptible' if spot else 'normal'))
        server = self.settle(self.boot(name, self.kinds[size, spot]))
        if server['status'] == 'ERROR':
            self.happened.append((name, None, ()))
            self.delete(server['id'])
            return
        if spot:
            self.set_uptime(server['id'], 0, self.now)
        self.ids[name] = server['id']
        names = {uuid: name for name, uuid in self.ids.items()}
        victims = sorted(
            names[victim.server_uuid] for decision
            in self.decisions.get_decisions(server_uuid=server['id'])
            for victim in decision.victims)
        self.happened.append((name, server['OS-EXT-SRV-ATTR:host'],
                              tuple(victims)))
        for victim in victims:
            self.wait_gone(self.ids.pop(victim))

    def delete_one(self):
        name = self.random.choice(sorted(self.ids))
        self.trace.append(model.End(self.at_us(), name))
        self.delete(self.ids.pop(name))

    def simulate(self):
        """The same as ``happened``, of the simulator."""
        kinds = tuple(
            setting.HostKind(name, 1, {
                rc: Inventory(total) for rc, total in zip(
                    ('VCPU', 'MEMORY_MB', 'DISK_GB'), amounts, strict=True)})
            for name, amounts in HOSTS.items())
        at_once = small.delays.Delays(**{
            name: small.delays.Delay('constant:0') for name in (
                'boot', 'delete', 'shelve', 'stop', 'unshelve')})
        records = []
        run.Simulation(
            setting.Setting(kinds, delays=at_once),
            small.options(notice=NoticeRule(0)), 0, records.append).run(
                self.trace, self.at_us() + SECOND)
        found = {}
        for item in records:
            if item['event'] == 'refused':
                found[item['id']] = (item['id'], None, ())
            elif item['event'] in ('placed', 'preempted'):
                found[item['id']] = (
                    item['id'], item['host'].rpartition('-')[0],
                    tuple(sorted(item.get('victims', ()))))
        return [found[event.id] for event in self.trace
                if isinstance(event, model.Boot)]

    def test_the_same_happens(self):
        for number in range(EVENTS):
            if self.ids and self.random.random() < 0.15:
                self.delete_one()
            else:
                self.boot_one(f's{number:02}')
            # No two have lost as much: what costs the same is in any order.
            self.now += self.random.randrange(180, 1020) * _SECOND
        self.assertEqual(self.happened, self.simulate())
        # All kinds of it, so that something is shown.
        self.assertTrue(any(victims for _, _, victims in self.happened))
        self.assertTrue(any(host is None for _, host, _ in self.happened))
