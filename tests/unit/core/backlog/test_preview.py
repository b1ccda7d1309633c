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
"""Hosts before and after a pass."""

import unittest

from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import preview
from nova_preempt.core.backlog import room
from tests.unit.core.backlog import base
from tests.unit.core.backlog.test_room import vcpus


def host(name, free, capacity=8):
    return room.Room(name, {'VCPU': free}, {'VCPU': free},
                     {'VCPU': capacity})


class TestUses(unittest.TestCase):

    def test_what_is_added(self):
        requests = {uuid: base.request(uuid, vcpus(4), vcpus(2))
                    for uuid in 'xyz'}
        starts = [dispatch.Start('x', '2', 3, {'a': 2, 'b': 1}),
                  dispatch.Start('y', '4', 1, {'a': 1}),
                  # Nova chooses.
                  dispatch.Start('z', '2', 1)]
        self.assertEqual(
            [('a', 0, 8), ('b', 3, 2), ('c', 9, 0)],
            [(use.host, use.used['VCPU'], use.added.get('VCPU', 0))
             for use in preview.uses(
                 [host('c', -1), host('b', 5), host('a', 8)], starts,
                 requests)])

    def test_nothing(self):
        self.assertEqual([], preview.uses([], [], {}))


if __name__ == '__main__':
    unittest.main()
