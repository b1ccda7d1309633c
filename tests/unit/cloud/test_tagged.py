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
"""Servers that are sought in the cells that Nova names."""

import types
import unittest
from unittest import mock

from nova import objects
from oslo_utils import uuidutils

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import tagged

A, B = (types.SimpleNamespace(uuid=uuid) for uuid in 'AB')


class TestSought(unittest.TestCase):

    def find(self, *homes, there=()):
        """What is found of server s.

        :param homes: its cell, each time that Nova is asked for it, None if
            it has none; the last one holds from then on
        :param there: the cells that it is in
        """
        objects.register_all()
        homes = list(homes)

        def get_mappings(context, uuids):
            home = homes.pop(0) if len(homes) > 1 else homes[0]
            return [types.SimpleNamespace(instance_uuid=uuid,
                                          cell_mapping=home)
                    for uuid in uuids]

        def gather(cells, read, limit_s):
            return {cell.uuid: {
                's': tagged.Tagged('s', 'p', 'active', None, ())}
                if cell in there else {} for cell in cells}

        with mock.patch.object(
                objects.BuildRequestList, 'get_all', return_value=[]), (
                mock.patch.object(
                    objects.InstanceMappingList, 'get_by_instance_uuids',
                    side_effect=get_mappings)), mock.patch.object(
                cell_calls, 'gather', gather):
            return tagged.find(uuids=['s'])

    def test_there(self):
        found = self.find(A, there=[A])
        self.assertEqual({'s'}, found.servers.keys())
        self.assertEqual(frozenset(), found.unsure)

    def test_whoever_has_locked_it(self):
        """Nova lets its owner delete it no more than anybody's."""
        for values, locked in (({}, False), ({'locked': False}, False),
                               ({'locked': True, 'locked_by': 'owner'}, True),
                               ({'locked': True, 'locked_by': 'admin'}, True),
                               ({'locked': True, 'locked_by': None}, True)):
            with self.subTest(values):
                self.assertIs(locked, tagged._tagged(objects.Instance(
                    uuid=uuidutils.generate_uuid(), project_id='p',
                    vm_state='active', task_state=None, **values),
                    ()).is_locked)

    def test_deleted(self):
        for home in A, None:
            self.assertEqual(tagged.Found({}), self.find(home))

    def test_resized_into_another_cell_meanwhile(self):
        """Nova hides it where it was once it is where it went."""
        self.assertEqual(tagged.Found({}, frozenset('s')),
                         self.find(A, B, there=[B]))


if __name__ == '__main__':
    unittest.main()
