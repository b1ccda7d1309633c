# SPDX-License-Identifier: Apache-2.0
"""Reservations, on the databases of test_decisions."""

import contextlib
import datetime
import os
import threading
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt import exceptions
from nova_preempt.core.reservation import calendar as core
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservable_hosts
from nova_preempt.db import reservation_calendar
from nova_preempt.db import reservations
from nova_preempt.db import transaction_retries
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 1, 1, 12)
NOW_S = reservation_model.to_s(NOW)
HOUR = datetime.timedelta(hours=1)


def asked(uuid, **changes):
    values = {'uuid': uuid, 'project_id': 'p1', 'user_id': 'u1', 'name': uuid,
              'quantity': 1, 'duration_s': 3600, 'window_start': NOW,
              'end_action': 'shelve', 'before_end_s': 60,
              'host_properties': ['=', '$é', 1]}
    return reservation_model.Reservation(**{**values, **changes})


def chooser(hosts, start_s=NOW_S, duration_s=3600, quantity=1):
    """Return a function that finds the earliest time on these hosts."""
    def choose(calendar):
        return core.find(
            [core.ReservableHost(host, calendar.busy.get(host, ()))
             for host in hosts],
            window_start_s=start_s, window_end_s=start_s + duration_s,
            duration_s=duration_s, quantity=quantity)
    return choose


