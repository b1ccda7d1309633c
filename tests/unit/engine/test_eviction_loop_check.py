# SPDX-License-Identifier: Apache-2.0
"""Warnings of servers that are evicted repeatedly."""

import datetime

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.db import decisions
from nova_preempt.engine import repairs
from tests.unit.db import test_decisions

NOW = datetime.datetime(2026, 11, 20, 12)


class TestCycles(test_decisions.TestSQLite):
    """Inherits the database only, see load_tests."""

    def setUp(self):
        super().setUp()
        self.now = NOW
        self.cycles = repairs.EvictionLoopCheck(self.db, lambda: self.now)
        self.number = 0

    def give_way(self, minutes_ago, victim='v', project='p', taker='q',
                 status=decisions.SHELVED):
        self.number += 1
        self.decisions.create_decision(test_decisions.decision(
            uuid=f'd{self.number}', server_uuid=f's{self.number}',
            project_id=taker, status=decisions.DONE, victims=(decisions.Victim(
                victim, project, status=status,
                ended_at=NOW - datetime.timedelta(minutes=minutes_ago)),)))

    def warnings(self):
        """Return the number of warnings, and the metric of servers."""
        with self.assertLogs(repairs.__name__, 'WARNING') as logs:
            logging.getLogger(repairs.__name__).warning('the end')
            self.cycles.look()
        return [record.getMessage() for record in logs.records][1:]

    def gauge(self, kind):
        return metrics.CYCLES.labels(kind)._value.get()

    def test_a_server_evicted_three_times(self):
        self.give_way(50)
        self.give_way(30)
        self.assertEqual([], self.warnings())
        self.give_way(10)
        self.assertEqual(['Server v was evicted 3 times within 3600 s.'],
                         self.warnings())
        self.assertEqual(1, self.gauge('server'))
        self.assertEqual([], self.warnings(), 'it is said twice')

    def test_a_further_eviction_is_logged(self):
        for minutes_ago in (50, 30, 10):
            self.give_way(minutes_ago)
        self.warnings()
        self.give_way(5)
        self.assertEqual(['Server v was evicted 4 times within 3600 s.'],
                         self.warnings())

    def test_old_evictions_do_not_count(self):
        for minutes_ago in (70, 30, 10):
            self.give_way(minutes_ago)
        self.assertEqual([], self.warnings())
        self.assertEqual(0, self.gauge('server'))

    def test_kept_victims_do_not_count(self):
        for minutes_ago in (50, 30, 10):
            self.give_way(minutes_ago, status=decisions.KEPT)
        self.assertEqual([], self.warnings())

    def test_projects_that_evict_each_other(self):
        self.give_way(50, 'a', 'p', 'q')
        self.give_way(30, 'b', 'q', 'p')
        self.give_way(10, 'c', 'p', 'q')
        warning, = self.warnings()
        self.assertIn('Projects p and q', warning)
        self.assertEqual(1, self.gauge('projects'))


def load_tests(loader, tests, pattern):
    return loader.suiteClass(
        TestCycles(name) for name in vars(TestCycles)
        if name.startswith('test_'))
