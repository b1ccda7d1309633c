# SPDX-License-Identifier: Apache-2.0
"""Reservations start and end at their time."""

import datetime
from unittest import mock

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import models
from nova_preempt.db import reservation_rows
from nova_preempt.reservation import lease_event_loop
from tests.unit.reservation import life
from tests.unit.reservation.life import HOUR_S


class TestMoments(life.LifeTestCase):

    def test_all_events_of_a_reservation(self):
        self.reserve('h1', 'h2')
        self.make_ready()
        self.lease_events.run()
        self.assertEqual([], self.events.told)
        self.pass_time(HOUR_S)
        self.lease_events.run()
        found = self.get()
        self.assertEqual((reservation_model.ACTIVE, self.now),
                         (found.status, found.ready_at))
        self.pass_time(HOUR_S - 600)
        self.lease_events.run()
        self.lease_events.run()
        self.assertEqual(self.now, self.get().noticed_at)
        self.pass_time(600)
        self.lease_events.run()
        self.lease_events.run()
        self.assertEqual((reservation_model.ENDED, ''),
                         (self.get().status, self.get().reason))
        self.assertEqual([('start', reservation_model.ACTIVE, 0.0),
                          ('before_end', reservation_model.ACTIVE, None),
                          ('end', reservation_model.ENDED, 0.0)],
                         self.events.told)

    def test_the_clock_is_set_back_while_it_acts(self):
        self.reserve('h1')
        self.make_ready()
        self.pass_time(2 * HOUR_S)
        late = self.now
        read = iter([late])
        with mock.patch.object(
                self.lease_events, '_clock', lambda: next(
                    read, late - datetime.timedelta(hours=1))):
            self.lease_events.run()
        self.assertEqual(reservation_model.ENDED, self.get().status)

    def test_the_next_step_is_in_time(self):
        self.assertEqual(lease_event_loop.POLL_S, self.lease_events.run())
        self.reserve('h1')
        self.make_ready()
        self.assertEqual(lease_event_loop.POLL_S, self.lease_events.run())
        self.pass_time(HOUR_S - 0.25)
        self.assertEqual(0.25, self.lease_events.run())
        self.assertEqual(reservation_model.PENDING, self.get().status)
        self.pass_time(0.25)
        self.lease_events.run()
        self.assertEqual(reservation_model.ACTIVE, self.get().status)

    def test_does_not_start_before_all_hosts_are_empty(self):
        self.reserve('h1', 'h2')
        self.reservations.set_host('r1', 'h1', reservation_model.READY)
        self.pass_time(HOUR_S)
        self.lease_events.run()
        self.assertEqual(reservation_model.PENDING, self.get().status)
        self.reservations.set_host('r1', 'h2', reservation_model.READY)
        self.pass_time(2.5)
        self.lease_events.start('r1')
        self.lease_events.start('r1')
        self.assertEqual([('start', reservation_model.ACTIVE, 2.5)],
                         self.events.told)

    def test_a_degraded_reservation_starts(self):
        self.reserve('h1', 'h2')
        self.reservations.replace_host('r1', 'h2', None, 'h2 is down')
        self.make_ready()
        self.pass_time(HOUR_S)
        self.lease_events.run()
        self.assertEqual((reservation_model.DEGRADED, self.now),
                         (self.get().status, self.get().ready_at))
        self.assertEqual([('start', reservation_model.DEGRADED, 0.0)],
                         self.events.told)
        # It has all hosts again, and one of them is not empty yet.
        self.reservations.replace_host('r1', None, 'h3')
        self.pass_time(HOUR_S)
        self.lease_events.run()
        self.assertEqual(('end', reservation_model.ENDED, 0.0),
                         self.events.told[-1])

    def test_a_reservation_without_hosts_does_not_start(self):
        self.reserve('h1')
        self.reservations.replace_host('r1', 'h1', None, 'h1 is down')
        self.pass_time(HOUR_S)
        self.lease_events.run()
        self.assertIsNone(self.get().ready_at)
        self.pass_time(HOUR_S)
        self.lease_events.run()
        self.assertIn('it ended before its hosts were empty: 1 of 1 hosts',
                      self.get().reason)

    def test_shorter_than_its_notice(self):
        self.reserve('h1', duration_s=60)
        self.make_ready()
        self.pass_time(HOUR_S)
        self.lease_events.run()
        self.lease_events.run()
        self.assertEqual(['start', 'before_end'],
                         [item[0] for item in self.events.told])

    def test_a_change_at_the_last_moment(self):
        self.reserve('h1', start_s=0)
        self.make_ready()
        self.lease_events.run()
        self.pass_time(HOUR_S - 600)
        self.reservations.set_end('r1', self.now + datetime.timedelta(
            hours=1))
        self.lease_events.run()
        self.assertIsNone(self.get().noticed_at)
        self.reservations.update('r1', before_end_s=HOUR_S)
        self.lease_events.run()
        self.assertEqual(self.now, self.get().noticed_at)
        self.reservations.set_end('r1', self.now + datetime.timedelta(
            seconds=1))
        self.pass_time(1)
        self.lease_events.run()
        self.assertEqual(reservation_model.ENDED, self.get().status)

    def test_extended_while_it_is_being_ended(self):
        self.reserve('h1', start_s=0)
        self.make_ready()
        self.lease_events.run()
        self.pass_time(HOUR_S)
        real = reservation_rows.get_many

        def get_many(database, uuids):
            found = real(database, uuids)
            self.reservations.set_end('r1', self.now + datetime.timedelta(
                hours=9))
            return found

        with mock.patch.object(reservation_rows, 'get_many', get_many):
            self.lease_events.run()
        self.assertEqual(reservation_model.ACTIVE, self.get().status)
        self.assertNotIn('end', [item[0] for item in self.events.told])

    def test_many_events_at_one_time(self):
        for number in range(30):
            self.reserve(f'h{number}', uuid=f'r{number}')
            self.make_ready(f'r{number}')
        self.lease_events.run()
        self.pass_time(HOUR_S)
        before = self.reservations.generation()
        self.lease_events.run()
        self.assertEqual(before + 1, self.reservations.generation())
        self.assertEqual(30 * [('start', reservation_model.ACTIVE, 0.0)],
                         self.events.told)

    def test_a_cancelled_reservation(self):
        self.reserve('h1')
        self.make_ready()
        self.lease_events.run()
        self.reservations.update('r1', status=reservation_model.CANCELLED)
        self.pass_time(9 * HOUR_S)
        self.lease_events.run()
        self.assertEqual((reservation_model.CANCELLED, []),
                         (self.get().status, self.events.told))

    def test_the_database_is_down(self):
        self.reserve('h1', start_s=0)
        self.make_ready()
        self.lease_events.run()
        self.pass_time(HOUR_S)
        with mock.patch.object(reservation_rows, 'change_many',
                               side_effect=OSError('away')):
            self.assertRaises(OSError, self.lease_events.run)
        self.pass_time(3)
        self.lease_events.run()
        self.assertEqual(('end', reservation_model.ENDED, 3.0),
                         self.events.told[-1])

    @hypothesis.settings(max_examples=15)
    @hypothesis.given(steps=st.lists(st.integers(0, 2 * HOUR_S),
                                     max_size=12),
                      starts=st.lists(st.integers(0, 2 * HOUR_S),
                                      min_size=1, max_size=4))
    def test_states_follow_the_time_of_each_step(self, steps, starts):
        """An engine that stops and starts has done the same in the end."""
        self.forget()
        granted = [self.reserve(f'h{number}', uuid=f'r{number}',
                                start_s=start_s)
                   for number, start_s in enumerate(starts)]
        for reservation in granted:
            self.make_ready(reservation.uuid)
        for step in steps:
            self.pass_time(step)
            self.make_lease_events().run()
            self.make_lease_events().run()
            for reservation in granted:
                self.assertEqual(
                    reservation_model.PENDING
                    if self.now < reservation.start_at else
                    reservation_model.ACTIVE if self.now < reservation.end_at
                    else
                    reservation_model.ENDED, self.get(reservation.uuid).status)

    @hypothesis.settings(max_examples=15)
    @hypothesis.given(
        starts=st.lists(st.integers(0, 2 * HOUR_S), min_size=1, max_size=4),
        steps=st.lists(st.tuples(
            st.integers(0, HOUR_S), st.integers(0, 3),
            st.sampled_from((None, -1800, 1800, 'cancel'))), max_size=10))
    def test_states_follow_the_time_despite_changes(self, starts, steps):
        """The loop continues with its memory from before the change."""
        self.forget()
        granted = [self.reserve(f'h{number}', uuid=f'r{number}',
                                start_s=start_s).uuid
                   for number, start_s in enumerate(starts)]
        for uuid in granted:
            self.make_ready(uuid)
        for step, number, change in steps:
            uuid = granted[number % len(granted)]
            self.change(self.get(uuid), change)
            self.lease_events.run()
            self.pass_time(step)
            self.lease_events.run()
            self.lease_events.run()
            for item in map(self.get, granted):
                if item.status != reservation_model.CANCELLED:
                    self.assertEqual(
                        reservation_model.PENDING if self.now < item.start_at
                        else
                        reservation_model.ACTIVE if self.now < item.end_at else
                        reservation_model.ENDED, item.status)

    def change(self, item, change):
        if change == 'cancel':
            self.reservations.update(item.uuid,
                                     from_status=reservation_model.PENDING,
                                     status=reservation_model.CANCELLED)
        elif change and item.status in reservation_model.OPEN:
            end_at = item.end_at + datetime.timedelta(seconds=change)
            self.reservations.set_end(
                item.uuid, max(end_at, item.start_at
                               + datetime.timedelta(seconds=1)))

    def forget(self):
        """Begin the next example a day later."""
        self.now += datetime.timedelta(days=1)
        with self.database.writer() as session:
            calendar_changes.raise_generation(session, reservations=[
                item.uuid for item in self.reservations.list()])
            for model in (models.ReservationHost, models.Reservation):
                session.query(model).delete()
