# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime
import tempfile
import unittest

import sqlalchemy as sa

from nova_preempt import db
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.classes import clock_events
from nova_preempt.core.classes import server_clocks
from nova_preempt.db import backlog_models
from nova_preempt.db import backlog_store
from nova_preempt.db import models
from nova_preempt.db import server_uptimes
from tests import tables
from tests.unit.db import test_decisions

AT = datetime.datetime(2026, 1, 1, 12)
CELL = '1a1f0b0e-0000-4000-8000-000000000001'
OTHER = '1a1f0b0e-0000-4000-8000-000000000002'
# Later than what 32 bits can hold.
US = 4 * 10 ** 15


def server(name='a', **changes):
    told = [server_clocks.Event(US + at_us, kind) for at_us, kind in (
        (0, server_clocks.Kind.QUEUED), (2, server_clocks.Kind.ALLOCATING),
        (5, server_clocks.Kind.RUNNING))]
    return server_uptimes.ServerUptime(**{
        'uuid': name, 'cell_uuid': CELL, 'project_id': 'p',
        'class_name': 'silver', 'flavor': 'spot', 'from_volume': False,
        'clocks': server_clocks.ServerClocks(told), 'changed_at': AT,
        'read_at': AT,
        **changes})


class TestSQLite(unittest.TestCase):

    url = None

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.db = test_decisions.make_database(
            self.url or f'sqlite:///{directory.name}/test.sqlite')
        tables.make(self.db)
        self.addCleanup(self.db.engine.dispose)

    def test_clocks_are_the_same_afterwards(self):
        server_uptimes.write(self.db, [server('b', changed_at=None), server()])
        found = server_uptimes.find(self.db)
        self.assertEqual({'a', 'b'}, set(found))
        self.assertEqual(server().clocks.mark, found['a'].clocks.mark)
        for now_us in (US, US + 5, US + 10 ** 13):
            self.assertEqual(server().clocks.at(now_us),
                             found['a'].clocks.at(now_us))
        self.assertEqual(10 ** 13 - 5,
                         found['a'].clocks.ran_us(US + 10 ** 13))
        for field in dataclasses.fields(server_uptimes.ServerUptime):
            if field.name != 'clocks':
                self.assertEqual(getattr(server(), field.name),
                                 getattr(found['a'], field.name))
        self.assertIsNone(found['b'].changed_at)
        self.assertEqual(('spot', False), found['a'].kind)

    def test_rows_are_replaced(self):
        server_uptimes.write(self.db, [server(), server('b')])
        later = server(class_name='gold', clocks=server().clocks.applied(
            server_clocks.Event(US + 50, server_clocks.Kind.EVICTED)))
        server_uptimes.write(self.db, [later])
        found = server_uptimes.find(self.db, ['a', 'none'])
        self.assertEqual(['a'], list(found))
        self.assertEqual('gold', found['a'].class_name)
        self.assertEqual(server_clocks.Times(45, 52, 3),
                         found['a'].clocks.at(US + 100))
        self.assertEqual({}, server_uptimes.find(self.db, []))

    def test_forgotten(self):
        server_uptimes.write(self.db, [server(), server('b'),
                                       server('c', cell_uuid=OTHER)])
        server_uptimes.forget(self.db, ['a', 'none'])
        self.assertEqual({'b'}, server_uptimes.uuids_of(self.db, CELL))
        self.assertEqual({'c'}, server_uptimes.uuids_of(self.db, OTHER))

    def test_many(self):
        uuids = [f'{number:04}' for number in range(1200)]
        server_uptimes.write(self.db, [server(uuid) for uuid in uuids])
        self.assertEqual(set(uuids), set(server_uptimes.find(self.db, uuids)))
        server_uptimes.forget(self.db, uuids)
        self.assertEqual({}, server_uptimes.find(self.db))

    def test_overheads(self):
        self.assertEqual({}, server_uptimes.overheads(self.db))
        image, volume = ('spot', False), ('spot', True)
        server_uptimes.write(self.db, (), {image: 2 ** 40, volume: 1})
        server_uptimes.write(self.db, (), {volume: 7})
        self.assertEqual({image: 2 ** 40, volume: 7},
                         server_uptimes.overheads(self.db))

    def test_when_cells_were_looked_at(self):
        self.assertEqual({}, server_uptimes.scan_ages_s(self.db))
        server_uptimes.record_scan(self.db, CELL, 7200)
        server_uptimes.record_scan(self.db, OTHER, 7200)
        server_uptimes.record_scan(self.db, OTHER, 0.5)
        found = server_uptimes.scan_ages_s(self.db)
        self.assertEqual({CELL, OTHER}, set(found))
        self.assertGreaterEqual(found[CELL], 7200)
        self.assertTrue(0 <= found[OTHER] < 3600, found)

    def test_servers_of_requests(self):
        for uuid, name, state in (
                ('1', 'gold', backlog_model.RUNNING),
                ('2', '', backlog_model.RUNNING),
                ('3', 'gold', backlog_model.GONE),
                ('4', 'silver', backlog_model.AWAY)):
            backlog_store.create(self.db, backlog_model.Request(
                uuid, 'p', 'u', 't', {'server': {}}, '2.90', 1, 1, (), AT, AT,
                class_name=name))
            with self.db.writer() as session:
                session.execute(sa.insert(
                    backlog_models.BacklogServer).values(
                    uuid=f's{uuid}', request_uuid=uuid, boot=1, state=state,
                    since=AT))
        self.assertEqual({'s1': 'gold', 's4': 'silver'},
                         server_uptimes.request_classes(self.db))
        names = ('gold', 'silver')
        self.assertEqual({'s1': 'gold', 's4': 'silver'},
                         server_uptimes.unrecorded_classes(self.db, names))
        # There is no such class any more.
        self.assertEqual({'s4': 'silver'}, server_uptimes.unrecorded_classes(
            self.db, names[1:]))
        self.assertEqual({}, server_uptimes.unrecorded_classes(self.db, ()))
        server_uptimes.write(self.db, [server(f's{number}')
                                       for number in (1, 2, 3, 4)])
        # Of the one the class has changed, the other is of none any more.
        self.assertEqual({'s1': 'gold', 's2': ''},
                         server_uptimes.unrecorded_classes(self.db, names))
        # Nobody knows for how long those of one that is over are there.
        backlog_store.change(self.db, '1', backlog_model.OPEN, AT,
                             state=backlog_model.CANCELLED)
        self.assertEqual({'s1': 'gold', 's2': ''},
                         server_uptimes.unrecorded_classes(self.db, names))
        backlog_store.change(self.db, '1', backlog_model.CLOSED, AT,
                             trust_id='')
        self.assertEqual({'s2': ''},
                         server_uptimes.unrecorded_classes(self.db, names))

    def test_preemptions(self):
        decisions = db.Decisions(self.db)
        decisions.create_decision(test_decisions.decision())
        with self.db.reader() as session:
            at = session.execute(sa.select(models.Decision.created_at)
                                 ).scalar()
        at_us = (at - datetime.datetime(1970, 1, 1)) // (
            datetime.timedelta(microseconds=1))
        self.assertEqual(
            {'v1': [clock_events.PreemptionPeriod(at_us)]},
            server_uptimes.preemptions(self.db, ['v1', 'none']))
        decisions.update_victim('d1', 'v1', 'shelved', ended_at=at
                                + datetime.timedelta(seconds=9))
        self.assertEqual(
            {'v1': [clock_events.PreemptionPeriod(at_us,
                                                  at_us + 9 * 10 ** 6)]},
            server_uptimes.preemptions(self.db, ['v1']))

    def test_preemptions_that_came_to_nothing(self):
        """A victim that stayed was never evicted."""
        decisions = db.Decisions(self.db)
        for uuid, status, victim in (
                ('d1', 'aborted', 'pending'), ('d2', 'rolled_back', 'pending'),
                ('d3', 'rolled_back', 'gone'), ('d4', 'done', 'shelved'),
                ('d5', 'rolled_back', 'kept'), ('d6', 'done', 'kept'),
                ('d7', 'rolled_back', 'restored')):
            decisions.create_decision(test_decisions.decision(
                uuid=uuid, status=status,
                victims=(db.Victim(f'v-{uuid}', status=victim),)))
        found = server_uptimes.preemptions(
            self.db, [f'v-d{number}' for number in range(1, 8)])
        self.assertEqual({'v-d3', 'v-d4', 'v-d7'}, set(found))


if __name__ == '__main__':
    unittest.main()
