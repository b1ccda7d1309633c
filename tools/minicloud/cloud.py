# SPDX-License-Identifier: Apache-2.0
"""Starts and stops the whole cloud, up to its first server."""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import functools
import getpass
import grp
import json
import os
import pathlib
import shutil
import sys
import time

from minicloud import broker
from minicloud import dashboard
from minicloud import databases
from minicloud import files
from minicloud import layout as layouts
from minicloud import nova_files
from minicloud import packages
from minicloud import services
from minicloud import steps

INSIDE = pathlib.Path(__file__).with_name('inside')
# Stopped last, as the others need them to stop in order.
LAST = ('rabbitmq', 'epmd', 'mariadb')
# User, project and roles, beyond the administrator.
USERS = {
    **dict.fromkeys(('nova', 'placement', 'glance', nova_files.USER),
                    ('service', 'admin', 'service')),
    'member': ('member', 'member'),
}


@contextlib.contextmanager
def locked(layout, alone=True):
    """Lock the cloud: for up and down alone, or shared for a service."""
    layout.directory.mkdir(parents=True, exist_ok=True)
    with open(layout.directory / 'lock', 'w') as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def choose(layout, port_base, private):
    """Return the layout with the services that have to be private.

    :param private: whether all are, else those that the machine lacks
    """
    settings = layout.settings
    if port_base is not None:
        settings = dataclasses.replace(settings, port_base=port_base)
    if not private:
        layout.make_directories()
        settings = dataclasses.replace(
            settings, private=tuple(_missing(layout)))
    return dataclasses.replace(layout, settings=settings)


def _missing(layout):
    try:
        _databases(dataclasses.replace(
            layout, settings=layouts.Settings(private=())), 'check')
    except steps.StepFailed:
        yield 'mariadb'
    if not (services.answers(5672) and broker.machine_has_one(
            layout, services.environment(layout))):
        yield 'rabbitmq'


def up(layout, say=print):
    """Start all services that do not run; on a failure stop them all."""
    start = time.monotonic()
    layout.make_directories()
    try:
        _require_ports(layout)
        layout.save()
        steps.run(_Up(layout).steps(), say)
    except BaseException:
        try:
            say('Taking it down.')
        finally:
            _stop_all(layout)
        raise
    say(f'{"all":32} {time.monotonic() - start:6.1f} s')


def down(layout, wipe=False):
    _stop_all(layout)
    if not wipe:
        return
    settings = layout.settings
    if 'mariadb' not in settings.private:
        _databases(layout, 'drop')
    if 'rabbitmq' not in settings.private:
        broker.remove_virtual_hosts(layout, services.environment(layout))
    for directory in (layout.etc, layout.data, layout.logs, layout.run):
        shutil.rmtree(directory, ignore_errors=True)
    for file in (layout.clouds_yaml, layout.saved):
        file.unlink(missing_ok=True)


def _stop_all(layout):
    manager = services.Services(layout)
    names = manager.recorded()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(manager.stop, [name for name in names
                                     if name not in LAST]))
    for name in LAST:
        manager.stop(name)


def _require_ports(layout):
    manager = services.Services(layout)
    for name, port in layout.own_ports().items():
        running = name in manager.names() and manager.state(name) != 'gone'
        if name == 'rabbitmq-distribution':
            running = manager.state('rabbitmq') != 'gone'
        if not running and services.answers(port):
            raise steps.StepFailed(
                f'port {port}, for {name}, is in use: choose another '
                '--port-base')


def _databases(layout, command):
    steps.call(
        [layout.bin('python'), str(INSIDE / 'databases.py'), command,
         layouts.ADDRESS, str(layout.port('mariadb')),
         *[layout.prefix + name for name in layouts.DATABASES]],
        services.environment(layout),
        layout.logs / f'step-databases-{command}.log')


