# SPDX-License-Identifier: Apache-2.0
"""Tests of a purge, on the databases of test_decisions."""

import datetime
import os
import types
import unittest
from unittest import mock

from nova_preempt import db
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import backlog_store
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import preemptible_hints
from nova_preempt.db import record_purge
from nova_preempt.db import reservations
from nova_preempt.reservation import reservation_purge
from tests.unit.db import test_backlog_store
from tests.unit.db import test_decisions

BEFORE = datetime.datetime(2026, 1, 1)


class TestPurge(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def add(self, uuid, status=decisions.DONE, age_days=1, **victims):
        """A decision, and {uuid: (status, restore)} of its victims."""
        self.decisions.create_decision(test_decisions.decision(
            uuid=uuid, status=status, victims=tuple(
                db.Victim(f'{uuid}-{name}', status=victim, restore=restore)
                for name, (victim, restore) in victims.items())))
        with self.db.writer() as session:
            session.get(models.Decision, uuid).updated_at = (
                BEFORE - datetime.timedelta(days=age_days))

    def find(self):
        return [row['uuid']
                for rows in record_purge.DECISIONS.find(self.db, BEFORE)
                for row in rows]

    def test_only_old_closed_records_are_deleted(self):
        for status in decisions.OPEN:
            self.add(f'open-{status}', status)
        for status in (decisions.DONE, decisions.ROLLED_BACK,
                       decisions.ABORTED, decisions.REFUSED):
            self.add(f'old-{status}', status)
            self.add(f'young-{status}', status, age_days=0)
        self.assertEqual(['old-aborted', 'old-done', 'old-refused',
                          'old-rolled_back'], self.find())

    def test_records_that_the_engine_needs_stay(self):
        self.add('a', v1=(decisions.GONE, False),
                 v2=(decisions.STOPPED, False))
        self.add('b', v1=(decisions.GONE, False), v2=(decisions.SHELVED, True))
        self.add('c', v1=(decisions.SHELVED, False))
        self.add('d', v1=(decisions.RESTORED, True))
        self.add('e', v1=(decisions.LEFT, True))
        self.assertEqual(['c', 'd', 'e'], self.find())

    def test_in_batches(self):
        for number in range(5):
            self.add(f'd{number}', v=(decisions.GONE, False))
        self.add('z', age_days=0, v=(decisions.GONE, False))
        with mock.patch.object(record_purge, 'BATCH', 2):
            sizes = []
            for rows in record_purge.DECISIONS.find(self.db, BEFORE):
                sizes.append(len(rows))
                self.assertEqual(len(rows), record_purge.DECISIONS.delete(
                    self.db, [row['uuid'] for row in rows]))
        self.assertEqual([2, 2, 1], sizes)
        self.assertEqual(['z'], [item.uuid for item
                                 in self.decisions.get_decisions()])
        with self.db.reader() as session:
            self.assertEqual(1, session.query(models.Victim).count())

    def test_rows_are_whole(self):
        self.add('a', v=(decisions.GONE, False))
        (row,), = record_purge.DECISIONS.find(self.db, BEFORE)
        self.assertEqual(
            {column.name for column in models.Decision.__table__.columns}
            | {'victims'}, row.keys())
        self.assertEqual('2025-12-31T00:00:00Z', row['updated_at'])
        self.assertEqual('a-v', row['victims'][0]['server_uuid'])

    def test_reservations(self):
        mine = reservations.Reservations(
            self.db, lambda: BEFORE - datetime.timedelta(days=1))
        values = {'project_id': 'p', 'quantity': 2, 'duration_s': 60,
                  'window_start': BEFORE, 'end_action': 'shelve',
                  'before_end_s': 0}
        hosts = 'h1', 'h2'
        for number, status in enumerate(reservation_model.STATUSES):
            mine.grant(reservation_model.Reservation(f'{status}-1', **values),
                       lambda _, start_s=100 * number: calendar.FoundWindow(
                           start_s, start_s + 60, hosts))
            mine.update(f'{status}-1', status=status)
        self.assertEqual([['cancelled-1', 'error-1']],
                         self.find_reservations())
        mine.update('ended-1', released_at=BEFORE)
        with mock.patch.object(record_purge, 'BATCH', 2):
            self.assertEqual([['cancelled-1', 'ended-1'], ['error-1']],
                             self.find_reservations())
        rows, = record_purge.RESERVATIONS.find(self.db, BEFORE)
        self.assertEqual(hosts, tuple(host['host']
                                      for host in rows[1]['hosts']))
        self.assertEqual('2026-01-01T00:00:00Z', rows[1]['released_at'])
        self.assertEqual([], list(record_purge.RESERVATIONS.find(
            self.db, BEFORE - datetime.timedelta(days=1))))
        with mock.patch.object(record_purge, 'BATCH', 2):
            self.assertEqual(3, record_purge.RESERVATIONS.delete_old(
                self.db, BEFORE))
        with self.db.reader() as session:
            self.assertEqual(
                6, session.query(models.ReservationHost).count())

    def find_reservations(self):
        return [[row['uuid'] for row in rows] for rows
                in record_purge.RESERVATIONS.find(self.db, BEFORE)]

    def test_requests(self):
        """Requests that are open, recent or not cleaned up are kept."""
        old = BEFORE - datetime.timedelta(days=1)
        for uuid, state, at, trust in (
                ('done', backlog_model.DONE, old, ''),
                ('failed', backlog_model.FAILED, old, ''),
                ('young', backlog_model.DONE, BEFORE, ''),
                ('open', backlog_model.WAITING, old, ''),
                ('trusted', backlog_model.DONE, old, 't1')):
            backlog_store.create(self.db, test_backlog_store.request(
                uuid, state=state, updated_at=at, trust_id=trust,
                body={'server': {'name': 'a', 'user_data': '***'}}),
                sealed='secret')
        backlog_store.begin_boot(self.db, 'done', (backlog_model.DONE,),
                                 test_backlog_store.boot(asked_at=old))
        backlog_store.change(self.db, 'done', backlog_model.OPEN, old,
                             state=backlog_model.DONE)
        backlog_store.record(
            self.db, 'done', backlog_model.CLOSED, old,
            boot_outcome.Transition(
                backlog_model.DONE, {},
                (backlog_model.OwnServer('s1', 1, backlog_model.GONE, old),)))
        rows, = record_purge.REQUESTS.find(self.db, BEFORE)
        self.assertEqual(['done', 'failed'], [row['uuid'] for row in rows])
        self.assertNotIn('secret', str(rows))
        self.assertEqual((1, 1, 3), tuple(
            len(rows[0][name]) for name in ('boots', 'servers', 'history')))
        clock = mock.Mock(return_value=BEFORE + datetime.timedelta(days=9))
        keeper = reservation_purge.RecordPurge(
            self.db, types.SimpleNamespace(retention_days=9), clock,
            record_purge.REQUESTS.delete_old, 'requests')
        with mock.patch.object(record_purge, 'BATCH', 1), \
                self.assertLogs(reservation_purge.__name__, 'INFO') as logs:
            keeper.run()
            keeper.run()
        line, = logs.output
        self.assertIn('2 requests were purged', line)
        self.assertEqual(
            ['open', 'trusted', 'young'],
            sorted(item.uuid for item in backlog_store.find(self.db)))
        self.assertEqual([], backlog_store.history(self.db, 'done'))

    def test_hinted(self):
        preemptible_hints.add(self.db, ['a', 'b'])
        self.assertEqual([], list(record_purge.HINTED.find(self.db, BEFORE)))
        later = datetime.datetime(2100, 1, 1)
        self.assertEqual(
            ['a', 'b'], [row['uuid'] for rows
                         in record_purge.HINTED.find(self.db, later)
                         for row in rows])


def load_tests(loader, tests, pattern):
    """Run the own tests of each class on each database."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        for name in vars(TestPurge):
            if name.startswith('test_'):
                case = TestPurge(name)
                case.url = url
                suite.addTest(case)
    return suite
