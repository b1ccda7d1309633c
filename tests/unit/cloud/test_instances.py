# SPDX-License-Identifier: Apache-2.0
"""Reads of servers from Nova's cells."""

import types
from types import SimpleNamespace
import unittest
from unittest import mock

from nova import objects
from oslo_utils import uuidutils

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.core import observed_server
from tests import instances as builders

A, B = (types.SimpleNamespace(uuid=uuid) for uuid in 'AB')


class TestSought(unittest.TestCase):

    def find(self, *homes, there=()):
        """Return how server s was found.

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
                's': observed_server.ObservedServer('s', 'active')}
                if cell in there else {} for cell in cells}

        with mock.patch.object(
                objects.BuildRequestList, 'get_all', return_value=[]), (
                mock.patch.object(
                    objects.InstanceMappingList, 'get_by_instance_uuids',
                    side_effect=get_mappings)), mock.patch.object(
                cell_calls, 'gather', gather):
            return instances.find(uuids=['s'])

    def test_there(self):
        found = self.find(A, there=[A])
        self.assertEqual({'s'}, found.servers.keys())
        self.assertEqual(frozenset(), found.unsure)

    def test_locked_by(self):
        """Records of old releases do not have it."""
        for values, by in (({}, ''), ({'locked': False}, ''),
                           ({'locked': True, 'locked_by': 'owner'}, 'owner'),
                           ({'locked': True, 'locked_by': 'admin'}, 'admin'),
                           ({'locked': True, 'locked_by': None}, 'admin')):
            with self.subTest(values):
                self.assertEqual(by, instances.observe(objects.Instance(
                    uuid=uuidutils.generate_uuid(), project_id='p',
                    vm_state='active', task_state=None, **values)).locked_by)

    def test_deleted(self):
        for home in A, None:
            self.assertEqual(instances.FoundServers({}), self.find(home))

    def test_resized_into_another_cell_meanwhile(self):
        """Nova hides it where it was once it is where it went."""
        self.assertEqual(instances.FoundServers({}, frozenset('s')),
                         self.find(A, B, there=[B]))



class TestPages(unittest.TestCase):
    """A cell is read a bounded number of servers at a time."""

    def read(self, count, filters=()):
        """The uuids that are read, page by page."""
        self.sorted_by = []
        uuids = [f'{number:04}' for number in range(count)]

        def get(context, filters, *, sort_key, sort_dir, limit, marker,
                expected_attrs):
            self.assertEqual('asc', sort_dir)
            self.sorted_by.append(sort_key)
            left = [uuid for uuid in uuids if marker is None or uuid > marker]
            return [SimpleNamespace(uuid=uuid) for uuid in left[:limit]]

        with mock.patch.object(instances.objects, 'InstanceList', create=True,
                               new=SimpleNamespace(get_by_filters=get)), (
                mock.patch.object(instances, 'PAGE', 3)):
            return [[instance.uuid for instance in page]
                    for page in instances.pages(
                        None, dict(filters), [], lambda found: found)]

    def test_each_once(self):
        self.assertEqual([[]], self.read(0))
        self.assertEqual([['0000', '0001']], self.read(2))
        self.assertEqual([['0000', '0001', '0002'], []], self.read(3))
        self.assertEqual([3, 3, 1], [len(piece) for piece in self.read(7)])
        self.assertEqual(['uuid'] * 3, self.sorted_by)

    def test_changes(self):
        changes = {'changes-since': 'then'}
        self.assertEqual([['0000', '0001']], self.read(2, changes))
        self.assertEqual(['updated_at'], self.sorted_by)
        # In an order that does not change meanwhile, where they are many.
        self.assertEqual([['0000', '0001', '0002'], ['0003']],
                         self.read(4, changes))
        self.assertEqual(['updated_at', 'uuid', 'uuid'], self.sorted_by)


class TestUnwanted(unittest.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.cells = {}
        self.read = []
        patch = mock.patch.object(
            objects.InstanceList, 'get_by_filters',
            lambda cell, filters, expected_attrs: [
                builders.instance(uuid, vm_state, task_state)
                for uuid, (vm_state, task_state) in self.cells[
                    cell.cell_uuid].items() if uuid in filters['uuid']])
        patch.start()
        self.addCleanup(patch.stop)

    def add(self, uuid, deleted=False, cell=None):
        """Its mapping names the cell; cell 0 has servers that Nova gave up."""
        return types.SimpleNamespace(
            instance_uuid=uuid, queued_for_delete=deleted,
            cell_mapping=cell and types.SimpleNamespace(
                uuid=cell, is_cell0=lambda: cell == 'cell0'))

    def unwanted(self, *mappings):
        def gather(cells, read, limit_s, **which):
            self.read += [cell.uuid for cell in cells]
            return {cell.uuid: read(types.SimpleNamespace(
                cell_uuid=cell.uuid), **which) if cell.uuid in self.cells
                else cell_calls.CellDown() for cell in cells}

        with mock.patch.object(
                objects.InstanceMappingList, 'get_by_instance_uuids',
                side_effect=lambda context, uuids: [
                    mapping for mapping in mappings
                    if mapping.instance_uuid in uuids]), mock.patch.object(
                    cell_calls, 'gather', gather):
            return instances.find_unwanted(
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
        """Only the mark is known; no caller waits for the cell."""
        self.cells['2'] = {'b': ('error', None)}
        self.assertEqual({'a'}, self.unwanted(
            self.add('a', deleted=True, cell='1'),
            self.add('b', deleted=True, cell='2')))


if __name__ == '__main__':
    unittest.main()
