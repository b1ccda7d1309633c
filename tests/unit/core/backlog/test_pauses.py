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
"""Whether a request that Nova refused is tried again."""

import unittest

from tests.unit.core.backlog import base
from tests.unit.core.backlog.test_passing import LATER
from tests.unit.core.backlog.test_passing import decide
from tests.unit.core.backlog.test_room import host


class TestNewRoom(unittest.TestCase):
    """One that Nova found no host for, and is to be tried later."""

    def look(self, free, waits_for=None, reclaimable=None, code=None):
        found = decide([base.request(
            next_try_at=LATER, tries=1, waits_for=waits_for or {
                'code': code or 'no_valid_host', 'text': 'No host.'})],
            [host('h', free, reclaimable)])
        return found.notes['r1'].waits_for if found.notes else None

    def test_it_is_tried_as_soon_as_there_is_some(self):
        seen = self.look(0)
        self.assertEqual('room', seen['code'])
        self.assertEqual('room', self.look(0, seen)['code'])
        self.assertIsNone(self.look(1, seen))

    def test_not_in_the_room_that_nova_refused(self):
        seen = self.look(1)
        self.assertEqual('no_valid_host', seen['code'])
        self.assertEqual(seen, self.look(1, seen))
        # Unless that was taken meanwhile.
        self.assertIsNone(self.look(1, self.look(0, seen)))

    def test_what_is_free_is_more_than_what_would_be(self):
        seen = self.look(0, reclaimable=1)
        self.assertEqual('no_valid_host', seen['code'])
        self.assertEqual(seen, self.look(0, seen, reclaimable=1))
        self.assertIsNone(self.look(1, seen))

    def test_other_answers_are_not_about_room(self):
        for code in ('quota', 'refused', 'no_answer'):
            self.assertEqual(code, self.look(
                1, self.look(0, code=code))['code'])


if __name__ == '__main__':
    unittest.main()
