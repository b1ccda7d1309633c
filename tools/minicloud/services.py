# SPDX-License-Identifier: Apache-2.0
"""The services: how each is started, and checked to be up."""

import dataclasses
import os
import pathlib
import socket
import sys
import time
import urllib.error
import urllib.request

from minicloud import broker
from minicloud import dashboard
from minicloud import databases
from minicloud import layout as layouts
from minicloud import nova_files
from minicloud import processes
from minicloud import steps

START_S = 180
STOP_S = 20
POLL_S = 0.1
TOOLS = pathlib.Path(__file__).resolve().parents[1]
# As in the units of etc/systemd.
_MEMORY = {'MALLOC_ARENA_MAX': '2'}


@dataclasses.dataclass(frozen=True)
class Service:
    """:ivar env: environment beside environment()
    :ivar port: on which it listens, if any
    :ivar url: which it answers once it is up; a port may open long before
    """

    name: str
    command: tuple[str, ...]
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    port: int | None = None
    url: str | None = None


def environment(layout, **more):
    """Return an environment without proxies and credentials of the caller."""
    kept = {name: os.environ[name] for name in ('HOME', 'USER', 'LANG')
            if name in os.environ}
    return {
        **kept,
        'PATH': f'{layout.venv}/bin:/usr/local/sbin:/usr/local/bin:'
                '/usr/sbin:/usr/bin:/sbin:/bin',
        'OS_CLIENT_CONFIG_FILE': str(layout.clouds_yaml),
        **more,
    }


def describe(layout):
    """Return {name: Service}, in an order in which they can start."""
    found = []
    if 'mariadb' in layout.settings.private:
        found.append(Service(
            'mariadb', databases.command(layout),
            port=layout.port('mariadb')))
    if 'rabbitmq' in layout.settings.private:
        env = broker.environment(layout)
        found += [
            Service('epmd', broker.epmd_command(layout), env,
                    port=layout.port('epmd')),
            Service('rabbitmq', broker.command(), env,
                    port=layout.port('rabbitmq')),
        ]
    found += [
        _wsgi(layout, 'keystone', 'keystone.wsgi.api', {
            'OS_KEYSTONE_CONFIG_DIR': f'{layout.etc}/keystone'}),
        _wsgi(layout, 'placement', 'placement.wsgi.api', {
            'OS_PLACEMENT_CONFIG_DIR': f'{layout.etc}/placement'}),
        _wsgi(layout, 'glance', 'glance.wsgi.api', {
            'OS_GLANCE_CONFIG_DIR': f'{layout.etc}/glance'}, processes_=1),
        Service(
            'network', (sys.executable,
                        str(pathlib.Path(__file__).with_name(
                            'stub_network.py')),
                        layouts.ADDRESS, str(layout.port('network'))),
            url=layout.url('network')),
        *_nova(layout),
    ]
    if layout.settings.dashboard:
        found.append(_wsgi(
            layout, dashboard.NAME, 'openstack_dashboard.wsgi',
            dashboard.environment(layout), path='/auth/login/', more=(
                '--static-map', f'/static={dashboard.static(layout)}')))
    return {service.name: service for service in found}


def _nova(layout):
    etc = layout.etc / 'nova'
    common = f'--config-file={etc}/nova.conf'
    extra = f'--config-file={nova_files.extra(layout)}'
    yield Service('nova-conductor', (layout.bin('nova-conductor'), common))
    yield Service('nova-conductor-cell1', (
        layout.bin('nova-conductor'),
        f'--config-file={etc}/nova-cell1.conf'))
    yield _wsgi(layout, 'nova-api', 'nova.wsgi.osapi_compute', {
        'OS_NOVA_CONFIG_DIR': str(etc)}, **_room_of_nova_api(layout))
    for name in nova_files.HOSTS:
        yield Service(name, (
            layout.bin('python'), '-m', 'minicloud.inside.service',
            str(nova_files.constants(layout)), name.rpartition('-')[0],
            common, f'--config-file={etc}/{name}.conf', extra),
            {**_MEMORY, 'PYTHONPATH': str(TOOLS)})
    yield _wsgi(
        layout, 'nova-preempt-api', 'nova_preempt.api.wsgi', {
            **_MEMORY,
            'OS_NOVA_CONFIG_DIR': str(etc),
            'OS_NOVA_CONFIG_FILES': 'nova.conf;extra.conf'},
        path='/healthcheck')
    for name in layout.computes:
        yield Service(name, (
            layout.bin('python'), '-m', 'minicloud.inside.compute',
            f'--config-file={etc}/nova-compute.conf',
            f'--config-file={etc}/{name}.conf'),
            {'PYTHONPATH': str(TOOLS)})


