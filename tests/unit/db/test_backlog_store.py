# SPDX-License-Identifier: Apache-2.0

"""The backlog, on SQLite and on OS_TEST_DATABASES."""

import concurrent.futures
import dataclasses
import datetime
import functools
import os
import tempfile
import threading
import unittest
from unittest import mock

import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.backlog import request_history
from nova_preempt.core.backlog import request_servers
from nova_preempt.db import backlog_rows
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_submissions
from nova_preempt.db import models
from nova_preempt.db import server_uptimes
from tests import tables
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 1, 1, 12)
LATER = NOW + datetime.timedelta(seconds=30)


def request(uuid='r1', **changes):
    values = {
        'uuid': uuid, 'project_id': 'p1', 'user_id': 'u1', 'trust_id': 't1',
        'body': {'server': {'name': 'é', 'imageRef': 'i'},
                 'os:scheduler_hints': {'group': 'g'}},
        'compute_version': '2.90', 'count': 3, 'least_count': 1,
        'alternatives': (
            backlog_model.Alternative('f1', 'big',
                                      {'VCPU': 2, 'MEMORY_MB': 2048}),
            backlog_model.Alternative('f2', 'spot', {'VCPU': 1}, True, 60,
                                      ('CUSTOM_A', 'CUSTOM_B'),
                                      ('CUSTOM_C',))),
        'created_at': NOW, 'updated_at': NOW, 'waits_since': NOW}
    return backlog_model.Request(**{**values, **changes})


def boot(number=1, **changes):
    values = {'number': number, 'tag': f'backlog:r1:{number}',
              'flavor_id': 'f1', 'count': 3, 'asked_at': LATER}
    return backlog_model.SentBoot(**{**values, **changes})


class DatabaseTestCase(unittest.TestCase):

    url = None

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.db = test_decisions.make_database(
            self.url or f'sqlite:///{directory.name}/test.sqlite')
        tables.make(self.db)
        self.addCleanup(self.drop)

    def drop(self):
        engine = self.db.engine
        models.Base.metadata.drop_all(engine)
        with engine.begin() as connection:
            connection.execute(sa.text('DROP TABLE alembic_version'))
        engine.dispose()


