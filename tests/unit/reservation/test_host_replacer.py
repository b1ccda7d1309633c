# SPDX-License-Identifier: Apache-2.0
"""Hosts that die are replaced."""

from nova_preempt import exceptions
from nova_preempt.core.reservation import down_host_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservations as db
from tests.unit.reservation import life
from tests.unit.reservation.life import HOUR_S


class TestDeadHosts(life.ChoresTestCase):

    def setUp(self):
        super().setUp()
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)

    def test_replaced_after_a_grace(self):
        for down in ({'state': 'down'}, {'status': 'disabled'}, None):
            self.reserve('h1', uuid=str(down))
            if down is None:
                del self.cloud.hosts['h1']
            else:
                self.cloud.add_host('h1', **down)
            self.look_until(115)
            self.assertEqual(('h1',), self.get(str(down)).held)
            self.look_until(5)
            found = self.get(str(down))
            self.assertNotEqual(('h1',), found.held)
            self.assertEqual(reservation_model.PENDING, found.status)
            self.reservations.update(str(down),
                                     status=reservation_model.CANCELLED)
            self.cloud.add_host('h1')
            self.look()
        self.assertEqual([], self.told())
        self.assertIn('host h1 is gone', self.logger.output)

    def test_a_restart_is_no_death(self):
        self.reserve('h1')
        for _ in range(3):
            self.cloud.add_host('h1', state='down')
            self.look_until(100)
            self.cloud.add_host('h1')
            self.look_until(100)
        self.assertEqual({'h1': reservation_model.ASSIGNED}, self.statuses())

    def test_the_memory_of_an_engine_expires_when_another_leads(self):
        self.reserve('h1')
        self.cloud.add_host('h1', state='down')
        self.look()
        self.pass_time(1000)
        self.look_until(115)
        self.assertEqual(('h1',), self.get().held)
        self.look_until(5)
        self.assertNotEqual(('h1',), self.get().held)

    def test_the_brake_lets_go_where_others_are_free(self):
        names = [f'n{number}' for number in range(12)]
        for name in names:
            self.cloud.add_host(name)
        self.reserve('h1', start_s=0, duration_s=5 * HOUR_S)
        self.look_until(5)
        for name in ('h1', *names[:4]):
            self.cloud.add_host(name, state='down')
        self.look_until(1700)
        found = self.get()
        self.assertEqual(('h1',), found.held)
        self.assertEqual(down_host_controller.BRAKED, found.public_reason)
        self.assertIn('h1 down, and not replaced yet: 5 of 15 hosts are '
                      'down', found.reason)
        self.assertEqual(['start', 'degraded'], self.told())
        self.look_until(300)
        found = self.get()
        self.assertNotEqual(('h1',), found.held)
        self.assertEqual(('', reservation_model.ACTIVE),
                         (found.public_reason, found.status))

    def brake(self):
        """h1, which is held, is down with 4 of 15 hosts."""
        names = [f'n{number}' for number in range(12)]
        for name in names:
            self.cloud.add_host(name)
        self.reserve('h1', start_s=0, duration_s=5 * HOUR_S)
        self.look_until(5)
        for name in ('h1', *names[:4]):
            self.cloud.add_host(name, state='down')
        for name in ('h2', 'h3', *names[4:]):
            self.cloud.boot(f's-{name}', name)

    def test_the_brake_holds_where_others_are_full(self):
        self.brake()
        self.look_until(2400)
        self.assertEqual((('h1',), reservation_model.ACTIVE,
                          down_host_controller.BRAKED), (
                              self.get().held, self.get().status,
                              self.get().public_reason))
        # One that it could not have is of no use.
        self.cloud.servers.clear()
        for name in [*self.cloud.hosts]:
            if self.cloud.hosts[name].is_usable:
                self.cloud.add_host(name, reservable=False)
        self.look_until(300)
        self.assertEqual(('h1',), self.get().held)
        self.cloud.add_host('h2')
        self.look_until(150)
        self.assertEqual(('h2',), self.get().held)

    def test_the_brake_holds_no_longer_after_a_change_of_the_engine(self):
        self.brake()
        self.cloud.servers.clear()
        self.look_until(1000)
        self.reservations = db.Reservations(self.database, self.clock)
        self.reconciler = self.make_reconciler()
        self.look_until(300)
        self.blind = 'the bus is away'
        self.look_until(60)
        self.blind = ''
        self.look_until(600)
        self.assertNotEqual(('h1',), self.get().held)

    def test_the_brake_is_released_by_an_operator(self):
        self.reserve('h1')
        for name in ('h1', 'h2'):
            self.cloud.add_host(name, state='down')
        self.look_until(3600)
        self.assertEqual(('h1',), self.get().held)
        self.assertEqual(down_host_controller.BRAKED, self.get().public_reason)
        self.options.brake_percent = 100
        self.look_until(150)
        self.assertEqual(('h3',), self.get().held)
        self.assertEqual('', self.get().public_reason)

    def test_owners_are_told_nothing_by_an_engine_that_sees_nothing(self):
        self.reserve('h1')
        self.blind = 'the bus is away'
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name, state='down')
        self.look_until(60)
        self.assertIsNone(self.get().public_reason)
        self.blind = ''
        self.look_until(15)
        self.assertEqual(down_host_controller.BRAKED, self.get().public_reason)
        self.blind = 'the bus is away again'
        self.look_until(60)
        self.assertEqual(['degraded'], self.told())

    def test_the_owner_is_not_told_again_after_a_restart(self):
        self.reserve('h1')
        for name in ('h1', 'h2'):
            self.cloud.add_host(name, state='down')
        self.look_until(30)
        self.assertEqual(down_host_controller.BRAKED, self.get().public_reason)
        self.reservations = db.Reservations(self.database, self.clock)
        self.reconciler = self.make_reconciler()
        self.cloud.add_host('h1')
        self.look_until(30)
        self.assertEqual('', self.get().public_reason)

    def test_while_it_is_active(self):
        self.reserve('h1', start_s=0)
        self.look_until(5)
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.cloud.boot('spot', 'h2', preemptible=True, notice_s=30)
        self.cloud.boot('n', 'h3')
        self.cloud.add_host('h1', state='down')
        self.look_until(120)
        self.assertEqual(('h2',), self.get().held)
        self.look_until(60)
        self.assertEqual({'h1': reservation_model.LOST,
                          'h2': reservation_model.READY},
                         self.statuses())
        self.assertEqual(reservation_model.ACTIVE, self.get().status)
        self.assertEqual({'mine'}, self.cloud.on('h1'))
        self.assertIn('Servers on it are not moved', self.logger.output)
        # Its servers are cleared away from lost hosts too.
        self.pass_time(HOUR_S)
        self.look_until(10)
        self.assertEqual(set(), self.cloud.on('h1'))

    def test_own_servers_on_a_replacement_host(self):
        """They may arrive before the host is empty."""
        self.reserve('h1', start_s=0)
        self.look_until(5)
        self.cloud.add_host('h1', state='down')
        self.cloud.boot('n', 'h3')
        self.cloud.boot('spot', 'h2', preemptible=True, takes_s=30)
        self.look_until(120)
        self.cloud.boot('mine', 'h2', reservation='r1')
        self.look_until(60)
        self.assertEqual({'mine'}, self.cloud.on('h2'))
        self.assertEqual({'h1': reservation_model.LOST,
                          'h2': reservation_model.READY},
                         self.statuses())

    def test_degraded_and_repaired(self):
        self.reserve('h1', 'h2', 'h3')
        self.cloud.add_host('h3', state='down')
        self.look_until(120)
        found = self.get()
        self.assertEqual((reservation_model.DEGRADED, ('h1', 'h2')),
                         (found.status, found.held))
        self.assertEqual('1 of 3 hosts are missing: the compute service of '
                         'host h3 is down', found.reason)
        self.look_until(HOUR_S)
        self.assertEqual(['degraded', 'start'], self.told())
        self.cloud.add_host('h4')
        self.look_until(5)
        found = self.get()
        self.assertEqual((reservation_model.ACTIVE, ('h1', 'h2', 'h4'), ''),
                         (found.status, found.held, found.reason))

    def test_replacements_are_ranked(self):
        self.options.ranking = 'name'
        self.reconciler = self.make_reconciler()
        self.cloud.add_host('h0', flops_per_watt=1.0)
        self.cloud.add_host('h9', flops_per_watt=9.0)
        self.reserve('h2')
        self.cloud.add_host('h2', state='down')
        self.look_until(125)
        self.assertEqual(('h0',), self.get().held)

    def test_another_reservation_takes_the_replacement(self):
        self.reserve('h1', host_properties=[
            'in', '$hypervisor_hostname', 'h1', 'h2'])
        self.cloud.add_host('h1', state='down')
        real = self.reservations.replace_host

        def replace_host(uuid, old, new=None, reason='', public=''):
            if new is not None:
                raise exceptions.NoHostsForReservation('taken')
            return real(uuid, old, new, reason, public)

        self.reservations.replace_host = replace_host
        self.look_until(125)
        self.assertEqual((reservation_model.DEGRADED, ()),
                         (self.get().status, self.get().held))


