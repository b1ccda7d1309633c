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
"""The migrations follow each other."""

import itertools
import os
import unittest

import alembic.script
import sqlalchemy as sa

from nova_preempt.db import backlog
from nova_preempt.db import schema
from tests.unit.db import test_decisions


class TestMigrations(unittest.TestCase):

    def test_each_follows_the_one_before(self):
        """Two that were made at once must not both follow a third."""
        script = alembic.script.ScriptDirectory.from_config(schema._config())
        found = sorted(script.walk_revisions(), key=lambda item: item.path)
        self.assertEqual([f'{number:04}' for number in range(
            1, len(found) + 1)], [item.revision for item in found])
        self.assertIsNone(found[0].down_revision)
        for before, item in itertools.pairwise(found):
            self.assertEqual(before.revision, item.down_revision)
        for item in found:
            self.assertTrue(os.path.basename(item.path).startswith(
                f'{item.revision}_'))

    def test_none_hides_another(self):
        """Of one number: only one of them would be run."""
        folder = os.path.join(schema._MIGRATIONS, 'versions')
        numbers = [name.partition('_')[0] for name in os.listdir(folder)
                   if name[0].isdigit()]
        self.assertEqual(len(set(numbers)), len(numbers))

    def test_requests_get_the_numbers_of_their_first_changes(self):
        """Also one of an API of before, which does not name its own."""
        database = test_decisions.make_database('sqlite://')
        self.addCleanup(database.engine.dispose)
        schema.sync(database, '0016')
        insert = (
            'INSERT INTO backlog_requests (uuid, project_id, user_id, '
            'trust_id, name, body, compute_version, count, least_count, '
            'alternatives, created_at, updated_at, class_name, ladder, apart, '
            'comes_back, state, reason, waits_for, ends_servers, returns, '
            "tries) VALUES (:uuid, '', '', '', '', '{}', '2.90', 1, 1, '[]', "
            "'2026-01-01 12:00:00.000000', '2026-01-01 12:00:00.000000', '', "
            "'', 0, 0, 'waiting', '', '{}', 0, 0, 0)")
        with database.engine.begin() as connection:
            for uuid in 'cab':
                connection.execute(sa.text(insert), {'uuid': uuid})
            for uuid in 'caac':
                connection.execute(sa.text(
                    'INSERT INTO backlog_changes (request_uuid, at, state, '
                    "reason) VALUES (:uuid, '2026-01-01 12:00:00.000000', "
                    "'waiting', '')"), {'uuid': uuid})
        schema.sync(database)
        with database.engine.begin() as connection:
            connection.execute(sa.text(insert), {'uuid': 'd'})
        self.assertEqual(
            [('b', 0), ('d', 0), ('c', 1), ('a', 2)],
            [(item.uuid, item.serial) for item in backlog.find(database)])


if __name__ == '__main__':
    unittest.main()
