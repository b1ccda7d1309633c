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
"""The backlog: requests that start in the name of users when there is room."""

import datetime

from oslo_utils import uuidutils

# Nova's fixtures do not let numpy be imported any more.
from nova_preempt.core.backlog import ladders  # noqa: F401 (see above)
from nova_preempt.core.backlog import model
from nova_preempt.db import backlog
from nova_preempt.embedded import cloud
from tests.functional import base

PROJECT = '5a1e7d0c4b8f49d2a63c0e9f17d2b845'
USER = 'c0ffee00c0ffee00c0ffee00c0ffee00'


class BacklogTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.flags(group='backlog', enabled=True)
        self.add_hosts('host1')
        self.engine = self.start_engine()

    def leave(self, flavor=None, count=1, **values):
        """Leave a request, and return its uuid."""
        uuid = uuidutils.generate_uuid()
        flavor = self.api.get_flavor(flavor or self.small)
        at = self.at()
        backlog.create(self.db, model.Request(**{
            'uuid': uuid, 'project_id': PROJECT, 'user_id': USER,
            'trust_id': self.trusts.create('', PROJECT, USER, ['member']),
            'body': {'server': {
                'name': 'batch', 'imageRef': cloud.IMAGE,
                'networks': 'none'}},
            'compute_version': '2.90', 'count': count, 'least_count': count,
            'alternatives': (model.Alternative(
                flavor['id'], flavor['name'],
                {'VCPU': flavor['vcpus'], 'MEMORY_MB': flavor['ram'],
                 'DISK_GB': flavor['disk']},
                flavor['name'] == 'spot'),),
            'created_at': at, 'updated_at': at, 'waits_since': at, **values}))
        return uuid

    def at(self):
        return self.now.replace(tzinfo=None)

    def pass_time(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def get(self, uuid):
        return backlog.get(self.db, uuid)

    def step(self, engine=None):
        (engine or self.engine).backlog.step()

    def step_until(self, uuid, *states):
        """Look again and again; returns the request as it is then."""
        def reached():
            self.step()
            found = self.get(uuid)
            return found if found.state in states else None

        return self.wait_for(reached, f'{uuid} to be {" or ".join(states)}')

    def servers_of(self, uuid):
        """The servers in Nova with a tag of the request."""
        return [server for server in self.servers_with_tags()
                if any(tag.startswith(f'backlog:{uuid}:')
                       for tag in server['tags'])]

    def servers_with_tags(self):
        return [self.with_tags(server['id']) for server in self.servers()]

    def with_tags(self, uuid):
        self.api.microversion, before = '2.90', self.api.microversion
        try:
            return self.api.get_server(uuid)
        finally:
            self.api.microversion = before


class TestLadders(BacklogTestCase):
    """Cores by what is idle, copies on distinct hosts of their category."""

    HIGH = 'CUSTOM_REPUTATION_HIGH'

    def setUp(self):
        super().setUp()
        self.flags(group='backlog', ladders=True, order='promethee')
        self.add_hosts('host2', 'host3')
        for name in ('host1', 'host3'):
            self._set_traits(name)
        self.engine = self.start_engine()

    def _set_traits(self, host):
        uuid = self.providers()[host]
        self._create_trait(self.HIGH)
        self._set_provider_traits(uuid, [
            *self._get_provider_traits(uuid), self.HIGH])

    def test_copies_and_cores(self):
        rungs = tuple(model.Alternative(
            self.create_flavor(f'web{cores}', cores, 512, 5, **{
                'preemptible:ladder': 'web', f'trait:{self.HIGH}':
                'required'}),
            f'web{cores}', {'VCPU': cores, 'MEMORY_MB': 512, 'DISK_GB': 5},
            required=(self.HIGH,)) for cores in (2, 1))
        priorities = model.Priorities(3, 3, 3, 2)
        uuid = self.leave(alternatives=rungs, ladder='web', apart=True,
                          priorities=priorities, count=2)
        found = self.step_until(uuid, model.ACTIVE)
        shown = [self.with_tags(server.uuid) for server in found.servers]
        self.assertEqual({'host1', 'host3'}, {
            server['OS-EXT-SRV-ATTR:host'] for server in shown})
        self.assertEqual({2}, {server['flavor']['vcpus']
                               for server in shown})
        # What is left is too little for another pair.
        other = self.leave(alternatives=rungs, ladder='web', apart=True,
                           priorities=priorities, count=2)
        self.step()
        self.assertEqual('room', self.get(other).waits_for['code'])
        groups = self.api.api_get(
            '/os-server-groups?all_projects=True').body['server_groups']
        self.assertEqual([f'backlog:{uuid}'],
                         [group['name'] for group in groups])
        for server in shown:
            self.delete(server['id'])
        self.step()
        self.assertEqual(model.DONE, self.get(uuid).state)
        self.assertEqual([], [group for group in self.api.api_get(
            '/os-server-groups?all_projects=True').body['server_groups']
            if group['name'] == f'backlog:{uuid}'])


class TestLife(BacklogTestCase):

    def test_from_waiting_to_done(self):
        uuid = self.leave()
        found = self.step_until(uuid, model.ACTIVE)
        server, = found.servers
        shown = self.with_tags(server.uuid)
        self.assertEqual(
            ('ACTIVE', PROJECT, USER, [f'backlog:{uuid}:1']),
            (shown['status'], shown['tenant_id'], shown['user_id'],
             shown['tags']))
        self.delete(server.uuid)
        self.step()
        found = self.get(uuid)
        self.assertEqual(model.DONE, found.state)
        # And with it its trust.
        self.assertEqual(('', {}), (found.trust_id, self.trusts.made))
        self.assertEqual(
            [model.WAITING, model.PLACING, model.ACTIVE, model.DONE],
            [item.state for item in backlog.history(self.db, uuid)])
        self.assert_consistent()