class TestManyAtOnce(life.ChoresTestCase):

    NAMES = tuple(f'h{number}' for number in range(10))

    def setUp(self):
        super().setUp()
        for name in self.NAMES:
            self.cloud.add_host(name)

    def set_state(self, names, **values):
        for name in names:
            self.cloud.add_host(name, **values)

    def test_an_outage_of_the_bus_replaces_no_host(self):
        """The message bus is down for three minutes."""
        self.reserve('h1', 'h2', start_s=0)
        self.look()
        self.cloud.boot('mine', 'h1', reservation='r1')
        for values in ({'state': 'down'}, {'status': 'disabled'}):
            self.set_state(self.NAMES, **values)
            self.look_until(180)
            self.assertEqual(('h1', 'h2'), self.get().held)
            # They come back one after the other.
            for name in reversed(self.NAMES):
                self.set_state([name])
                self.look_until(10)
            self.assertEqual(('h1', 'h2'), self.get().held)
        self.assertEqual(reservation_model.ACTIVE, self.get().status)
        self.assertEqual(1, self.logger.output.count(
            'No host is replaced in any reservation: 10 of 10 hosts are'))

    def test_a_host_that_stays_down_is_replaced(self):
        self.reserve('h1')
        self.set_state(self.NAMES, state='down')
        self.look_until(200)
        self.set_state(self.NAMES)
        self.set_state(['h1'], state='down')
        self.look_until(110)
        self.assertEqual(('h1',), self.get().held)
        self.look_until(30)
        self.assertNotEqual(('h1',), self.get().held)

    def test_an_engine_without_the_bus_replaces_no_host(self):
        self.reserve('h1')
        self.blind = 'the message bus is away'
        self.set_state(['h1'], state='down')
        self.look_until(300)
        self.assertEqual(('h1',), self.get().held)
        self.assertIn('the message bus is away', self.logger.output)
        self.blind = ''
        self.look_until(130)
        self.assertNotEqual(('h1',), self.get().held)

    def test_hosts_of_a_dark_cell_are_not_gone(self):
        self.reserve('h1')
        self.cloud.dark = frozenset(('h1', 'h2'))
        del self.cloud.hosts['h1']
        self.look_until(300)
        self.assertEqual(('h1',), self.get().held)

    def lose(self, *hosts):
        """Let an active reservation with a server on h1 lose that host."""
        self.reserve(*hosts, start_s=0)
        self.look()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.set_state(['h1'], status='disabled')
        self.look_until(150)
        self.assertNotIn('h1', self.get().held)
        self.set_state(['h1'])

    def test_a_host_comes_back_with_its_servers(self):
        self.lose('h1')
        self.look_until(5)
        self.assertEqual(('h1',), self.get().held)
        self.assertEqual(reservation_model.READY, self.statuses()['h1'])
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def test_a_lost_host_returns_besides_a_used_replacement(self):
        self.lose('h1')
        new, = self.get().held
        self.cloud.boot('mine too', new, reservation='r1')
        self.look_until(5)
        self.assertEqual({'h1', new}, set(self.get().held))
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def test_a_lost_host_of_another_reservation_does_not_return(self):
        self.lose('h1')
        self.reserve('h1', uuid='r2', start_s=3000)
        self.look_until(5)
        self.assertNotIn('h1', self.get().held)
