# SPDX-License-Identifier: Apache-2.0
"""Tests of request histories, on SQLite and OS_TEST_DATABASES."""

import datetime
import os
import unittest

from nova_preempt.core.backlog import backlog_model
from nova_preempt.db import backlog_history
from nova_preempt.db import backlog_store
from tests.unit.db import test_backlog_store
from tests.unit.db.test_backlog_store import NOW

HOUR = datetime.timedelta(hours=1)


class TestHistory(test_backlog_store.DatabaseTestCase):

    def leave(self, uuid, at, *states, **values):
        """A request that was made then, and has a new state each hour."""
        backlog_store.create(self.db, test_backlog_store.request(
            uuid, created_at=at, updated_at=at, **values))
        for number, state in enumerate(states, 1):
            self.assertTrue(backlog_store.change(
                self.db, uuid, backlog_model.STATES, at + number * HOUR,
                state=state))

    def setUp(self):
        super().setUp()
        self.leave('old', NOW - 9 * HOUR, backlog_model.PLACING,
                   backlog_model.ACTIVE, backlog_model.DONE)
        self.leave('new', NOW, backlog_model.PLACING, backlog_model.ACTIVE,
                   class_name='gold', project_id='p2')
        self.leave('waits', NOW, class_name='gold')

    def test_numbers(self):
        self.assertEqual(
            {'': {backlog_model.DONE: 1},
             'gold': {backlog_model.ACTIVE: 1, backlog_model.WAITING: 1}},
            backlog_history.numbers(self.db))
        self.assertEqual({'gold': {backlog_model.ACTIVE: 1}},
                         backlog_history.numbers(self.db, 'p2'))
        self.assertEqual({}, backlog_history.numbers(self.db, 'p3'))

    def classes(self, found):
        return sorted(item.class_name for item in found)

    def test_requests_that_ran(self):
        for since, expected in ((NOW - 9 * HOUR, ['', 'gold']),
                                (NOW, ['gold']), (NOW + 9 * HOUR, [])):
            self.assertEqual(expected, self.classes(
                backlog_history.started(self.db, since)), since)
        self.assertEqual([], list(backlog_history.started(
            self.db, NOW, 'p1')))

    def test_requests_of_an_interval(self):
        for since, until, expected in (
                (NOW - 9 * HOUR, NOW, ['']),
                (NOW - HOUR, NOW + HOUR, ['gold', 'gold']),
                (NOW - 6 * HOUR, NOW + HOUR, ['', 'gold', 'gold'])):
            self.assertEqual(expected, self.classes(
                backlog_history.between(self.db, since, until)))
        self.assertEqual(['gold'], self.classes(backlog_history.between(
            self.db, NOW, NOW + HOUR, 'p2')))


def load_tests(loader, tests, pattern):
    for number, url in enumerate(os.environ.get('OS_TEST_DATABASES',
                                                '').split()):
        other = type(f'TestOther{number}', (TestHistory,), {'url': url})
        tests.addTests(loader.loadTestsFromTestCase(other))
    return tests


if __name__ == '__main__':
    unittest.main()
