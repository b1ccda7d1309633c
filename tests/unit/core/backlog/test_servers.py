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
"""The servers of a request: what those on their way still need."""

import unittest

from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import servers
from tests.unit.core.backlog import base


def request(state=model.ASKED, known=(), count=3):
    return base.request(
        count=count, boots=(model.Boot(1, 'tag', 'small', count, base.NOW,
                                       state),),
        servers=base.servers(*known))


class TestWithoutRoom(unittest.TestCase):

    def count(self, consumers=(), **values):
        return sum(number for _, number in servers.without_room(
            [request(**values)], consumers))

    def test_nothing_is_known_of_them_yet(self):
        for state in (model.ASKING, model.ASKED):
            self.assertEqual(3, self.count(state=state))

    def test_those_without_allocations(self):
        known = (model.BUILDING, model.BUILDING)
        self.assertEqual(3, self.count(known=known))
        self.assertEqual(2, self.count(['s0'], known=known))
        self.assertEqual(1, self.count(['s0', 's1', 'other'], known=known))

    def test_those_that_are_there_or_come_no_more(self):
        self.assertEqual(0, self.count(
            known=(model.RUNNING, model.GONE, model.ERROR)))
        for state in (model.SETTLED, model.REFUSED, model.LOST):
            self.assertEqual(0, self.count(state=state))

    def test_of_which_flavor(self):
        self.assertEqual([(base.alternative(), 3)],
                         servers.without_room([request()], ()))
        self.assertEqual([], servers.without_room(
            [base.request(boots=(model.Boot(
                1, 'tag', 'gone', 1, base.NOW, model.ASKED),))], ()))


if __name__ == '__main__':
    unittest.main()
