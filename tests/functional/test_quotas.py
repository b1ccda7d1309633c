# SPDX-License-Identifier: Apache-2.0
"""The two quotas, on the real Nova and Placement."""

import contextlib
import threading

import nova.conf
from nova.limit import utils as limit_utils
from nova.tests.functional.api import client as api_client
from oslo_limit import fixture as limit_fixture

from nova_preempt.embedded import embedded_cloud
from tests.functional import base

CONF = nova.conf.CONF
PREEMPTIBLE_PROJECT = 'preemptible-allocations'


class QuotaTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.project = self.api_fixture.project_id
        self.add_host('host1', 10, 10240, 100)

    def limit(self, driver='options', **values):
        for name in ('servers', 'vcpus', 'memory_mb', 'project_limits'):
            CONF.clear_override(name, group='preemption_quota')
        self.flags(group='preemption_quota', driver=driver, **values)
        self.scheduler.retry_loop.start()

    def refuse(self, flavor, **kwargs):
        """Boot a server that is refused; return the user's message."""
        server = self.boot_in_vain(flavor=flavor, **kwargs)
        return self.api.get_server(server)['fault']['message']

    def boot_many(self, count, flavor):
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=flavor, networks='none')
        body.update(min_count=count, max_count=count)
        before = {server['id'] for server in self.servers()}
        self.api.post_server({'server': body})
        return [self.settle(server['id']) for server in self.servers()
                if server['id'] not in before]

    def project_usage(self, project_id):
        return self.placement.get(f'/usages?project_id={project_id}',
                                  version='1.9').body['usages']

    def projects_of(self, *servers):
        return [self.placement.get(f'/allocations/{server}',
                                   version='1.28').body['project_id']
                for server in servers]


