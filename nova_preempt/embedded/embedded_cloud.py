# SPDX-License-Identifier: Apache-2.0
"""The real Nova and Placement in this process, with our scheduler.

nova-api, nova-conductor, a nova-compute for each host and Placement are the
ones that the wheels of Nova and Placement bring, on SQLite and an in-process
message bus; only the hypervisor, images, networks and Keystone are Nova's
fakes. Nova's own functional tests stand on the same fixtures.
"""

import datetime
import functools
import importlib.metadata
import logging
import time
from unittest import mock
import warnings

# Before other modules of Nova: it decides whether eventlet patches.
from nova.tests.functional import integrated_helpers

# isort: split
import fixtures
from keystoneauth1 import loading as ks_loading
from nova import context as nova_context
from nova import objects
from nova import service
from nova.api.openstack import common
from nova.conf import CONF
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.tests.functional.api import client as api_client
import sqlalchemy as sa
from sqlalchemy import exc as sqla_exc

import nova_preempt.conf
from nova_preempt.embedded import fake_hypervisor
from nova_preempt.embedded import nova_fixtures
from nova_preempt.embedded import speedups
from nova_preempt.reservation import lease_cache

nova_preempt.conf.register_opts(CONF)
CONF.register_opts(ks_loading.get_auth_plugin_conf_options('admin_token'),
                   group='preemption')

SCHEDULER = 'nova_preempt.scheduler.manager.PreemptibleSchedulerManager'

#: An image of Nova's glance fixture without requirements on the flavor.
IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'

# Enough for a boot on a machine that is busy with something else.
TIMEOUT_S = 120.0
# Polls take processor time from the services, so their interval grows.
FIRST_POLL_S = 0.02
LAST_POLL_S = 0.2
# Nova writes the fault of a server after its ERROR status.
FAULT_S = 5.0


# States of a server in a cell, and whether it is not mapped to a cell yet.
_STATES = sa.select(main_models.Instance.vm_state,
                    main_models.Instance.task_state).where(
    main_models.Instance.uuid == sa.bindparam('uuid'),
    main_models.Instance.deleted == 0)
_UNMAPPED = sa.select(api_models.InstanceMapping.id).where(
    api_models.InstanceMapping.instance_uuid == sa.bindparam('uuid'),
    api_models.InstanceMapping.cell_id.is_(None))


class CloudError(Exception):
    """An operation of the embedded cloud failed or timed out."""


