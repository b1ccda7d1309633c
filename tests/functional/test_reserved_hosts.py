# SPDX-License-Identifier: Apache-2.0
"""Hosts of reservations: inventory and failures."""

from nova_preempt import exceptions
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservable_hosts
from tests.functional import test_reservations
from tests.functional.test_reservations import HOUR_S


class TestInventory(test_reservations.ReservationTestCase):

    def test_hosts_and_properties(self):
        self.add_hosts('host1', 'host2', 'host3')
        self.add_aggregate('fast', ['host2'], zone='west')
        self.boot_spot('a', 'host1')
        normal = self.boot_normal('n', host='host2')['id']
        inventory = self.engine.inventory
        hosts = {host['name']: host for host in inventory.list_hosts()}
        self.assertEqual(['host1', 'host2', 'host3'], sorted(hosts))
        self.assertEqual((True, False, True), tuple(
            hosts[name]['vacant'] for name in sorted(hosts)))
        self.assertEqual((1, 1, 0), tuple(
            hosts[name]['running_servers'] for name in sorted(hosts)))
        found = hosts['host2']['properties']
        self.assertEqual(
            ('host2', 'host2', 'west', ['fast'], 2, 2048, 20, 'up',
             'enabled'),
            (found['hypervisor_hostname'], found['service_host'],
             found['availability_zone'], found['aggregates'],
             found['inventory.VCPU'], found['inventory.MEMORY_MB'],
             found['inventory.DISK_GB'], found['state'], found['status']))
        self.assertIn('COMPUTE_NODE', found['traits'])
        self.assertEqual(['host2'], [
            host['name'] for host in inventory.find_hosts(
                ['and', ['in', 'fast', '$aggregates'],
                 ['in', 'COMPUTE_NODE', '$traits'],
                 ['>=', '$inventory.VCPU', 2]])])
        zones, = [item for item in inventory.list_properties()
                  if item['name'] == 'availability_zone']
        self.assertEqual(['nova', 'west'], zones['values'])
        # It is free as soon as the server is gone.
        self.delete(normal)
        inventory.occupancy.refresh()
        self.assertTrue(inventory.find_hosts(
            ['=', '$hypervisor_hostname', 'host2'])[0]['vacant'])

    def test_disabled_or_taken_out(self):
        self.add_hosts('host1', 'host2', 'host3')
        self.api.put_service(
            self.api.get_services(binary='nova-compute', host='host2')[0][
                'id'], {'status': 'disabled'})
        reservable_hosts.set_host(self.db, 'host3', reservable=False,
                                  extra={'rack': 7})
        inventory = self.engine.inventory
        inventory.refresh()
        self.assertEqual(['host1'], [
            host['name'] for host in inventory.find_hosts([])])
        reservable_hosts.set_host(self.db, 'host3', reservable=True)
        self.assertEqual(['host3'], [
            host['name'] for host in inventory.find_hosts(
                ['=', '$extra.rack', 7])])
        self.assertRaises(exceptions.InvalidReservation,
                          inventory.find_hosts, ['like', '$x', 1])


class TestNormalServers(test_reservations.ReservationTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1', 'host2')
        self.normal = self.boot_normal('n', host='host1')['id']
        self.reservation = self.reserve('host1')

    def test_normal_servers_are_moved(self):
        self.pass_time(HOUR_S - 901)
        self.look()
        self.assertEqual({self.normal}, self.on('host1'))
        self.pass_time(1)
        self.look()
        self.wait_for(lambda: self.on('host2') == {self.normal},
                      'the server to move')
        self.look_until(lambda: self.statuses(self.reservation)
                        == {'host1': reservation_model.READY},
                        'the host to be empty')
        self.pass_time(900)
        self.look()
        self.assertEqual(reservation_model.ACTIVE,
                         self.reservations.get(self.reservation).status)
        self.wait(self.normal)

    def test_stopped_ones_are_moved_too(self):
        self.act(self.normal, 'os-stop')
        self.pass_time(HOUR_S - 900)
        self.look_until(lambda: self.statuses(self.reservation)
                        == {'host1': reservation_model.READY},
                        'the host to be empty')
        self.wait(self.normal, 'SHUTOFF')
        self.assertEqual({self.normal}, self.on('host2'))
        self.wait_consistent()

    def test_another_host_takes_its_place(self):
        """A suspended server cannot be moved."""
        self.act(self.normal, 'suspend')
        spot = self.boot_spot('a', 'host2')
        self.pass_time(HOUR_S - 900)
        self.look()
        self.pass_time(900)
        self.look(2)
        self.wait_gone(spot)
        self.look_until_status(self.reservation, reservation_model.ACTIVE)
        self.assertEqual(
            {'host1': reservation_model.LOST,
             'host2': reservation_model.READY},
            self.statuses(self.reservation))
        lost, = [host for host in
                 self.reservations.get(self.reservation).hosts
                 if host.status == reservation_model.LOST]
        self.assertIn(f'host host1 is not empty: servers {self.normal} '
                      '(it is suspended)', lost.reason)
        self.assertEqual({self.normal}, self.alive())

    def test_degraded_and_repaired(self):
        self.act(self.normal, 'suspend')
        self.reserve('host2', start_s=0, duration_s=10 * HOUR_S)
        self.pass_time(HOUR_S - 900)
        self.look()
        self.pass_time(900)
        self.look()
        found = self.reservations.get(self.reservation)
        self.assertEqual(reservation_model.DEGRADED, found.status)
        self.assertIn('1 of 1 hosts are missing: host host1 is not empty',
                      found.reason)
        self.delete(self.normal)
        self.look_until_status(self.reservation, reservation_model.ACTIVE)
        self.assertEqual({'host1': reservation_model.READY},
                         self.statuses(self.reservation))


class TestDeadHosts(test_reservations.ReservationTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1', 'host2', 'host3')

    def set_service(self, host, **values):
        service, = self.api.get_services(binary='nova-compute', host=host)
        self.api.put_service(service['id'], values)

    def look_at_hosts(self, seconds=0):
        self.pass_time(seconds)
        self.engine.inventory.refresh()
        self.look()

    def test_a_dead_host_is_replaced(self):
        reservation = self.reserve(
            'host1', host_properties=[
                'in', '$hypervisor_hostname', 'host1', 'host3'])
        self.set_service('host1', forced_down=True)
        self.look_at_hosts()
        self.look_at_hosts(119)
        self.assertEqual({'host1': reservation_model.ASSIGNED},
                         self.statuses(reservation))
        self.look_at_hosts(1)
        self.assertEqual({'host1': reservation_model.LOST,
                          'host3': reservation_model.ASSIGNED},
                         self.statuses(reservation))
        self.assertEqual(reservation_model.PENDING,
                         self.reservations.get(reservation).status)

    def test_degraded_while_active_and_repaired(self):
        reservation = self.reserve('host1', 'host2', 'host3', start_s=0)
        self.look_at_hosts()
        self.assertEqual(reservation_model.ACTIVE,
                         self.reservations.get(reservation).status)
        self.set_service('host2', status='disabled')
        self.look_at_hosts()
        self.look_at_hosts(120)
        found = self.reservations.get(reservation)
        self.assertEqual((reservation_model.DEGRADED, ('host1', 'host3')),
                         (found.status, found.held))
        self.assertIn('the compute service of host host2 is disabled',
                      found.reason)
        self.set_service('host2', status='enabled')
        self.look_at_hosts(5)
        found = self.reservations.get(reservation)
        self.assertEqual((reservation_model.ACTIVE,
                          ('host1', 'host2', 'host3'), ''),
                         (found.status, found.held, found.reason))
