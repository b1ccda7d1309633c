# SPDX-License-Identifier: Apache-2.0
"""Schedulers and engines of nova_preempt as processes that can crash."""

import contextlib
import functools
import tempfile
from unittest import mock

import nova.conf
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager
from nova.scheduler.client import report
import oslo_messaging as messaging
from oslo_messaging import opts as messaging_opts

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.backlog import request_intake
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_as_user
from nova_preempt.cmd import engine as engine_cmd
import nova_preempt.conf
from nova_preempt.db import schema_upgrade
from nova_preempt.reservation import lease_cache
from nova_preempt.reservation import reservation_engine_tasks
from nova_preempt.reservation import reservation_scheduler
from nova_preempt.scheduler import filters
from nova_preempt.scheduler import manager
from nova_preempt.scheduler.filters import reservation_filter
from tests.exploration import machines
from tests.exploration import memory_database
from tests.exploration import nova_records
from tests.exploration import tasks

CONF = nova.conf.CONF

#: The Database of all processes of all explorations, whose statements are
#: compiled once; [None] until the first one.
_DATABASE = [None]


@functools.cache
def _messaging_options():
    """Return what oslo.messaging's list_opts() copies for each call."""
    return messaging_opts.list_opts()


@contextlib.contextmanager
def configured(directory, settings):
    """Within, Nova's configuration is that of an exploration.

    :param directory: of the database, the same for all of a process
    :param settings: {(group, option): value}
    """
    nova_preempt.conf.register_opts(CONF)
    for group, options in _messaging_options():
        CONF.register_opts(options, group=group)
    CONF([], default_config_files=[], default_config_dirs=[], project='nova',
         version='0')
    CONF.set_override('connection', f'sqlite:///{directory}/preempt.db',
                      'preemption_database')
    CONF.set_override('auth_type', 'none', 'preemption')
    CONF.set_override('driver', ['noop'], 'oslo_messaging_notifications')
    CONF.set_override('transport_url', 'fake:/')
    CONF.set_override('notice_s', 0, 'preemption')
    CONF.set_override('interval_s', 5, 'preemption_engine')
    for (group, name), value in settings.items():
        CONF.set_override(name, value, group)
    if _DATABASE[0] is None:
        _DATABASE[0] = memory_database.MemoryDatabase(CONF)
    _DATABASE[0].empty()
    cell_calls._OF_PROCESS._states.clear()
    # Lock files that stayed would tell the next exploration of the same seed
    # that its owners are dead.
    with mock.patch.object(db, 'Database', lambda conf: _DATABASE[0]), (
            mock.patch.object(schema_upgrade, 'sync')), (
            tempfile.TemporaryDirectory(dir=directory)) as state_path:
        CONF.set_override('state_path', state_path)
        try:
            yield
        finally:
            CONF.reset()


def database():
    """Return the db.Database of all processes."""
    return _DATABASE[0]


class ReportClient(report.SchedulerReportClient):
    """Nova's client of Placement, on a world's."""

    def __init__(self, world):
        self._world = world

    def _ask(self, method, url, body=None, once=False):
        placement = self._world.placement
        births = placement.births(body) if method == 'post' else None
        return self._world.call(
            'placement', f'{method} {url}',
            lambda: placement.call(method, url, body, births), once)

    def get(self, url, version=None, global_request_id=None):
        return self._ask('get', url)

    def post(self, url, data, version=None, global_request_id=None):
        return self._ask('post', url, data)

    def put(self, url, data, version=None, global_request_id=None):
        # Nova's own claim, which leaves space behind where its answer is lost.
        return self._ask('put', url, data, once=True)

    def delete(self, url, version=None, global_request_id=None):
        return self._ask('delete', url)


class HostState(host_manager.HostState):
    """Nova's, of a host in memory."""

    def __init__(self, world, host):
        super().__init__(host.name, host.name, world.cells[host.cell].uuid)
        self.uuid = host.uuid
        guests = {server.uuid: server for server
                  in world.nova.servers.values()
                  if server.host == host.name and not server.deleted}
        self.instances = guests
        self.vcpus_total = host.amounts['VCPU']
        self.vcpus_used = sum(
            server.flavor.vcpus for server in guests.values())
        self.free_ram_mb = host.amounts['MEMORY_MB'] - sum(
            server.flavor.memory_mb for server in guests.values())
        self.free_disk_mb = 1024 * (host.amounts['DISK_GB'] - sum(
            server.flavor.root_gb for server in guests.values()))
        self.num_instances = len(guests)
        self.service = {'is_up': host.is_up, 'disabled': host.disabled}

    def consume_from_request(self, spec_obj):
        self.vcpus_used += spec_obj.flavor.vcpus
        self.free_ram_mb -= spec_obj.flavor.memory_mb
        self.free_disk_mb -= spec_obj.flavor.root_gb * 1024
        self.num_instances += 1


class _HostFilter(nova_filters.BaseHostFilter):
    """Passes hosts that are up and enabled, as Nova's filters would."""

    def host_passes(self, host_state, spec_obj):
        passes = (reservation_filter.ReservationFilter.rule(spec_obj)
                  if lease_cache.is_used(CONF) else lambda node: True)
        return (host_state.service['is_up']
                and not host_state.service['disabled']
                and host_state.host not in (spec_obj.ignore_hosts or ())
                and passes(host_state.nodename))


