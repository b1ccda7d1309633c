# SPDX-License-Identifier: Apache-2.0
"""Tests of the quotas of preemptible and normal servers."""

import dataclasses
import itertools
import types
import unittest
from unittest import mock

from nova import exception
from nova import objects
from oslo_config import cfg
from oslo_limit import fixture as limit_fixture
from oslo_limit import limit

from nova_preempt import exceptions
from nova_preempt.conf import preemption_quota as quota_conf
from nova_preempt.core import quotas as core
from nova_preempt.scheduler import preemption_quotas
from nova_preempt.scheduler import request_context

objects.register_all()


def amounts(preemptible=True, vcpus=1, memory_mb=1024):
    return core.ServerSize(preemptible, vcpus, memory_mb)


def server(*sizes, busy=False):
    return core.CountedServer(list(sizes) or [amounts()], busy)


class FakeServers:
    """Records of Nova: {uuid: Server} and a set of uuids."""

    def __init__(self):
        self.in_cells = {}
        self.waiting = set()

    def servers(self, project_id):
        return dict(self.in_cells)

    def requests(self, project_id):
        return set(self.waiting)


class FakeClaims:
    """Does what db.quota_claims.QuotaClaims does, for one project."""

    def __init__(self):
        self.claims = []
        self._ids = itertools.count()

    def claim(self, project_id, amounts):
        others = [item for item in self.claims
                  if item.server_uuid not in amounts]
        new = [core.QuotaClaim(next(self._ids), uuid,
                               **dataclasses.asdict(item))
               for uuid, item in amounts.items()]
        self.claims = others + new
        return [item.id for item in new], others

    def release(self, ids):
        self.claims = [item for item in self.claims if item.id not in ids]


class QuotasTestCase(unittest.TestCase):

    def setUp(self):
        self.conf = cfg.ConfigOpts()
        quota_conf.register_opts(self.conf)
        self.conf([])
        self.servers = FakeServers()
        self.claims = FakeClaims()
        self.notes = []

    def make(self, driver='options', **values):
        for name, value in {'driver': driver, **values}.items():
            self.conf.set_override(name, value, quota_conf.GROUP)
        return preemption_quotas.QuotaEnforcer(self.conf.preemption_quota,
                                               self.servers, self.claims,
                                               lambda *args: self.notes.append(
                                                   args))

    def ask(self, quota, *uuids, preemptible=True, vcpus=1, memory_mb=1024,
            error=None):
        spec_obj = types.SimpleNamespace(
            project_id='p', flavor=types.SimpleNamespace(
                vcpus=vcpus, memory_mb=memory_mb))
        with quota.admitted(request_context.RequestContext(
                None, spec_obj, uuids), preemptible):
            if error:
                raise error

    def refuse(self, *args, **kwargs):
        """Make a request that is refused; return the reason."""
        with self.assertRaises(exception.NoValidHost) as caught:
            self.ask(*args, **kwargs)
        self.assertEqual(self.notes.pop()[-1],
                         caught.exception.kwargs['reason'])
        return caught.exception.kwargs['reason']


