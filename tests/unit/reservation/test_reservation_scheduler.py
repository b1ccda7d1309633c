# SPDX-License-Identifier: Apache-2.0
"""The schedule, on SQLite and whatever else OS_TEST_DATABASES names."""

import contextlib
import datetime
import itertools
import os
import random
import threading
import unittest

from oslo_config import cfg

from nova_preempt import exceptions
from nova_preempt.conf import reservation as conf_reservation
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservable_hosts
from nova_preempt.reservation import reservation_scheduler
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 1, 1, 12)
HOUR = datetime.timedelta(hours=1)
DAY = datetime.timedelta(days=1)
HOUR_S = 3600


class Inventory:
    """Hosts with properties; hosts in busy are not vacant."""

    def __init__(self, hosts, busy=()):
        self.hosts = hosts
        self.busy = set(busy)

    def find_hosts(self, context, host_properties):
        assert context == 'context'
        query = host_query.parse(host_properties)
        return [{'name': name, 'vacant': name not in self.busy,
                 'flops_per_watt': properties.get('flops_per_watt')}
                for name, properties in self.hosts.items()
                if query.matches(properties)]


class TestSchedule(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        conf_reservation.register_opts(self.conf)
        self.conf([])
        # As an operator does who wants reservations.
        self.limit(enabled=True, reservable_default=True, max_hosts=-1,
                   max_duration_s=30 * 86400, max_advance_s=180 * 86400)
        self.now = NOW
        self.inventory = Inventory({f'h{number}': {'vcpus': 4 * number}
                                    for number in range(1, 5)})
        self.schedule = self.make()

    def make(self):
        """Return the Schedule of another process."""
        return reservation_scheduler.ReservationScheduler(self.conf, self.db,
                                                          self.inventory,
                                                          lambda: self.now)

    def limit(self, **limits):
        for name, value in limits.items():
            self.conf.set_override(name, value, 'reservation')

    def create(self, project_id='p', duration_s=HOUR_S, **asked):
        return self.schedule.create(
            'context', project_id, 'u',
            reservation_scheduler.Request(duration_s=duration_s, **asked))

    def preview(self, project_id='p', duration_s=HOUR_S, **asked):
        return self.schedule.preview(
            'context', project_id,
            reservation_scheduler.Request(duration_s=duration_s, **asked))

    def refuse(self, error, pattern, call, *args, **values):
        generation = self.schedule.reservations.generation()
        with self.assertRaisesRegex(error, pattern):
            call(*args, **values)
        self.assertEqual(generation, self.schedule.reservations.generation())

    def test_simultaneous_requests_respect_the_limit_of_a_day(self):
        """A check before another grant is repeated."""
        self.limit(max_created_per_day=1)
        grant, other = self.schedule.reservations.grant, self.make()

        def grant_later(*args):
            self.schedule.reservations.grant = grant
            other.create('context', 'p', 'u', reservation_scheduler.Request(
                duration_s=HOUR_S))
            return grant(*args)

        self.schedule.reservations.grant = grant_later
        with self.assertRaisesRegex(exceptions.ReservationLimit,
                                    'max_created_per_day'):
            self.create()
        self.assertEqual(1, len(self.schedule.reservations.list()))

    # -- whether at all --------------------------------------------------

    def test_disabled_by_default(self):
        granted = self.create()
        self.limit(enabled=False)
        for call, arguments in (
                (self.create, {}), (self.preview, {}),
                (self.schedule.change, {
                    'uuid': granted.uuid, 'end_at': NOW + 2 * HOUR})):
            self.refuse(exceptions.ReservationsDisabled,
                        r'\[reservation\]enabled is false', call, **arguments)
        # To give up what one has is always possible.
        self.schedule.change(granted.uuid, end_at=NOW + HOUR / 2, name='n')
        self.schedule.cancel(granted.uuid)

    def test_options_of_a_request(self):
        conf = cfg.ConfigOpts()
        conf_reservation.register_opts(conf)
        conf([])
        self.conf = conf
        self.schedule = self.make()
        self.refuse(exceptions.ReservationsDisabled, 'the operator',
                    self.create)
        self.limit(enabled=True)
        self.refuse(exceptions.NoHostsForReservation, '', self.create)
        for name in self.inventory.hosts:
            reservable_hosts.set_host(self.db, name, reservable=True)
        self.refuse(exceptions.ReservationLimit, 'max_hosts',
                    self.create, quantity=5)
        self.refuse(exceptions.ReservationLimit, 'max_duration_s',
                    self.create, duration_s=30 * 86400)
        self.refuse(exceptions.ReservationLimit, 'max_advance_s',
                    self.create, start_time=NOW + 91 * DAY)
        self.assertEqual(4, len(self.create(quantity=4).held))

    # -- when and where --------------------------------------------------

    def test_a_reservation_that_starts_now(self):
        granted = self.create(quantity=2, name='n')
        self.assertEqual((NOW, NOW + HOUR, 2), (
            granted.start_at, granted.end_at, len(granted.held)))
        self.assertEqual(('n', 'p', 'u', 'pending', 'shelve', 3600),
                         (granted.name, granted.project_id, granted.user_id,
                          granted.status, granted.end_action,
                          granted.before_end_s))
        self.assertEqual([], granted.host_properties)
        self.assertEqual(
            granted, self.schedule.reservations.get(granted.uuid))

    def test_a_preview_agrees_with_the_grant(self):
        self.create(quantity=2)
        asked = {'quantity': 3, 'start_time': NOW, 'end_time': NOW + DAY}
        seen = self.preview(**asked)
        self.assertEqual(1, len(self.schedule.reservations.list()))
        granted = self.create(**asked)
        self.assertEqual((NOW + HOUR, NOW + 2 * HOUR), (
            seen.start_at, seen.end_at))
        self.assertEqual(
            (seen.start_at, seen.end_at, set(seen.hosts)),
            (granted.start_at, granted.end_at, set(granted.held)))

    def test_a_request_without_times_starts_now_or_is_refused(self):
        self.create(quantity=4)
        self.assertIsNone(self.preview())
        self.refuse(exceptions.NoHostsForReservation,
                    'Fewer than 1 of 4 matching hosts are free for 3600 s now'
                    '; 2026-01-01T13:00:00Z is the earliest time', self.create)

    def test_at_any_time_from_a_start(self):
        self.create(quantity=4)
        self.assertEqual(NOW + HOUR, self.create(start_time=NOW).start_at)
        self.assertEqual(NOW + 2 * HOUR,
                         self.create(start_time=NOW + 2 * HOUR).start_at)

    def test_at_any_time_up_to_an_end(self):
        self.create(quantity=4)
        granted = self.create(end_time=NOW + 2 * HOUR)
        self.assertEqual((NOW + HOUR, NOW, NOW + 2 * HOUR), (
            granted.start_at, granted.window_start, granted.window_end))
        self.refuse(exceptions.NoHostsForReservation,
                    'between 2026-01-01T12:00:00Z and 2026-01-01T13:59:59Z; '
                    '2026-01-01T13:00:00Z is', self.create,
                    end_time=NOW + 2 * HOUR - datetime.timedelta(seconds=1))

    def test_from_a_start_to_an_end(self):
        granted = self.create(duration_s=None, start_time=NOW + HOUR,
                              end_time=NOW + 3 * HOUR)
        self.assertEqual((NOW + HOUR, NOW + 3 * HOUR, 7200), (
            granted.start_at, granted.end_at, granted.duration_s))

    def test_only_matching_hosts(self):
        asked = {'host_properties': ['>=', '$vcpus', 12], 'quantity': 2}
        self.assertEqual(('h3', 'h4'), self.create(**asked).held)
        self.refuse(exceptions.NoHostsForReservation,
                    'Fewer than 2 of 2 matching hosts', self.create, **asked)
        self.refuse(exceptions.NoHostsForReservation,
                    '3 hosts are requested, but only 2 ', self.create,
                    **{**asked, 'quantity': 3})
        granted = self.create(host_properties='["=", "$vcpus", "8"]')
        self.assertEqual(['=', '$vcpus', '8'], granted.host_properties)

    def test_the_best_by_the_ranking(self):
        self.inventory.hosts['h3']['flops_per_watt'] = 2e9
        self.inventory.hosts['h4']['flops_per_watt'] = 1e9
        self.assertEqual(('h3', 'h4', 'h1'), self.preview(quantity=3).hosts)
        self.limit(ranking='name')
        self.schedule = self.make()
        self.assertEqual(('h1', 'h2'), self.preview(quantity=2).hosts)
        self.limit(ranking='x')
        with self.assertRaisesRegex(exceptions.InvalidConfiguration,
                                    "'x'; known are: best_fit"):
            self.make()

    def test_only_reservable_hosts(self):
        reservable_hosts.set_host(self.db, 'h1', reservable=False)
        self.assertEqual(3, len(self.create(quantity=3).held))
        self.refuse(exceptions.NoHostsForReservation, 'free', self.create)
        self.limit(reservable_default=False)
        self.assertIsNone(self.preview(start_time=NOW))
        reservable_hosts.set_host(self.db, 'h1', reservable=True)
        self.assertEqual(('h1',), self.preview().hosts)

    def test_hosts_with_normal_servers_are_available_later(self):
        """They are available after [reservation]evacuation_lead_s."""
        self.inventory.busy = {'h2', 'h3', 'h4'}
        lead = datetime.timedelta(seconds=900)
        self.assertEqual(('h1',), self.preview().hosts)
        self.assertIsNone(self.preview(quantity=2))
        found = self.preview(quantity=2, start_time=NOW)
        self.assertEqual(NOW + lead, found.start_at)
        second = datetime.timedelta(seconds=1)
        for start, expected in ((NOW + lead - second, NOW + lead),
                                (NOW + lead, NOW + lead),
                                (NOW + lead + second, NOW + lead + second)):
            found = self.preview(quantity=4, start_time=start)
            self.assertEqual(expected, found.start_at)

    # -- what makes no sense ---------------------------------------------

    def test_invalid_requests(self):
        for asked, message in (
                ({'quantity': 0}, '^quantity: it must be an integer from 1'),
                ({'quantity': True}, '^quantity: '),
                ({'quantity': 2 ** 31}, '^quantity: '),
                ({'duration_s': 0}, '^duration: it must be an integer from 1'),
                ({'duration_s': 1.5}, '^duration: '),
                ({'duration_s': None, 'start_time': NOW, 'end_time':
                  datetime.datetime.fromisoformat('8999-01-01')},
                 '^duration: it must be an integer from 1'),
                ({'start_time': NOW - HOUR}, '^start_time: it is in the past'),
                ({'start_time': datetime.datetime.max},
                 '^start_time: it must be before 9000'),
                ({'end_time': datetime.datetime.max}, '^end_time: it must be'),
                ({'name': 'x' * 256}, '^name: it must be a string of at '),
                ({'end_action': 'stop'}, '^end_action: it must be one of '),
                ({'before_end_s': -1}, '^before_end_s: '),
                ({'host_properties': ['?']}, r'^host_properties\[0\]: unkn'),
                ({'host_properties': '['}, '^host_properties: it is not val'),
                ({'host_properties': {}}, '^host_properties: it must be a '),
        ):
            for call in (self.create, self.preview):
                self.refuse(exceptions.InvalidReservation, message, call,
                            **asked)

    # -- limits ----------------------------------------------------------

    def test_number_of_reservations(self):
        self.limit(max_reservations=2)
        first = self.create()
        self.create()
        self.create('q')
        for call in (self.create, self.preview):
            self.refuse(exceptions.ReservationLimit,
                        'max_reservations would be exceeded: 2 allowed, 2 '
                        'used, 1 requested', call)
        self.schedule.cancel(first.uuid)
        self.create()

    def test_hosts_at_once(self):
        self.limit(max_hosts=3)
        self.create(quantity=2)
        message = 'max_hosts would be exceeded: 3 allowed, 2 used, 2 requested'
        for call in (self.create, self.preview):
            self.refuse(exceptions.ReservationLimit, message, call,
                        quantity=2)
            self.refuse(exceptions.ReservationLimit, '3 allowed, 0 used, 4',
                        call, quantity=4)
        self.create(quantity=2, start_time=NOW + HOUR)
        self.create(start_time=NOW, duration_s=7200)

    def test_duration(self):
        self.limit(max_duration_s=7200)
        self.create(duration_s=7200)
        for call in (self.create, self.preview):
            self.refuse(exceptions.ReservationLimit,
                        'max_duration_s would be exceeded: 7200 allowed, 0 '
                        'used, 7201 requested', call, duration_s=7201)

    def test_limit_in_advance(self):
        self.limit(max_advance_s=7200)
        self.create(quantity=4, start_time=NOW, duration_s=7200)
        self.assertEqual(NOW + 2 * HOUR, self.create(
            quantity=4, start_time=NOW).start_at)
        for call in (self.create, self.preview):
            self.refuse(exceptions.ReservationLimit,
                        'max_advance_s would be exceeded: 7200 allowed, 0 '
                        'used, 10800 requ', call, start_time=NOW + 3 * HOUR)
        self.refuse(exceptions.NoHostsForReservation,
                    'free for 3600 s after 2026-01-01T12:00:00Z.$',
                    self.create, start_time=NOW)
        self.limit(max_advance_s=-1)
        self.assertEqual(NOW + 3 * HOUR, self.preview(
            start_time=NOW).start_at)

    def test_limits_of_a_project(self):
        reservable_hosts.set_limits(self.db, 'p', {'max_hosts': 1,
                                                   'max_reservations': -1})
        for _number in range(3):
            self.create('q')
        self.create()
        self.refuse(exceptions.ReservationLimit, 'max_hosts', self.create,
                    start_time=NOW, quantity=2)
        self.limit(max_reservations=0)
        self.create(start_time=NOW)
        self.refuse(exceptions.ReservationLimit, 'max_reservations',
                    self.create, 'q', start_time=NOW)

    # -- changes ---------------------------------------------------------

    def test_change(self):
        uuid = self.create(quantity=2).uuid
        changed = self.schedule.change(uuid, 'p', name='n',
                                       end_action='delete', before_end_s=5)
        self.assertEqual(('n', 'delete', 5), (
            changed.name, changed.end_action, changed.before_end_s))
        changed = self.schedule.change(
            uuid, name='m', end_at=NOW + 2 * HOUR + HOUR / 7200)
        self.assertEqual((NOW + 2 * HOUR, 'm'),
                         (changed.end_at, changed.name))
        self.now += HOUR
        self.assertEqual(NOW + 1.5 * HOUR, self.schedule.change(
            uuid, end_at=NOW + 1.5 * HOUR).end_at)

    def test_invalid_changes(self):
        uuid = self.create(start_time=NOW + HOUR).uuid
        for changes, message in (
                ({'end_action': 'stop'}, '^end_action: '),
                ({'name': 7}, '^name: '),
                ({'before_end_s': 2 ** 31}, '^before_end_s: '),
                ({'end_at': NOW}, '^end_at: it must be after now'),
                ({'end_at': NOW + HOUR}, '^end_at: it must be after the st'),
                ({'end_at': datetime.datetime.max}, '^end_at: it must be be')):
            self.refuse(exceptions.InvalidReservation, message,
                        self.schedule.change, uuid, **changes)
        self.refuse(exceptions.ReservationNotFound, uuid,
                    self.schedule.change, uuid, 'q', name='n')

    def test_longer_only_where_hosts_are_free(self):
        uuid = self.create(quantity=4).uuid
        self.create(host_properties=['=', '$vcpus', 8], start_time=(
            NOW + 2 * HOUR))
        self.refuse(exceptions.NoHostsForReservation,
                    '1 of . hosts are not free', self.schedule.change, uuid,
                    end_at=NOW + 2 * HOUR + HOUR / 3600)
        self.schedule.change(uuid, end_at=NOW + 2 * HOUR)

    def test_longer_only_within_the_limits(self):
        self.limit(max_duration_s=7200, max_hosts=3)
        uuid = self.create(quantity=2).uuid
        self.create(quantity=2, start_time=NOW + 1.5 * HOUR)
        self.refuse(exceptions.ReservationLimit, 'max_duration_s.* 7201 req',
                    self.schedule.change, uuid,
                    end_at=NOW + 2 * HOUR + HOUR / 3600)
        self.refuse(exceptions.ReservationLimit,
                    'max_hosts would be exceeded: 3 allowed, 2 used, 2 requ',
                    self.schedule.change, uuid, end_at=NOW + 2 * HOUR)
        self.schedule.change(uuid, end_at=NOW + 1.5 * HOUR)
        self.limit(max_duration_s=60, max_hosts=1)
        self.schedule.change(uuid, end_at=NOW + HOUR)

    def test_no_change_once_it_is_over(self):
        uuid = self.create().uuid
        self.now += HOUR
        self.refuse(exceptions.WrongState, 'is over',
                    self.schedule.change, uuid, end_at=NOW + 2 * HOUR)
        self.schedule.reservations.update(uuid, status=reservation_model.ENDED)
        for changes in ({'name': 'n'}, {'end_at': NOW + 2 * HOUR}):
            self.refuse(exceptions.WrongState, 'is ended',
                        self.schedule.change, uuid, **changes)

    def test_cancel_before_the_start(self):
        uuid = self.create(start_time=NOW + HOUR, quantity=4).uuid
        cancelled = self.schedule.cancel(uuid, 'p')
        self.assertEqual(reservation_model.CANCELLED, cancelled.status)
        self.create(start_time=NOW + HOUR, quantity=4)
        self.refuse(exceptions.WrongState, 'is cancelled',
                    self.schedule.cancel, uuid)
        self.refuse(exceptions.ReservationNotFound, 'no reservation',
                    self.schedule.cancel, uuid, 'q')

    def test_cancel_after_the_start_is_an_end(self):
        uuid = self.create(quantity=4).uuid
        self.schedule.reservations.update(uuid,
                                          status=reservation_model.ACTIVE)
        self.now += HOUR / 2
        ending = self.schedule.cancel(uuid)
        self.assertEqual((reservation_model.ACTIVE, self.now),
                         (ending.status, ending.end_at))
        self.create(quantity=4)
        self.now += HOUR / 2
        self.assertEqual(ending.end_at, self.schedule.cancel(uuid).end_at)

    def test_cancel_a_degraded_reservation(self):
        for begun in (False, True):
            uuid = self.create(start_time=self.now + HOUR, quantity=2).uuid
            kept = self.schedule.reservations.get(uuid).held[0]
            self.schedule.reservations.replace_host(uuid, kept)
            self.now += 1.5 * HOUR * begun
            found = self.schedule.cancel(uuid)
            self.assertEqual(
                (reservation_model.DEGRADED, self.now) if begun
                else (reservation_model.CANCELLED, found.start_at + HOUR),
                (found.status, found.end_at))

    def test_no_two_have_a_host_at_once(self):
        """This holds for any requests to any process."""
        rng = random.Random(1)
        requests = [reservation_scheduler.Request(
            duration_s=rng.randint(1, 9), quantity=rng.randint(1, 3),
            start_time=NOW, end_time=NOW + HOUR * rng.randint(8, 30) / 3600)
            for _number in range(40)]
        schedules = [self.make() for _ in range(4)]
        self.limit(max_reservations=-1)

        def ask(number):
            for request in requests[number::4]:
                with contextlib.suppress(exceptions.NoHostsForReservation,
                                         exceptions.InvalidReservation):
                    schedules[number].create('context', 'p', 'u', request)

        threads = [threading.Thread(target=ask, args=(number,))
                   for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        granted = self.schedule.reservations.list()
        self.assertGreater(len(granted), 10)
        for item in granted:
            self.assertEqual(item.quantity, len(item.held))
        for bookings in self.schedule.reservations.schedule_of(
                {host for item in granted for host in item.held}).values():
            for one, other in itertools.pairwise(bookings):
                self.assertLessEqual(one.end_at, other.start_at)

    def test_one_of_fifty_requests_gets_the_last_host(self):
        self.create(quantity=3)
        schedules = [self.make() for _ in range(4)]
        got, refused = [], []

        def want(number):
            try:
                got.append(schedules[number % 4].create(
                    'context', f'p{number}', 'u',
                    reservation_scheduler.Request(duration_s=60)))
            except exceptions.NoHostsForReservation:
                refused.append(number)

        threads = [threading.Thread(target=want, args=(number,))
                   for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((1, 49), (len(got), len(refused)))


def load_tests(loader, tests, pattern):
    """Return the tests on each database, without inherited ones."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        for name in vars(TestSchedule):
            if name.startswith('test_'):
                case = TestSchedule(name)
                case.url = url
                suite.addTest(case)
    return suite
