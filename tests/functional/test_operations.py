# SPDX-License-Identifier: Apache-2.0
"""Every operation of a normal server may preempt, unless it is left out."""

from unittest import mock

from nova_preempt.cloud import request_specs
from nova_preempt.conf import preemption as options
from nova_preempt.db import decisions as db_decisions
from nova_preempt.embedded import embedded_cloud
from tests.functional import base

#: Another image of Nova's glance fixture.
OTHER_IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b'

LIVE = {'host': None, 'block_migration': 'auto'}


class OperationTestCase(base.PreemptionTestCase):
    """A normal server on host1, preemptible ones on all of host2."""

    def setUp(self):
        super().setUp()
        # Of the size of "small", for servers that change their flavor.
        self.other = self.create_flavor('other', 1, 1024, 10)

    def start(self):
        self.add_hosts('host1', 'host2')
        self.server = self.boot_normal('moves', host='host1')['id']
        self.boot_normal('stays', host='host1')
        self.cheap = self.boot_spot('a', 'host2', 60)
        self.dear = self.boot_spot('b', 'host2', 1000)

    def leave_out(self, operation):
        """Take an operation out of those that may preempt."""
        self.flags(group='preemption', preempting_operations=[
            name for name in options.OPERATIONS if name != operation])

    def allow_all(self):
        self.flags(group='preemption',
                   preempting_operations=list(options.OPERATIONS))

    def assert_in_vain(self, server_id, action, arguments=None,
                       status='ACTIVE'):
        """Assert that the action fails without evictions."""
        decisions = len(self.decisions.get_decisions(
            statuses=[db_decisions.DONE]))
        alive, host = self.alive(), self.host_of(server_id)
        server = self.act(server_id, action, arguments)
        self.assertEqual(status, server['status'])
        self.assertEqual(host, self.host_of(server_id))
        self.assertEqual(alive, self.alive())
        self.assertEqual(decisions, len(
            self.decisions.get_decisions(statuses=[db_decisions.DONE])))
        self.wait_consistent()

    def host_of(self, server_id):
        return self.api.get_server(server_id)['OS-EXT-SRV-ATTR:host']

    def assert_preempted(self, operation, *victims):
        """The last decision is of this operation and ended these victims."""
        self.assertEqual(set(victims), self.last_victims())
        decision = self.last_decision()
        self.assertEqual(operation, decision.operation)
        self.assertEqual(operation, decision.record['operation'])
        self.assertEqual(self.server, decision.server_uuid)
        self.assertFalse(set(victims) & self.alive())

    def assert_moving(self, source, target):
        """The server has its space on target, its migration on source."""
        allocations = self.allocations()
        self.assertEqual({'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10},
                         allocations[target][self.server])
        migrations = set(allocations[source]) - self.alive()
        self.assertEqual(1, len(migrations))
        self.assertNotIn(self.server, allocations[source])


class TestCreate(OperationTestCase):

    def test_may_preempt_unless_left_out(self):
        self.add_hosts('host1', 'host2')
        cheap = self.boot_spot('a', 'host1', 60)
        self.boot_spot('b', 'host1', 1000)
        self.leave_out('create')
        self.boot_in_vain(host='host1')
        self.boot_several_in_vain()
        self.flags(group='preemption', preempting_operations=[])
        self.boot_in_vain(host='host1')
        self.flags(group='preemption', enabled=False)
        self.allow_all()
        self.boot_in_vain(host='host1')
        self.assertEqual([], self.decisions.get_decisions())
        self.flags(group='preemption', enabled=True)
        self.leave_out('resize')
        with mock.patch.object(request_specs, 'get_operation',
                               wraps=request_specs.get_operation) as look_up:
            self.server = self.boot_normal(host='host1')['id']
        look_up.assert_called_once()
        self.assert_preempted('create', cheap)
        self.assert_consistent()

    def boot_several_in_vain(self):
        """Two of three would have room."""
        alive = self.alive()
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=self.small, networks='none')
        body.update(min_count=3, max_count=3)
        self.api.post_server({'server': body})
        for server in self.servers():
            if server['name'].startswith('m'):
                self.wait_failed(server['id'])
        self.assertEqual(alive, self.alive())
        self.assert_consistent()


