# SPDX-License-Identifier: Apache-2.0
"""Tests of the change log, on each kind of database."""

import concurrent.futures
import contextlib
import datetime
import os
import random
import threading
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies as st
import sqlalchemy as sa

from nova_preempt import exceptions
from nova_preempt.core.reservation import calendar as core
from nova_preempt.core.reservation import leases as core_leases
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import models
from nova_preempt.db import record_purge
from nova_preempt.db import reservable_hosts
from nova_preempt.db import reservation_calendar
from nova_preempt.db import reservation_rows
from nova_preempt.db import reservations
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 1, 1, 12)
HOUR = datetime.timedelta(hours=1)
HOSTS = ('h0', 'h1', 'h2', 'h3')
TABLES = (models.Counter, models.CalendarChange, models.Reservation,
          models.ReservationHost, models.ReservableHost)

# Each step: what is done, by or to whom, and how; see World.
STEPS = st.lists(st.tuples(
    st.sampled_from((
        'grant', 'grant', 'end', 'replace', 'status', 'together', 'setting',
        'hide', 'purge', 'read', 'read', 'keep', 'fail_over', 'forget')),
    st.integers(0, 9), st.integers(0, 9)), max_size=25)


class World:
    """Three processes that write and read one database."""

    def __init__(self, database):
        self.db = database
        self.processes = [self.process() for _ in range(3)]
        self.uuids = []
        self.backup = None

    def process(self):
        return reservations.Reservations(self.db, lambda: NOW)

    def uuid(self, number):
        return self.uuids[number % len(self.uuids)] if self.uuids else 'none'

    def do(self, step, one, two):
        with contextlib.suppress(exceptions.NoHostsForReservation,
                                 exceptions.WrongState,
                                 exceptions.ReservationNotFound):
            getattr(self, step)(self.processes[one % 3], one, two)

    def grant(self, process, one, two):
        start = NOW + one * HOUR
        quantity = 1 + two % 2
        uuid = f'r{len(self.uuids)}'
        self.uuids.append(uuid)

        def choose(found):
            return core.find(
                [core.ReservableHost(host, found.busy.get(host, ()))
                 for host in HOSTS],
                window_start_s=reservation_model.to_s(start), duration_s=7200,
                window_end_s=None, quantity=quantity)

        process.grant(reservation_model.Reservation(
            uuid, f'p{one}', quantity, 7200, start, 'shelve', 60), choose)

    def end(self, process, one, two):
        process.set_end(self.uuid(two), NOW + (2 + one) * HOUR)

    def replace(self, process, one, two):
        item = process.get(self.uuid(two))
        process.replace_host(item.uuid, item.held[0] if item.held else None,
                             (*HOSTS, None)[one % 5])

    def status(self, process, one, two):
        process.update(self.uuid(two),
                       status=reservation_model.STATUSES[one % 6])

    def together(self, process, one, two):
        reservation_rows.change_many(
            self.db, [self.uuid(two), self.uuid(two + 1)],
            lambda item: {'ready_at': NOW,
                          'status': reservation_model.ACTIVE}, NOW)

    def setting(self, process, one, two):
        reservable_hosts.set_host(self.db, HOSTS[two % 4],
                                  reservable=(None, True, False)[one % 3],
                                  extra={'rack': one})

    def hide(self, process, one, two):
        reservable_hosts.set_hidden(self.db, 'rack', bool(two % 2))

    def purge(self, process, one, two):
        closed = [item.uuid for item in process.list()
                  if item.status not in reservation_model.OPEN]
        record_purge.RESERVATIONS.delete(self.db, closed)

    def read(self, process, one, two):
        process.calendar()
        process.snapshot()

    def forget(self, process, one, two):
        """The log is not kept for long enough for all."""
        with self.db.writer() as session:
            session.execute(sa.delete(models.CalendarChange).where(
                models.CalendarChange.generation
                < process.generation() - one % 3))

    def keep(self, process, one, two):
        """Keep the present rows as those of a replica."""
        with self.db.reader() as session:
            self.backup = [(table, [dict(row) for row in session.execute(
                sa.select(*table.__table__.c)).mappings()])
                for table in TABLES]

    def fail_over(self, process, one, two):
        """The replica takes over, and lags behind."""
        if self.backup is None:
            return
        with self.db.writer() as session:
            for table in reversed(TABLES):
                session.execute(sa.delete(table))
            for table, rows in self.backup:
                if rows:
                    session.execute(sa.insert(table), rows)


