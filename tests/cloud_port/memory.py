# SPDX-License-Identifier: Apache-2.0
"""The cloud in memory for tests of the port, in real time.

Its tasks go on while a test waits for something.
"""

import contextlib
import datetime
import math
import random
import types
from unittest import mock
import uuid

from nova import exception
from nova import objects
from novaclient import exceptions as nova_exc
from oslo_utils import timeutils

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from tests.exploration import nova
from tests.exploration import nova_client
from tests.exploration import nova_records
from tests.exploration import nova_servers
from tests.exploration import placement
from tests.exploration import processes
from tests.exploration import requests
from tests.exploration import tasks

objects.register_all()


class World:
    """The parts of tests.exploration.world.World that services call."""

    def __init__(self):
        self.loop = tasks.Loop(random.Random(0))
        self.placement = placement.MemoryPlacement()
        self.nova = None
        self.cell0 = nova_records.CellMapping(nova_records.CELL0, 'cell0', 1)
        self.cells = {'cell1': nova_records.CellMapping(
            '00000000-0000-0000-0000-000000000002', 'cell1', 2)}
        self.hanging = {}
        self.watcher = types.SimpleNamespace(
            act=lambda method, uuid: None, notice=lambda uuid, at_s: None)

    def call(self, kind, what, function, once=False):
        return function()

    def seam(self, kind, what):
        pass


class MemoryPlacementTestCase:
    """Runs the tests of Placement on the one in memory."""

    def setUp(self):
        super().setUp()
        self.start_cloud()

    def start_cloud(self):
        self.world = World()
        self._client = processes.ReportClient(self.world)
        self.port = placement_api.Placement(lambda: self._client)

    def ask(self, method, url, *body):
        return getattr(self._client, method)(
            url, *body, version=placement_api.VERSION)

    def add_provider(self, name, amounts, traits=()):
        found = str(uuid.uuid4())
        self.world.placement.add(found, name, amounts, traits)
        return found


class MemoryServerTestCase(MemoryPlacementTestCase):
    """Runs the tests of servers on the Nova in memory."""

    refusals = nova_exc.ClientException
    project = 'project'

    #: {what does not go on: where the cloud in memory waits then}
    WAITS = {'schedule': 'schedule', 'spawn': 'spawn', 'snapshot': 'shelve',
             'power_off': 'powering-off', 'power_on': 'powering-on',
             'destroy': 'delete', 'migrate': 'live migration'}

    def setUp(self):
        self._holds = set()
        self._wanted = {}         # uuid of a server: the host it asks for
        super().setUp()

    def start_cloud(self):
        super().start_cloud()
        world = self.world
        self.memory = world.nova = nova.MemoryNova(
            world.loop, tasks.Process('nova', is_trusted=True),
            world.placement.call, self._schedule)
        self.memory.duration_s = self._duration_s
        for patch in (*nova_records.Records(world).patches(),
                      mock.patch.object(timeutils, 'utcnow', self._utcnow)):
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(world.loop.crash, self.memory.process)
        for name in ('host1', 'host2'):
            amounts = requests.amounts(self.flavor(4))
            uuid = self.add_provider(name, amounts)
            self.memory.hosts[name] = nova_servers.Host(
                uuid, name, 'cell1', amounts)
        self.owner = nova_client.Client(world, is_admin=False)
        self.admin = nova_client.Client(world)
        self.nova = nova_api.NovaAPI(None)
        self.nova._client = self.admin

    def _utcnow(self, with_timezone=False):
        now = self.world.loop.utcnow()
        return now.replace(tzinfo=datetime.timezone.utc) if (
            with_timezone) else now

    def _duration_s(self, what):
        return 1e6 if what in self._holds else 1

    @contextlib.contextmanager
    def held(self, what):
        self._holds.add(self.WAITS[what])
        yield
        self._holds.clear()

    @contextlib.contextmanager
    def shelving_fails(self):
        self.memory.images_fail_until_s = math.inf
        # Nova does not look at the power state meanwhile.
        self._holds.add('power state')
        yield
        self._holds.clear()

    def flavor(self, vcpus):
        return requests.flavor(vcpus, f'flavor{vcpus}', vcpus, {})

    def boot(self, vcpus, host=None):
        server, = self.memory.boot(self.flavor(vcpus), self.project)
        self._wanted[server.uuid] = host
        return server.uuid

    def _schedule(self, servers, operation):
        """Claim on the first other host with room, as a scheduler does."""
        server, = servers
        self.memory._take('schedule')
        wanted = self._wanted.pop(server.uuid, None)
        for name, host in self.memory.hosts.items():
            if host.is_up and name != server.host and wanted in (None, name):
                held = self.placement(f'/allocations/{server.uuid}').json()
                if self.placement(f'/allocations/{server.uuid}', {
                        'allocations': {host.uuid: {
                            'resources': requests.amounts(
                                server.spec.flavor)}},
                        'project_id': server.project_id,
                        'user_id': server.user_id, 'consumer_generation':
                        held.get('consumer_generation')}):
                    return [name]
        raise exception.NoValidHost(reason='')

    def placement(self, url, body=None):
        return self.world.placement.call('put' if body else 'get', url, body)

    def wait_for(self, condition):
        """Let tasks go on until something is so; for a day at most.

        Nothing that is held goes on.
        """
        loop = self.world.loop
        with contextlib.suppress(tasks.Deadlock):
            loop.run(loop.now_s + (1e5 if self._holds else 1e7), condition)
        found = condition()
        self.assertTrue(found, 'it is never so')
        return found

    def set_up(self, host, is_up):
        self.memory.hosts[host].change(is_failing=not is_up)
        self.memory.hosts[host].forced_down = not is_up

    def node(self, host):
        return self.memory.hosts[host].uuid

    def metadata(self, uuid):
        return self.memory.servers[uuid].metadata

    def cell_context(self, **kwargs):
        return cell_calls.opened(self.world.cells['cell1'], **kwargs)