class EmbeddedTestCase(integrated_helpers.ProviderUsageBaseTestCase):
    """A functional test on a cloud of its own, which starts without hosts.

    Also has the attributes of Nova's own functional tests: self.api,
    self.placement, self.computes and so on.
    """

    #: Nova requires a name, but instantiates driver_class.
    compute_driver = 'fake.FakeDriver'
    driver_class = fake_hypervisor.SizedFakeDriver

    #: What Nova logs from this level on is kept in self.stdlog, and what we
    #: log from INFO on. Nova's tests format every debug message of both, which
    #: costs more time than Nova itself.
    log_level = logging.WARNING

    def setUp(self):
        # The last cleanup, for Nova has something to say about the others.
        for name in ('', 'nova_preempt'):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
        # Of the process, as the scheduler is.
        self.addCleanup(lease_cache.forget)
        self._set_options()
        self._install_scheduler()
        self._install_driver()
        speedups.freeze()
        self.useFixture(speedups.BlockingThreadPools())
        self.useFixture(speedups.Databases())
        self.useFixture(speedups.Messages())
        self.useFixture(nova_fixtures.ConcurrentCells())
        super().setUp()
        self.useFixture(nova_fixtures.TokenAuth())
        #: What makes trusts for the API, and is given to the engine.
        self.trusts = nova_fixtures.EmbeddedTrusts(
            lambda: CONF.preemption.endpoint)
        self._quieten()

    def start_service(self, name, host=None, cell_name=None, **kwargs):
        """Start a service of Nova, the scheduler with its credentials."""
        if name == 'scheduler':
            self.flags(group='preemption', endpoint=self.api_fixture.base_url,
                       token=f'admin:{self.api_fixture.project_id}')
        started = super().start_service(name, host, cell_name, **kwargs)
        preemption = getattr(started.manager, 'preemption', None)
        if preemption:
            self.addCleanup(preemption.process.close)
        return started

    def _set_options(self):
        for group, values in nova_fixtures.OPTIONS.items():
            for name, value in values.items():
                # A default, so that a test may override it at any time.
                CONF.set_default(name, value, group)
        for name, value in nova_fixtures.CONSTANTS.items():
            self.useFixture(fixtures.MonkeyPatch(name, value))
        CONF.set_default(
            'enabled_filters',
            [*CONF.filter_scheduler.enabled_filters, 'PreemptibleFilter'],
            'filter_scheduler')
        self.flags(group='wsgi', api_paste_config=_api_paste_config())
        # The database of ours is in there, too.
        self.flags(state_path=self.useFixture(fixtures.TempDir()).path)

    def _install_scheduler(self):
        patch = mock.patch.dict(service.SERVICE_MANAGERS,
                                {'nova-scheduler': SCHEDULER})
        patch.start()
        self.addCleanup(patch.stop)

    def _install_driver(self):
        """Load our driver: Nova loads drivers of its own package only."""
        self._sizes = {}
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.driver.load_compute_driver',
            lambda virtapi, compute_driver=None: self.driver_class(
                virtapi, self._sizes[CONF.host])))

    def _quieten(self):
        # NOTE: SQLAlchemy 2.1 deprecates what Nova 34 uses, and Nova's
        # fixtures turn such warnings into errors.
        warnings.filterwarnings(
            'ignore', category=sqla_exc.SADeprecationWarning)
        # Nova writes the instance_extra of a server anew that was deleted
        # meanwhile, and reads two from then on.
        warnings.filterwarnings(
            'ignore', 'Multiple rows returned with uselist=False',
            sqla_exc.SAWarning)
        self.flags(debug=False)
        logging.getLogger().setLevel(self.log_level)
        logging.getLogger('nova_preempt').setLevel(
            min(self.log_level, logging.INFO))

    def add_host(self, name, vcpus, memory_mb, disk_gb):
        """Start a nova-compute of exactly this size."""
        self._sizes[name] = fake_hypervisor.HostSize(vcpus, memory_mb, disk_gb)
        self._start_compute(name)

    def create_flavor(self, name, vcpus, memory_mb, disk_gb,
                      preemptible=False, **extra_specs):
        """Create a flavor and return its id."""
        if preemptible:
            extra_specs['preemptible:enabled'] = 'true'
        return self._create_flavor(
            name=name, vcpu=vcpus, memory_mb=memory_mb, disk=disk_gb,
            ephemeral=0, extra_spec=extra_specs)

    def boot(self, name, flavor_id, host=None, availability_zone=None,
             hints=None):
        """Request a server and return its id at once.

        The scheduler must choose a requested host, or refuse.
        """
        body = {'server': self._build_server(
            name=name, image_uuid=IMAGE, flavor_id=flavor_id,
            networks='none', az=availability_zone, host=host)}
        if hints:
            body['OS-SCH-HNT:scheduler_hints'] = hints
        return self.api.post_server(body)['id']

    def wait(self, server_id, status='ACTIVE'):
        """Wait until a server has this status and return the server.

        :raises CloudError: it has become an ERROR, or takes too long
        """
        server = self._reach(server_id, (status, 'ERROR'))
        if server['status'] != status:
            server = self._with_fault(server)
            fault = server.get('fault', {}).get('message', 'no fault')
            raise CloudError(f'server {server["name"]} failed: {fault}')
        return server

    def settle(self, server_id):
        """Wait until a server is ACTIVE or an ERROR and return it."""
        server = self._reach(server_id, ('ACTIVE', 'ERROR'))
        return server if server['status'] == 'ACTIVE' else (
            self._with_fault(server))

    def _with_fault(self, server):
        """Return the server with its fault, if Nova records one in time."""
        try:
            return _poll(
                lambda: (found := self.api.get_server(server['id'])).get(
                    'fault') and found, 'its fault', FAULT_S)
        except CloudError:
            return server

    def _reach(self, server_id, statuses):
        def reached():
            if self._recorded_status(server_id) not in (*statuses, None):
                return None
            server = self.api.get_server(server_id)
            return server if server['status'] in statuses else None

        return _poll(reached,
                     f'server {server_id} to be {" or ".join(statuses)}')

    def _recorded_status(self, server_id):
        """Return the status in Nova's databases, None if there is no record.

        Cheaper than nova-api or Nova's objects, which take processor time from
        the services.
        """
        for cell in self.cell_mappings.values():
            with nova_context.target_cell(
                    nova_context.get_admin_context(), cell) as context:
                engine = main_db.get_context_manager(context).reader
                found = _first(engine, _STATES, server_id)
            if found:
                return common.status_from_state(*found)
        waits = _first(api_db.context_manager.reader, _UNMAPPED, server_id)
        return 'BUILD' if waits else None

    def wait_gone(self, server_id):
        """Wait until Nova no longer has the server."""
        def gone():
            if self._recorded_status(server_id) is not None:
                return False
            try:
                self.api.get_server(server_id)
            except api_client.OpenStackApiNotFoundException:
                return True
            return False

        _poll(gone, f'server {server_id} to be gone')

    def delete(self, server_id):
        """Delete a server and wait until it is gone."""
        self.api.delete_server(server_id)
        self.wait_gone(server_id)

    def servers(self):
        """Return the servers of all projects as nova-api shows them."""
        return self.api.get_servers(search_opts={'all_tenants': 1})

    def providers(self):
        """Return Placement's resource provider uuids by host name."""
        return {provider['name']: provider['uuid']
                for provider in self._get_all_providers()}

    def allocations(self):
        """Return {host: {server id: {resource class: amount}}}."""
        return {
            host: {server_id: claim['resources'] for server_id, claim in
                   self._get_allocations_by_provider_uuid(uuid).items()}
            for host, uuid in self.providers().items()}

    def capacities(self):
        """Return {host: {resource class: amount}} of what hosts offer."""
        return {
            host: {name: int((inventory['total'] - inventory['reserved']) *
                             inventory['allocation_ratio'])
                   for name, inventory in
                   self._get_provider_inventory(uuid).items()}
            for host, uuid in self.providers().items()}

    def set_uptime(self, server_id, uptime_s, now):
        """Set the age of a server, through launched_at in Nova's record.

        :param now: an aware datetime, at which the server has this age
        """
        context = nova_context.get_admin_context()
        cell = self.cell_mappings['cell1']
        with nova_context.target_cell(context, cell) as cell_context:
            instance = objects.Instance.get_by_uuid(cell_context, server_id)
            instance.launched_at = now - datetime.timedelta(seconds=uptime_s)
            instance.save()

    @property
    def scheduler(self):
        """Our scheduler manager."""
        return self.scheduler_service.manager

    @property
    def clock(self):
        """Clock of the scheduler: returns an aware datetime."""
        return self.scheduler.clock

    @clock.setter
    def clock(self, clock):
        self.scheduler.clock = clock


