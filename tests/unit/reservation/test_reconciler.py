# SPDX-License-Identifier: Apache-2.0
"""Hosts are empty when a reservation starts."""

import datetime

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import model
from nova_preempt.core import notice_period
from nova_preempt.core.energy import host_classification
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import models
from nova_preempt.reservation import reconciler
from tests.unit.reservation import life
from tests.unit.reservation.life import HOUR_S
from tests.unit.reservation.life import LEAD_S


class TestBeforeTheStart(life.ChoresTestCase):

    def test_nothing_to_do(self):
        self.assertEqual(reconciler.IDLE_S, self.look())
        # Nova is not even asked.
        self.cloud.away = True
        self.assertEqual(reconciler.IDLE_S, self.look())

    def test_preemptible_servers_stay_until_their_notice(self):
        self.cloud.add_host('h1')
        self.cloud.boot('short', 'h1', preemptible=True, notice_s=30,
                        takes_s=120)
        self.cloud.boot('long', 'h1', preemptible=True, notice_s=300,
                        takes_s=120)
        self.reserve('h1')
        start = self.get().start_at
        self.look_until(HOUR_S)
        self.assertEqual(
            {'long': 450, 'short': 180},
            {uuid: (start - when).total_seconds()
             for uuid, when in self.cloud.noticed.items()})
        self.assertEqual([('start', reservation_model.ACTIVE, 0.0)],
                         self.events.told)

    def test_servers_with_equal_notices_are_evicted_together(self):
        self.cloud.add_host('h1')
        for uuid in ('a', 'b', 'c'):
            self.cloud.boot(uuid, 'h1', preemptible=True, notice_s=30)
        self.cloud.boot('d', 'h1', preemptible=True, task_state='resizing')
        self.reserve('h1', start_s=100)
        self.look()
        self.look()
        self.assertEqual([('reservation', 'a', 'b', 'c')], self.cloud.asked)

    def test_normal_servers_are_moved(self):
        self.cloud.add_host('h1')
        self.cloud.boot('n', 'h1', takes_s=300)
        self.cloud.boot('s', 'h1', vm_state='stopped')
        self.reserve('h1')
        self.look_until(HOUR_S - LEAD_S - 1)
        self.assertEqual([], self.cloud.asked)
        self.look_until(LEAD_S + 1)
        self.assertEqual(
            [('live_migrate', 'n'), ('cold_migrate', 's'),
             ('confirm_resize', 's')], self.cloud.asked)
        self.assertEqual([('start', reservation_model.ACTIVE, 0.0)],
                         self.events.told)
        self.assertEqual('stopped', self.cloud.servers['s'].vm_state)

    def test_failed_moves_are_repeated(self):
        self.cloud.add_host('h1')
        self.cloud.boot('n', 'h1', movable=False)
        self.reserve('h1', start_s=LEAD_S)
        self.look_until(60)
        self.assertEqual(3 * [('live_migrate', 'n')], self.cloud.asked)
        self.assertEqual(1, self.logger.output.count(
            'Server n cannot be migrated: No valid host'))
        self.cloud.servers['n'].movable = True
        self.look_until(LEAD_S - 60)
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def test_notices_begin_once_a_refused_move_succeeds(self):
        self.cloud.add_host('h1')
        self.cloud.boot('n', 'h1', movable=False, takes_s=50)
        self.cloud.boot('p', 'h1', preemptible=True)
        lead_s = self.reader.lead_s(0)
        self.reserve('h1', start_s=lead_s + 60)
        self.look_until(90)
        self.assertEqual({('live_migrate', 'n')}, set(self.cloud.asked))
        self.cloud.servers['n'].movable = True
        self.cloud.asked.clear()
        self.look_until(45)
        self.assertEqual([('live_migrate', 'n'), ('reservation', 'p')],
                         self.cloud.asked)

    def check_moves_for_which_nova_finds_no_host(self, what, vm_state):
        self.cloud.add_host('h1')
        self.cloud.boot('n', 'h1', vm_state=vm_state, has_target=False)
        self.cloud.boot('p', 'h1', preemptible=True)
        lead_s = self.reader.lead_s(0)
        self.reserve('h1', start_s=lead_s + 60)
        self.look_until(100, step_s=5)
        self.assertEqual(4 * [(what, 'n')], self.cloud.asked)
        # Another engine knows the last refusal, too.
        self.reconciler = self.make_reconciler()
        self.look_until(lead_s - 45, step_s=5)
        self.assertEqual({(what, 'n')}, set(self.cloud.asked))
        self.cloud.servers['n'].has_target = True
        self.cloud.servers['n'].takes_s = 50
        self.cloud.asked.clear()
        self.look_until(45, step_s=5)
        self.assertEqual([(what, 'n'), ('reservation', 'p')],
                         self.cloud.asked)

    def test_no_notice_where_nova_finds_no_host_for_a_running_server(self):
        self.check_moves_for_which_nova_finds_no_host(
            'live_migrate', 'active')

    def test_no_notice_where_nova_finds_no_host_for_a_stopped_server(self):
        self.check_moves_for_which_nova_finds_no_host(
            'cold_migrate', 'stopped')

    def test_a_server_for_which_nova_finds_no_host_is_named(self):
        self.cloud.add_host('h1')
        self.cloud.boot('n', 'h1', has_target=False)
        self.reserve('h1', start_s=LEAD_S)
        self.look_until(LEAD_S + 200)
        self.assertIn('servers n (Nova gave up its migration)',
                      self.get().hosts[0].reason)
        self.assertEqual(1, self.logger.output.count(
            'Server n cannot be migrated: Nova gave up its migration'))

    def test_servers_that_appear_late_get_notice(self):
        """A host that was empty is looked at until the start."""
        self.cloud.add_host('h1')
        self.reserve('h1')
        self.look_until(HOUR_S - 600)
        self.assertEqual({'h1': reservation_model.READY}, self.statuses())
        self.cloud.boot('late', 'h1', preemptible=True, notice_s=30)
        self.look()
        self.assertEqual({'h1': reservation_model.EMPTYING}, self.statuses())
        self.look_until(600)
        self.assertEqual([('start', reservation_model.ACTIVE, 0.0)],
                         self.events.told)

    def test_consumers_that_only_placement_knows_delay_the_start(self):
        """A server that is being built, or an unconfirmed move."""
        self.cloud.add_host('h1')
        self.cloud.foreign['h1'].add('building')
        self.reserve('h1')
        self.look_until(HOUR_S - 1)
        self.assertEqual(reservation_model.PENDING, self.get().status)
        self.look_until(1)
        self.assertEqual((reservation_model.DEGRADED, ()),
                         (self.get().status, self.get().held))
        self.assertIn('host h1 is not empty: allocations of building',
                      self.get().reason)
        self.assertEqual(['degraded'], self.told())

    def test_another_host_in_its_place(self):
        for name in ('h1', 'h2', 'h3', 'h4'):
            self.cloud.add_host(name)
        self.cloud.boot('n', 'h1', movable=False)
        self.cloud.boot('n2', 'h2')
        self.cloud.boot('p', 'h3', preemptible=True)
        self.reserve('h4', uuid='other', start_s=0, duration_s=9 * HOUR_S)
        self.reserve('h1')
        self.look_until(HOUR_S - 1)
        self.assertEqual(('h1',), self.get().held)
        self.look_until(200)
        self.assertEqual(('h3',), self.get().held)
        self.assertEqual(reservation_model.ACTIVE, self.get().status)
        self.assertIn('host h1 is not empty: servers n (No valid host)',
                      next(host.reason for host in self.get().hosts))
        self.assertIn('n', self.cloud.on('h1'))

    def test_an_empty_host_is_preferred(self):
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)
        self.cloud.boot('n', 'h1', movable=False)
        self.cloud.boot('p', 'h2', preemptible=True)
        self.reserve('h1')
        self.look_until(HOUR_S + 10)
        self.assertEqual(('h3',), self.get().held)
        self.assertEqual({'p'}, self.cloud.on('h2'))
        (_event, status, late_s), = self.events.told
        self.assertEqual(reservation_model.ACTIVE, status)
        self.assertLessEqual(late_s, 2 * reconciler.IDLE_S)

    def test_the_only_host_is_tried_again_but_not_all_the_time(self):
        self.cloud.add_host('h1')
        self.cloud.boot('p', 'h1', preemptible=True, takes_s=460)
        self.reserve('h1', start_s=0)
        self.look_until(450)
        self.assertEqual(['degraded'] * 2, self.told())
        self.look_until(30)
        self.assertEqual(['degraded'] * 2 + ['start'], self.told())
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def test_a_replacement_matches_the_filter(self):
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)
        self.cloud.boot('n', 'h1', movable=False)
        self.reserve('h1', host_properties=[
            'in', '$hypervisor_hostname', 'h1', 'h3'])
        self.look_until(HOUR_S + 10)
        self.assertEqual(('h3',), self.get().held)

    def test_a_minimum_run_time_spares_all_servers_of_the_host(self):
        """No other server there is evicted needlessly."""
        self.cloud.add_host('h1')
        self.cloud.boot('p', 'h1', preemptible=True, uptime_s=60,
                        minimum_runtime_s=86400)
        self.cloud.boot('beside', 'h1', preemptible=True)
        self.cloud.boot('n', 'h1')
        self.reserve('h1', start_s=0, duration_s=600)
        self.look_until(300)
        self.assertEqual([], self.cloud.asked)
        self.assertEqual((reservation_model.DEGRADED, ()),
                         (self.get().status, self.get().held))
        self.assertIn('promised to run for 86340 s more', self.get().reason)

    def test_a_server_is_evicted_after_its_minimum_run_time(self):
        self.cloud.add_host('h1')
        self.cloud.boot('p', 'h1', preemptible=True, uptime_s=0,
                        minimum_runtime_s=60)
        self.reserve('h1', start_s=0)
        self.look()
        self.assertEqual([], self.cloud.asked)
        self.cloud.servers['p'].uptime_s = 60
        self.look()
        self.assertEqual([('reservation', 'p')], self.cloud.asked)

    def test_a_locked_server_stays(self):
        self.cloud.add_host('h1')
        self.cloud.boot('p', 'h1', preemptible=True, locked_by='admin')
        self.cloud.boot('own', 'h1', preemptible=True, locked_by='owner')
        self.reserve('h1', start_s=0)
        self.look_until(200)
        self.assertEqual([], self.cloud.asked)
        self.assertIn('own, p (it is locked)',
                      self.get().hosts[0].reason)

    def test_a_server_that_disappears_while_it_is_reported(self):
        self.cloud.add_host('h1')
        self.cloud.boot('p', 'h1', preemptible=True, locked_by='admin')
        self.reserve('h1', start_s=0)
        read = set()

        def once(uuid):
            """Return a server, but only once in each look."""
            if self.now in read:
                return None
            read.add(self.now)
            return self.cloud.servers[uuid]

        self.cloud.get_preemptible = once
        self.look_until(200)
        self.assertIn('p (it is locked)', self.get().hosts[0].reason)

    def test_a_server_of_a_class_is_never_deleted(self):
        self.cloud.add_host('h1')
        self.cloud.boot('p', 'h1', preemptible=True, vm_state='error',
                        action='shelve', class_name='gold')
        self.cloud.boot('q', 'h1', preemptible=True, vm_state='error',
                        action='shelve')
        self.reserve('h1', start_s=0)
        self.look_until(200)
        self.assertEqual([], self.cloud.asked)
        self.assertIn('p (it has the class gold and would not return after '
                      'delete), q', self.logger.output)
        # Nor is it in the way once it can be shelved.
        self.cloud.servers['p'].vm_state = 'active'
        self.look()
        self.assertEqual([('reservation', 'p', 'q')], self.cloud.asked)

    def test_a_host_that_will_not_be_empty_is_replaced_in_time(self):
        for name in ('h1', 'h2'):
            self.cloud.add_host(name)
        self.cloud.boot('p', 'h1', preemptible=True, locked_by='admin')
        self.cloud.boot('q', 'h2', preemptible=True)
        self.reserve('h1')
        self.look_until(HOUR_S + 5)
        self.assertEqual(('h2',), self.get().held)
        self.assertEqual([('start', reservation_model.ACTIVE, 0.0)],
                         self.events.told)

    def test_budgets_count(self):
        self.cloud.add_host('h1')
        for uuid in ('a', 'b', 'c'):
            self.cloud.boot(uuid, 'h1', preemptible=True)
        self.cloud.caps = (model.VictimCap(frozenset('abc'), 2),)
        self.reserve('h1', start_s=0)
        self.look()
        self.assertEqual([('reservation', 'a', 'b')], self.cloud.asked)
        self.assertEqual([{'reservation_id': 'r1', 'project_id': 'p',
                           'user_id': ''}], self.cloud.recorded)

    def test_a_host_with_servers_of_a_later_end_is_replaced(self):
        """The other reservation has lost the host, but not its servers."""
        for name in ('h1', 'h2'):
            self.cloud.add_host(name)
        self.reserve('h1', uuid='long', start_s=0, duration_s=9 * HOUR_S)
        self.look()
        self.cloud.boot('theirs', 'h1', reservation='long')
        self.reservations.replace_host('long', 'h1', None, 'was down')
        self.reserve('h1', start_s=LEAD_S)
        self.look_until(LEAD_S + 5)
        self.assertEqual(('h2',), self.get().held)
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def test_a_reason_is_recorded_without_a_replacement(self):
        self.cloud.add_host('h1')
        self.reserve('h1', uuid='long', start_s=0, duration_s=9 * HOUR_S)
        self.look()
        self.cloud.boot('theirs', 'h1', reservation='long')
        self.reservations.replace_host('long', 'h1', None, 'was down')
        self.reserve('h1', start_s=0)
        self.look_until(60)
        self.assertEqual(reservation_model.DEGRADED, self.get().status)
        self.assertIn('servers of another reservation theirs (whose end is ',
                      self.get().reason)
        self.assertEqual('1 of 1 hosts are missing: a host could not be '
                         'emptied', self.get().public_reason)

    def test_servers_that_appear_after_the_start_are_removed(self):
        self.cloud.add_host('h1')
        self.reserve('h1', start_s=0)
        self.look()
        self.cloud.boot('mine', 'h1', reservation='r1')
        self.cloud.boot('late', 'h1', takes_s=10)
        self.cloud.boot('spot', 'h1', preemptible=True)
        self.look()
        self.assertEqual(['other servers are on it'],
                         [host.public_reason for host in self.get().hosts])
        self.look_until(20)
        self.assertEqual([''], [host.public_reason
                                for host in self.get().hosts])
        self.assertEqual({'mine'}, self.cloud.on('h1'))
        self.assertEqual((reservation_model.ACTIVE,
                          {'h1': reservation_model.READY}),
                         (self.get().status, self.statuses()))
        self.assertEqual(1, self.logger.output.count(
            'Host h1 of reservation r1: other servers are on it: late, '))

    def test_active_once_its_hosts_are_on_and_up(self):
        for values in ({'asleep': host_classification.OffHost('', 300)},
                       {'state': 'down'}):
            self.cloud.add_host('h1', **values)
            uuid = str(values)
            self.reserve('h1', uuid=uuid, start_s=0)
            self.look_until(60)
            self.assertEqual((reservation_model.PENDING, ('h1',)),
                             (self.get(uuid).status, self.get(uuid).held))
            self.cloud.add_host('h1')
            self.look_until(5)
            self.assertEqual(reservation_model.ACTIVE, self.get(uuid).status)
            self.reservations.update(uuid, status=reservation_model.CANCELLED)

    def test_a_host_that_does_not_wake_is_replaced(self):
        """Its boot hangs for longer than a boot takes."""
        self.cloud.add_host('h1', asleep=host_classification.OffHost('', 300))
        self.reserve('h1')
        self.cloud.add_host('h2')
        self.look_until(HOUR_S + 270)
        self.assertEqual((reservation_model.PENDING, ('h1',)),
                         (self.get().status, self.get().held))
        self.look_until(45)
        self.assertEqual((reservation_model.ACTIVE, ('h2',)),
                         (self.get().status, self.get().held))
        self.assertIn('host h1 is not on: it does not wake',
                      self.logger.output)

    def test_a_host_that_is_not_woken_is_replaced(self):
        late = host_classification.OffHost('Power control is paused: storm',
                                           300)
        self.cloud.add_host('h1', asleep=late)
        self.reserve('h1')
        for name in ('h2', 'h3'):
            self.cloud.add_host(name, asleep=late)
        self.look_until(HOUR_S - 310)
        self.assertEqual(('h1',), self.get().held)
        # In the time of a boot before the start.
        self.look_until(20)
        self.assertEqual(('h1',), self.get().held)
        self.cloud.add_host('h3')
        self.look_until(290)
        self.assertEqual((reservation_model.ACTIVE, ('h3',)),
                         (self.get().status, self.get().held))

    def test_a_reservation_is_degraded_if_its_host_does_not_wake(self):
        self.cloud.add_host('h1', asleep=host_classification.OffHost(
            'it has been waking for 999 s', 300))
        self.reserve('h1')
        self.look_until(HOUR_S + 60)
        self.assertEqual(reservation_model.DEGRADED, self.get().status)
        self.assertEqual('1 of 1 hosts are missing: a host could not be '
                         'powered on', self.get().public_reason)
        self.assertIn('host h1 is not on: it has been waking for 999 s',
                      self.get().reason)
        self.assertEqual(['degraded'], self.told())
        self.cloud.add_host('h1')
        self.look_until(10)
        self.assertEqual((reservation_model.ACTIVE, ('h1',)),
                         (self.get().status, self.get().held))

    def test_an_unreadable_host_does_not_delay_others(self):
        for name in ('h1', 'h2'):
            self.cloud.add_host(name)
        self.reserve('h1', uuid='r1', start_s=0)
        self.reserve('h2', uuid='r2', start_s=0)
        self.cloud.unreadable = {'h1'}
        self.look_until(60)
        self.assertEqual([reservation_model.PENDING, reservation_model.ACTIVE],
                         [
                             self.get(uuid).status for uuid in ('r1', 'r2')])
        self.cloud.unreadable = set()
        self.look_until(5)
        self.assertEqual(reservation_model.ACTIVE, self.get('r1').status)

    def test_a_dark_cell_stops_its_own_hosts_only(self):
        for name in ('h1', 'h2'):
            self.cloud.add_host(name)
        self.cloud.dark = frozenset(('h1',))
        self.reserve('h1', uuid='r1', start_s=0)
        self.reserve('h2', uuid='r2', start_s=0)
        self.look_until(300)
        self.assertEqual([reservation_model.PENDING, reservation_model.ACTIVE],
                         [
                             self.get(uuid).status for uuid in ('r1', 'r2')])
        self.cloud.dark = frozenset()
        self.look_until(5)
        self.assertEqual(reservation_model.ACTIVE, self.get('r1').status)

    def test_an_unexpected_error_stops_only_its_reservation(self):
        """For example an object of a newer Nova."""
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)
        read = self.cloud.reservations_of

        def reservations_of(uuid):
            if uuid == 'new':
                raise ValueError('IncompatibleObjectVersion')
            return read(uuid)

        self.cloud.reservations_of = reservations_of
        self.cloud.boot('new', 'h1')
        for number in (1, 2):
            self.reserve(f'h{number}', uuid=f'r{number}', start_s=0)
        self.reserve('h3', uuid='r3', start_s=0)
        for _ in range(2):
            error = self.assertRaises(ValueError, self.look)
            self.assertEqual('IncompatibleObjectVersion', str(error))
        self.assertEqual(
            [reservation_model.PENDING, reservation_model.ACTIVE,
             reservation_model.ACTIVE],
            [self.get(uuid).status for uuid in ('r1', 'r2', 'r3')])
        self.assertIn('Reservation r1 has to wait', self.logger.output)
        del self.cloud.servers['new']
        self.look()
        self.assertEqual(reservation_model.ACTIVE, self.get('r1').status)

    def test_no_server_is_removed_from_an_unreadable_host(self):
        self.cloud.add_host('h1')
        self.reserve('h1', start_s=0)
        self.look()
        self.cloud.boot('n', 'h1')
        self.cloud.boot('p', 'h1', preemptible=True)
        self.cloud.dark = frozenset(('h1',))
        self.look()
        self.assertEqual([], self.cloud.asked)
        self.cloud.dark = frozenset()
        self.look()
        self.assertEqual([('live_migrate', 'n'), ('reservation', 'p')],
                         self.cloud.asked)

    def test_a_restarted_engine_confirms_its_moves(self):
        self.cloud.add_host('h1')
        self.cloud.boot('s', 'h1', vm_state='stopped')
        self.reserve('h1', start_s=LEAD_S)
        # It dies before Nova is done.
        self.reconciler._migration.follow = lambda: None
        self.reconciler.run()
        self.assertEqual('resized', self.cloud.servers['s'].vm_state)
        self.cloud.asked.clear()
        self.reconciler = self.make_reconciler()
        self.look_until(LEAD_S + 5)
        self.assertEqual([('confirm_resize', 's')], self.cloud.asked)
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def test_an_engine_knows_the_moves_of_the_last_leader(self):
        self.cloud.add_host('h1')
        self.cloud.boot('s', 'h1', vm_state='stopped')
        self.reserve('h1', start_s=LEAD_S + 60)
        first = self.reconciler
        self.look()
        self.pass_time(60)
        other = self.make_reconciler()
        other._migration.follow = lambda: None
        other.run()
        self.assertEqual([('cold_migrate', 's')], self.cloud.asked)
        self.reconciler = first
        self.look()
        self.assertEqual([('cold_migrate', 's'), ('confirm_resize', 's')],
                         self.cloud.asked)

    def test_a_restarted_engine_confirms_moves_of_unreadable_hosts(self):
        self.cloud.add_host('h1')
        self.cloud.boot('s', 'h1', vm_state='stopped', takes_s=60)
        self.reserve('h1', start_s=LEAD_S)
        self.look()
        self.reconciler = self.make_reconciler()
        # Nothing was ever read of its cell.
        self.cloud.dark = frozenset(('h1',))
        server = self.cloud.servers.pop('s')
        self.look()
        self.cloud.dark = frozenset()
        self.cloud.servers['s'] = server
        self.look_until(75)
        self.assertEqual([('cold_migrate', 's'), ('confirm_resize', 's')],
                         self.cloud.asked)

    def test_a_move_is_confirmed_after_its_reservation_is_gone(self):
        self.cloud.add_host('h1')
        self.cloud.boot('s', 'h1', vm_state='stopped')
        self.reserve('h1', start_s=LEAD_S)
        self.cloud.servers['s'].takes_s = 600
        self.look()
        self.assertEqual('resize_migrating',
                         self.cloud.servers['s'].task_state)
        self.reservations.update('r1', status=reservation_model.CANCELLED)
        self.look_until(615)
        self.assertEqual([('cold_migrate', 's'), ('confirm_resize', 's')],
                         self.cloud.asked)
        self.assertEqual('stopped', self.cloud.servers['s'].vm_state)
        self.look()
        self.assertEqual({}, self.reconciler._migration._store.get())

    def test_disabled_reservations_do_not_start(self):
        """Active reservations go on to their end."""
        for name in ('h1', 'h2', 'h3'):
            self.cloud.add_host(name)
        self.reserve('h1', uuid='active', start_s=0)
        self.look()
        self.cloud.boot('mine', 'h1', reservation='active')
        self.enabled = False
        self.cloud.boot('p', 'h2', preemptible=True)
        self.cloud.boot('n', 'h2')
        self.reserve('h2', uuid='pending', start_s=60)
        self.cloud.add_host('h1', state='down')
        self.look_until(HOUR_S - 15)
        self.assertEqual([], self.cloud.asked)
        self.assertEqual(
            [(reservation_model.ACTIVE, ('h1',)),
             (reservation_model.PENDING, ('h2',))],
            [(self.get(uuid).status, self.get(uuid).held)
             for uuid in ('active', 'pending')])
        self.assertEqual(1, self.logger.output.count(
            'Reservation pending does not start: [reservation]enabled'))
        self.look_until(15)
        self.assertEqual([('force_delete', 'mine')], self.cloud.asked)
        self.assertEqual(reservation_model.ENDED, self.get('active').status)

    # Not shrunk: an example is half an hour of a life.
    @hypothesis.settings(max_examples=8,
                         phases=[hypothesis.Phase.generate])
    @hypothesis.given(
        servers=st.lists(st.tuples(
            st.integers(0, 300), st.integers(0, 120)), max_size=6),
        normal=st.lists(st.integers(0, LEAD_S - 30), max_size=3),
        restarts=st.lists(st.integers(1, 1800), max_size=3))
    def test_hosts_are_empty_at_the_start(self, servers, normal, restarts):
        """This holds for any notices and restarts of the engine.

        :param servers: [(notice_s, how long the end takes then)]
        :param normal: how long moves take
        :param restarts: how many seconds before the start
        """
        self.now += datetime.timedelta(days=1)
        with self.database.writer() as session:
            calendar_changes.raise_generation(session, reservations=[
                item.uuid for item in self.reservations.list()])
            for model in (models.ReservationHost, models.Reservation):
                session.query(model).delete()
        self.events.told.clear()
        self.begin()
        self.cloud.add_host('h1')
        for number, (notice_s, takes_s) in enumerate(servers):
            self.cloud.boot(f'p{number}', 'h1', preemptible=True,
                            notice_s=notice_s, takes_s=takes_s)
        for number, takes_s in enumerate(normal):
            self.cloud.boot(f'n{number}', 'h1', takes_s=takes_s)
        self.reserve('h1', start_s=1801)
        passed = 0
        for before_s in sorted(restarts, reverse=True):
            self.look_until(1801 - before_s - passed)
            passed = 1801 - before_s
            self.reconciler = self.make_reconciler()
        self.look_until(1801 - passed)
        self.assertEqual([('start', reservation_model.ACTIVE, 0.0)],
                         self.events.told)
        self.assertEqual(set(), self.cloud.on('h1'))
        start = self.get().start_at
        for number, (notice_s, _takes_s) in enumerate(servers):
            early_s = (start - self.cloud.noticed[f'p{number}']
                       ).total_seconds() - notice_s
            self.assertLessEqual(early_s, 120 + notice_period.MARGIN_S)
