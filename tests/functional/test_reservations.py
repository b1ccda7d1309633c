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
from unittest import mock
import uuid

import fixtures
from nova import context as nova_context
from nova.conf import CONF

from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.core import calendar
from nova_preempt.db import reservable
from nova_preempt.db import reservations as db
from nova_preempt.reservation import leases
from nova_preempt.reservation import schedule
from nova_preempt.termination import nova_api
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
            CONF, lambda: self.scheduler.host_manager.cells,
            lambda: self.now)
        self.addCleanup(engine.ends.close)
        self.addCleanup(engine._leadership.close)
        return engine

    def serve(self):
        """The client of an engine that answers on the bus."""
        server = cmd_engine.make_server(CONF, self.engine)
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        return rpc.EngineClient(rpc.get_transport(CONF))

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

    def look(self, times=1):
        """Let the engine do its work until no server ends any more."""
        for _ in range(times):
            self.lifecycle.run_once()
            self.wait_for(lambda: not self.db.get_open_decisions(),
                          'decisions to be closed')

    def look_until(self, condition, what):
        def again():
            # Every reading of the cells is a new one.
            self.engine.inventory.occupancy._read_at = None
            self.look()
            return condition()

        return self.wait_for(again, what)

    def look_until_status(self, reservation, status):
        return self.look_until(
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
        self.look()
        self.assertEqual(4, len(self.servers()))
        # Long enough before: the timeout of an end, and a margin.
        self.pass_time(HOUR_S - 150)
        self.look()
        self.look_until(lambda: set(self.statuses(reservation).values())
                       == {db.READY}, 'hosts to be empty')
        self.assertEqual({servers['host3'], servers['host4']}, self.alive())
        self.assertEqual(db.PENDING,
                         self.reservations.get(reservation).status)
        self.pass_time(150)
        self.look()
        found = self.reservations.get(reservation)
        self.assertEqual((db.ACTIVE, self.naive()),
                         (found.status, found.ready_at))
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        alien = self.boot_normal('alien', host='host2')['id']
        self.pass_time(HOUR_S - 600)
        self.look()
        self.assertEqual(self.naive(),
                         self.reservations.get(reservation).noticed_at)
        self.pass_time(600)
        self.look()
        self.assertEqual(db.ENDED,
                         self.reservations.get(reservation).status)
        self.wait_gone(mine)
        self.look_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        self.assertEqual({alien}, self.on('host2'))
        self.assertIn(f'Server {alien} on host host2 does not belong',
                      self.stdlog.logger.output)
        self.wait_consistent()

    def test_shelves_at_the_end(self):
        self.add_hosts('host1')
        reservation = self.reserve('host1', start_s=0, end_action='shelve')
        self.look()
        self.assertEqual(db.ACTIVE,
                         self.reservations.get(reservation).status)
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        self.pass_time(HOUR_S)
        self.look()
        self.wait(mine, 'SHELVED_OFFLOADED')
        self.look_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        self.assertEqual({}, self.allocations()['host1'])

    def test_what_does_not_leave(self):
        self.add_hosts('host1')
        reservation = self.reserve('host1', start_s=0)
        self.look()
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        self.pass_time(HOUR_S)
        with mock.patch.object(self.engine.preemption.nova, 'force_delete',
                               side_effect=nova_api.NovaError('no')):
            self.look()
            self.pass_time(599)
            self.look()
            self.assertEqual(db.ENDED,
                             self.reservations.get(reservation).status)
            self.pass_time(1)
            self.look()
        found = self.reservations.get(reservation)
        self.assertEqual((db.ERROR, self.naive()),
                         (found.status, found.released_at))
        self.assertIn(f'{mine} (active) on host1', found.reason)
        self.assertEqual({mine}, self.alive())

    def test_immediate(self):
        self.add_hosts('host1')
        server = self.boot_spot('a', 'host1')
        reservation = self.reserve('host1', start_s=0)
        self.look()
        self.wait_gone(server)
        self.pass_time(7)
        self.look_until_status(reservation, db.ACTIVE)
        self.assertEqual(self.naive(),
                         self.reservations.get(reservation).ready_at)

    def test_cancelled(self):
        self.add_hosts('host1', 'host2')
        reservation = self.reserve('host1', start_s=0)
        later = self.reserve('host2')
        self.look()
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        for each in (reservation, later):
            self.reservations.update(each, status=db.CANCELLED)
        self.look()
        self.wait_gone(mine)
        self.look_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        for each in (reservation, later):
            found = self.reservations.get(each)
            self.assertEqual(db.CANCELLED, found.status)
            self.assertEqual(self.naive(), found.released_at)

    def test_engine_stopped_meanwhile(self):
        """Over a start, then over an end."""
        self.add_hosts('host1', 'host2')
        spot = self.boot_spot('a', 'host1')
        reservation = self.reserve('host1')
        self.pass_time(HOUR_S + 100)
        self.look()
        self.wait_gone(spot)
        self.look_until_status(reservation, db.ACTIVE)
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        self.engine.ends.close()
        self.engine._leadership.close()
        self.pass_time(2 * HOUR_S)
        self.engine = self.start_engine()
        self.lifecycle = self.engine.lifecycle
        self.look()
        self.wait_gone(mine)
        self.look_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        self.assertEqual(db.ENDED,
                         self.reservations.get(reservation).status)

    def test_one_after_the_other(self):
        """Servers of the first stay until it ends, and then give way."""
        self.add_hosts('host1')
        first = self.reserve('host1', start_s=0)
        second = self.reserve('host1', start_s=HOUR_S)
        self.look()
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': first})['id']
        self.pass_time(HOUR_S - 1)
        self.look()
        self.assertIsNone(self.api.get_server(mine)[
            'OS-EXT-STS:task_state'])
        self.pass_time(1)
        self.look()
        self.assertEqual(db.ENDED, self.reservations.get(first).status)
        self.wait_gone(mine)
        self.look_until_status(second, db.ACTIVE)
        self.wait_consistent()


class TestWithTheFilter(ReservationTestCase):
    """What a project sees, from the request to the end."""

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_preempt.reservation.leases.PAUSE_S', 0))
        super().setUp()
        self.flags(group='filter_scheduler', enabled_filters=[
            *CONF.filter_scheduler.enabled_filters, 'ReservationFilter'])
        self.restart_scheduler()

    def boot_as(self, project, **kwargs):
        """What becomes of a server of a project."""
        with mock.patch.object(self.api, 'project_id', project):
            return self.settle(self.boot('asked', self.small, **kwargs))

    def test_two_of_four_hosts(self):
        self.add_hosts('host1', 'host2', 'host3', 'host4')
        names = ('host1', 'host2', 'host3', 'host4')
        spots = {name: {self.boot_spot(f'{name}-{number}', name)
                        for number in range(2)} for name in names}
        made = schedule.Schedule(CONF, self.db, self.serve(), self.naive)
        reservation = made.create(
            nova_context.get_admin_context(), self.project, 'user',
            schedule.Request(quantity=2, start_time=self.naive(HOUR_S),
                             duration_s=HOUR_S, end_action='delete'))
        mine = reservation.held
        self.assertEqual(2, len(mine))
        hint = {'reservation': reservation.uuid}
        self.pass_time(HOUR_S - 150)
        self.look_until(
            lambda: set(self.statuses(reservation.uuid).values())
            == {db.READY}, 'hosts to be empty')
        others = set(names) - set(mine)
        self.assertEqual(set().union(*(spots[name] for name in others)),
                         self.alive())
        # Nobody comes before the start, nor without the hint after it.
        leases.current(CONF).refresh()
        self.assertIn('is not active yet', self.boot_as(
            self.project, hints=hint)['fault']['message'])
        self.pass_time(150)
        self.look()
        leases.current(CONF).refresh()
        server = self.boot_as(self.project, hints=hint)
        self.assertIn(server['OS-EXT-SRV-ATTR:host'], mine)
        self.assertIn('There is no reservation', self.boot_as(
            'somebody', hints=hint)['fault']['message'])
        self.assertIn('No valid host', self.boot_as(
            self.project, host=mine[0])['fault']['message'])
        self.pass_time(HOUR_S)
        self.look()
        self.wait_gone(server['id'])
        self.look_until(
            lambda: self.reservations.get(reservation.uuid).released_at,
            'hosts to be released')
        for name in mine:
            self.assertEqual({}, self.allocations()[name])
        leases.current(CONF).refresh()
        self.assertEqual('ACTIVE', self.boot_as(
            self.project, host=mine[0])['status'])


class TestNormalServers(ReservationTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1', 'host2')
        self.normal = self.boot_normal('n', host='host1')['id']
        self.reservation = self.reserve('host1')

    def test_moved_away(self):
        self.pass_time(HOUR_S - 901)
        self.look()
        self.assertEqual({self.normal}, self.on('host1'))
        self.pass_time(1)
        self.look()
        self.wait_for(lambda: self.on('host2') == {self.normal},
                      'the server to move')
        self.look_until(lambda: self.statuses(self.reservation)
                       == {'host1': db.READY}, 'the host to be empty')
        self.pass_time(900)
        self.look()
        self.assertEqual(db.ACTIVE,
                         self.reservations.get(self.reservation).status)
        self.wait(self.normal)

    def test_stopped_ones_are_moved_too(self):
        self.act(self.normal, 'os-stop')
        self.pass_time(HOUR_S - 900)
        self.look_until(lambda: self.statuses(self.reservation)
                       == {'host1': db.READY}, 'the host to be empty')
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
        self.look_until_status(self.reservation, db.ACTIVE)
        self.assertEqual(
            {'host1': db.LOST, 'host2': db.READY},
            self.statuses(self.reservation))
        lost, = [host for host in
                 self.reservations.get(self.reservation).hosts
                 if host.status == db.LOST]
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
        self.assertEqual(db.DEGRADED, found.status)
        self.assertIn('1 of 1 hosts are missing: host host1 is not empty',
                      found.reason)
        self.delete(self.normal)
        self.look_until_status(self.reservation, db.ACTIVE)
        self.assertEqual({'host1': db.READY},
                         self.statuses(self.reservation))


class TestDeadHosts(ReservationTestCase):

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

    def test_replaced(self):
        reservation = self.reserve(
            'host1', host_properties=[
                'in', '$hypervisor_hostname', 'host1', 'host3'])
        self.set_service('host1', forced_down=True)
        self.look_at_hosts()
        self.look_at_hosts(119)
        self.assertEqual({'host1': db.ASSIGNED}, self.statuses(reservation))
        self.look_at_hosts(1)
        self.assertEqual({'host1': db.LOST, 'host3': db.ASSIGNED},
                         self.statuses(reservation))
        self.assertEqual(db.PENDING,
                         self.reservations.get(reservation).status)

    def test_degraded_while_active_and_repaired(self):
        reservation = self.reserve('host1', 'host2', 'host3', start_s=0)
        self.look_at_hosts()
        self.assertEqual(db.ACTIVE,
                         self.reservations.get(reservation).status)
        self.set_service('host2', status='disabled')
        self.look_at_hosts()
        self.look_at_hosts(120)
        found = self.reservations.get(reservation)
        self.assertEqual((db.DEGRADED, ('host1', 'host3')),
                         (found.status, found.held))
        self.assertIn('the compute service of host host2 is disabled',
                      found.reason)
        self.set_service('host2', status='enabled')
        self.look_at_hosts(5)
        found = self.reservations.get(reservation)
        self.assertEqual((db.ACTIVE, ('host1', 'host2', 'host3'), ''),
                         (found.status, found.held, found.reason))
