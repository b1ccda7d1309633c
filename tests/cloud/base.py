# SPDX-License-Identifier: Apache-2.0
"""A test on the cloud of $MINICLOUD_DIR: its servers, commands, services."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
import typing
import unittest

from keystoneauth1 import adapter
from minicloud import files
from minicloud import layout as layouts
from minicloud import nova_files
from minicloud import services
import openstack
from openstack import exceptions
import outages

from nova_preempt import sdk
from tests.cloud import invariant_watch
from tests.cloud import sampler

# Long enough for a machine that does other things, too.
PATIENCE_S = 300
POLL_S = 0.2
CALL_S = 60
NOTICE_S = 8
ADMIN = 'minicloud-admin'
MEMBER = 'minicloud-member'
# {name: extra specs}; two of them fill a host.
FLAVORS = {
    'normal.half': {},
    'spot.half': {'preemptible:enabled': 'true', 'preemptible:notice_s': '0'},
    'spot.half.notice': {'preemptible:enabled': 'true',
                         'preemptible:notice_s': str(NOTICE_S)},
    'normal.tenth': {},
    'spot.tenth': {'preemptible:enabled': 'true',
                   'preemptible:notice_s': '0'},
}
VCPUS = {'half': 5, 'tenth': 1}


@dataclasses.dataclass(frozen=True)
class Place:
    """The cloud, and clients of it."""

    layout: layouts.Layout
    services: services.Services

    @classmethod
    def find(cls):
        directory = pathlib.Path(os.environ['MINICLOUD_DIR']).absolute()
        # Services start somewhere else.
        layout = layouts.Layout(directory, pathlib.Path(os.environ.get(
            'MINICLOUD_VENV', directory / 'venv')).absolute()).load()
        if layout is None:
            raise unittest.SkipTest(f'no cloud in {directory}')
        os.environ['OS_CLIENT_CONFIG_FILE'] = str(layout.clouds_yaml)
        return cls(layout, services.Services(layout))

    def openstack(self, *words, cloud=ADMIN):
        """Return the JSON that a command prints, None for "set"."""
        if 'set' in words:
            return self.call('openstack', '--os-cloud', cloud, *words) or None
        return json.loads(self.call(
            'openstack', '--os-cloud', cloud, *words, '-f', 'json'))

    def refused(self, *words, cloud=MEMBER):
        """Return the error of a command that must fail."""
        done = self._run('openstack', '--os-cloud', cloud, *words)
        if not done.returncode:
            raise AssertionError(f'{" ".join(words)}: {done.stdout}')
        return done.stderr

    def call(self, program, *words):
        done = self._run(program, *words)
        if done.returncode:
            raise AssertionError(f'{program} {" ".join(words)}: exit status '
                                 f'{done.returncode}\n{done.stderr}')
        return done.stdout

    def _run(self, program, *words):
        return subprocess.run(
            [self.layout.bin(program), *words], check=False, text=True,
            capture_output=True, env=services.environment(self.layout))

    def minicloud_command(self, what, name):
        """Return a shell command that controls a service."""
        return shlex.join((
            'env', f'PYTHONPATH={services.TOOLS}', sys.executable, '-m',
            'minicloud', '--dir', str(self.layout.directory),
            '--venv', str(self.layout.venv), what, name))

    def configure(self, sections, constants=None):
        """Add {section: {option: value}} to the options of our services.

        :param constants: {name, see minicloud.inside.service: value}, too
        """
        written = (nova_files.extra(self.layout),
                   nova_files.constants(self.layout))
        before = [path.read_text() for path in written]
        files.save(written[0], sections)
        written[1].write_text(json.dumps(constants or {}))
        names = [name for name in self.services.names()
                 if name.startswith('nova-preempt-')]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            if [path.read_text() for path in written] != before:
                list(pool.map(self.services.stop, names))
            # All, for a class before may have failed in here.
            list(pool.map(self.services.start, names))

    def ended(self):
        """Names of services of ours that have come to an end."""
        return [name for name in self.services.names()
                if name.startswith('nova-preempt-')
                and self.services.state(name) == 'gone']

    def restart_computes(self):
        """Restart the computes, which ends servers that stay "deleting".

        Where the message to the compute was lost, Nova ignores any further
        request to delete the server, until its compute starts anew.
        """
        for name in self.layout.computes:
            self.services.stop(name)
            self.services.start(name)

    def free_allocations(self):
        """Free what is held by no server and no migration; how many.

        Nova leaves the allocation of a migration where the server is deleted
        while the migration ends, and a service dies meanwhile.
        """
        done = self._run(
            'nova-manage', '--config-file',
            str(self.layout.etc / 'nova' / 'nova.conf'), 'placement', 'audit',
            '--delete', '--verbose')
        # 4: some were freed.
        if done.returncode not in (0, 4):
            raise AssertionError(f'audit: exit status {done.returncode}\n'
                                 f'{done.stdout}{done.stderr}')
        return done.stdout.count('Deleted allocations')

    def verify_command(self):
        return (f'{self.layout.bin("nova-preempt-manage")} --config-file '
                f'{self.layout.etc}/nova/nova.conf verify --wait 5')


def connect(cloud):
    """A connection of openstacksdk with our service."""
    return sdk.add_to(openstack.connect(cloud=cloud, api_timeout=CALL_S))


class CloudTest(unittest.TestCase):
    """Fails if a host was overcommitted or resources are left over.

    :cvar OPTIONS: {section: {option: value}} of what is ours, besides that
        of the cloud; the last ones stay
    :cvar CONSTANTS: {name: value}, see Place.configure()
    """

    OPTIONS: typing.ClassVar = {}
    CONSTANTS: typing.ClassVar = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = Place.find()
        cls.admin = connect(ADMIN)
        cls.member = connect(MEMBER)
        cls.image = cls.admin.image.find_image('tiny').id
        make_flavors(cls.admin.compute)
        cls.place.configure(cls.OPTIONS, cls.CONSTANTS)

    def setUp(self):
        super().setUp()
        self.ours = self.servers_of(self.admin)
        self.theirs = self.servers_of(self.member)
        self.addCleanup(self._clean)
        self.sampler = sampler.Sampler(adapter.Adapter(
            self.admin.session, service_type='placement',
            interface='public'))
        self.sampler.start()
        self.addCleanup(self._check_samples)
        self.invariants = invariant_watch.InvariantWatch(
            self.place.verify_command(),
            services.environment(self.place.layout))
        self.invariants.start()
        self.addCleanup(self._check_invariants)
        self.addCleanup(self.verify)
        self.addCleanup(lambda: self.assertEqual([], self.place.ended()))

    @classmethod
    def servers_of(cls, connection):
        """An outages.Cloud, of the servers of one project."""
        return outages.Cloud(adapter.Adapter(
            connection.session, service_type='compute', interface='public',
            default_microversion=outages.COMPUTE_MICROVERSION), cls.image)

    def _check_samples(self):
        self.sampler.stop()
        self.assertEqual([], self.sampler.faults)

    def _check_invariants(self):
        self.invariants.stop()
        self.assertEqual([], self.invariants.faults)

    def verify(self):
        """nova-preempt-manage verify finds nothing, soon."""
        until = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run(
                self.place.verify_command(), shell=True, check=False,
                text=True, capture_output=True,
                env=services.environment(self.place.layout))
            if done.returncode == 0:
                return
            self.assertLess(time.monotonic(), until, done.stdout)

    def _clean(self):
        for servers in (self.ours, self.theirs):
            servers.delete(list(servers.servers()))

    def flavor(self, name):
        return self.admin.compute.find_flavor(name, ignore_missing=False).id

    def fill(self, servers, flavor):
        """Preemptible servers wherever there is room; {uuid: name}."""
        servers.fill(self.flavor(flavor))
        return servers.servers()

    def wait_until(self, condition, what, patience_s=PATIENCE_S):
        """Return the result of the condition as soon as it is true."""
        until = time.monotonic() + patience_s
        while not (found := condition()):
            self.assertLess(time.monotonic(), until, f'never: {what}')
            time.sleep(POLL_S)
        return found

    def find_server(self, uuid):
        """Return a server as an administrator sees it, None if it is gone."""
        return self.admin.compute.find_server(uuid, all_projects=True)

    def metadata(self, uuid):
        """Return the metadata of a server, {} if it is gone."""
        server = self.find_server(uuid)
        return {} if server is None else server.metadata

    def host_of(self, uuid):
        return self.find_server(uuid).hypervisor_hostname

    def pause(self, what):
        """Pause until the end of the test, or resume()."""
        self.addCleanup(self.resume)
        self.place.openstack('preemption', 'pause', '--what', what,
                             '--reason', 'a test')

    def resume(self):
        self.place.call('openstack', '--os-cloud', ADMIN, 'preemption',
                        'resume')


def make_flavors(compute):
    """Create the missing ones of FLAVORS."""
    compute.default_microversion = outages.COMPUTE_MICROVERSION
    for name, specs in FLAVORS.items():
        vcpus = VCPUS[name.split('.')[1]]
        try:
            flavor = compute.create_flavor(
                name=name, vcpus=vcpus, ram=256 * vcpus, disk=vcpus)
        except exceptions.ConflictException:
            continue
        if specs:
            compute.create_flavor_extra_specs(flavor, specs)