class TestPreemptible(QuotaTestCase):

    def test_refusals(self):
        big = self.create_flavor('b', 2, 1024, 10, preemptible=True)
        ram = self.create_flavor('r', 1, 2048, 10, preemptible=True)
        huge = self.create_flavor('h', 11, 1024, 10, preemptible=True)

        self.limit(vcpus=3, memory_mb=3000)
        first = self.boot_spot('a', 'host1', flavor=big)
        self.assertIn('vcpus: limit 3, used 2, requested 2',
                      self.refuse(big))
        fault = self.refuse(ram)
        self.assertIn('memory_mb: limit 3000, used 1024, requested 2048',
                      fault)
        self.assertNotIn('vcpus', fault)
        self.delete(first)

        # What has failed counts nothing.
        self.limit(servers=1, vcpus=1)
        self.assertIn('vcpus: limit 1, used 0, requested 11',
                      self.refuse(huge))
        second = self.boot_spot('b', 'host1')
        self.refuse(self.spot)
        self.delete(second)
        self.boot_spot('c', 'host1')

        self.limit(servers=5, project_limits=[
            {'project_id': self.project, 'servers': '1'},
            {'project_id': 'other', 'vcpus': '7'}])
        self.assertIn('limit 1, used 1', self.refuse(self.spot))

        self.limit(servers=2)
        self.boot_spot('d', 'host1')
        self.assertEqual(
            'No valid host was found. Quota of preemptible servers exceeded '
            f'for project {self.project}: servers: limit 2, used 2, '
            'requested 1.', self.refuse(self.spot))
        self.assertIn('Quota of preemptible servers exceeded',
                      self.stdlog.logger.output)
        self.assertIn('limit 2, used 2', self.last_decision().reason)
        # Normal ones are not bounded by it, and one that failed counts
        # nothing.
        self.delete(self.boot_normal()['id'])
        self.delete(self.boot('e', self.small))

    def test_several_servers_of_a_request(self):
        """They are admitted together; hinted servers count."""
        self.flags(marks=['hint'], group='preemption')
        self.limit(servers=3)
        self.assertEqual(['ERROR'] * 4, [
            server['status'] for server in self.boot_many(4, self.spot)])
        self.wait_for(lambda: not self.alive(), 'them to fail')
        servers = self.boot_many(2, self.spot)
        self.assertEqual(['ACTIVE'] * 2,
                         [server['status'] for server in servers])
        hint = {'preemptible': 'true'}
        self.boot_spot('a', 'host1', flavor=self.small, hints=hint)
        self.assertIn('limit 3, used 3', self.refuse(self.spot))
        self.assertIn('limit 3, used 3',
                      self.refuse(self.small, hints=hint))
        self.boot_normal('n')

    def test_many_at_the_same_time(self):
        """Exactly as many as the limit allows."""
        self.limit(servers=4)
        self.start_second_scheduler()
        booted = []
        self.at_once(lambda number: booted.append(
            self.boot(f's{number}', self.spot)), 10)
        statuses = [self.settle(server)['status'] for server in booted]
        self.assertEqual(10, len(statuses))
        self.assertEqual(4, statuses.count('ACTIVE'))

    def start_second_scheduler(self):
        # Nova's tests have but one; here two take turns.
        self._service_fixture_count['scheduler'] = 0
        second = self.start_service('scheduler', host='scheduler2')
        second.manager.clock = self.clock

    def at_once(self, function, count):
        threads = [threading.Thread(target=function, args=(number,))
                   for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_resizes_at_the_same_time(self):
        self.limit(vcpus=6)
        self.start_second_scheduler()
        self.add_host('host2', 10, 10240, 100)
        spots = [self.boot_spot(name, 'host1') for name in 'abcd']
        larger = self.create_flavor('l', 2, 1024, 10, preemptible=True)
        self.at_once(lambda number: self.act(
            spots[number], 'resize', {'flavorRef': larger}), 4)
        self.assertEqual([1, 1, 2, 2], sorted(
            self.api.get_server(spot)['flavor']['vcpus'] for spot in spots))

    def test_operations_of_preemptible_servers(self):
        """A move adds nothing, a larger size the difference."""
        self.add_host('host2', 10, 10240, 100)
        self.limit(servers=1, vcpus=2)
        spot = self.boot_spot('a', 'host1')
        larger = self.create_flavor('l', 2, 1024, 10, preemptible=True)
        largest = self.create_flavor('xl', 3, 1024, 10, preemptible=True)
        self.act(spot, 'migrate')
        self.confirm(spot)
        self.act(spot, 'shelve')
        self.act(spot, 'unshelve')
        self.resize(spot, largest, 'Error')
        self.assertIn('vcpus: limit 2, used 1, requested 2',
                      self.last_decision().reason)
        self.resize(spot, larger)
        self.confirm(spot)
        self.assertEqual(2, self.api.get_server(spot)['flavor']['vcpus'])
        # Down, and to a normal one, always.
        self.resize(spot, self.small)
        self.confirm(spot)
        self.boot_spot('b', 'host1')
        self.resize(spot, self.spot, 'Error')
        self.assertIn('servers: limit 1, used 1, requested 1',
                      self.last_decision().reason)
        self.wait_consistent()

    def confirm(self, server):
        self.act(server, 'confirmResize')
        self.wait(server)

    def resize(self, server, flavor, result='Success'):
        self.act(server, 'resize', {'flavorRef': flavor})
        path = f'/servers/{server}/os-instance-actions'

        def told():
            # Nova writes the state first and then how the action ended.
            newest = self.api.api_get(path).body['instanceActions'][0]
            action = self.api.api_get(
                f'{path}/{newest["request_id"]}').body['instanceAction']
            return action['action'] == 'resize' and result in [
                item['result'] for item in action['events']]

        self.wait_for(told, f'{result} of the resize')


class TestNormal(QuotaTestCase):

    def test_normal_servers_are_limited_by_the_scheduler(self):
        """The API lets in the sum; each kind gets its part."""
        self.flags(group='quota', instances=3, cores=3, ram=3072)
        self.limit(enforce_normal=True, normal_servers=2, normal_vcpus=2,
                   normal_memory_mb=2048, servers=1)
        self.boot_normal('a')
        self.boot_normal('b')
        self.assertIn(
            'Quota of normal servers exceeded for project '
            f'{self.project}: servers: limit 2, used 2, requested 1; vcpus: '
            'limit 2, used 2, requested 1; memory_mb: limit 2048, used 2048, '
            'requested 1024.', self.refuse(self.small))
        # Until it is deleted, what was refused counts for Nova's API.
        failed, = (server['id'] for server in self.servers()
                   if server['status'] == 'ERROR')
        self.delete(failed)
        self.boot_spot('c', 'host1')

    def test_a_normal_server_still_preempts(self):
        self.limit(enforce_normal=True, normal_vcpus=10, vcpus=10)
        for number in range(10):
            self.boot_spot(f's{number}', 'host1')
        self.boot_normal('n')
        self.assertEqual(1, len(self.last_victims()))
        self.assert_consistent()
        # Left to Nova.
        self.limit(enforce_normal=False, servers=0, normal_servers=0)
        self.boot_normal('a')
        self.flags(group='quota', instances=1)
        exc = self.assertRaises(api_client.OpenStackApiException, self.boot,
                                'b', self.small)
        self.assertEqual(403, exc.response.status_code)


class TestAllocationProject(QuotaTestCase):

    def setUp(self):
        super().setUp()
        self.flags(group='quota', count_usage_from_placement=True)
        self.limit(driver='options', enforce_normal=True, normal_vcpus=99,
                   normal_memory_mb=99999,
                   allocation_project_id=PREEMPTIBLE_PROJECT)

    def test_normal_cores_are_left(self):
        self.flags(group='quota', cores=2, ram=2048)
        spots = [self.boot_spot(name, 'host1') for name in 'abcd']
        self.assertEqual([PREEMPTIBLE_PROJECT] * 4, self.projects_of(*spots))
        self.assertEqual(4, self.project_usage(PREEMPTIBLE_PROJECT)['VCPU'])
        limits = self.api.api_get('/limits').body['limits']['absolute']
        self.assertEqual((0, 0, 4), (
            limits['totalCoresUsed'], limits['totalRAMUsed'],
            limits['totalInstancesUsed']))
        normal = self.boot_normal('n1')['id']
        self.assertEqual([self.project], self.projects_of(normal))
        self.boot_normal('n2')
        exc = self.assertRaises(api_client.OpenStackApiException, self.boot,
                                'n3', self.small)
        self.assertEqual(403, exc.response.status_code)
        # What remains impossible: each request is checked alone.
        exc = self.assertRaises(api_client.OpenStackApiException, self.boot,
                                'e', self.spot)
        self.assertEqual(403, exc.response.status_code)

    def test_operations(self):
        self.add_host('host2', 10, 10240, 100)
        spot = self.boot_spot('a', 'host1')
        larger = self.create_flavor('l', 2, 1024, 10, preemptible=True)
        for action, arguments in (
                ('migrate', None), ('revertResize', None),
                ('resize', {'flavorRef': larger}), ('confirmResize', None),
                ('shelve', None), ('unshelve', None),
                ('os-migrateLive', {'host': None,
                                    'block_migration': 'auto'})):
            self.act(spot, action, arguments)
            if action in ('confirmResize', 'revertResize'):
                self.wait(spot)
            if action != 'shelve':
                self.assertEqual([PREEMPTIBLE_PROJECT],
                                 self.projects_of(spot), action)
                self.assertEqual({}, self.project_usage(self.project))
        self.wait_consistent()

    def test_allocations_of_the_wrong_project_are_corrected(self):
        """Older servers and claims of Nova's conductor are corrected."""
        self.limit(allocation_project_id='')
        spot = self.boot_spot('a', 'host1')
        normal = self.boot_normal('n')['id']
        self.assertEqual([self.project] * 2, self.projects_of(spot, normal))
        self.limit(allocation_project_id=PREEMPTIBLE_PROJECT)
        self.scheduler._refresh_preemptible_servers(None)
        self.assertEqual([PREEMPTIBLE_PROJECT, self.project],
                         self.projects_of(spot, normal))
        self.assert_consistent()
        # A victim takes nothing along from there.
        for number in range(8):
            self.boot_spot(f's{number}', 'host1')
        self.boot_normal('o')
        self.assertEqual({'VCPU': 2, 'MEMORY_MB': 2048, 'DISK_GB': 20},
                         self.project_usage(self.project))
        self.assertEqual(8, self.project_usage(PREEMPTIBLE_PROJECT)['VCPU'])
        self.assert_consistent()


class TestKeystone(QuotaTestCase):

    @contextlib.contextmanager
    def registered(self, limits, projects=None):
        with limit_fixture.LimitFixture(limits, projects or {}):
            self.limit(driver='oslo_limit')
            yield

    def test_registered_limits(self):
        with self.registered({'preemptible_servers': 5,
                              'preemptible_vcpus': 5}):
            self.assertIn('preemptible_memory_mb: limit 0, used 0, '
                          'requested 1024', self.refuse(self.spot))
        with self.registered(
                {'preemptible_servers': 0, 'preemptible_vcpus': 0,
                 'preemptible_memory_mb': -1},
                {self.project: {'preemptible_servers': 5,
                                'preemptible_vcpus': 1}}):
            self.boot_spot('a', 'host1')
            self.assertIn('preemptible_vcpus: limit 1, used 1, requested 1',
                          self.refuse(self.spot))
        with self.registered({'preemptible_servers': 1,
                              'preemptible_vcpus': -1,
                              'preemptible_memory_mb': 99999}):
            self.assertIn('preemptible_servers: limit 1, used 1, requested 1',
                          self.refuse(self.spot))
            self.boot_normal('n')


class TestUnifiedLimits(QuotaTestCase):
    """Nova counts only the number of preemptible servers."""

    def setUp(self):
        super().setUp()
        limits = {'servers': -1, 'class:VCPU': 2, 'class:MEMORY_MB': 2048,
                  'class:DISK_GB': -1, 'preemptible_servers': 4,
                  'preemptible_vcpus': -1, 'preemptible_memory_mb': -1,
                  'normal_servers': 2, 'normal_vcpus': -1,
                  'normal_memory_mb': -1}
        self.useFixture(limit_fixture.LimitFixture(limits, {}))
        self.flags(group='quota', driver=limit_utils.UNIFIED_LIMITS_DRIVER)
        self.limit(driver='oslo_limit', enforce_normal=True,
                   allocation_project_id=PREEMPTIBLE_PROJECT,
                   restored_resources=['VCPU', 'MEMORY_MB'])
        self.zeroed = self.create_flavor(
            'zeroed', 1, 1024, 10, preemptible=True,
            **{'resources:VCPU': '0', 'resources:MEMORY_MB': '0'})

    def refuse_at_once(self, flavor):
        exc = self.assertRaises(api_client.OpenStackApiException, self.boot,
                                'r', flavor)
        self.assertEqual(403, exc.response.status_code)
        return exc.response.text

    def test_two_quotas(self):
        for name in 'ab':
            self.boot_normal(name)
        self.assertIn('class:VCPU', self.refuse_at_once(self.small))
        # Beyond the normal quota, and bounded.
        spots = [self.boot_spot(name, 'host1', flavor=self.zeroed)
                 for name in 'cdef']
        self.assertEqual([PREEMPTIBLE_PROJECT] * 4, self.projects_of(*spots))
        self.assertEqual({'VCPU': 4, 'MEMORY_MB': 4096, 'DISK_GB': 40},
                         self.project_usage(PREEMPTIBLE_PROJECT))
        self.assertIn('preemptible_servers: limit 4, used 4, requested 1',
                      self.refuse(self.zeroed))
        self.assertIn('class:VCPU', self.refuse_at_once(self.small))
        self.assertEqual({'VCPU': 2, 'MEMORY_MB': 2048, 'DISK_GB': 20},
                         self.project_usage(self.project))
        self.assert_consistent()

    def test_operations(self):
        self.add_host('host2', 10, 10240, 100)
        spot = self.boot_spot('a', 'host1', flavor=self.zeroed)
        larger = self.create_flavor(
            'l', 3, 1024, 10, preemptible=True,
            **{'resources:VCPU': '0', 'resources:MEMORY_MB': '0'})
        for action, arguments in (
                ('migrate', None), ('revertResize', None),
                ('resize', {'flavorRef': larger}), ('confirmResize', None),
                ('shelve', None), ('unshelve', None),
                ('os-migrateLive', {'host': None,
                                    'block_migration': 'auto'})):
            self.act(spot, action, arguments)
            if action in ('confirmResize', 'revertResize'):
                self.wait(spot)
        self.wait_consistent()
        self.assertEqual({}, self.project_usage(self.project))
        self.assertEqual({'VCPU': 3, 'MEMORY_MB': 1024, 'DISK_GB': 10},
                         self.project_usage(PREEMPTIBLE_PROJECT))

    def test_a_server_without_resources_is_evicted(self):
        for number in range(4):
            self.boot_spot(f's{number}', 'host1', flavor=self.zeroed)
        large = self.create_flavor('large', 1, 1024, 70)
        self.boot_normal('n', flavor=large)
        self.assertEqual(1, len(self.last_victims()))
        self.assert_consistent()