class TestSQLite(DatabaseTestCase):

    def test_a_request_is_read_as_it_was_written(self):
        full = request(
            'r2', name='batch', class_name='gold',
            priorities=backlog_model.SlaPriorities(3, 2, 1, 1), ladder='web',
            apart=True, not_before=NOW,
            not_after=LATER, longest_wait_s=60, comes_back=True,
            back_until=LATER, most_returns=3, reason='why',
            waits_for={'code': 'room', 'lacks': {'VCPU': 2}}, position=7,
            estimate_s=2 ** 40, ends_servers=True, returns=1, tries=2,
            next_try_at=LATER)
        for serial, item in enumerate((request(), full), 1):
            backlog_store.create(self.db, item)
            self.assertEqual(dataclasses.replace(item, serial=serial),
                             backlog_store.get(self.db, item.uuid))
        self.assertIsNone(backlog_store.get(self.db, 'r1', project_id='p2'))
        self.assertIsNone(backlog_store.get(self.db, 'r3'))

    def test_find(self):
        items = [request(f'r{number}', created_at=NOW + datetime.timedelta(
                     seconds=number // 2)) for number in range(5)]
        for item in items:
            backlog_store.create(self.db, item)
        backlog_store.change(self.db, 'r3', backlog_model.OPEN, LATER,
                             state=backlog_model.CANCELLED, reason='enough')
        self.assertEqual(
            ['r0', 'r1', 'r2', 'r4'],
            [item.uuid
             for item in backlog_store.find(self.db, backlog_model.OPEN)])
        self.assertEqual(
            ['r2', 'r3'],
            [item.uuid for item in backlog_store.find(
                self.db, project_id='p1', limit=2,
                marker=backlog_store.get(self.db, 'r1'))])
        self.assertEqual(
            ['r1', 'r0'],
            [item.uuid for item in backlog_store.find(
                self.db, user_id='u1', marker=backlog_store.get(self.db, 'r2'),
                newest_first=True)])
        self.assertEqual([], backlog_store.find(self.db, user_id='u2'))
        self.assertEqual(4, backlog_store.count(self.db, 'p1'))
        self.assertEqual(0, backlog_store.count(self.db, 'p2'))

    def test_requests_of_one_second_keep_their_order(self):
        uuids = list('bdace')
        for uuid in uuids:
            backlog_store.create(self.db, request(uuid))
            backlog_store.change(self.db, uuid, backlog_model.OPEN, LATER,
                                 state=backlog_model.EVICTED)
        found = backlog_store.find(self.db)
        self.assertEqual(uuids, [item.uuid for item in found])
        self.assertEqual(uuids, [item.uuid for item in queue_order.FIFO().rank(
            reversed(found), NOW, queue_order.ProjectUsage({}, {}))])
        pages, marker = [], None
        while page := backlog_store.find(self.db, marker=marker, limit=2):
            pages += page
            marker = page[-1]
        self.assertEqual(uuids, [item.uuid for item in pages])

    def test_queries_of_a_pass_use_an_index(self):
        if not self.db.is_sqlite:
            self.skipTest('what others do depends on how many there are')
        plans = []

        def note(_connection, cursor, statement, parameters, *_):
            if statement.startswith('SELECT'):
                found = cursor.connection.execute(
                    'EXPLAIN QUERY PLAN ' + statement, parameters)
                plans.extend(row[3] for row in found)

        sa.event.listen(self.db.engine, 'before_cursor_execute', note)
        for call, wanted in (
                (lambda: backlog_store.find(self.db, backlog_model.OPEN),
                 'backlog_requests_state_idx (state=?'),
                (lambda: backlog_store.find(self.db, backlog_model.CLOSED,
                                            with_trust=True),
                 'backlog_requests_state_idx (state=? AND trust_id>?)'),
                (lambda: backlog_store.find(self.db, limit=9),
                 'backlog_requests_created_at_idx'),
                (lambda: backlog_store.trusts(self.db),
                 'backlog_requests_trust_id_idx (trust_id>?)'),
                (lambda: backlog_store.placed(self.db, NOW),
                 'backlog_boots_asked_at_idx (asked_at>?)'),
                (lambda: server_uptimes.unrecorded_classes(self.db, ['gold']),
                 'backlog_requests_trust_id_idx (trust_id>?)')):
            plans.clear()
            call()
            self.assertIn(wanted, ' '.join(plans))

    def test_the_body_of_a_closed_request_is_reduced(self):
        body = {'server': {'name': 'é', 'imageRef': 'i', 'user_data': '***',
                           'metadata': {'a': 'b' * 255}},
                'os:scheduler_hints': {'group': 'g'}}
        short = {'server': {'name': 'é', 'imageRef': 'i', 'user_data': '***'}}
        for state in backlog_model.CLOSED:
            backlog_store.create(self.db, request(state, body=body))
            backlog_store.change(self.db, state, backlog_model.OPEN, LATER,
                                 reason='x')
            self.assertEqual(body, backlog_store.get(self.db, state).body)
            backlog_store.change(self.db, state, backlog_model.OPEN, LATER,
                                 state=state)
            self.assertEqual(short, backlog_store.get(self.db, state).body)
            backlog_store.change(self.db, state, backlog_model.CLOSED, LATER,
                                 state=state)
            self.assertEqual(short, backlog_store.get(self.db, state).body)
            backlog_store.create(self.db, request(f'{state}2', body=body))
            backlog_store.record(
                self.db, f'{state}2', backlog_model.OPEN, LATER,
                boot_outcome.Transition(state, {'reason': 'x'}))
            self.assertEqual(short,
                             backlog_store.get(self.db, f'{state}2').body)

    def test_only_the_first_of_two_changes_is_made(self):
        backlog_store.create(self.db, request())
        self.assertTrue(backlog_store.change(
            self.db, 'r1', (backlog_model.WAITING,), LATER,
            state=backlog_model.CANCELLED, reason='by its user'))
        self.assertFalse(backlog_store.change(
            self.db, 'r1', (backlog_model.WAITING,), LATER,
            state=backlog_model.EXPIRED))
        self.assertFalse(backlog_store.begin_boot(
            self.db, 'r1', (backlog_model.WAITING,), boot()))
        found = backlog_store.get(self.db, 'r1')
        self.assertEqual((backlog_model.CANCELLED, 'by its user', LATER, ()),
                         (found.state, found.reason, found.updated_at,
                          found.boots))
        self.assertEqual(
            [backlog_model.StateChange(NOW, backlog_model.WAITING),
             backlog_model.StateChange(LATER, backlog_model.CANCELLED,
                                       'by its user')],
            backlog_store.history(self.db, 'r1'))

    def test_no_boot_begins_if_the_request_has_changed(self):
        for changes in ({'count': 2, 'least_count': 1}, {'least_count': 3},
                        {'not_before': LATER}):
            with self.subTest(changes):
                uuid = '-'.join(changes)
                backlog_store.create(self.db, request(uuid))
                known = backlog_store.get(self.db, uuid)
                backlog_store.change(self.db, uuid, backlog_model.OPEN, NOW,
                                     **changes)
                begin = functools.partial(
                    backlog_store.begin_boot, self.db, uuid,
                    (backlog_model.WAITING,), boot())
                self.assertFalse(begin(decided=known))
                self.assertTrue(begin(decided=backlog_store.get(self.db,
                                                                uuid)))

    def test_no_request_ends_that_has_changed_meanwhile(self):
        for changes in ({'not_after': LATER}, {'longest_wait_s': 99},
                        {'comes_back': True, 'most_returns': 2}):
            with self.subTest(changes):
                uuid = '-'.join(changes)
                backlog_store.create(self.db, request(uuid))
                known = backlog_store.get(self.db, uuid)
                backlog_store.change(self.db, uuid, backlog_model.OPEN, NOW,
                                     **changes)
                record = functools.partial(
                    backlog_store.record, self.db, uuid, backlog_model.OPEN,
                    NOW)
                expired = boot_outcome.Transition(
                    backlog_model.EXPIRED, {'reason': 'late'})
                self.assertFalse(record(expired, decided=known))
                self.assertTrue(record(
                    boot_outcome.Transition(backlog_model.WAITING,
                                            {'tries': 1}),
                    decided=known))
                self.assertTrue(record(
                    expired, decided=backlog_store.get(self.db, uuid)))

    def test_only_one_of_many_threads_begins_a_boot(self):
        backlog_store.create(self.db, request())
        together = threading.Barrier(4)

        def begin(_number):
            together.wait()
            return backlog_store.begin_boot(self.db, 'r1',
                                            (backlog_model.WAITING,), boot())

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertEqual([False, False, False, True],
                             sorted(pool.map(begin, range(4))))
        self.assertEqual(1, len(backlog_store.get(self.db, 'r1').boots))

    def test_a_refused_submission_is_deleted(self):
        for uuid in ('r1', 'r2'):
            backlog_store.create(self.db, request(uuid))
        begun = backlog_submissions.PendingSubmission(
            'r1', 'p1', 'u1', NOW, NOW)
        for _twice in range(2):
            self.assertTrue(backlog_store.remove(self.db, begun,
                                                 LATER).is_gone)
        self.assertEqual([begun], backlog_submissions.older(self.db, LATER, 9))
        self.assertIsNone(backlog_store.get(self.db, 'r1'))
        self.assertEqual([], backlog_store.history(self.db, 'r1'))
        self.assertEqual(1, len(backlog_store.history(self.db, 'r2')))

    def test_a_refused_submission_that_has_started_is_kept(self):
        """Its servers exist and must be found by their request."""
        backlog_store.create(self.db, request())
        backlog_store.begin_boot(self.db, 'r1', backlog_model.OPEN, boot())
        begun = backlog_submissions.PendingSubmission(
            'r1', 'p1', 'u1', NOW, NOW)
        for cancelled in (backlog_model.PLACING, ''):
            self.assertEqual(
                backlog_store.RequestRemoval(is_gone=False,
                                             cancelled=cancelled),
                backlog_store.remove(self.db, begun, LATER))
            found = backlog_store.get(self.db, 'r1')
            self.assertEqual((backlog_model.CANCELLED, True, 't1', (boot(),)),
                             (
                                 found.state, found.ends_servers,
                                 found.trust_id, found.boots))
        self.assertEqual(
            [backlog_model.WAITING, backlog_model.PLACING,
             backlog_model.CANCELLED],
            [item.state for item in backlog_store.history(self.db, 'r1')])
        self.assertEqual([], backlog_submissions.older(self.db, LATER, 9))

    def test_a_repeated_submission_changes_nothing(self):
        """The answer to the first commit was lost."""
        backlog_submissions.begin(
            self.db, backlog_submissions.PendingSubmission(
                'r1', 'p1', 'u1', NOW, NOW))
        for _twice in range(2):
            self.assertTrue(backlog_store.create(self.db, request(),
                                                 begun=True))
        self.assertFalse(backlog_store.create(
            self.db, request(trust_id='t2'), begun=True))
        self.assertEqual(1, len(backlog_store.history(self.db, 'r1')))

    def test_begun_submissions_are_listed(self):
        items = [backlog_submissions.PendingSubmission(
                     uuid, project, 'u1', at, at)
                 for uuid, project, at in (
                     ('r2', 'p1', NOW), ('r1', 'p1', LATER),
                     ('r3', 'p2', LATER))]
        for item in items:
            backlog_submissions.begin(self.db, item)
        end = LATER + datetime.timedelta(seconds=1)
        self.assertEqual(items[:1],
                         backlog_submissions.older(self.db, LATER, 9))
        self.assertEqual(items[:2], backlog_submissions.older(self.db, end, 2))
        self.assertEqual([2, 1, 0],
                         [backlog_submissions.count(self.db, project)
                          for project in ('p1', 'p2', 'p3')])
        for _twice in range(2):
            self.assertEqual(items[:1],
                             backlog_submissions.give_up(self.db, LATER))
        self.assertEqual([True, False, False], [
            backlog_store.create(self.db, request(uuid), begun=True)
            for uuid in ('r1', 'r2', 'r4')])
        self.assertEqual(['r1'],
                         [item.uuid for item in backlog_store.find(self.db)])
        self.assertEqual([items[0], items[2]],
                         backlog_submissions.older(self.db, end, 9))
        for _twice in range(2):
            backlog_submissions.forget(self.db, 'r2')
        self.assertEqual([], backlog_submissions.older(self.db, LATER, 9))

    def test_notes_of_a_pass_change_no_state(self):
        backlog_store.create(self.db, request())
        self.assertTrue(backlog_store.change(
            self.db, 'r1', backlog_model.OPEN, LATER, position=2,
            estimate_s=None, waits_for={'code': 'quota'}))
        self.assertEqual(1, len(backlog_store.history(self.db, 'r1')))
        self.assertEqual({'code': 'quota'},
                         backlog_store.get(self.db, 'r1').waits_for)

    def test_boots_and_servers(self):
        backlog_store.create(self.db, request())
        self.assertTrue(backlog_store.begin_boot(
            self.db, 'r1', (backlog_model.WAITING,), boot(), reason='first'))
        for _twice in range(2):
            self.assertTrue(self.record(
                servers=(backlog_model.OwnServer(
                    's2', 1, backlog_model.BUILDING, LATER),
                         backlog_model.OwnServer(
                             's1', 1, backlog_model.RUNNING, LATER)),
                boots=(boot(state=backlog_model.ASKED),)))
        found = backlog_store.get(self.db, 'r1')
        self.assertEqual(backlog_model.PLACING, found.state)
        self.assertEqual((boot(state=backlog_model.ASKED),), found.boots)
        self.assertEqual(
            (backlog_model.OwnServer('s1', 1, backlog_model.RUNNING, LATER),
             backlog_model.OwnServer('s2', 1, backlog_model.BUILDING, LATER)),
             found.servers)
        self.record(forgotten=('s1',))
        self.assertEqual(['s2'], [
            item.uuid for item in backlog_store.get(self.db, 'r1').servers])

    def record(self, of=(backlog_model.PLACING,), state=backlog_model.PLACING,
               values=None, **parts):
        return backlog_store.record(self.db, 'r1', of, LATER,
                                    boot_outcome.Transition(
                                        state, values or {}, **parts))

    def test_servers_on_their_way_as_a_request_is_closed(self):
        backlog_store.create(self.db, request(state=backlog_model.PLACING))
        self.assertTrue(self.record(
            (backlog_model.PLACING,), backlog_model.PLACING,
            servers=(backlog_model.OwnServer('s1', 1, backlog_model.RUNNING,
                                             LATER),
                     backlog_model.OwnServer('s2', 1, backlog_model.BUILDING,
                                             LATER))))
        uuids = ['s1', 's2', 'of nobody']
        self.assertEqual(set(), backlog_rows.given_up(self.db, uuids))
        self.assertTrue(backlog_store.change(
            self.db, 'r1', (backlog_model.PLACING,), LATER,
            state=backlog_model.CANCELLED))
        self.assertEqual({'s2'}, backlog_rows.given_up(self.db, uuids))

    def test_a_verdict_is_written_atomically(self):
        backlog_store.create(self.db, request())
        verdict = {'state': backlog_model.EXPIRED, 'values': {
            'reason': 'too long', 'position': None, 'waits_for': {}}}
        self.assertFalse(self.record(
            servers=(backlog_model.OwnServer('s1', 1, backlog_model.BUILDING,
                                             LATER),),
            **verdict))
        self.assertEqual(request(serial=1), backlog_store.get(self.db, 'r1'))
        self.assertTrue(self.record((backlog_model.WAITING,), **verdict))
        self.assertEqual(
            [backlog_model.StateChange(NOW, backlog_model.WAITING),
             backlog_model.StateChange(LATER, backlog_model.EXPIRED,
                                       'too long')],
            backlog_store.history(self.db, 'r1'))
        self.assertFalse(self.record((backlog_model.WAITING,), **verdict))

    def test_an_abandoned_boot_cannot_be_reopened(self):
        """A late caller finds a newer boot in progress."""
        backlog_store.create(self.db, request())
        backlog_store.begin_boot(self.db, 'r1', backlog_model.OPEN,
                                 boot(state=backlog_model.LOST))
        backlog_store.begin_boot(self.db, 'r1', backlog_model.OPEN, boot(2))
        before = backlog_store.get(self.db, 'r1')
        self.assertFalse(self.record(
            values={'tries': 3}, boots=(boot(state=backlog_model.ASKED),),
            servers=(backlog_model.OwnServer('late', 1, backlog_model.BUILDING,
                                             LATER),)))
        self.assertEqual(before, backlog_store.get(self.db, 'r1'))

    def test_old_failed_boots_are_deleted(self):
        """After a year a request has no more rows than after a day."""
        backlog_store.create(self.db, request())
        day = datetime.timedelta(days=1)
        pause = datetime.timedelta(hours=6)
        rows = set()
        for number in range(1, 41):
            at = NOW + number * pause
            found = backlog_store.get(self.db, 'r1')
            new = request_servers.next_boot(found, 'f1', 3, at)
            self.assertEqual(number, new.number)
            self.assertTrue(backlog_store.begin_boot(
                self.db, 'r1', backlog_model.OPEN, new,
                forgotten=request_servers.forgotten_boots(found, at)))
            self.assertTrue(backlog_store.record(
                self.db, 'r1', (backlog_model.PLACING,), at,
                boot_outcome.Transition(
                    backlog_model.WAITING, {}, boots=(dataclasses.replace(
                        new, state=backlog_model.REFUSED),))))
            kept = backlog_store.history(self.db, 'r1')
            if number > 5:
                rows.add((len(backlog_store.get(self.db, 'r1').boots),
                          len(kept)))
        self.assertEqual(1, len(rows), rows)
        self.assertEqual((4, 11), rows.pop())
        self.assertEqual(backlog_model.StateChange(NOW, backlog_model.WAITING),
                         kept[0])
        self.assertLessEqual(at - day, kept[1].at)

    @mock.patch.object(request_history, 'MOST_CHANGES', 40)
    def test_a_request_that_returns_for_ever_keeps_few_rows(self):
        backlog_store.create(self.db, request())
        rows = []
        at = NOW
        for number in range(1, 25):
            at += datetime.timedelta(days=1)
            found = backlog_store.get(self.db, 'r1')
            new = request_servers.next_boot(found, 'f1', 1, at)
            self.assertEqual(number, new.number)
            self.assertTrue(backlog_store.begin_boot(
                self.db, 'r1', backlog_model.OPEN, new,
                forgotten=request_servers.forgotten_boots(found, at)))
            before = backlog_model.PLACING
            for state in (backlog_model.ACTIVE, backlog_model.EVICTED,
                          backlog_model.WAITING):
                at += datetime.timedelta(hours=1)
                self.assertTrue(backlog_store.record(
                    self.db, 'r1', (before,), at, boot_outcome.Transition(
                        state, {}, boots=(dataclasses.replace(
                            new, state=backlog_model.SETTLED),)
                        if state == backlog_model.ACTIVE else ())))
                before = state
            rows.append((len(backlog_store.get(self.db, 'r1').boots),
                         len(backlog_store.history(self.db, 'r1'))))
        self.assertEqual(2, max(boots for boots, _kept in rows))
        self.assertLessEqual(max(kept for _boots, kept in rows), 44)
        kept = backlog_store.history(self.db, 'r1')
        self.assertEqual(['waiting', 'placing', 'active', 'evicted'],
                         [change.state for change in kept[:4]])
        self.assertIn('is kept as sums', kept[2].reason)

    def test_requests_with_a_trust_are_listed(self):
        for uuid in ('r1', 'r2'):
            backlog_store.create(self.db,
                                 request(uuid, state=backlog_model.DONE))
        backlog_store.change(self.db, 'r1', backlog_model.CLOSED, LATER,
                             trust_id='')
        self.assertEqual(['r2'], [item.uuid for item in backlog_store.find(
            self.db, backlog_model.CLOSED, with_trust=True)])

    def test_notes_of_waiting_requests_are_written(self):
        for uuid, state in (('r1', backlog_model.WAITING),
                            ('r2', backlog_model.PLACING)):
            backlog_store.create(self.db, request(uuid, state=state))
        backlog_store.note(self.db, {})
        backlog_store.note(self.db, {
            uuid: dispatch.WaitNote(3, {'code': 'room'}, 60)
            for uuid in ('r1', 'r2')})
        self.assertEqual(
            [(3, {'code': 'room'}, 60), (None, {}, None)],
            [(item.position, item.waits_for, item.estimate_s)
             for item in backlog_store.find(self.db)])

    def test_a_request_that_starts_loses_its_position(self):
        """Another request may get this position."""
        backlog_store.create(self.db, request(position=2, estimate_s=60))
        self.assertTrue(backlog_store.begin_boot(
            self.db, 'r1', (backlog_model.WAITING,), backlog_model.SentBoot(
                1, 'backlog:r1:1', 'small', 1, LATER)))
        found = backlog_store.get(self.db, 'r1')
        self.assertEqual((None, None), (found.position, found.estimate_s))

    def test_settled_boots_are_listed(self):
        backlog_store.create(self.db, request())
        for number, values in enumerate((
                {'state': backlog_model.SETTLED},
                {'state': backlog_model.SETTLED,
                 'asked_at': NOW, 'count': 1,
                 'flavor_id': 'f2'},
                {'state': backlog_model.IN_VAIN},
                {'state': backlog_model.SETTLED,
                 'asked_at': NOW - datetime.timedelta(seconds=1)})):
            backlog_store.begin_boot(self.db, 'r1', backlog_model.OPEN,
                                     boot(number + 1, **values))
        self.assertCountEqual(
            [{'VCPU': 6, 'MEMORY_MB': 6144}, {'VCPU': 1}],
            backlog_store.placed(self.db, NOW))


def load_tests(loader, tests, pattern):
    for number, url in enumerate(os.environ.get('OS_TEST_DATABASES',
                                                '').split()):
        other = type(f'TestOther{number}', (TestSQLite,), {'url': url})
        tests.addTests(loader.loadTestsFromTestCase(other))
    return tests


if __name__ == '__main__':
    unittest.main()
