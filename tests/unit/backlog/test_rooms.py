# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What is read of hosts for a pass."""

import dataclasses
import datetime
from types import SimpleNamespace
import unittest

from nova_preempt.backlog import rooms
from nova_preempt.core import eligibility
from nova_preempt.core import model
from nova_preempt.core.backlog import room
from nova_preempt.core.scheduling import policy

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def server(uuid, maximum_runtime_s=None, **values):
    return dataclasses.replace(model.Server(
        uuid, 'h', 'h', 'cell', 'p', 'u', 'spot',
        NOW - datetime.timedelta(seconds=40), 'active', None, 0, 2, 64, 0,
        maximum_runtime_s), **values)


class TestRooms(unittest.TestCase):

    def find(self, *servers, of_all_s=0):
        providers = [
            model.Provider('root', 1, {'VCPU': model.Inventory(8)}, {
                item.uuid: {'VCPU': 2} for item in servers}),
            model.Provider('part', 1, {'VGPU': model.Inventory(4)}, {
                servers[0].uuid: {'VGPU': 1}}, parent_uuid='root')]
        host = SimpleNamespace(name='h', properties={'traits': ['T']})
        known = SimpleNamespace(
            policy=lambda: policy.Policy(
                eligibility.Rules(), ('shelve', 'delete'), None),
            servers=SimpleNamespace(by_node=lambda: {
                'h': {item.uuid: item for item in servers}}))
        (found,) = rooms.Rooms(
            SimpleNamespace(maximum_runtime_s=of_all_s),
            SimpleNamespace(rooms=lambda: [(host, providers)]),
            known, lambda: NOW).all()
        return found

    def test_the_whole_tree_counts(self):
        found = self.find(server('a'), server('b', locked_by='admin'))
        self.assertEqual(
            room.Room('h', {'VCPU': 4, 'VGPU': 3}, {'VCPU': 6, 'VGPU': 4},
                      {'VCPU': 8, 'VGPU': 4}, traits=frozenset('T'),
                      consumers=frozenset('ab'), parts=frozenset(['VGPU'])),
            found)

    def test_who_is_known_to_end(self):
        found = self.find(server('a', 100), server('b', 0), server('c'),
                          server('d', 30, minimum_runtime_s=3600),
                          server('e', 100, locked_by='admin'))
        self.assertEqual(
            (room.End(60, {'VCPU': 2, 'VGPU': 1}, reclaimable=True),
             room.End(0, {'VCPU': 2}, reclaimable=False)), found.ends)
        found = self.find(server('a'), server('b', 0), of_all_s=50)
        self.assertEqual([10], [end.in_s for end in found.ends])

    def test_who_would_not_come_back_is_not(self):
        item = server('a', 100, class_name='gold', action='delete')
        self.assertEqual((), self.find(item).ends)
