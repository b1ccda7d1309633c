# SPDX-License-Identifier: Apache-2.0
"""Turns of projects in the database."""

import dataclasses
import datetime
import os
import unittest

from nova_preempt.core.backlog import project_turns
from nova_preempt.db import backlog_turns
from tests.unit.db import test_backlog_store

NOW = test_backlog_store.NOW


class TestSQLite(test_backlog_store.TestSQLite):
    """Inherits the database only, see load_tests."""

    def replace(self, **after):
        backlog_turns.replace(self.db, backlog_turns.get(self.db), after)
        self.assertEqual(after, backlog_turns.get(self.db))

    def test_come_change_and_go(self):
        turn = project_turns.Turn(NOW, NOW + datetime.timedelta(hours=1),
                                  frozenset({'h', 'i'}), {'r': 5}, 2)
        self.replace()
        self.replace(p=turn, q=dataclasses.replace(turn, far={}))
        self.replace(p=turn, q=dataclasses.replace(turn, hosts=frozenset()))
        self.replace(p=turn)

    def test_of_who_was_asked_twice(self):
        """As where a connection was lost."""
        turn = project_turns.Turn(NOW, NOW)
        for _time in range(2):
            backlog_turns.replace(self.db, {}, {'p': turn})
            self.assertEqual({'p': turn}, backlog_turns.get(self.db))
        for _time in range(2):
            backlog_turns.replace(self.db, {'p': turn}, {})
            self.assertEqual({}, backlog_turns.get(self.db))


def load_tests(loader, tests, pattern):
    own = [name for name in vars(TestSQLite) if name.startswith('test_')]
    found = unittest.TestSuite()
    for url in ('', *os.environ.get('OS_TEST_DATABASES', '').split()):
        kind = type('TestOther' if url else 'TestSQLite', (TestSQLite,),
                    {'url': url or None})
        found.addTests(kind(name) for name in own)
    return found


if __name__ == '__main__':
    unittest.main()
