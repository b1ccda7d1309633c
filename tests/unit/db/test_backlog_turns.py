# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Turns of projects in the database."""

import dataclasses
import datetime
import os
import unittest

from nova_preempt.core.backlog import turns
from nova_preempt.db import backlog_turns
from tests.unit.db import test_backlog

NOW = test_backlog.NOW


class TestSQLite(test_backlog.TestSQLite):
    """Inherits the database only, see load_tests."""

    def replace(self, **after):
        backlog_turns.replace(self.db, backlog_turns.get(self.db), after)
        self.assertEqual(after, backlog_turns.get(self.db))

    def test_come_change_and_go(self):
        turn = turns.Turn(NOW, NOW + datetime.timedelta(hours=1),
                          frozenset({'h', 'i'}), {'r': 5}, 2)
        self.replace()
        self.replace(p=turn, q=dataclasses.replace(turn, far={}))
        self.replace(p=turn, q=dataclasses.replace(turn, hosts=frozenset()))
        self.replace(p=turn)

    def test_of_who_was_asked_twice(self):
        """As where a connection was lost."""
        turn = turns.Turn(NOW, NOW)
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