class TestChanges(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def setUp(self):
        super().setUp()
        self.world = World(self.db)

    def check(self, world):
        """An incremental reading agrees with a full one."""
        fresh = world.process()
        for process in world.processes:
            self.assertEqual(fresh.calendar(), process.calendar())
            self.assertEqual(fresh.snapshot(), process.snapshot())
        with self.db.reader() as session:
            found = fresh.snapshot().reservations
            self.assertEqual(
                {item.id: item for item in map(core_leases.of, found)},
                {item.id: item
                 for item in reservation_calendar.get_leases(session)})

    @hypothesis.settings(max_examples=12, deadline=None,
                         derandomize=True, database=None,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(STEPS)
    def test_changes_agree_with_a_full_reading(self, steps):
        with self.db.writer() as session:
            for table in reversed(TABLES[2:]):
                session.execute(sa.delete(table))
        # The log goes on: what was there before is none of its rows.
        world = World(self.db)
        for step, one, two in steps:
            world.do(step, one, two)
            if step == 'fail_over':
                self.check(world)
        self.check(world)

    def test_the_same_number_again_after_a_fail_over(self):
        """A process does not continue from lost changes."""
        world = self.world
        world.do('grant', 0, 0)
        world.do('keep', 0, 0)
        world.do('grant', 1, 1)
        for process in world.processes:
            world.read(process, 0, 0)
        lost = world.processes[0].calendar()
        world.do('fail_over', 0, 0)
        reservable_hosts.set_host(self.db, 'h0', reservable=False)
        found = world.processes[0].calendar()
        self.assertEqual(lost.mark.generation, found.mark.generation)
        self.assertNotEqual(lost.busy, found.busy)
        self.check(world)

    def test_hosts_are_not_granted_twice_after_a_fail_over(self):
        world = self.world
        world.do('keep', 0, 0)
        mine, other = world.processes[:2]
        world.grant(mine, 0, 0)
        mine.calendar()
        world.do('fail_over', 0, 0)
        # The same generation, and the host is given to somebody else.
        reservable_hosts.set_hidden(self.db, 'x', True)
        reservable_hosts.set_hidden(self.db, 'y', True)
        world.grant(other, 0, 0)
        world.grant(mine, 0, 0)
        held = [host for item in mine.list(statuses=reservation_model.OPEN)
                for host in item.held]
        self.assertEqual(['h0', 'h1'], sorted(held))

    def test_only_changes_are_read(self):
        world = self.world
        for number in range(3):
            world.do('grant', number, 0)
        mine, other = world.processes[:2]
        mine.calendar()
        before = mine.snapshot()
        other.update('r1', status=reservation_model.ACTIVE)
        read = []
        with (mock.patch.object(
                  reservation_calendar, 'get_leases',
                  wraps=reservation_calendar.get_leases) as fetch,
              mock.patch.object(
                  reservation_rows, 'fetch_open',
                  wraps=reservation_rows.fetch_open) as fetch_open,
              mock.patch.object(reservation_calendar, 'get_settings',
                                side_effect=AssertionError)):
            for _ in range(2):
                mine.calendar()
                found = mine.snapshot()
            read = [list(call.args[1])
                    for call in (*fetch.call_args_list,
                                 *fetch_open.call_args_list)]
        self.assertEqual([['r1'], ['r1']], read)
        self.assertEqual(
            [item for item in before.reservations if item.uuid != 'r1'],
            [item for item in found.reservations if item in
             before.reservations])
        self.assertIs(before.reservations[0], found.reservations[0])

    def test_the_log_does_not_grow_for_ever(self):
        with mock.patch.object(calendar_changes, '_KEPT', 3):
            for number in range(9):
                reservable_hosts.set_hidden(self.db, f'x{number}', True)
        with self.db.reader() as session:
            self.assertEqual([7, 8, 9], list(session.execute(
                sa.select(models.CalendarChange.generation).order_by(
                    models.CalendarChange.generation)).scalars()))

    def test_a_counter_that_was_set_back(self):
        """An operator or a partial restore has set it back."""
        world = self.world
        for number in range(3):
            world.do('grant', number, 0)
            world.read(world.processes[number], 0, 0)
        with self.db.writer() as session:
            session.execute(sa.update(models.Counter).values(value=1))
        self.check(world)
        world.do('end', 3, 1)
        self.check(world)

    def test_a_change_that_is_not_in_the_log(self):
        """A process of an older version writes it during an upgrade."""
        world = self.world
        world.do('grant', 0, 0)
        self.check(world)
        with self.db.writer() as session:
            session.execute(sa.update(models.Counter).values(
                value=models.Counter.value + 1))
            session.execute(sa.update(models.Reservation).values(
                status=reservation_model.CANCELLED))
        self.check(world)
        self.assertEqual((), world.processes[0].snapshot().reservations)
        world.do('grant', 0, 0)
        self.check(world)

    def test_many_write_and_read_at_once(self):
        """All processes agree in the end."""
        world = self.world
        steps = ('grant', 'end', 'replace', 'status', 'together', 'setting')
        done = threading.Event()

        def write(seed):
            rng = random.Random(seed)
            for _ in range(12):
                world.do(rng.choice(steps), rng.randrange(10),
                         rng.randrange(10))

        def read():
            while not done.is_set():
                for process in world.processes:
                    world.read(process, 0, 0)

        for number in range(6):
            world.do('grant', number, number)
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            reader = pool.submit(read)
            writers = [pool.submit(write, seed) for seed in range(4)]
            concurrent.futures.wait(writers)
            done.set()
        for future in (reader, *writers):
            self.assertIsNone(future.result())
        self.check(world)


def load_tests(loader, tests, pattern):
    """Run the own tests of each class on each database."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        for name in vars(TestChanges):
            if name.startswith('test_'):
                case = TestChanges(name)
                case.url = url
                suite.addTest(case)
    return suite
