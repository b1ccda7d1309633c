# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Reservations on a cloud whose hosts run servers."""

import datetime
import uuid

from nova_preempt import exceptions
from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.core import calendar
from nova_preempt.db import reservable
from nova_preempt.db import reservations as db
from tests.functional import base

HOUR_S = 3600


class ReservationTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        # Its reading of hosts is on demand here.
        self.flags(inventory_interval_s=1, group='reservation')
        self.engine = self.start_engine()
        self.lifecycle = self.engine.lifecycle
        self.project = self.api_fixture.project_id
        self.reservations = self.lifecycle.reservations

    def start_engine(self):
        engine = cmd_engine.make_engine(
            cmd_engine.CONF, lambda: self.scheduler.host_manager.cells,
            lambda: self.now)
        self.addCleanup(engine.ends.close)
        self.addCleanup(engine._leadership.close)
        return engine

    def naive(self, seconds=0):
        return (self.now + datetime.timedelta(seconds=seconds)).replace(
            tzinfo=None)

    def reserve(self, *hosts, start_s=HOUR_S, duration_s=HOUR_S,
                quantity=None, **values):
        """Give hosts to a new reservation, start_s from now."""
        values = {'end_action': 'delete', 'before_end_s': 600,
                  'host_properties': [], **values}
        start = db.to_s(self.naive(start_s))
        return self.reservations.grant(
            db.Reservation(
                uuid=str(uuid.uuid4()), project_id=self.project,
                quantity=quantity or len(hosts), duration_s=duration_s,
                window_start=self.naive(start_s), **values),
            lambda _calendar: calendar.Found(start, start + duration_s,
                                             hosts)).uuid

    def pass_time(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def act(self, times=1):
        """Let the engine do its work until no server ends any more."""
        for _ in range(times):
            self.lifecycle.run_once()
            self.wait_for(lambda: not self.db.get_open_decisions(),
                          'decisions to be closed')

    def act_until(self, condition, what):
        def look():
            # Every reading of the cells is a new one.
            self.engine.inventory.occupancy._read_at = None
            self.act()
            return condition()

        return self.wait_for(look, what)

    def act_until_status(self, reservation, status):
        return self.act_until(
            lambda: self.reservations.get(reservation).status == status,
            f'reservation to be {status}')

    def statuses(self, reservation):
        return {host.host: host.status
                for host in self.reservations.get(reservation).hosts}

    def on(self, host):
        """The ids of the servers on a host."""
        return {server['id'] for server in self.servers()
                if server['OS-EXT-SRV-ATTR:host'] == host}


class TestInventory(ReservationTestCase):

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
        reservable.set_host(self.db, 'host3', reservable=False,
                            extra={'rack': 7})
        inventory = self.engine.inventory
        inventory.refresh()
        self.assertEqual(['host1'], [
            host['name'] for host in inventory.find_hosts([])])
        reservable.set_host(self.db, 'host3', reservable=True)
        self.assertEqual(['host3'], [
            host['name'] for host in inventory.find_hosts(
                ['=', '$extra.rack', 7])])
        self.assertRaises(exceptions.InvalidReservation,
                          inventory.find_hosts, ['like', '$x', 1])


class TestLife(ReservationTestCase):

    def test_from_start_to_end(self):
        self.add_hosts('host1', 'host2', 'host3', 'host4')
        servers = {name: self.boot_spot(name, name)
                   for name in ('host1', 'host2', 'host3', 'host4')}
        reservation = self.reserve('host1', 'host2')
        self.act()
        self.assertEqual(4, len(self.servers()))
        # Long enough before: the timeout of an end, and a margin.
        self.pass_time(HOUR_S - 150)
        self.act()
        self.act_until(lambda: set(self.statuses(reservation).values())
                       == {db.READY}, 'hosts to be empty')
        self.assertEqual({servers['host3'], servers['host4']}, self.alive())
        self.assertEqual(db.PENDING,
                         self.reservations.get(reservation).status)
        self.pass_time(150)
        self.act()
        found = self.reservations.get(reservation)
        self.assertEqual((db.ACTIVE, self.naive()),
                         (found.status, found.ready_at))
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        alien = self.boot_normal('alien', host='host2')['id']
        self.pass_time(HOUR_S - 600)
        self.act()
        self.assertEqual(self.naive(),
                         self.reservations.get(reservation).noticed_at)
        self.pass_time(600)
        self.act()
        self.assertEqual(db.ENDED,
                         self.reservations.get(reservation).status)
        self.wait_gone(mine)
        self.act_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        self.assertEqual({alien}, self.on('host2'))
        self.assertIn(f'Server {alien} on host host2 does not belong',
                      self.stdlog.logger.output)
        self.wait_consistent()