class TestOptions(QuotasTestCase):

    def test_by_default_nothing_is_read(self):
        quota = preemption_quotas.QuotaEnforcer(self.conf.preemption_quota,
                                                None, None)
        self.ask(quota, 'a', vcpus=1000)
        self.ask(quota, 'a', preemptible=False)

    def test_without_limits_nothing_is_counted(self):
        quota = self.make(servers=-1, enforce_normal=True)
        self.servers.servers = self.claims.claim = None
        self.ask(quota, 'a')
        self.ask(quota, 'a', preemptible=False)

    def test_message(self):
        quota = self.make(servers=2, vcpus=3, memory_mb=4096)
        self.servers.in_cells = {
            'a': server(amounts(vcpus=2)), 'n': server(amounts(False, 99))}
        self.ask(quota, 'b')
        self.assertEqual(
            'Quota of preemptible servers exceeded for project p: servers: '
            'limit 2, used 1, requested 3; vcpus: limit 3, used 2, requested '
            '6.', self.refuse(quota, 'c', 'd', 'e', vcpus=2, memory_mb=1))

    def test_normal(self):
        quota = self.make(servers=0, normal_servers=1, enforce_normal=True)
        self.servers.in_cells = {'s': server()}
        self.ask(quota, 'a', preemptible=False)
        self.servers.in_cells['a'] = server(amounts(False))
        self.assertIn('Quota of normal servers exceeded for project p: '
                      'servers: limit 1, used 1, requested 1',
                      self.refuse(quota, 'b', preemptible=False))
        self.refuse(quota, 'b')

    def test_normal_is_left_alone(self):
        self.ask(self.make(normal_servers=0), 'a', preemptible=False)

    def test_limits_of_projects(self):
        self.conf.set_override('project_limits', [
            {'project_id': 'p', 'servers': '3', 'normal_vcpus': '-1'},
            {'project_id': 'q', 'servers': '9'}], quota_conf.GROUP)
        quota = self.make(servers=1, enforce_normal=True, normal_vcpus=0)
        self.ask(quota, 'a', 'b', 'c')
        self.refuse(quota, 'a', 'b', 'c', 'd')
        self.ask(quota, 'e', preemptible=False)

    def test_bad_lines(self):
        for line in ({'servers': '3'}, {'project_id': 'p', 'cores': '3'},
                     {'project_id': 'p', 'servers': 'many'}):
            self.assertRaisesRegex(
                exceptions.InvalidConfiguration, 'project_limits has',
                self.make, project_limits=[line])

    def test_cannot_count(self):
        quota = self.make(servers=1)
        self.servers.servers = mock.Mock(side_effect=exception.CellTimeout)
        with self.assertLogs('nova_preempt.scheduler.preemption_quotas'):
            self.assertIn('cannot be counted', self.refuse(quota, 'a'))
        self.assertEqual([], self.claims.claims)

    def test_cannot_claim(self):
        quota = self.make(servers=1)
        self.claims.claim = mock.Mock(side_effect=OSError)
        with self.assertLogs('nova_preempt.scheduler.preemption_quotas'):
            self.assertIn('cannot be counted', self.refuse(quota, 'a'))

    def test_cannot_release(self):
        """The answer is the same; Nova's records tell that it is over."""
        quota = self.make(servers=0)
        self.claims.release = mock.Mock(side_effect=OSError)
        with self.assertLogs('nova_preempt.scheduler.preemption_quotas'):
            self.assertIn('limit 0', self.refuse(quota, 'a'))


class TestAllocationProject(unittest.TestCase):
    """Usage that Nova's quota does not count is limited or refused."""

    def check(self, **values):
        conf = cfg.ConfigOpts()
        quota_conf.register_opts(conf)
        for name, value in {
                'allocation_project_id': 'elsewhere', 'driver': 'options',
                'enforce_normal': True, 'normal_vcpus': 8,
                'normal_memory_mb': 8192, **values}.items():
            conf.set_override(name, value, quota_conf.GROUP)
        preemption_quotas.check(conf[quota_conf.GROUP])

    def test_bounded(self):
        self.check()
        self.check(driver='oslo_limit', normal_vcpus=-1, normal_memory_mb=-1)
        self.check(allocation_project_id='', driver='none',
                   enforce_normal=False)

    def test_options_that_would_double_a_quota(self):
        for values, missing in (
                ({'enforce_normal': False}, 'enforce_normal = true'),
                ({'driver': 'none'}, 'driver = options or oslo_limit'),
                ({'driver': 'oslo_limit', 'enforce_normal': False},
                 'enforce_normal'),
                ({'normal_vcpus': -1}, 'normal_vcpus'),
                ({'normal_memory_mb': -1}, 'normal_memory_mb')):
            with self.assertRaisesRegex(
                    exceptions.InvalidConfiguration,
                    f'allocation_project_id needs .* set: .*{missing}'):
                self.check(**values)


