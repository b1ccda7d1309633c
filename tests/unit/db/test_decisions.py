# SPDX-License-Identifier: Apache-2.0
"""The database, on SQLite and on whatever else OS_TEST_DATABASES names.

OS_TEST_DATABASES is a list of URLs of empty databases, separated by blanks.
"""

import contextlib
import datetime
import os
import tempfile
import threading
import unittest

from oslo_config import cfg
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt import db
from nova_preempt.conf import database as conf_database
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import database_clock
from nova_preempt.db import decision_owners
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import pauses
from nova_preempt.db import preemptible_hints
from nova_preempt.db import schema_upgrade
from tests import tables


def make_database(url):
    conf = cfg.ConfigOpts()
    conf_database.register_opts(conf)
    conf([])
    conf.set_override('connection', url, conf_database.GROUP)
    return db.Database(conf)


def decision(**changes):
    values = {'uuid': 'd1', 'server_uuid': 's1', 'owner': 'me',
              'provider_uuid': 'p1', 'record': {'why': 'é'},
              'victims': (db.Victim('v1', allocations={'p1': {'a': 1}}),
                          db.Victim('v2', cost_us=2 ** 40))}
    return db.Decision(**{**values, **changes})


class TestSQLite(unittest.TestCase):

    url = None

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        url = self.url or f'sqlite:///{directory.name}/test.sqlite'
        self.db = make_database(url)
        self.decisions = db.Decisions(self.db)
        self.assertIsNone(schema_upgrade.get_revision(self.db))
        tables.make(self.db)
        self.addCleanup(self.drop)

    def drop(self):
        engine = self.db.engine
        models.Base.metadata.drop_all(engine)
        with engine.begin() as connection:
            connection.execute(sa.text('DROP TABLE alembic_version'))
        engine.dispose()

    def test_statuses_of_victims(self):
        """The last decision counts, unless it was rolled back."""
        for number, (status, *victims) in enumerate((
                (decisions.DONE, ('a', decisions.RESTORED),
                 ('b', decisions.SHELVED)),
                (decisions.CLAIMED, ('a', decisions.NOTICED)),
                (decisions.ROLLED_BACK, ('b', decisions.PENDING),
                 ('c', decisions.GONE), ('e', decisions.LEFT),
                 ('f', decisions.ENDING), ('g', decisions.NOTICED),
                 ('h', decisions.KEPT)),
                (decisions.ABORTED, ('d', decisions.PENDING)))):
            self.decisions.create_decision(decision(
                uuid=f'd{number}', status=status, victims=tuple(
                    db.Victim(uuid, status=how) for uuid, how in victims)))
        self.assertEqual(
            {'a': decisions.NOTICED, 'b': decisions.SHELVED,
             'c': decisions.GONE, 'e': decisions.LEFT,
             'f': decisions.ENDING, 'h': decisions.KEPT},
            self.decisions.get_statuses('abcdefgh'))
        self.assertEqual({}, self.decisions.get_statuses([]))

    def test_schema_is_that_of_the_models(self):
        engine = self.db.engine
        inspector = sa.inspect(engine)
        for table in models.Base.metadata.tables.values():
            columns = {column['name']: column
                       for column in inspector.get_columns(table.name)}
            self.assertEqual(set(table.columns.keys()), set(columns))
            for column in table.columns:
                self.assertEqual(column.nullable,
                                 columns[column.name]['nullable'], column)
            self.assertEqual(
                {index.name for index in table.indexes},
                {index['name'] for index in
                 inspector.get_indexes(table.name)} & {
                     index.name for index in table.indexes})
        self.assertEqual(schema_upgrade.latest_revision(),
                         schema_upgrade.get_revision(self.db))

    def test_sync_again_changes_nothing(self):
        self.decisions.create_decision(decision())
        schema_upgrade.sync(self.db)
        self.assertEqual(decision(), self.decisions.get_decision('d1'))

    def test_decision_comes_back_as_it_went(self):
        self.decisions.create_decision(decision())
        self.assertEqual(decision(), self.decisions.get_decision('d1'))
        self.assertIsNone(self.decisions.get_decision('d2'))

    def test_as_dear_as_can_be_told(self):
        cost_us = preemption_policy.MAX_PUBLISHED_COST_US
        before = decision(cost_us=cost_us, victims=(
            db.Victim('v1', cost_us=cost_us),))
        self.decisions.create_decision(before)
        after = self.decisions.get_decision('d1')
        self.assertEqual(2**63 - 1, after.cost_us)
        self.assertEqual(2**63 - 1, after.victims[0].cost_us)

    def test_large_record(self):
        record = {'considered': ['x' * 100] * 2000}
        self.decisions.create_decision(decision(record=record))
        self.assertEqual(record, self.decisions.get_decision('d1').record)

    def test_only_the_owner_changes_it(self):
        self.decisions.create_decision(decision())
        self.assertFalse(self.decisions.update_decision('d1', 'you',
                                                        decisions.DONE))
        self.assertFalse(self.decisions.update_decision(
            'd1', 'me', decisions.DONE, from_status=decisions.CLAIMED))
        self.assertTrue(self.decisions.update_decision(
            'd1', 'me', decisions.CLAIMED, from_status=decisions.INTENT,
            new_owner='you', reason='because'))
        self.assertFalse(self.decisions.update_decision('d1', 'me',
                                                        decisions.DONE))
        found = self.decisions.get_decision('d1')
        self.assertEqual(('you', decisions.CLAIMED, 'because'),
                         (found.owner, found.status, found.reason))

    def test_signs_of_life(self):
        for uuid, owner in (('d1', 'me'), ('d2', 'you'), ('d3', 'me')):
            self.decisions.create_decision(decision(uuid=uuid, owner=owner,
                                                    victims=()))
        row = models.Decision
        with self.db.writer() as session:
            session.execute(sa.update(row.__table__).values(
                updated_at=datetime.datetime(2026, 1, 1)))
        decision_owners.add(self.db, 'me', 60)
        decision_owners.add(self.db, 'you', 60)
        self.assertTrue(decision_owners.renew(self.db, 'me', 60))
        self.assertEqual(
            {'d1': True, 'd2': False, 'd3': True},
            {item.uuid: age_s < 60 for item, age_s
             in self.decisions.get_open_decisions()})

    def test_leases(self):
        decision_owners.add(self.db, 'alive', 60)
        decision_owners.add(self.db, 'dead', -1)
        decision_owners.add(self.db, 'long dead', -2 * 86_400)
        decision_owners.add(self.db, 'ended', 60)
        decision_owners.end(self.db, ['ended', 'unknown'])
        self.assertEqual({'alive': True, 'dead': False, 'ended': False},
                         decision_owners.get_leases(self.db))
        self.assertEqual([True, False, False, False], [
            decision_owners.renew(self.db, name, 60)
            for name in ('alive', 'dead', 'ended', 'unknown')])
        self.assertEqual({'alive': True, 'dead': False, 'ended': False},
                         decision_owners.get_leases(self.db))

    def test_the_clock_is_that_of_the_database(self):
        with self.db.reader() as session:
            now, later = session.execute(
                sa.select(database_clock.now(),
                          database_clock.SecondsFromNow(3600))).one()
        self.assertLess(abs((now - timeutils.utcnow()).total_seconds()), 60)
        self.assertLess(abs((later - now).total_seconds() - 3600), 2)

    def test_pauses(self):
        self.assertEqual({}, pauses.get(self.db))
        pauses.pause(self.db, pauses.POWER, 'why', user_id='u')
        pauses.pause(self.db, pauses.PREEMPTION, 'é', request_id='r')
        since = pauses.get(self.db)[pauses.POWER].since
        pauses.pause(self.db, pauses.POWER, 'why now', user_id='v',
                     project_id='p')
        self.assertEqual(
            [pauses.Pause('power', since, 'why now', 'v', 'p')],
            [item for item in pauses.get(self.db).values()
             if item.what == 'power'])
        self.assertEqual(['preemption', 'power'], list(pauses.get(self.db)))
        self.assertTrue(pauses.resume(self.db, pauses.POWER))
        self.assertFalse(pauses.resume(self.db, pauses.POWER))
        self.assertEqual(['preemption'], list(pauses.get(self.db)))

    def test_one_of_many_processes_takes_a_decision_over(self):
        self.decisions.create_decision(decision())
        won = []

        def take(name):
            if self.decisions.update_decision('d1', 'me', decisions.INTENT,
                                              new_owner=name):
                won.append(name)

        threads = [threading.Thread(target=take, args=(f'o{number}',))
                   for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([self.decisions.get_decision('d1').owner], won)

    def test_open_decisions(self):
        for number, status in enumerate((*decisions.OPEN, decisions.DONE,
                                         decisions.ABORTED)):
            self.decisions.create_decision(decision(
                uuid=f'd{number}', status=status, victims=()))
        found = self.decisions.get_open_decisions()
        self.assertEqual(set(decisions.OPEN),
                         {item.status for item, _age in found})
        for _item, age_s in found:
            self.assertLess(age_s, 3600)

    def test_a_victim_ends_once(self):
        self.decisions.create_decision(decision())
        again = decision(uuid='d2', victims=(db.Victim('v2'),
                                             db.Victim('v3')))
        with self.assertRaisesRegex(decisions.AlreadyEnding, 'already: v2$'):
            self.decisions.create_decision(again)
        self.assertIsNone(self.decisions.get_decision('d2'))
        self.decisions.update_decision('d1', 'me', decisions.ROLLED_BACK)
        self.decisions.create_decision(again)
        self.assertEqual(2, len(self.decisions.get_decision('d2').victims))

    def reopened(self, status, other, other_status=decisions.PENDING):
        """Return {victim: status} of d1 after it was closed and reopened.

        :param status: of its victims when it was closed
        :param other: the status of a later decision that has its victim v1
        :param other_status: of v1 there
        """
        self.decisions.create_decision(decision(
            victims=tuple(db.Victim(uuid, status=status)
                          for uuid in ('v1', 'v2'))))
        self.assertTrue(self.decisions.update_decision(
            'd1', 'me', decisions.ROLLED_BACK, new_owner=''))
        self.decisions.create_decision(decision(
            uuid='d2', status=other, owner='they',
            victims=(db.Victim('v1', status=other_status),)))
        self.assertTrue(self.decisions.reopen('d1', 'you'))
        found = self.decisions.get_decision('d1')
        self.assertEqual(('you', decisions.ROLLING_BACK),
                         (found.owner, found.status))
        return {each.server_uuid: each.status for each in found.victims}

    def test_a_reopened_decision_has_its_victims_again(self):
        self.assertEqual(
            {'v1': decisions.PENDING, 'v2': decisions.PENDING},
            self.reopened(decisions.KEPT, decisions.ROLLED_BACK))

    def test_a_reopened_decision_leaves_victims_to_other_open_ones(self):
        for status in (decisions.KEPT, decisions.ENDING):
            with self.subTest(status):
                found = self.reopened(status, decisions.CLAIMED)
                self.assertEqual(decisions.KEPT, found['v1'])
                self.assertNotEqual(decisions.KEPT, found['v2'])
                self.drop()
                tables.make(self.db)

    def test_a_victim_that_two_reopened_decisions_share(self):
        """Otherwise neither of both would restore it."""
        self.assertEqual(decisions.PENDING, self.reopened(
            decisions.KEPT, decisions.ROLLING_BACK, decisions.KEPT)['v1'])

    def test_a_decision_that_is_done_is_not_reopened(self):
        self.decisions.create_decision(decision(status=decisions.DONE))
        self.assertFalse(self.decisions.reopen('d1', 'you'))
        self.assertFalse(self.decisions.reopen('d0', 'you'))

    def test_find(self):
        self.decisions.create_decision(decision(request_id='r1'))
        self.decisions.create_decision(decision(
            uuid='d2', server_uuid='s2', status=decisions.DONE))

        def uuids(**conditions):
            return [item.uuid for item in
                    self.decisions.get_decisions(**conditions)]

        self.assertEqual(['d1'], uuids(server_uuid='s1'))
        self.assertEqual(['d1'], uuids(request_id='r1'))
        self.assertEqual(['d2'], uuids(statuses=[decisions.DONE]))
        self.assertEqual({'d1', 'd2'}, set(uuids(provider_uuid='p1')))

    def test_victims(self):
        self.decisions.create_decision(decision())
        self.decisions.update_victim('d1', 'v2', decisions.GONE)
        self.assertEqual([decisions.PENDING, decisions.GONE], [
            victim.status for victim in
            self.decisions.get_decision('d1').victims])

    def test_a_victim_of_a_decision_that_another_process_has(self):
        """A late write of the former owner does not replace the new record."""
        self.decisions.create_decision(decision())
        owner = self.decisions.get_decision('d1').owner
        self.decisions.update_victim('d1', 'v2', decisions.NOTICED, owner)
        self.decisions.update_decision('d1', owner, decisions.ROLLING_BACK,
                                       new_owner='other')
        self.decisions.update_victim('d1', 'v2', decisions.KEPT)
        self.assertRaises(decisions.LostDecision, self.decisions.update_victim,
                          'd1', 'v2', decisions.NOTICED, owner)
        self.assertEqual([decisions.PENDING, decisions.KEPT], [
            victim.status for victim in
            self.decisions.get_decision('d1').victims])

    def test_ending(self):
        now = timeutils.utcnow()
        hour_ago = now - datetime.timedelta(hours=1)
        for number, (status, ended_at) in enumerate((
                (decisions.GONE, now), (decisions.GONE, hour_ago),
                (decisions.KEPT, now),
                (decisions.MIGRATED, now), (decisions.SHELVED, now),
                (decisions.GONE, None))):
            self.decisions.create_decision(decision(
                uuid=f'd{number}', status=decisions.DONE,
                victims=(db.Victim(f'v{number}', 'p', status=status,
                                   ended_at=ended_at),)))
        self.assertEqual({}, self.decisions.get_ending())
        self.decisions.create_decision(decision(uuid='open', victims=(
            db.Victim('v6', 'q'), db.Victim('v0', 'p'))))
        self.assertEqual({'v6': 'q', 'v0': 'p'}, self.decisions.get_ending())
        self.assertEqual(
            {'v0': 'p', 'v4': 'p', 'v6': 'q'},
            self.decisions.get_ending(now - datetime.timedelta(minutes=1)))

    def test_victims_that_end_after_their_decision(self):
        """They count, but not for ever: Nova may never finish."""
        for number, (status, victim) in enumerate((
                (decisions.ROLLED_BACK, decisions.ENDING),
                (decisions.ROLLED_BACK, decisions.ENDING),
                (decisions.ROLLED_BACK, decisions.KEPT),
                (decisions.CLAIMED, decisions.ENDING))):
            self.decisions.create_decision(decision(
                uuid=f'd{number}', status=status, victims=(db.Victim(
                    f'v{number}', 'p', status=victim,
                    allocations={'rp': {'resources': {'VCPU': 1}}}),)))
        with self.db.writer() as session:
            session.get(models.Decision, 'd1').updated_at -= (
                datetime.timedelta(seconds=decisions.LEAVING_S))
        found, = self.decisions.get_leaving()
        self.assertEqual(('v0', {'rp': {'resources': {'VCPU': 1}}}),
                         (found.server_uuid, found.allocations))
        self.assertEqual({'v0': 'p', 'v3': 'p'}, self.decisions.get_ending())

    def test_over_budget_changes_nothing(self):
        def check(ending):
            self.assertEqual({'v1': '', 'v2': ''}, ending)
            raise decisions.OverBudget('too many')

        with self.assertRaisesRegex(decisions.OverBudget, 'too many'):
            self.decisions.create_decision(decision(), check)
        self.assertIsNone(self.decisions.get_decision('d1'))

    def test_no_two_pass_the_last_place(self):
        passed = []

        def check(ending):
            if len(ending) > 3:
                raise decisions.OverBudget

        def create(number):
            with contextlib.suppress(decisions.OverBudget):
                self.decisions.create_decision(decision(
                    uuid=f'd{number}', victims=(db.Victim(f'v{number}'),)),
                    check)
                passed.append(number)

        threads = [threading.Thread(target=create, args=(number,))
                   for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(3, len(passed))
        self.assertEqual(3, len(self.decisions.get_ending()))

    def test_count_preemptions(self):
        for number, status in enumerate((
                decisions.RESTORED, decisions.SHELVED, decisions.GONE,
                decisions.KEPT)):
            self.decisions.create_decision(decision(
                uuid=f'd{number}', status=decisions.DONE,
                victims=(db.Victim('v1', status=status),
                         db.Victim(f'v2{number}', status=decisions.MIGRATED))))
        self.assertEqual(
            {'v1': 2, 'v20': 1, 'v21': 1, 'v22': 1, 'v23': 1},
            self.decisions.count_preemptions())

    def test_hinted_servers(self):
        preemptible_hints.add(self.db, ['a', 'b'])
        preemptible_hints.add(self.db, ['b', 'c'])
        self.assertEqual({'a', 'b', 'c'}, preemptible_hints.get(self.db))
        self.assertEqual({'a'}, preemptible_hints.get(self.db, ['a', 'x']))
        preemptible_hints.remove(self.db, ['a', 'x'])
        self.assertEqual({'b', 'c'}, preemptible_hints.get(self.db))


def load_tests(loader, tests, pattern):
    for number, url in enumerate(
            os.environ.get('OS_TEST_DATABASES', '').split()):
        case = type(f'TestServer{number}', (TestSQLite,), {'url': url})
        tests.addTests(loader.loadTestsFromTestCase(case))
    return tests