def _room_of_nova_api(layout):
    # Up to 2025.2 eventlet patches nova-api, whose greenlets cannot go from
    # one thread of uWSGI to another.
    found = layout.venv.glob('lib/python*/site-packages/nova-*.dist-info')
    if any(int(item.name.split('-')[1].split('.')[0]) < 33 for item in found):
        return {'processes_': 4, 'threads': 1}
    return {}


def _wsgi(layout, name, module, env, processes_=2, threads=8, path='/',
          more=()):
    return Service(
        name, (
            layout.bin('uwsgi'),
            '--http-socket', f'{layouts.ADDRESS}:{layout.port(name)}',
            '--module', f'{module}:application',
            '--master', '--processes', str(processes_),
            '--threads', str(threads),
            '--buffer-size', '65535', '--die-on-term', '--need-app',
            '--lazy-apps', '--add-header', 'Connection: close',
            # Glance takes images in chunks.
            '--http-chunked-input', '--so-keepalive',
            '--thunder-lock', '--disable-logging', *more,
        ), env, url=layout.url(name, path))


class Services:
    """Starts and stops the services of describe()."""

    def __init__(self, layout):
        self._layout = layout
        self._described = describe(layout)
        self._records = processes.Records(layout.run)

    def names(self):
        return list(self._described)

    def process(self, name):
        """Return a processes.Process, None if it was never started."""
        return self._records.find(name)

    def state(self, name):
        """Return 'running', 'frozen' or 'gone'."""
        process = self._records.find(name)
        return 'gone' if process is None else process.state()

    def pid(self, name):
        process = self._records.find(name)
        return None if process is None else process.pid

    def start(self, name):
        """Start a service unless it runs, and wait until it is up."""
        service = self._described[name]
        if self.state(name) != 'gone':
            return
        previous = self._records.find(name)
        if previous is not None:
            # Its leader has died, and workers may remain.
            previous.kill()
        log = self._layout.logs / f'{name}.log'
        process = self._records.start(
            name, service.command,
            environment(self._layout, **service.env), log)
        until = time.monotonic() + START_S
        while not _is_there(service):
            if process.state() == 'gone':
                raise steps.StepFailed(f'{name} has ended', log)
            if time.monotonic() > until:
                raise steps.StepFailed(
                    f'{name} does not answer after {START_S} s', log)
            time.sleep(POLL_S)

    def stop(self, name):
        process = self._records.find(name)
        if process is not None:
            process.stop(STOP_S)
            self._records.forget(name)

    def recorded(self):
        """Return names of all recorded services, described or not."""
        return self._records.names()

    def signal(self, name, number):
        process = self._records.find(name)
        if process is None or process.state() == 'gone':
            raise steps.StepFailed(f'{name} does not run')
        process.signal(number)

    def kill(self, name):
        process = self._records.find(name)
        if process is not None:
            process.kill()


def answers(port):
    try:
        socket.create_connection((layouts.ADDRESS, port), 1).close()
    except OSError:
        return False
    return True


def _is_there(service):
    if service.url is not None:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            opener.open(service.url, timeout=10).close()
        except urllib.error.HTTPError:
            return True  # up, though it requires a token
        except OSError:
            return False
        return True
    return service.port is None or answers(service.port)