class TestCounting(QuotasTestCase):

    def test_resizes(self):
        quota = self.make(servers=2, vcpus=6)
        self.servers.in_cells = {'a': server(busy=True), 'b': server(
            amounts(vcpus=2), busy=True)}
        self.assertIn('vcpus: limit 6, used 3, requested 4',
                      self.refuse(quota, 'a', vcpus=5))
        self.ask(quota, 'a', vcpus=4)
        # Nova's record of it is still the old one.
        self.assertIn('vcpus: limit 6, used 6, requested 1',
                      self.refuse(quota, 'b', vcpus=3))
        # It failed after all.
        self.servers.in_cells['a'] = server()
        self.ask(quota, 'b', vcpus=3)

    def test_admitted_requests_count(self):
        quota = self.make(servers=2)
        self.servers.waiting = {'a', 'b', 'c'}
        self.ask(quota, 'b')
        self.ask(quota, 'c')
        self.assertIn('used 2', self.refuse(quota, 'a'))
        # What was refused counts nothing, what is asked for again once.
        self.ask(quota, 'b')
        self.ask(quota, 'c')

    def test_a_request_that_found_no_host(self):
        quota = self.make(servers=1)
        self.servers.waiting = {'a', 'b'}
        self.assertRaises(exception.NoValidHost, self.ask, quota, 'b',
                          error=exception.NoValidHost(reason='full'))
        self.ask(quota, 'a')

    def test_closed_claims_are_deleted(self):
        quota = self.make(servers=1)
        self.servers.waiting = {'a'}
        self.ask(quota, 'a')
        # It was deleted before it was built.
        self.servers.waiting = {'b'}
        self.ask(quota, 'b')
        self.assertEqual(['b'], [item.server_uuid
                                 for item in self.claims.claims])

    def test_a_server_that_reached_its_cell(self):
        quota = self.make(servers=1)
        self.servers.waiting = {'a'}
        self.ask(quota, 'a')
        self.servers.in_cells = {'a': server(busy=True)}
        self.assertIn('used 1', self.refuse(quota, 'b'))
        self.servers.waiting = set()
        self.assertIn('used 1', self.refuse(quota, 'b'))


class TestKeystone(QuotasTestCase):

    def register(self, limits, projects=None):
        limit.CONF.set_override('endpoint_id', 'any', 'oslo_limit')
        self.addCleanup(limit.CONF.clear_override, 'endpoint_id',
                        'oslo_limit')
        fixture = limit_fixture.LimitFixture(limits, projects or {})
        fixture.setUp()
        self.addCleanup(fixture.cleanUp)
        return self.make(driver='oslo_limit', enforce_normal=True)

    def test_limits(self):
        quota = self.register(
            {'preemptible_servers': 1, 'preemptible_vcpus': -1,
             'preemptible_memory_mb': 9999, 'normal_servers': 9},
            {'p': {'preemptible_servers': 2}})
        self.servers.in_cells = {'a': server(), 'b': server(amounts(False))}
        self.ask(quota, 'c')
        self.assertEqual(
            'Quota of preemptible servers exceeded for project p: '
            'preemptible_servers: limit 2, used 1, requested 2.',
            self.refuse(quota, 'c', 'd'))
        self.assertEqual(
            'Quota of normal servers exceeded for project p: '
            'normal_memory_mb: limit 0, used 1024, requested 1024; '
            'normal_vcpus: limit 0, used 1, requested 1.',
            self.refuse(quota, 'c', preemptible=False))

    def test_keystone_is_down(self):
        quota = self.make(driver='oslo_limit')
        with mock.patch('oslo_limit.limit.Enforcer', side_effect=OSError), (
                self.assertLogs('nova_preempt.scheduler.preemption_quotas')):
            self.assertIn('limits of the project cannot be read',
                          self.refuse(quota, 'a'))


class TestZeroed(unittest.TestCase):

    def restore(self, classes=('VCPU', 'MEMORY_MB'), **extra_specs):
        flavor = objects.Flavor(extra_specs={
            key.replace('__', ':'): value
            for key, value in extra_specs.items()})
        spec_obj = objects.RequestSpec(flavor=flavor)
        before = dict(flavor.extra_specs)
        preemption_quotas.restore_zeroed(spec_obj, classes)
        self.assertEqual(before, flavor.extra_specs)
        return spec_obj.flavor.extra_specs

    def test_restored(self):
        self.assertEqual(
            {'preemptible:enabled': 'true', 'resources:DISK_GB': '0'},
            self.restore(preemptible__enabled='true', resources__VCPU='0',
                         resources__MEMORY_MB='0', resources__DISK_GB='0'))

    def test_left_alone(self):
        for classes, extra_specs in (
                ((), {'preemptible__enabled': 'true',
                      'resources__VCPU': '0'}),
                (('VCPU',), {'resources__VCPU': '0'}),
                (('VCPU',), {'preemptible__enabled': 'true',
                             'resources__VCPU': '1'})):
            self.assertEqual(
                {key.replace('__', ':'): value
                 for key, value in extra_specs.items()},
                self.restore(classes, **extra_specs))