class HostManager:
    """The parts of Nova's HostManager that scheduling calls."""

    weighers = ()

    def __init__(self, world):
        self._world = world
        self._filters = filters.HostFilterHandler()

    @property
    def cells(self):
        return {cell.uuid: cell for cell in self._world.cells.values()}

    def refresh_cells_caches(self):
        pass

    def get_host_states_by_uuids(self, context, uuids, spec_obj):
        self._world.seam('cell', 'host states')
        return iter([HostState(self._world, host)
                     for host in self._world.nova.hosts.values()
                     if uuids is None or host.uuid in uuids])

    def get_all_host_states(self, context):
        return self.get_host_states_by_uuids(context, None, None)

    def get_filtered_hosts(self, hosts, spec_obj, index=0):
        """Return hosts that are up, enabled and have capacity."""
        return self._filters.get_filtered_objects(
            [_HostFilter()], hosts, spec_obj, index)

    def get_weighed_hosts(self, hosts, spec_obj):
        class Weighed:
            def __init__(self, obj):
                self.obj = obj
                self.weight = 1.0
        return [Weighed(state) for state in sorted(
            hosts, key=lambda state: state.free_ram_mb)]


def _raise(exc):
    raise exc


class _Process:
    """A process that can crash and is started again.

    :param world: a world.World
    """

    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.process = tasks.Process(name)
        self.is_serving = False
        self.parts = None

    def start(self):
        """Start; serve after the initial reads."""
        self.process.is_alive = True
        self.world.loop.start(self.process, self.name, self._run)

    def _run(self):
        while True:
            try:
                self.begin()
                break
            except exceptions.InvalidConfiguration as exc:
                # It would never start: nothing would be explored.
                self.world.loop.start(self.world.operator, 'wrong options',
                                      functools.partial(_raise, exc))
                return
            except Exception as exc:  # noqa: BLE001 (whatever it is, it dies)
                # It dies, and systemd starts it again.
                self.world.loop.tell(self.name, 'cannot start:', repr(exc))
                self.world.loop.sleep(5)
        self.is_serving = True
        self.run()

    def kill(self):
        """End it at once, whatever it does."""
        self.is_serving = False
        for lock_files in self.process.lock_files:
            lock_files._file.close()
        self.world.loop.crash(self.process)

    def kill_and_restart(self, after_s):
        loop = self.world.loop

        def restart():
            loop.sleep(after_s)
            loop.tell(self.name, 'starts again')
            # What it held in memory is gone.
            fresh = tasks.Process(self.name)
            self.process = fresh
            self.parts = None
            self.start()

        loop.start(self.world.operator, f'restart of {self.name}', restart)
        self.kill()


class Scheduler(_Process):
    """A nova-preempt-scheduler, with Nova's own loop over our hooks."""

    def begin(self):
        found = manager.PreemptibleSchedulerManager.__new__(
            manager.PreemptibleSchedulerManager)
        found.host = self.name
        found.host_manager = HostManager(self.world)
        found.notifier = mock.Mock(spec=['info'])
        found.preemption = None
        found._client = None
        found.observers = []
        found.clock = manager.service_context.utcnow
        found.monotonic = manager.time.monotonic
        found.multi_create = None
        found.start_preemption()
        if lease_cache.is_used(CONF):
            lease_cache.current(CONF).start()
        self.manager = found
        self.parts = found.preemption

    def run(self):
        sleep = self.world.loop.sleep
        for round_number in range(10 ** 9):
            try:
                self.manager._refresh_preemptible_servers(None)
                if round_number % 2:
                    self.manager._repair_preemptions(None)
            except Exception as exc:  # noqa: BLE001 (as oslo.service does)
                self.world.loop.tell('periodic task failed', repr(exc))
            sleep(manager.REFRESH_S)

    def ask(self, servers):
        """Begin to serve a request; returns the Task."""
        return self.world.loop.start(
            self.process, f'{self.name}/{servers[0].uuid[:8]}',
            lambda: self._select(servers))

    def _select(self, servers):
        tell = self.world.loop.tell
        spec = servers[0].spec.obj_clone()
        try:
            selections = self.manager.select_destinations(
                nova_records.admin_context(f'req-{servers[0].uuid}'),
                spec_obj=spec,
                instance_uuids=[server.uuid for server in servers],
                return_objects=True, return_alternates=False)
        except messaging.ExpectedException as exc:
            tell('no host for', servers[0].uuid[:8], exc.exc_info[1])
            raise exc.exc_info[1] from None
        hosts = [selection[0].service_host for selection in selections]
        tell('hosts for', servers[0].uuid[:8], hosts)
        return hosts


class Api(_Process):
    """Serves reservations and the backlog as nova-preempt-api does."""

    def begin(self):
        self.intake = request_intake.RequestIntake(
            CONF, database(), keystone_trusts.Trusts(CONF),
            nova_as_user.ResourceLookup(CONF))
        self.schedule = reservation_scheduler.ReservationScheduler(
            CONF, database(), rpc.EngineClient(rpc.get_transport(CONF)))

    def run(self):
        pass


class Engine(_Process):
    """A nova-preempt-engine."""

    def begin(self):
        CONF.set_override('host', self.name)
        engine = engine_cmd.make_engine(
            CONF, cells=lambda: {cell.uuid: cell for cell
                                 in self.world.cells.values()},
            driver=machines.Driver(self.world, CONF), sight=lambda: '')
        # Features that are off have no tasks.
        engine._timed = [work for work in engine._timed
                         if work.tasks[0][0].split(':')[0]
                         in self.world.works]
        self.engine = engine
        self.parts = engine.parts

    def run(self):
        self.engine.run()

    def endpoints(self):
        """Return what serves RPC."""
        return (reservation_engine_tasks.HostInventoryEndpoint(
            self.engine.inventory), *self.engine.power.endpoints,
            *self.engine.backlog.endpoints)