class EmbeddedCloud:
    """The cloud outside of a test: "with EmbeddedCloud(hosts) as cloud".

    :param hosts: the sizes of the hosts by name, as fake_hypervisor.HostSize
    :param options: options by group, as {group: {name: value}}
    """

    def __init__(self, hosts, options=None):
        self._hosts = hosts
        self._options = options or {}
        self._case = _NoTest('runTest')

    def __enter__(self):
        """Start all services and return an EmbeddedTestCase."""
        try:
            self._start()
        except BaseException:
            self._case.doCleanups()
            raise
        return self._case

    def _start(self):
        for group, values in self._options.items():
            self._case.flags(group=group, **values)
        self._case.setUp()
        for name, size in self._hosts.items():
            self._case.add_host(name, size.vcpus, size.memory_mb, size.disk_gb)

    def __exit__(self, *exc_info):
        """Stop all services and clean up."""
        clean = self._case.doCleanups()
        if not clean and exc_info == (None, None, None):
            raise CloudError('the embedded cloud did not stop cleanly')


class _NoTest(EmbeddedTestCase):
    """Test case for Nova's fixtures outside of a test."""

    def runTest(self):
        """Do nothing: unittest requires the method."""


@functools.cache
def _api_paste_config():
    """Return the path of api-paste.ini, outside of the package nova."""
    for path in importlib.metadata.files('nova'):
        if path.match('etc/nova/api-paste.ini'):
            return str(path.locate().resolve())
    raise CloudError('this installation of Nova has no api-paste.ini')


def _first(reader, query, uuid):
    """Return the first row of a query, or None."""
    with reader.get_engine().connect() as connection:
        return connection.execute(query, {'uuid': uuid}).first()


def _poll(condition, what, timeout_s=TIMEOUT_S):
    deadline = time.monotonic() + timeout_s
    pause = FIRST_POLL_S
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise CloudError(f'timed out waiting {timeout_s:.0f} s for {what}')
        time.sleep(pause)
        pause = min(2 * pause, LAST_POLL_S)
    return result
