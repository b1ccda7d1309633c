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

from nova_preempt.db import schema


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


if __name__ == '__main__':
    unittest.main()
