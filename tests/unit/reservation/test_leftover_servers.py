# SPDX-License-Identifier: Apache-2.0
"""Hosts are free of the servers of a reservation when it has ended."""

from unittest import mock

from nova_preempt import exceptions
from nova_preempt.cloud import nova_api
from nova_preempt.core import observed_server
from nova_preempt.core.reservation import reservation_model
from tests.unit.reservation import life
from tests.unit.reservation.life import HOUR_S


class TestAtTheEnd(life.ChoresTestCase):

    def setUp(self):
        super().setUp()
        self.cloud.add_host('h1')

    def run_it(self, **values):
        self.reserve('h1', start_s=0, **values)
        self.look()
        self.look()
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def end_it(self):
        self.pass_time((self.get().end_at - self.now).total_seconds())

    def test_deletes_its_servers_only(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', takes_s=20)
        self.look()
        self.assertEqual([], self.cloud.asked)
        self.end_it()
        self.cloud.boot('alien', 'h1')
        self.cloud.boot('spot', 'h1', preemptible=True)
        self.look()
        self.assertIsNone(self.get().released_at)
        self.look_until(20)
        self.assertEqual([('force_delete', 'mine')], self.cloud.asked)
        self.assertEqual((reservation_model.ENDED, self.now),
                         (self.get().status, self.get().released_at))
        self.assertEqual(1, self.logger.output.count('Server alien'))
        self.assertNotIn('Server spot', self.logger.output)

    def test_a_server_that_has_left_since_it_was_seen(self):
        """The database may be slow between the look and the call."""
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.end_it()
        nova = mock.Mock(wraps=self.cloud)
        nova.get.return_value = observed_server.ObservedServer(
            'mine', 'active', None, 'h2')
        self.reconciler._cleanup._nova = nova
        self.look()
        self.assertEqual([], self.cloud.asked)
        nova.get.return_value = self.cloud.get('mine')
        self.look_until(15)
        self.assertEqual([('force_delete', 'mine')], self.cloud.asked)

    def test_servers_are_shelved(self):
        self.run_it(end_action='shelve')
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.end_it()
        self.look_until(30)
        self.assertEqual([('shelve', 'mine'), ('shelve_offload', 'mine')],
                         self.cloud.asked)
        self.assertIsNotNone(self.get().released_at)

    def test_calls_are_repeated_until_the_timeout(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', stubborn=True)
        self.end_it()
        self.look_until(595, 10)
        self.assertEqual(60 * [('force_delete', 'mine')], self.cloud.asked)
        self.assertEqual(reservation_model.ENDED, self.get().status)
        self.look_until(5)
        self.assertEqual((reservation_model.ERROR, self.now),
                         (self.get().status, self.get().released_at))
        self.assertEqual('servers were not removed within 600 s: '
                         'mine (active) on h1', self.get().reason)
        self.assertEqual('error', self.told()[-1])

    def test_servers_that_nova_cannot_shelve(self):
        """The next reservation gets the host whatever their state."""
        self.run_it(end_action='shelve')
        self.reserve('h1', uuid='next')
        self.cloud.boot('a', 'h1', reservation='r1', vm_state='rescued')
        self.cloud.boot('b', 'h1', reservation='r1', vm_state='resized')
        self.cloud.boot('c', 'h1', reservation='r1', vm_state='error')
        self.cloud.boot('d', 'h1', reservation='r1', vm_state='building',
                        task_state='spawning')
        self.end_it()
        self.look_until(290)
        self.assertEqual([
            ('unrescue', 'a'), ('confirm_resize', 'b'), ('shelve', 'a'),
            ('shelve', 'b'), ('shelve_offload', 'a'),
            ('shelve_offload', 'b')], self.cloud.asked)
        self.assertEqual(reservation_model.PENDING, self.get('next').status)
        self.look_until(20)
        self.assertEqual([('force_delete', 'c'), ('force_delete', 'd')],
                         self.cloud.asked[6:])
        self.assertEqual([reservation_model.ENDED, reservation_model.ACTIVE], [
            self.get(uuid).status for uuid in ('r1', 'next')])

    def test_an_owner_who_rescues_repeatedly(self):
        self.run_it(end_action='shelve')
        self.reserve('h1', uuid='next')
        self.cloud.boot('mine', 'h1', reservation='r1', vm_state='rescued')
        self.end_it()

        def unrescue(uuid):
            self.cloud.asked.append(('unrescue', uuid))
        self.cloud.unrescue = unrescue
        self.look_until(530, 10)
        self.assertEqual({('unrescue', 'mine')}, set(self.cloud.asked))
        self.look_until(40)
        self.assertEqual(('force_delete', 'mine'), self.cloud.asked[-1])
        self.assertEqual([reservation_model.ENDED, reservation_model.ACTIVE], [
            self.get(uuid).status for uuid in ('r1', 'next')])

    def test_a_server_that_nova_refuses_to_shelve(self):
        def shelve(uuid):
            raise nova_api.NovaError('Image quota exceeded')

        for is_reserved in (True, False):
            with self.subTest(is_reserved):
                self.begin()
                self.cloud.add_host('h1')
                self.cloud.shelve = shelve
                uuid = f'r-{is_reserved}'
                self.reserve('h1', uuid=uuid, start_s=0,
                             end_action='shelve')
                self.look()
                self.look()
                self.cloud.boot('mine', 'h1', reservation=uuid)
                if is_reserved:
                    self.reserve('h1', uuid='next', duration_s=1000)
                self.pass_time(HOUR_S)
                self.look_until(600)
                self.assertEqual(
                    [('force_delete', 'mine')] if is_reserved else [],
                    self.cloud.asked)
                self.assertEqual(
                    reservation_model.ENDED if is_reserved
                    else reservation_model.ERROR, self.get(uuid).status)
                self.pass_time(HOUR_S)
                self.look()

    def test_no_server_is_deleted_for_a_reservation_that_is_far_away(self):
        for enabled, start_s in ((True, 30 * 24 * HOUR_S), (False, HOUR_S)):
            with self.subTest(enabled):
                self.begin()
                self.cloud.add_host('h1')
                uuid = f'r-{enabled}'
                self.reserve('h1', uuid=uuid, start_s=0,
                             end_action='shelve')
                self.look()
                self.look()
                self.reserve('h1', uuid=f'next-{enabled}', start_s=start_s)
                self.cloud.boot('mine', 'h1', reservation=uuid,
                                vm_state='rescued')
                self.cloud.unrescue = lambda uuid: None
                self.enabled = enabled
                self.pass_time(HOUR_S)
                self.look_until(600)
                self.assertEqual([], self.cloud.asked)
                self.assertEqual(reservation_model.ERROR,
                                 self.get(uuid).status)

    def test_a_server_that_an_administrator_has_locked(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', locked_by='admin')
        self.cloud.boot('yours', 'h1', reservation='r1', locked_by='owner')
        self.end_it()
        self.look_until(600)
        self.assertEqual({('force_delete', 'yours')}, set(self.cloud.asked))
        self.assertEqual(reservation_model.ERROR, self.get().status)

    def test_a_server_without_host_is_deleted(self):
        """It is never built; a server that returned is not deleted."""
        for vm_state, host, asked, status in (
                ('building', None, [('force_delete', 'late')],
                 reservation_model.ENDED),
                ('shelved_offloaded', None, [], reservation_model.ERROR),
                ('active', 'elsewhere', [], reservation_model.ERROR)):
            with self.subTest(vm_state):
                self.begin()
                self.cloud.add_host('h1')
                uuid = f'r-{vm_state}'
                self.reserve('h1', uuid=uuid, start_s=0,
                             end_action='shelve')
                self.look()
                self.look()
                self.cloud.coming['late'] = uuid
                self.cloud.foreign['h1'].add('late')
                self.cloud.elsewhere['late'] = observed_server.ObservedServer(
                    'a', vm_state, None, host, status='BUILD')
                self.pass_time(HOUR_S)
                self.look_until(290)
                self.assertEqual([], self.cloud.asked)
                self.look_until(310)
                self.assertEqual(asked, self.cloud.asked[:1])
                self.assertEqual(status, self.get(uuid).status)

    def test_a_cancelled_reservation_ends_its_servers(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.reservations.update('r1', status=reservation_model.CANCELLED)
        self.look_until(10)
        self.assertEqual((reservation_model.CANCELLED,
                          {'h1': reservation_model.READY}),
                         (self.get().status, self.statuses()))
        self.assertIsNotNone(self.get().released_at)
        self.assertEqual(set(), self.cloud.on('h1'))
        self.assertEqual(('end', reservation_model.CANCELLED, None),
                         self.events.told[-1])

    def test_the_next_reservation_waits_for_the_servers(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1', takes_s=30)
        self.reserve('h1', uuid='r2', start_s=HOUR_S)
        self.look_until(HOUR_S - 1)
        self.assertEqual([], self.cloud.asked)
        self.look_until(1)
        self.assertEqual([('force_delete', 'mine')], self.cloud.asked)
        self.look_until(35)
        self.assertEqual(reservation_model.ACTIVE, self.get('r2').status)
        self.assertEqual(('h1',), self.get('r2').held)

    def test_services_that_are_down(self):
        self.run_it()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.end_it()
        self.cloud.away = True
        self.assertRaises(nova_api.NovaError, self.look)
        # It ended in time all the same.
        self.assertEqual(('end', reservation_model.ENDED, 0.0),
                         self.events.told[-1])
        self.cloud.away = False
        self.look_until(20)
        self.assertIsNotNone(self.get().released_at)

    def test_a_server_that_is_being_scheduled_at_the_end(self):
        """It has an allocation and no host yet."""
        self.run_it()
        self.cloud.coming['late'] = 'r1'
        self.cloud.foreign['h1'].add('late')
        self.end_it()
        self.look_until(60)
        self.assertIsNone(self.get().released_at)
        self.cloud.boot('late', 'h1', reservation='r1')
        self.cloud.foreign.clear()
        self.look_until(10)
        self.assertEqual([('force_delete', 'late')], self.cloud.asked)
        self.assertIsNotNone(self.get().released_at)

    def test_a_server_that_appears_after_the_release(self):
        self.run_it()
        self.end_it()
        self.look()
        self.assertIsNotNone(self.get().released_at)
        self.cloud.boot('late', 'h1', reservation='r1')
        self.look_until(10)
        self.assertEqual(set(), self.cloud.on('h1'))

    def test_a_server_with_several_hints(self):
        self.cloud.add_host('h2')
        self.run_it()
        self.reserve('h2', uuid='r2', start_s=0, duration_s=9 * 3600)
        self.look()
        self.cloud.boot('a', 'h1', reservation=('r2', 'r1'))
        self.cloud.boot('b', 'h2', reservation=('r1', 'r2'))
        self.end_it()
        self.look_until(30)
        self.assertEqual({'b'}, set(self.cloud.servers))

    def test_a_server_with_a_hint_of_the_next_reservation_stays(self):
        self.run_it()
        self.cloud.boot('a', 'h1', reservation=('r1', 'r2'))
        self.reserve('h1', uuid='r2', start_s=life.HOUR_S)
        self.look_until(life.HOUR_S - 5)
        self.end_it()
        self.look_until(30)
        self.assertEqual({'a'}, set(self.cloud.servers))
        self.assertEqual([reservation_model.ENDED, reservation_model.ACTIVE], [
            self.get(uuid).status for uuid in ('r1', 'r2')])

    def test_old_reservations_are_deleted(self):
        self.run_it()
        self.end_it()
        self.look()
        self.pass_time(89 * 86400)
        self.look()
        self.get()
        self.pass_time(2 * 86400)
        self.look()
        self.assertRaises(exceptions.ReservationNotFound, self.get)
