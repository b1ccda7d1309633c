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
"""What is told while nobody knows how much room there is."""

import unittest

from nova_preempt.core.backlog import unseen
from tests.unit.core.backlog import base


class TestNotes(unittest.TestCase):

    def test_those_that_come_into_question(self):
        found = unseen.notes([
            base.request('a', position=4), base.request('b'),
            base.request('c', not_before=base.ago(-9)),
            base.request('d', next_try_at=base.ago(-9)),
            base.request('e', not_before=base.ago(9))], base.NOW)
        self.assertEqual({'a': 4, 'b': None, 'e': None}, {
            uuid: note.position for uuid, note in found.items()})
        self.assertEqual({('room_unknown', None)}, {
            (note.waits_for['code'], note.estimate_s)
            for note in found.values()})


if __name__ == '__main__':
    unittest.main()
