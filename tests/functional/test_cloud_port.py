# SPDX-License-Identifier: Apache-2.0
"""The tests of the port, on Nova and Placement themselves."""

import contextlib
import time
from unittest import mock
import uuid

# Before other modules of Nova: it decides whether eventlet patches.
from nova.tests.functional import integrated_helpers  # noqa: F401

# isort: split
from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint
from nova import exception
from nova import objects
from nova import test
from nova.scheduler.client import report
from nova.tests.functional import fixtures as placement_fixtures
from nova.virt import fake
from novaclient import client as nova_client
from novaclient import exceptions as nova_exc

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.embedded import embedded_cloud
from tests.cloud_port import move_tests
from tests.cloud_port import placement_tests
from tests.cloud_port import server_tests


class RealPlacementTestCase(test.NoDBTestCase):
    """Placement alone, with what placement_tests.PlacementTests needs."""

    USES_DB_SELF = True

    def setUp(self):
        super().setUp()
        self.useFixture(placement_fixtures.PlacementFixture())
        self.port = placement_api.Placement(report.report_client_singleton)

    def ask(self, method, url, *body):
        return getattr(report.report_client_singleton(), method)(
            url, *body, version=placement_api.VERSION)

    def add_provider(self, name, amounts, traits=()):
        found = str(uuid.uuid4())
        self._ask_surely('post', '/resource_providers',
                         {'name': name, 'uuid': found})
        url = f'/resource_providers/{found}'
        self._ask_surely('put', f'{url}/inventories', {
            'resource_provider_generation': 0, 'inventories': {
                key: {'total': amount} for key, amount in amounts.items()}})
        if traits:
            self._ask_surely('put', f'{url}/traits', {
                'resource_provider_generation': 1, 'traits': traits})
        return found

    def _ask_surely(self, *args):
        response = self.ask(*args)
        self.assertTrue(response, response.text)


class TestPlacement(placement_tests.PlacementTests, RealPlacementTestCase):
    """Placement itself."""


class RealServerTestCase(embedded_cloud.EmbeddedTestCase):
    """Runs the tests of servers on Nova in the embedded cloud."""

    refusals = nova_exc.ClientException

    #: {what does not go on: the method of the driver that waits}
    WAITS = {'spawn': 'spawn', 'snapshot': 'snapshot',
             'power_off': 'power_off', 'power_on': 'power_on',
             'destroy': 'destroy', 'migrate': 'live_migration'}

    def setUp(self):
        super().setUp()
        self.port = placement_api.Placement(report.report_client_singleton)
        self.project = self.api_fixture.project_id
        self.owner = self._client(f'user:{self.project}')
        self.admin = self._client('admin:administration')
        self.nova = nova_api.NovaAPI(embedded_cloud.CONF)
        self.nova._client = self.admin
        self._flavors = {}
        for name in ('host1', 'host2'):
            self.add_host(name, 4, 4096, 40)
        self._nodes = self.providers()

    def _client(self, token):
        return nova_client.Client(
            nova_api.VERSION, session=ks_session.Session(
                token_endpoint.Token(self.api_fixture.base_url, token)))

    def flavor(self, vcpus):
        if vcpus not in self._flavors:
            self._flavors[vcpus] = self.create_flavor(
                f'flavor{vcpus}', vcpus, vcpus * 1024, vcpus * 10)
        return self._flavors[vcpus]

    def boot(self, vcpus, host=None):
        return super().boot('server', self.flavor(vcpus), host=host)

    @contextlib.contextmanager
    def held(self, what):
        owner, method = (type(self.scheduler), 'select_destinations') if (
            what == 'schedule') else (fake.FakeDriver, self.WAITS[what])
        original, goes_on = getattr(owner, method), []

        def wait(*args, **kwargs):
            while not goes_on:
                time.sleep(0.02)
            return original(*args, **kwargs)

        with mock.patch.object(owner, method, wait):
            try:
                yield
            finally:
                goes_on.append(True)

    def shelving_fails(self):
        return mock.patch.object(fake.FakeDriver, 'snapshot',
                                 side_effect=exception.ImageQuotaExceeded)

    def wait_for(self, condition):
        return embedded_cloud._poll(condition, 'it')

    def set_up(self, host, is_up):
        with self.cell_context() as context:
            found = objects.Service.get_by_compute_host(context, host)
            found.forced_down = not is_up
            found.save()

    def node(self, host):
        return self._nodes[host]

    def metadata(self, uuid):
        return self.owner.servers.get(uuid).metadata

    def cell_context(self, **kwargs):
        return cell_calls.opened(self.cell_mappings['cell1'], **kwargs)


class TestBoots(server_tests.BootTests, RealServerTestCase):
    """Boots of Nova."""


class TestEnds(server_tests.EndTests, RealServerTestCase):
    """Ends of Nova."""


class TestStates(server_tests.StateTests, RealServerTestCase):
    """States of Nova."""


class TestMoves(move_tests.MoveTests, RealServerTestCase):
    """Moves of Nova."""
