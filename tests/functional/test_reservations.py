# SPDX-License-Identifier: Apache-2.0
"""Reservations on a cloud whose hosts run servers."""

import datetime
import threading
from unittest import mock
import uuid

import fixtures
from nova import context as nova_context
from nova.conf import CONF

from nova_preempt import rpc
from nova_preempt.cloud import nova_api
from nova_preempt.cmd import engine as cmd_engine
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import reservation_model
from nova_preempt.reservation import host_inventory
from nova_preempt.reservation import lease_cache
from nova_preempt.reservation import reservation_scheduler
from tests.functional import base

HOUR_S = 3600


class ReservationTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        # Its reading of hosts is on demand here.
        self.useFixture(fixtures.MockPatchObject(host_inventory, 'INTERVAL_S',
                                                 1))
        self.engine = self.start_engine()
        self.lifecycle = self.engine.lifecycle
        self.project = self.api_fixture.project_id
        self.reservations = self.lifecycle.reservations

    def start_engine(self):
        engine = cmd_engine.make_engine(
            CONF, lambda: self.scheduler.host_manager.cells,
            lambda: self.now)
        self.addCleanup(engine.evictions.close)
        self.addCleanup(engine._leadership.close)
        self.addCleanup(engine.parts.process.close)
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
        start = reservation_model.to_s(self.naive(start_s))
        return self.reservations.grant(
            reservation_model.Reservation(
                uuid=str(uuid.uuid4()), project_id=self.project,
                quantity=quantity or len(hosts), duration_s=duration_s,
                window_start=self.naive(start_s), **values),
            lambda _calendar: calendar.FoundWindow(start, start + duration_s,
                                                   hosts)).uuid

    def pass_time(self, seconds):
        self.now += datetime.timedelta(seconds=seconds)

    def look(self, times=1):
        """Let the engine do its work until no server ends any more."""
        for _ in range(times):
            self.lifecycle.run_once()
            self.wait_for(lambda: not self.decisions.get_open_decisions(),
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


class TestLife(ReservationTestCase):

    def test_a_reservation_from_start_to_end(self):
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
                        == {reservation_model.READY}, 'hosts to be empty')
        self.assertEqual({servers['host3'], servers['host4']}, self.alive())
        self.assertEqual(reservation_model.PENDING,
                         self.reservations.get(reservation).status)
        self.pass_time(150)
        self.look()
        found = self.reservations.get(reservation)
        self.assertEqual((reservation_model.ACTIVE, self.naive()),
                         (found.status, found.ready_at))
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        alien = self.boot_normal('alien', host='host2')['id']
        self.pass_time(HOUR_S - 600)
        self.look()
        # It should not be there, and is moved away.
        self.wait_for(lambda: not self.on('host2'), 'the server to move')
        self.assertIn(alien, self.alive())
        self.assertEqual(self.naive(),
                         self.reservations.get(reservation).noticed_at)
        self.pass_time(600)
        late = self.boot_normal('late', host='host2')['id']
        self.look()
        self.assertEqual(reservation_model.ENDED,
                         self.reservations.get(reservation).status)
        self.wait_gone(mine)
        self.look_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        self.assertEqual({late}, self.on('host2'))
        self.assertIn(f'Server {late} on host host2 does not belong',
                      self.stdlog.logger.output)
        self.wait_consistent()

    def test_shelves_at_the_end(self):
        self.add_hosts('host1')
        reservation = self.reserve('host1', start_s=0, end_action='shelve')
        self.look()
        self.assertEqual(reservation_model.ACTIVE,
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

    def test_servers_that_do_not_leave(self):
        self.add_hosts('host1')
        reservation = self.reserve('host1', start_s=0)
        self.look()
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        self.pass_time(HOUR_S)
        with mock.patch.object(self.engine.parts.clients.nova, 'force_delete',
                               side_effect=nova_api.NovaError('no')):
            self.look()
            self.pass_time(599)
            self.look()
            self.assertEqual(reservation_model.ENDED,
                             self.reservations.get(reservation).status)
            self.pass_time(1)
            self.look()
        found = self.reservations.get(reservation)
        self.assertEqual((reservation_model.ERROR, self.naive()),
                         (found.status, found.released_at))
        self.assertIn(f'{mine} (active) on host1', found.reason)
        self.assertEqual({mine}, self.alive())

    def test_cancelled_during_the_notice(self):
        self.flags(maximum_notice_s=100, group='preemption')
        self.add_hosts('host1')
        flavor = self.create_flavor(
            'told', 1, 1024, 10, preemptible=True,
            **{'preemptible:notice_s': '100'})
        told = self.boot_spot('a', 'host1', flavor=flavor)
        reservation = self.reserve('host1')
        self.pass_time(HOUR_S - 200)
        self.lifecycle.run_once()
        self.wait_for(
            lambda: nova_api.NOTICE_KEY
            in self.api.get_server(told)['metadata'], 'the notice')
        self.assertTrue(self.reservations.update(
            reservation, from_status=reservation_model.PENDING,
            status=reservation_model.CANCELLED))
        self.wait_for(
            lambda: nova_api.NOTICE_KEY
            not in self.api.get_server(told)['metadata'],
            'the notice to be withdrawn')
        self.look()
        self.wait(told)
        self.assertIn(f'reservation {reservation} is cancelled',
                      self.last_decision().reason)

    def test_a_reservation_that_starts_now(self):
        self.add_hosts('host1')
        server = self.boot_spot('a', 'host1')
        reservation = self.reserve('host1', start_s=0)
        self.look()
        self.wait_gone(server)
        self.pass_time(7)
        self.look_until_status(reservation, reservation_model.ACTIVE)
        self.assertEqual(self.naive(),
                         self.reservations.get(reservation).ready_at)

    def test_the_threads_of_the_engine(self):
        self.add_hosts('host1')
        thread = threading.Thread(target=self.engine.run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.engine.stop)
        self.flags(interval_s=1, group='preemption_engine')
        server = self.boot_spot('a', 'host1')
        reservation = self.reserve('host1', start_s=0)
        self.wait_gone(server)
        self.wait_for(lambda: self.reservations.get(
            reservation).status == reservation_model.ACTIVE,
            'reservation to be active')
        self.reservations.set_end(reservation, self.naive(5))
        self.pass_time(5)
        self.wait_for(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')

    def test_a_cancelled_reservation(self):
        self.add_hosts('host1', 'host2')
        reservation = self.reserve('host1', start_s=0)
        later = self.reserve('host2')
        self.look()
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        for each in (reservation, later):
            self.reservations.update(each, status=reservation_model.CANCELLED)
        self.look()
        self.wait_gone(mine)
        self.look_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        for each in (reservation, later):
            found = self.reservations.get(each)
            self.assertEqual(reservation_model.CANCELLED, found.status)
            self.assertEqual(self.naive(), found.released_at)

    def test_an_engine_stopped_during_start_and_end(self):
        """It is stopped during a start and during an end."""
        self.add_hosts('host1', 'host2')
        spot = self.boot_spot('a', 'host1')
        reservation = self.reserve('host1')
        self.pass_time(HOUR_S + 100)
        self.look()
        self.wait_gone(spot)
        self.look_until_status(reservation, reservation_model.ACTIVE)
        mine = self.boot_normal('mine', host='host1',
                                hints={'reservation': reservation})['id']
        self.engine.evictions.close()
        self.engine._leadership.close()
        self.pass_time(2 * HOUR_S)
        self.engine = self.start_engine()
        self.lifecycle = self.engine.lifecycle
        self.look()
        self.wait_gone(mine)
        self.look_until(
            lambda: self.reservations.get(reservation).released_at,
            'hosts to be released')
        self.assertEqual(reservation_model.ENDED,
                         self.reservations.get(reservation).status)

    def test_consecutive_reservations_of_a_host(self):
        """Servers of the first stay until its end and are then removed."""
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
        self.assertEqual(reservation_model.ENDED,
                         self.reservations.get(first).status)
        self.wait_gone(mine)
        self.look_until_status(second, reservation_model.ACTIVE)
        self.wait_consistent()


class TestWithTheFilter(ReservationTestCase):
    """A reservation as a project sees it."""

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_preempt.reservation.lease_cache.PAUSE_S', 0))
        super().setUp()
        self.flags(group='filter_scheduler', enabled_filters=[
            *CONF.filter_scheduler.enabled_filters, 'ReservationFilter'])
        self.restart_scheduler()

    def boot_as(self, project, **kwargs):
        """Boot a server as a project; return its status."""
        with mock.patch.object(self.api, 'project_id', project):
            return self.settle(self.boot('asked', self.small, **kwargs))

    def test_two_of_four_hosts(self):
        self.add_hosts('host1', 'host2', 'host3', 'host4')
        names = ('host1', 'host2', 'host3', 'host4')
        spots = {name: {self.boot_spot(f'{name}-{number}', name)
                        for number in range(2)} for name in names}
        made = reservation_scheduler.ReservationScheduler(CONF, self.db,
                                                          self.serve(),
                                                          self.naive)
        reservation = made.create(
            nova_context.get_admin_context(), self.project, 'user',
            reservation_scheduler.Request(quantity=2,
                                          start_time=self.naive(HOUR_S),
                                          duration_s=HOUR_S,
                                          end_action='delete'))
        mine = reservation.held
        self.assertEqual(2, len(mine))
        hint = {'reservation': reservation.uuid}
        self.pass_time(HOUR_S - 150)
        self.look_until(
            lambda: set(self.statuses(reservation.uuid).values())
            == {reservation_model.READY}, 'hosts to be empty')
        others = set(names) - set(mine)
        self.assertEqual(set().union(*(spots[name] for name in others)),
                         self.alive())
        # Nobody comes before the start, nor without the hint after it.
        lease_cache.current(CONF).refresh()
        self.assertIn('is not active yet', self.boot_as(
            self.project, hints=hint)['fault']['message'])
        self.pass_time(150)
        self.look()
        lease_cache.current(CONF).refresh()
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
        lease_cache.current(CONF).refresh()
        self.assertEqual('ACTIVE', self.boot_as(
            self.project, host=mine[0])['status'])
