# SPDX-License-Identifier: Apache-2.0
"""The queries, on the same databases as the rest."""

import datetime
import os
import unittest
from unittest import mock

from oslo_utils import timeutils

from nova_preempt.db import decisions
from nova_preempt.db import preemption_queries
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 11, 20, 12)


class TestQueries(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def setUp(self):
        super().setUp()
        self.add('d1', 'p', 30, [('v1', 'p', 'spot'), ('v2', 'q', 'spot')])
        self.add('d2', 'p', 20, [('v3', 'q', 'Big')], status=decisions.CLAIMED)
        self.add('d3', 'q', 10, [('v2', 'q', 'spot')], host='host2')
        self.add('d4', 'p', 0, [], status=decisions.REFUSED)

    def add(self, uuid, project_id, age_s, victims, **values):
        values = {'host': 'host1', 'status': decisions.DONE, **values}
        with mock.patch.object(
                timeutils, 'utcnow',
                return_value=NOW - datetime.timedelta(seconds=age_s)):
            self.decisions.create_decision(test_decisions.decision(
                uuid=uuid, server_uuid=f's-{uuid}', project_id=project_id,
                victims=tuple(
                    test_decisions.db.Victim(name, owner, flavor=flavor,
                                             cost_us=5)
                    for name, owner, flavor in victims), **values))

    def uuids(self, **conditions):
        return [item.uuid for item in
                preemption_queries.get_preemptions(self.db, **conditions)]

    def test_conditions(self):
        for conditions, uuids in (
                ({}, ['d3', 'd2', 'd1']),
                ({'status': decisions.REFUSED}, ['d4']),
                ({'status': decisions.DONE}, ['d3', 'd1']),
                ({'server_uuid': 'v2'}, ['d3', 'd1']),
                ({'server_uuid': 's-d2'}, ['d2']),
                ({'victim_uuid': 's-d2'}, []),
                ({'flavor': 'Big'}, ['d2']),
                ({'host': 'host2'}, ['d3']),
                ({'project_id': 'p'}, ['d2', 'd1']),
                ({'project_id': 'p', 'server_uuid': 'v2'}, []),
                ({'project_id': 'q', 'server_uuid': 's-d1'}, []),
                ({'project_id': 'p', 'flavor': 'Big'}, []),
                ({'project_id': 'r'}, []),
                ({'limit': 2}, ['d3', 'd2']),
                ({'since': NOW - datetime.timedelta(seconds=20)},
                 ['d3', 'd2']),
                ({'until': NOW - datetime.timedelta(seconds=20)}, ['d1'])):
            self.assertEqual(uuids, self.uuids(**conditions), conditions)

    def test_marker(self):
        marker = preemption_queries.get_preemption(self.db, 'd3')
        self.assertEqual(['d2', 'd1'], self.uuids(marker=marker))

    def test_one(self):
        found = preemption_queries.get_preemption(self.db, 'd1')
        self.assertEqual((NOW - datetime.timedelta(seconds=30),
                          ['v1', 'v2'], 5, {'why': 'é'}), (
            found.created_at, [item.server_uuid for item in found.victims],
            found.victims[0].cost_us, found.record))
        self.assertEqual(found,
                         preemption_queries.get_preemption(self.db, 'd1', 'q'))
        self.assertIsNone(preemption_queries.get_preemption(self.db, 'd1',
                                                            'r'))
        self.assertIsNone(preemption_queries.get_preemption(self.db, 'd4',
                                                            'p'))
        self.assertIsNotNone(preemption_queries.get_preemption(self.db, 'd4'))

    def test_victims(self):
        """Victims of refused and of older preemptions do not count."""
        self.assertEqual({'Big': 1, 'spot': 3},
                         preemption_queries.count_victims(
                             self.db, NOW - datetime.timedelta(days=1)))
        self.assertEqual(0, preemption_queries.count_victims(
            self.db, NOW).total())

    def test_statistics(self):
        flavors, total = preemption_queries.get_statistics(self.db)
        self.assertEqual([preemption_queries.PreemptionCounts(
                              'Big', {'claimed': 1}, {'pending': 1}, 0),
                          preemption_queries.PreemptionCounts(
                              'spot', {'done': 2}, {'pending': 3}, 2)],
                         flavors)
        self.assertEqual(preemption_queries.PreemptionCounts(
            '', {'done': 2, 'claimed': 1}, {'pending': 4}, 2), total)
        self.assertEqual(([],
                          preemption_queries.PreemptionCounts('', {}, {}, 0)),
                         preemption_queries.get_statistics(
                             self.db, project_id='r', since=NOW))


def load_tests(loader, tests, pattern):
    """Run the own tests of each class on each database."""
    suite = unittest.TestSuite()
    for url in (None, *os.environ.get('OS_TEST_DATABASES', '').split()):
        for name in vars(TestQueries):
            if name.startswith('test_'):
                case = TestQueries(name)
                case.url = url
                suite.addTest(case)
    return suite
