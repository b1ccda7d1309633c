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
"""What the functional tests of preemption share."""

import datetime

from nova_preempt.embedded import cloud


class PreemptionTestCase(cloud.EmbeddedTestCase):
    """Hosts of two slots each, in both senses: 2 vCPUs, 2 GB, 20 GB."""

    def setUp(self):
        self.flags(weight_classes=[
            'nova.scheduler.weights.all_weighers',
            'nova_preempt.scheduler.weights.all_weighers'],
            group='filter_scheduler')
        super().setUp()
        self.now = datetime.datetime(2026, 1, 1, 12,
                                     tzinfo=datetime.timezone.utc)
        self.clock = lambda: self.now
        self.small = self.create_flavor('small', 1, 1024, 10)
        self.big = self.create_flavor('big', 2, 2048, 20)
        self.spot = self.create_flavor('spot', 1, 1024, 10, preemptible=True)

    @property
    def db(self):
        return self.scheduler.preemption.db

    def add_hosts(self, *names):
        for name in names:
            self.add_host(name, 2, 2048, 20)

    def boot_spot(self, name, host, uptime_s=60):
        server = self.boot(name, self.spot, host=host)
        self.wait(server)
        self.set_uptime(server, uptime_s, self.now)
        return server

    def boot_normal(self, name='normal', flavor=None, **kwargs):
        server = self.boot(name, flavor or self.small, **kwargs)
        return self.wait(server)

    def assert_consistent(self):
        """Every server has its allocations, and every allocation a server.

        No host is over capacity, no decision open.
        """
        self.assertEqual([], self.db.get_open_decisions())
        servers = {server['id']: server for server in self.servers()
                   if server['status'] != 'ERROR'}
        found = {}
        for host, allocations in self.allocations().items():
            used = {}
            for server, resources in allocations.items():
                found[server] = host
                for name, amount in resources.items():
                    used[name] = used.get(name, 0) + amount
            for name, amount in used.items():
                self.assertLessEqual(amount, self.capacities()[host][name],
                                     (host, name))
        self.assertEqual(
            {uuid: server['OS-EXT-SRV-ATTR:host']
             for uuid, server in servers.items()}, found)