class _Up:
    """The steps that start a cloud and boot its first server."""

    def __init__(self, layout):
        self._layout = layout
        self._services = services.Services(layout)
        self._env = services.environment(layout)
        self._started = []

    def steps(self):
        private = self._layout.settings.private
        packages_ = packages.missing(private)
        if packages_:
            yield steps.Step('packages', lambda: packages.install(
                packages_, self._log('packages')))
        first = ('packages',) if packages_ else ()
        yield steps.Step('configuration', self._configure, first)
        yield steps.Step('mariadb', self._start_mariadb, first)
        yield steps.Step('rabbitmq', self._start_rabbitmq,
                         ('configuration', *first))
        yield from self._identity()
        yield from self._others()
        yield from self._nova()
        yield from self._ours()
        yield from self._computes()
        if self._layout.settings.dashboard:
            yield from self._dashboard()

    def _identity(self):
        manage = (self._layout.bin('keystone-manage'),
                  f'--config-file={self._layout.etc}/keystone/keystone.conf')
        keys = ('--keystone-user', getpass.getuser(),
                '--keystone-group', grp.getgrgid(os.getgid()).gr_name)
        url = self._layout.url('keystone', '/v3')
        yield self._call('keystone-database', (*manage, 'db_sync'),
                         'mariadb', 'configuration')
        for name, command in (('fernet-keys', 'fernet_setup'),
                              ('credential-keys', 'credential_setup')):
            if (self._layout.data / 'keystone' / name / '0').exists():
                yield steps.Step(name, lambda: None)
            else:
                yield self._call(name, (*manage, command, *keys),
                                 'configuration')
        yield self._call('keystone-bootstrap', (
            *manage, 'bootstrap', '--bootstrap-password', layouts.PASSWORD,
            '--bootstrap-region-id', layouts.REGION,
            '--bootstrap-admin-url', url, '--bootstrap-public-url', url,
            '--bootstrap-internal-url', url),
            'keystone-database', 'fernet-keys', 'credential-keys')
        yield self._start('keystone', 'keystone-bootstrap')
        url_of = self._layout.url
        yield self._call('catalog', self._inside('catalog.py', json.dumps({
            'users': USERS, 'region': layouts.REGION,
            'password': layouts.PASSWORD,
            'services': {
                'compute': ('nova', url_of('nova-api', '/v2.1')),
                'placement': ('placement', url_of('placement')),
                'image': ('glance', url_of('glance')),
                'network': ('neutron', url_of('network')),
                'preemption': ('nova-preempt', url_of('nova-preempt-api')),
            }})), 'keystone')

    def _others(self):
        etc = self._layout.etc
        yield self._call('placement-database', (
            self._layout.bin('placement-manage'),
            f'--config-file={etc}/placement/placement.conf', 'db', 'sync'),
            'mariadb', 'configuration')
        yield self._start('placement', 'placement-database', 'catalog')
        yield self._call('glance-database', (
            self._layout.bin('glance-manage'),
            f'--config-file={etc}/glance/glance-api.conf', 'db_sync'),
            'mariadb', 'configuration')
        yield self._start('glance', 'glance-database', 'catalog')
        yield self._start('network')

    def _nova(self):
        manage = (self._layout.bin('nova-manage'),
                  f'--config-file={self._layout.etc}/nova/nova.conf')
        in_cell = (manage[0],
                   f'--config-file={self._layout.etc}/nova/nova-cell1.conf')
        url = self._layout.database_url
        yield self._call('nova-api-database', (*manage, 'api_db', 'sync'),
                         'mariadb', 'configuration')
        # It succeeds where there is a cell0 already.
        yield self._call('nova-cell0', (
            *manage, 'cell_v2', 'map_cell0', '--database_connection',
            url('nova_cell0')), 'nova-api-database')
        yield steps.Step('nova-cell1', lambda: steps.call((
            *manage, 'cell_v2', 'create_cell', '--name', 'cell1',
            '--database_connection', url('nova_cell1'),
            '--transport-url', self._layout.broker_url('cell1')),
            self._env, self._log('nova-cell1'),
            # 2 where there is a cell1 already.
            good=(0, 2)), ('nova-api-database',))
        # Each syncs one database, and needs no cell mapping.
        yield self._call('nova-cell0-database', (
            *manage, 'db', 'sync', '--local_cell'),
            'mariadb', 'configuration')
        yield self._call('nova-cell1-database', (
            *in_cell, 'db', 'sync', '--local_cell'),
            'mariadb', 'configuration')
        ready = ('nova-cell0-database', 'nova-cell1-database', 'nova-cell0',
                 'nova-cell1', 'catalog', 'rabbitmq')
        for name in ('nova-conductor', 'nova-conductor-cell1'):
            yield self._start(name, *ready)
        yield self._start('nova-api', *ready)

    def _ours(self):
        """Yield the steps of doc/source/install.rst in their order."""
        config = f'--config-file={self._layout.etc}/nova/nova.conf'
        yield self._call('nova-preempt-database', (
            self._layout.bin('nova-preempt-manage'), config, 'db', 'sync'),
            'mariadb', 'configuration')
        yield steps.Step('nova-preempt-status', lambda: steps.call(
            (self._layout.bin('nova-preempt-status'), config, 'upgrade',
             'check'), self._env, self._log('nova-preempt-status'),
            # 1 is a warning.
            good=(0, 1)), (
                'nova-preempt-database', 'nova-cell0-database',
                'nova-cell1-database', 'placement', 'nova-api'))
        for name in self._services.names():
            if name.startswith('nova-preempt-'):
                yield self._start(name, 'nova-preempt-status')

    def _dashboard(self):
        env = {**self._env, **dashboard.environment(self._layout)}
        for name, after, arguments in (
                ('horizon-static', 'configuration',
                 ('collectstatic', '--noinput')),
                ('horizon-compressed', 'horizon-static',
                 ('compress', '--force'))):
            yield steps.Step(name, functools.partial(
                steps.call, (self._layout.bin('django-admin'), *arguments),
                env, self._log(name)), (after,))
        yield self._start(dashboard.NAME, 'horizon-compressed', 'keystone')

    def _computes(self):
        names = self._layout.computes
        for name in names:
            yield self._start(name, 'nova-conductor-cell1', 'placement')
        yield self._call('computes-registered', self._inside(
            'computes.py', str(len(names))), 'nova-api', *names)
        yield self._call('computes-discovered', (
            self._layout.bin('nova-manage'),
            f'--config-file={self._layout.etc}/nova/nova.conf',
            'cell_v2', 'discover_hosts'), 'computes-registered')
        yield self._call('first-server', self._inside('first_server.py'),
                         'computes-discovered', 'glance', 'network',
                         'nova-conductor', 'nova-preempt-scheduler-1',
                         'nova-preempt-scheduler-2')

    def _configure(self):
        files.write(self._layout)
        nova_files.write(self._layout)
        if self._layout.settings.dashboard:
            dashboard.write(self._layout)

    def _start_mariadb(self):
        if 'mariadb' in self._layout.settings.private:
            databases.prepare(self._layout, self._env)
            self._services.start('mariadb')
            _databases(self._layout, 'wait')
        _databases(self._layout, 'create')

    def _start_rabbitmq(self):
        if 'rabbitmq' in self._layout.settings.private:
            broker.prepare(self._layout)
            self._services.start('epmd')
            self._services.start('rabbitmq')
        else:
            broker.make_virtual_hosts(self._layout, self._env)

    def _start(self, name, *after):
        def start():
            self._services.start(name)
            self._started.append(name)

        return steps.Step(name, start, after)

    def _call(self, name, command, *after):
        return steps.Step(
            name, lambda: steps.call(command, self._env, self._log(name),
                                     check=self._require_started), after)

    def _require_started(self):
        """Raise if a started service has ended; many listen on no port."""
        for name in self._started:
            if self._services.state(name) == 'gone':
                raise steps.StepFailed(
                    f'{name} has ended', self._layout.logs / f'{name}.log')

    def _inside(self, script, *arguments):
        return (self._layout.bin('python'), str(INSIDE / script), *arguments)

    def _log(self, name):
        return self._layout.logs / f'step-{name}.log'


def status(layout, say=print):
    """Print the states of services; return whether all are running."""
    manager = services.Services(layout)
    states = {name: manager.state(name) for name in manager.names()}
    for name, state in states.items():
        say(f'{name:32} {state:8} {manager.pid(name) or "":>8}')
    if layout.settings.dashboard:
        say(dashboard_line(layout))
    return set(states.values()) == {'running'}


def dashboard_line(layout):
    """Return where Horizon is, and how to sign in."""
    return (f'Horizon: {layout.url(dashboard.NAME, "/")} user admin or '
            f'member, password {layouts.PASSWORD}')


def fail(exc):
    """Print which step failed, and the end of its log."""
    sys.stderr.write(f'{exc}\n')
    if exc.tail():
        sys.stderr.write(f'The end of {exc.log}:\n{exc.tail()}\n')