class TestReservations(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def setUp(self):
        super().setUp()
        self.now = NOW
        self.mine = self.make()

    def make(self):
        """Return the store of another process."""
        return reservations.Reservations(self.db, lambda: self.now)

    def grant(self, uuid, hosts=('h1',), after=datetime.timedelta(0),
              **changes):
        item = asked(uuid, quantity=len(hosts), **changes)
        start_s = NOW_S + int(after.total_seconds())
        return self.mine.grant(item, chooser(
            hosts, start_s, item.duration_s, len(hosts)))

    def test_comes_back_as_it_went(self):
        granted = self.grant('r1', ['h2', 'h1'], window_end=NOW + HOUR)
        self.assertEqual(granted, self.mine.get('r1'))
        self.assertEqual(('h1', 'h2'), granted.held)
        self.assertEqual((NOW, NOW + HOUR), (granted.start_at,
                                             granted.end_at))
        self.assertEqual((NOW_S, NOW_S + 3600), (granted.start_s,
                                                 granted.end_s))
        self.assertEqual(granted, self.mine.get('r1', 'p1'))
        for uuid, project_id in (('r1', 'p2'), ('r2', None)):
            with self.assertRaisesRegex(exceptions.ReservationNotFound, uuid):
                self.mine.get(uuid, project_id)

    def test_a_host_is_given_once(self):
        self.grant('r1', ['h1', 'h2'])
        for mine in (self.mine, self.make()):
            with self.assertRaises(exceptions.NoHostsForReservation):
                mine.grant(asked('r2'), chooser(['h1', 'h2']))
        self.assertEqual(1, self.mine.generation())
        self.grant('r2', ['h1'], after=HOUR)
        self.grant('r3', ['h2'], after=-HOUR)

    def test_a_check_refuses(self):
        def check(found, others):
            self.assertEqual(('h2',), found.hosts)
            self.assertEqual(['r1'], [item.uuid for item in others])
            raise exceptions.ReservationLimit('too many')

        self.grant('r1')
        self.grant('r2', ['h3'], project_id='p2')
        with self.assertRaisesRegex(exceptions.ReservationLimit, 'too many'):
            self.mine.grant(asked('r3'), chooser(['h2']), check)
        self.assertEqual(2, self.mine.generation())
        self.assertEqual(2, len(self.mine.list()))

    def test_the_cached_calendar_agrees_with_the_database(self):
        """This holds after writes of any process."""
        other = self.make()

        def check():
            fresh = self.make().calendar()
            for each in (self.mine, other):
                self.assertEqual(fresh, each.calendar())

        check()
        self.grant('r1', ['h1', 'h2'])
        check()
        other.grant(asked('r2'), chooser(['h1'], NOW_S + 3600))
        check()
        self.grant('r3', ['h1', 'h3'], after=2 * HOUR)
        check()
        self.mine.replace_host('r1', 'h2', 'h4')
        check()
        other.set_end('r3', NOW + 4 * HOUR)
        check()
        self.mine.update('r3', status=reservation_model.CANCELLED)
        check()
        reservable_hosts.set_host(self.db, 'h1', reservable=False)
        check()
        self.assertEqual(
            {'h1': ((NOW_S, NOW_S + 7200),), 'h4': ((NOW_S, NOW_S + 3600),)},
            self.mine.calendar().busy)
        self.assertIs(self.mine.calendar(), self.mine.calendar())

    def test_snapshot(self):
        for number, status in enumerate(reservation_model.STATUSES):
            self.grant(f'r{number}', [f'h{number}'], after=-number * HOUR)
            self.mine.update(f'r{number}', status=status)
        found = self.mine.snapshot()
        self.assertEqual(self.mine.generation(), found.generation)
        self.assertEqual(['r2', 'r1', 'r0'],
                         [item.uuid for item in found.reservations])
        self.assertEqual(('h0',), found.reservations[-1].held)
        self.assertEqual(['h0', 'h1', 'h2'],
                         sorted(self.mine.calendar().busy))

    def test_list(self):
        for number in range(5):
            self.now = NOW + number * HOUR
            self.grant(f'r{number}', ['h0', f'h{number + 1}'], after=(
                number * HOUR), project_id=f'p{number % 2}')
        self.mine.update('r1', status=reservation_model.ENDED, released_at=NOW)

        def uuids(**conditions):
            return ' '.join(item.uuid
                            for item in self.mine.list(**conditions))

        self.assertEqual('r4 r3 r2 r1 r0', uuids())
        self.assertEqual('r3 r1', uuids(project_id='p1'))
        self.assertEqual('r2', uuids(name='r2', user_id='u1'))
        self.assertEqual('r3', uuids(host='h4'))
        self.assertEqual('r1', uuids(statuses=[reservation_model.ENDED]))
        self.assertEqual('r1', uuids(released=True))
        self.assertEqual('r4 r3', uuids(released=False, limit=2))
        self.assertEqual('r3 r2', uuids(since=NOW + 2.5 * HOUR,
                                        until=NOW + 4 * HOUR))
        self.assertEqual('r2 r1', uuids(marker=self.mine.get('r3'), limit=2))

    def test_update_goes_by_the_status(self):
        self.grant('r1')
        generation = self.mine.generation()
        self.assertFalse(self.mine.update(
            'r1', from_status=reservation_model.ACTIVE, name='x'))
        self.assertTrue(self.mine.update(
            'r1', from_status=reservation_model.OPEN, name='x',
            noticed_at=NOW))
        self.assertEqual(generation, self.mine.generation())
        self.assertTrue(self.mine.update(
            'r1', from_status=reservation_model.PENDING,
            status=reservation_model.ACTIVE))
        self.assertFalse(self.mine.update('r2', name='x'))
        found = self.mine.get('r1')
        self.assertEqual(('x', reservation_model.ACTIVE),
                         (found.name, found.status))
        self.assertLess(generation, self.mine.generation())

    def test_hosts_on_their_way(self):
        self.grant('r1', ['h1', 'h2'])
        self.assertTrue(self.mine.set_host(
            'r1', 'h1', reservation_model.EMPTYING, 'why', 'told'))
        self.assertFalse(self.mine.set_host('r1', 'h3',
                                            reservation_model.READY))
        self.assertEqual(
            [('h1', reservation_model.EMPTYING, 'why', 'told'),
             ('h2', reservation_model.ASSIGNED, '', None)],
            [(item.host, item.status, item.reason, item.public_reason)
             for item in self.mine.get('r1').hosts])

    def test_another_host(self):
        self.grant('r1', ['h1', 'h2'])
        self.grant('r2', ['h3'])
        with self.assertRaisesRegex(exceptions.NoHostsForReservation,
                                    '1 of 1 hosts are not free'):
            self.mine.replace_host('r1', 'h2', 'h3')
        with self.assertRaisesRegex(exceptions.WrongState, 'the host h3'):
            self.mine.replace_host('r1', 'h3', 'h4')
        self.assertEqual(('h1', 'h2'), self.mine.get('r1').held)
        found = self.mine.replace_host('r1', 'h2', 'h4', 'it is down')
        self.assertEqual(('h1', 'h4'), found.held)
        self.assertEqual(reservation_model.PENDING, found.status)
        self.assertEqual(
            ('h2', reservation_model.LOST, 'it is down'),
            (found.hosts[1].host, found.hosts[1].status,
             found.hosts[1].reason))
        self.grant('r3', ['h2'])
        self.assertFalse(self.mine.set_host('r1', 'h2',
                                            reservation_model.READY))

    def lose_answer(self):
        """Lose the connection after the commit of the next transaction."""
        real = self.db.writer

        @contextlib.contextmanager
        def writer():
            patch.stop()
            with real() as session:
                yield session
            raise db_exc.DBConnectionError

        patch = mock.patch.object(self.db, 'writer', writer)
        patch.start()

    @mock.patch('time.sleep')
    def test_a_grant_whose_answer_is_lost(self, _sleep):
        self.lose_answer()
        self.assertEqual(self.grant('r1', ['h1', 'h2']), self.mine.get('r1'))
        self.assertEqual({'h1', 'h2'}, set(self.make().calendar().busy))

    @mock.patch('time.sleep')
    def test_replacements_whose_answers_are_lost(self, _sleep):
        self.grant('r1', ['h1', 'h2'])
        for old, new, held in (('h2', 'h3', ('h1', 'h3')),
                               ('h3', None, ('h1',)),
                               (None, 'h4', ('h1', 'h4'))):
            with self.subTest(old=old, new=new):
                self.lose_answer()
                found = self.mine.replace_host('r1', old, new, 'it is down')
                self.assertEqual(held, found.held)
                self.assertEqual(found, self.mine.get('r1'))
        self.assertEqual(['it is down'] * 2, [
            host.reason for host in found.hosts
            if host.status == reservation_model.LOST])

    def test_degraded_and_whole_again(self):
        self.grant('r1', ['h1', 'h2'])
        found = self.mine.replace_host('r1', 'h2', None, 'it is down')
        self.assertEqual(
            (reservation_model.DEGRADED,
             '1 of 2 hosts are missing: it is down'),
            (found.status, found.reason))
        self.assertEqual(('h1',), found.held)
        self.now += HOUR / 2
        found = self.mine.replace_host('r1', None, 'h2')
        # Its hosts were never empty, so it has not started yet.
        self.assertEqual((reservation_model.PENDING, '', ('h1', 'h2')),
                         (found.status, found.reason, found.held))
        # It had not had it for a while, and another might have.
        self.assertEqual(NOW + HOUR / 2, found.hosts[1].start_at)
        self.assertEqual(NOW, found.hosts[0].start_at)

    def test_degraded_while_active_and_whole_again(self):
        self.grant('r1', ['h1', 'h2'])
        self.mine.update('r1', status=reservation_model.ACTIVE, ready_at=NOW)
        for new, status in ((None, reservation_model.DEGRADED),
                            ('h2', reservation_model.ACTIVE)):
            found = self.mine.replace_host(
                'r1', None if new else 'h2', new)
            self.assertEqual(status, found.status)

    def test_no_other_host_once_it_is_over(self):
        self.grant('r1')
        self.now += HOUR
        with self.assertRaisesRegex(exceptions.WrongState, 'ends now'):
            self.mine.replace_host('r1', 'h1', 'h2')
        self.mine.update('r1', status=reservation_model.ENDED)
        with self.assertRaisesRegex(exceptions.WrongState, 'is ended'):
            self.mine.replace_host('r1', 'h1', 'h2')
        with self.assertRaises(exceptions.ReservationNotFound):
            self.mine.replace_host('r2', 'h1', 'h2')

    def test_another_end(self):
        self.grant('r1', ['h1', 'h2'])
        self.grant('r2', ['h2'], after=2 * HOUR)
        self.mine.update('r1', noticed_at=NOW)
        found = self.mine.set_end('r1', NOW + HOUR / 2)
        self.assertEqual((NOW + HOUR / 2, 1800, NOW), (
            found.end_at, found.duration_s, found.noticed_at))
        self.grant('r3', ['h1'], after=HOUR / 2, duration_s=900)
        with self.assertRaisesRegex(exceptions.NoHostsForReservation,
                                    '1 of 2 hosts are not free'):
            self.mine.set_end('r1', NOW + HOUR)
        self.mine.update('r3', status=reservation_model.CANCELLED)
        with self.assertRaisesRegex(exceptions.NoHostsForReservation,
                                    '1 of 2 hosts are not free'):
            self.mine.set_end('r1', NOW + 3 * HOUR)
        found = self.mine.set_end('r1', NOW + 2 * HOUR)
        self.assertEqual((NOW + 2 * HOUR, 7200, None), (
            found.end_at, found.duration_s, found.noticed_at))
        self.assertEqual({NOW + 2 * HOUR},
                         {item.end_at for item in found.hosts})

    def test_a_check_refuses_another_end(self):
        def check(reservation, others):
            self.assertEqual([reservation], others)
            raise exceptions.ReservationLimit('too long')

        self.grant('r1')
        with self.assertRaisesRegex(exceptions.ReservationLimit, 'too long'):
            self.mine.set_end('r1', NOW + 2 * HOUR, check)
        self.assertEqual(NOW + HOUR, self.mine.get('r1').end_at)

    def test_schedule_of_hosts(self):
        self.grant('r1', ['h1', 'h2'], after=HOUR)
        self.grant('r2', ['h1'])
        found = self.mine.schedule_of(['h1', 'h2'])
        self.assertEqual(['r2', 'r1'], [item.reservation_uuid
                                        for item in found['h1']])
        self.assertEqual({'h2': found['h2']}, self.mine.schedule_of(['h2']))
        self.assertEqual(
            reservations.Booking('h2', 'r1', 'p1', reservation_model.PENDING,
                                 NOW + HOUR, NOW + 2 * HOUR),
            found['h2'][0])
        self.assertEqual({}, self.mine.schedule_of(['h3']))

    def test_schedule_of_a_period(self):
        self.grant('r1', ['h1'], after=HOUR)
        self.grant('r2', ['h1'])

        def listed(**period):
            return [item.reservation_uuid for item in self.mine.schedule_of(
                ['h1'], **period).get('h1', ())]

        self.assertEqual(['r2'], listed(until=NOW + HOUR))
        self.assertEqual(['r1'], listed(since=NOW + HOUR))
        self.assertEqual([], listed(until=NOW))
        self.assertEqual(['r2', 'r1'], listed(
            since=NOW, until=NOW + 2 * HOUR))

    def test_a_lock_timeout_is_retried(self):
        tries = []

        @transaction_retries.retried
        def write():
            tries.append(1)
            if len(tries) == 1:
                raise db_exc.DBError(Exception('database is locked'))
            raise db_exc.DBError(Exception('disk is full'))

        with (mock.patch('time.sleep'),
              self.assertRaisesRegex(db_exc.DBError, 'full')):
            write()
        self.assertEqual(2, len(tries))

    def test_one_of_fifty_requests_gets_the_last_host(self):
        self.grant('r', ['h1', 'h2'])
        processes = [self.make() for _ in range(4)]
        got, others = [], []
        gate = threading.Barrier(50)

        def want(number):
            gate.wait()
            try:
                processes[number % 4].grant(
                    asked(f'r{number}'), chooser(['h1', 'h2', 'h3']))
                got.append(number)
            except exceptions.NoHostsForReservation:
                others.append(number)

        threads = [threading.Thread(target=want, args=(number,))
                   for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((1, 49), (len(got), len(others)))
        self.assertEqual({'h1', 'h2', 'h3'}, set(self.mine.calendar().busy))
        self.assertEqual(2, self.mine.generation())

    def test_settings_of_hosts(self):
        self.assertEqual({}, reservable_hosts.get_hosts(self.db))
        reservable_hosts.set_host(self.db, 'h1', extra={'rack': 'é', 'n': [1]})
        reservable_hosts.set_host(self.db, 'h1', reservable=False)
        reservable_hosts.set_host(self.db, 'h2', reservable=True)
        expected = reservation_calendar.HostSettings('h1', False, {'rack': 'é',
                                                                   'n': [1]})
        self.assertEqual(expected, reservable_hosts.get_hosts(self.db)['h1'])
        found = self.mine.calendar()
        self.assertEqual(expected, found.settings['h1'])
        self.assertEqual([False, True, True, False], [
            found.is_reservable('h1', True), found.is_reservable('h2', False),
            found.is_reservable('h3', True), found.is_reservable('h3', False),
        ])
        reservable_hosts.set_host(self.db, 'h1', reservable=None)
        self.assertIsNone(self.mine.calendar().settings['h1'].reservable)

    def test_hidden_properties(self):
        for name, hidden in (('a', True), ('b', True), ('a', True),
                             ('b', False), ('c', False)):
            reservable_hosts.set_hidden(self.db, name, hidden)
        self.assertEqual({'a'}, reservable_hosts.get_hidden(self.db))

    def test_limits_of_a_project(self):
        self.assertEqual({}, reservable_hosts.get_limits(self.db, 'p1'))
        reservable_hosts.set_limits(self.db, 'p1', {'max_hosts': 3})
        reservable_hosts.set_limits(self.db, 'p1', {'max_hosts': 4})
        reservable_hosts.set_limits(self.db, 'p2', {'max_hosts': 5})
        self.assertEqual({'max_hosts': 4},
                         reservable_hosts.get_limits(self.db, 'p1'))
        reservable_hosts.set_limits(self.db, 'p1', {})
        self.assertEqual({}, reservable_hosts.get_limits(self.db, 'p1'))
        self.assertEqual({'max_hosts': 5},
                         reservable_hosts.get_limits(self.db, 'p2'))


def load_tests(loader, tests, pattern):
    """Run the own tests of each class on each database."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        for name in vars(TestReservations):
            if name.startswith('test_'):
                case = TestReservations(name)
                case.url = url
                suite.addTest(case)
    return suite
