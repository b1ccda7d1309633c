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
"""Whether the requests that victims give way for still exist."""

import types
import unittest
from unittest import mock

from nova import objects

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import nova_api
from nova_preempt.handover import request_poller


class TestRequests(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.not_wanted = {'c'}
        self.find = mock.Mock(side_effect=lambda uuids: (
            self.not_wanted & set(uuids)))
        self.requests = request_poller.RequestPoller(
            0.5, self.find, lambda: self.now)

    def test_one_reading_for_all(self):
        self.requests.add(['a'])
        self.requests.add(['b', 'c'])
        self.assertEqual(set(), self.requests.unwanted(['a']))
        self.assertEqual({'c'}, self.requests.unwanted(['b', 'c']))
        self.find.assert_called_once_with(['a', 'b', 'c'])
        self.not_wanted = {'a', 'b', 'c'}
        self.now = 0.4
        self.assertEqual(set(), self.requests.unwanted(['a']))
        self.now = 0.5
        self.assertEqual({'a'}, self.requests.unwanted(['a']))

    def test_a_new_one_is_read_at_once(self):
        self.requests.add(['a'])
        self.requests.unwanted(['a'])
        self.requests.add(['c'])
        self.assertEqual({'c'}, self.requests.unwanted(['c']))

    def test_forgotten_by_the_last_one(self):
        self.requests.add(['a', 'b'])
        self.requests.remove(['a'])
        self.requests.unwanted(['b'])
        self.find.assert_called_once_with(['b'])

    def test_without_a_server_nothing_is_read(self):
        self.assertEqual(set(), self.requests.unwanted([]))
        self.find.assert_not_called()

    def test_nobody_knows(self):
        self.find.side_effect = OSError('away')
        self.requests.add(['a'])
        self.assertRaises(nova_api.NovaError, self.requests.unwanted, ['a'])


class TestWhatNovaSays(unittest.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.cells = {}
        self.read = []
        patch = mock.patch.object(
            objects.InstanceList, 'get_by_filters',
            lambda cell, filters, expected_attrs: [
                types.SimpleNamespace(uuid=uuid, host='h', vm_state=vm_state,
                                      task_state=task_state)
                for uuid, (vm_state, task_state) in self.cells[
                    cell.cell_uuid].items() if uuid in filters['uuid']])
        patch.start()
        self.addCleanup(patch.stop)

    def add(self, uuid, deleted=False, cell=None):
        """As its mapping says; cell 0 is that of those Nova gave up."""
        return types.SimpleNamespace(
            instance_uuid=uuid, queued_for_delete=deleted,
            cell_mapping=cell and types.SimpleNamespace(
                uuid=cell, is_cell0=lambda: cell == 'cell0'))

    def unwanted(self, *mappings):
        def gather(cells, read, limit_s):
            self.read += [cell.uuid for cell in cells]
            return {cell.uuid: read(types.SimpleNamespace(
                cell_uuid=cell.uuid)) if cell.uuid in self.cells
                else cell_calls.CellAway() for cell in cells}

        with mock.patch.object(
                objects.InstanceMappingList, 'get_by_instance_uuids',
                return_value=mappings), mock.patch.object(
                    cell_calls, 'gather', gather):
            return request_poller.find_unwanted(
                [mapping.instance_uuid for mapping in mappings])

    def test_without_a_look_into_cells(self):
        self.assertEqual({'failed', 'deleted'}, self.unwanted(
            self.add('new'), self.add('old', cell='1'),
            self.add('failed', cell='cell0'),
            self.add('deleted', deleted=True)))
        self.assertEqual([], self.read)

    def test_a_deletion_that_has_failed(self):
        """Nova does not take its mark back."""
        self.cells['1'] = {'failed': ('error', None),
                           'ends': ('error', 'deleting'),
                           'soft': ('soft-delete', None)}
        self.assertEqual({'ends', 'soft', 'gone'}, self.unwanted(*(
            self.add(uuid, deleted=True, cell='1')
            for uuid in ('failed', 'ends', 'soft', 'gone'))))
        self.assertEqual(['1'], self.read)

    def test_where_its_cell_does_not_answer(self):
        """The mark is all that there is; and nobody waits for that cell."""
        self.cells['2'] = {'b': ('error', None)}
        self.assertEqual({'a'}, self.unwanted(
            self.add('a', deleted=True, cell='1'),
            self.add('b', deleted=True, cell='2')))