class TestResize(OperationTestCase):

    def test_revert_and_confirm(self):
        self.start()
        resize = ('resize', {'flavorRef': self.other})
        self.leave_out('resize')
        self.assert_in_vain(self.server, *resize)
        self.allow_all()
        server = self.act(self.server, *resize)
        self.assertEqual('VERIFY_RESIZE', server['status'])
        self.assert_preempted('resize', self.cheap)
        self.assert_moving('host1', 'host2')
        self.act(self.server, 'revertResize')
        self.wait_consistent()
        server = self.api.get_server(self.server)
        self.assertEqual(('ACTIVE', 'host1', 'small'), (
            server['status'], server['OS-EXT-SRV-ATTR:host'],
            server['flavor']['original_name']))
        self.assertEqual({self.dear}, set(self.allocations()['host2']))
        again = self.boot_spot('c', 'host2', 60)
        self.act(self.server, *resize)
        self.assert_preempted('resize', again)
        self.act(self.server, 'confirmResize')
        self.wait_consistent()
        self.assertEqual('host2', self.host_of(self.server))
        self.assertEqual('ACTIVE', self.api.get_server(self.dear)['status'])
        # What it left behind is free again.
        self.assertEqual('host1', self.boot_normal()['OS-EXT-SRV-ATTR:host'])
        self.assert_consistent()

    def test_on_the_same_host(self):
        self.flags(allow_resize_to_same_host=True)
        self.add_hosts('host1')
        self.server = self.boot_normal()['id']
        spot = self.boot_spot('a', 'host1', 60)
        resize = ('resize', {'flavorRef': self.other})
        self.leave_out('resize')
        self.assert_in_vain(self.server, *resize)
        self.allow_all()
        server = self.act(self.server, *resize)
        self.assertEqual('VERIFY_RESIZE', server['status'])
        self.assert_preempted('resize', spot)
        self.assert_moving_on_one_host()
        self.act(self.server, 'revertResize')
        self.wait_consistent()
        self.assertEqual({self.server}, set(self.allocations()['host1']))
        spot = self.boot_spot('b', 'host1', 60)
        self.act(self.server, *resize)
        self.assert_preempted('resize', spot)
        self.act(self.server, 'confirmResize')
        self.wait_consistent()
        self.assertEqual({self.server}, set(self.allocations()['host1']))

    def assert_moving_on_one_host(self):
        """Both the old and the new space are taken until the confirmation."""
        found = self.allocations()['host1']
        self.assertEqual(2, len(found))
        self.assertEqual({'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10},
                         found[self.server])

    def test_between_preemptible_and_normal(self):
        """The kind of the new flavor counts."""
        self.add_hosts('host1', 'host2')
        self.server = self.boot_normal('moves', host='host1')['id']
        spot = self.boot_spot('s', 'host1', 30)
        cheap = self.boot_spot('a', 'host2', 60)
        dear = self.boot_spot('b', 'host2', 1000)
        self.assert_in_vain(self.server, 'resize', {'flavorRef': self.spot})
        self.server = spot
        self.act(spot, 'resize', {'flavorRef': self.other})
        self.assert_preempted('resize', cheap)
        self.act(spot, 'confirmResize')
        self.wait_consistent()
        # It is a normal one from now on.
        self.set_uptime(spot, 10, self.now)
        self.server = self.boot_normal(host='host2')['id']
        self.assert_preempted('create', dear)
        self.boot_in_vain(host='host2')


class TestColdMigration(OperationTestCase):

    def test_may_preempt_unless_left_out(self):
        self.start()
        self.leave_out('cold_migrate')
        self.assert_in_vain(self.server, 'migrate')
        self.leave_out('resize')
        self.act(self.server, 'migrate', {'host': 'host2'})
        self.assert_preempted('cold_migrate', self.cheap)
        self.act(self.server, 'revertResize')
        self.wait_consistent()
        self.assertEqual('host1', self.host_of(self.server))
        self.assertEqual({self.dear}, set(self.allocations()['host2']))
        again = self.boot_spot('c', 'host2', 60)
        server = self.act(self.server, 'migrate')
        self.assertEqual('VERIFY_RESIZE', server['status'])
        self.assert_preempted('cold_migrate', again)
        self.assert_moving('host1', 'host2')
        self.act(self.server, 'confirmResize')
        self.wait_consistent()
        self.assertEqual('host2', self.host_of(self.server))


class TestLiveMigration(OperationTestCase):

    def test_may_preempt_unless_left_out(self):
        self.start()
        self.leave_out('live_migrate')
        self.assert_in_vain(self.server, 'os-migrateLive', LIVE)
        self.allow_all()
        server = self.act(self.server, 'os-migrateLive', LIVE)
        self.assertEqual('ACTIVE', server['status'])
        self.assert_preempted('live_migrate', self.cheap)
        self.wait_consistent()
        self.assertEqual('host2', self.host_of(self.server))
        # host1 is free, but not what is asked for.
        self.add_hosts('host3')
        cheap = self.boot_spot('c', 'host3', 10)
        self.boot_spot('d', 'host3', 20)
        self.act(self.server, 'os-migrateLive', {**LIVE, 'host': 'host3'})
        self.assert_preempted('live_migrate', cheap)
        self.wait_consistent()
        self.assertEqual('host3', self.host_of(self.server))


class TestUnshelve(OperationTestCase):

    def test_may_preempt_unless_left_out(self):
        self.flags(shelved_offload_time=0)
        self.start()
        self.shelve(self.server)
        # host1 has room, but is not what is asked for.
        self.act(self.server, 'unshelve', {'host': 'host2'})
        self.assert_preempted('unshelve', self.cheap)
        self.wait_consistent()
        self.assertEqual('host2', self.host_of(self.server))
        self.shelve(self.server)
        cheap = self.boot_spot('c', 'host1', 60)
        self.boot_spot('d', 'host2', 500)
        self.leave_out('unshelve')
        self.assert_in_vain(self.server, 'unshelve',
                            status='SHELVED_OFFLOADED')
        self.allow_all()
        server = self.act(self.server, 'unshelve')
        self.assertEqual('ACTIVE', server['status'])
        self.assert_preempted('unshelve', cheap)
        self.wait_consistent()
        self.assertEqual('host1', self.host_of(self.server))

    def shelve(self, server):
        self.api.post_server_action(server, {'shelve': None})
        self.wait(server, 'SHELVED_OFFLOADED')
        self.wait_consistent()


class TestEvacuation(OperationTestCase):

    def test_may_preempt_unless_left_out(self):
        self.add_host('host1', 3, 3072, 30)
        self.add_hosts('host2')
        self.server = self.boot_normal('moves', host='host1')['id']
        other = self.boot_normal('follows', host='host1')['id']
        # Servers of the failed host are no victims.
        self.boot_spot('on-failed', 'host1', 10)
        self.cheap = self.boot_spot('a', 'host2', 60)
        self.dear = self.boot_spot('b', 'host2', 1000)
        self.stop_host('host1')
        self.leave_out('evacuate')
        alive = self.alive()
        server = self.act(self.server, 'evacuate', {})
        # As in Nova: the evacuation fails, and with it the server.
        self.assertEqual('ERROR', server['status'])
        self.assertEqual(alive - {self.server}, self.alive())
        self.act(self.server, 'os-resetState', {'state': 'active'})
        self.assertEqual([], self.decisions.get_decisions())
        self.assert_consistent()

        self.allow_all()
        self.evacuate(self.server)
        self.assert_preempted('evacuate', self.cheap)
        # The failed host gives up what it had when it is back.
        space = {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10}
        allocations = self.allocations()
        self.assertEqual(space, allocations['host1'][self.server])
        self.assertEqual(space, allocations['host2'][self.server])
        self.assertEqual({self.server, self.dear},
                         set(allocations['host2']))
        self.assertEqual([], self.decisions.get_open_decisions())
        # host3 is free, but not what is asked for.
        self.add_hosts('host3')
        self.server = other
        self.evacuate(other, host='host2')
        self.assert_preempted('evacuate', self.dear)
        self.boot_closed_out('host1')
        self.start_host('host1')
        self.wait_consistent()
        self.assertEqual('host2', self.host_of(other))

    def boot_closed_out(self, host):
        alive = self.alive()
        server = self.boot('vain', self.small, host=host)
        self.assertRaises(embedded_cloud.CloudError, self.wait, server)
        self.assertEqual(alive, self.alive())

    def evacuate(self, server, **arguments):
        self.act(server, 'evacuate', arguments)
        self.wait(server, 'SHUTOFF')

    def stop_host(self, name):
        self.computes[name].stop()
        self.force_down(name, True)

    def start_host(self, name):
        self.computes[name] = self.restart_compute_service(
            self.computes[name])
        self.force_down(name, False)

    def force_down(self, host, down):
        service, = self.api.get_services(host=host, binary='nova-compute')
        self.api.put_service_force_down(service['id'], down)


class TestRebuild(OperationTestCase):

    def test_never_preempts(self):
        self.add_hosts('host1')
        self.server = self.boot_normal()['id']
        self.boot_spot('a', 'host1', 60)
        alive = self.alive()
        self.act(self.server, 'rebuild', {'imageRef': OTHER_IMAGE})
        server = self.wait(self.server)
        self.assertEqual(OTHER_IMAGE, server['image']['id'])
        self.assertEqual(alive, self.alive())
        self.assert_consistent()
        # Nor where its own host refuses the new image.
        image = self._create_image({'architecture': 'armv7l'})['id']
        server = self.act(self.server, 'rebuild', {'imageRef': image})
        self.assertEqual('ERROR', server['status'])
        self.assertEqual(alive - {self.server}, self.alive())
        self.assertEqual([], self.decisions.get_decisions())


class TestPreemptibleServers(OperationTestCase):
    """No operation of a preemptible server evicts others."""

    def test_moves_of_a_preemptible_server(self):
        self.flags(shelved_offload_time=0)
        self.add_hosts('host1', 'host2')
        self.server = self.boot_spot('moves', 'host1', 5000)
        self.boot_spot('a', 'host1', 10)
        other = self.boot_spot('b', 'host2', 20)
        self.boot_spot('c', 'host2', 30)
        big = self.create_flavor('big-spot', 2, 2048, 20, preemptible=True)
        self.assert_in_vain(self.server, 'resize', {'flavorRef': big})
        self.assert_in_vain(self.server, 'migrate')
        self.assert_in_vain(self.server, 'os-migrateLive', LIVE)
        self.api.post_server_action(self.server, {'shelve': None})
        self.wait(self.server, 'SHELVED_OFFLOADED')
        self.wait_consistent()
        self.boot_spot('d', 'host1', 40)
        self.assert_in_vain(self.server, 'unshelve',
                            status='SHELVED_OFFLOADED')
        self.computes['host2'].stop()
        service, = self.api.get_services(host='host2', binary='nova-compute')
        self.api.put_service_force_down(service['id'], True)
        alive = self.alive()
        server = self.act(other, 'evacuate', {})
        self.assertEqual('ERROR', server['status'])
        self.assertEqual(alive - {other}, self.alive())
        self.assertEqual([], self.decisions.get_decisions())
        self.act(other, 'os-resetState', {'state': 'active'})
        self.assert_consistent()
