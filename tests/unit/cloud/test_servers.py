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
"""What is read of a preemptible server."""

from types import SimpleNamespace
import unittest
from unittest import mock

from nova_preempt.cloud import servers


class TestPinned(unittest.TestCase):
    """Who holds parts of its host that a stopped server keeps."""

    def is_pinned(self, numa=None, pci=None, resources=None, **extra_specs):
        instance = SimpleNamespace(
            numa_topology=numa, resources=resources,
            pci_requests=None if pci is None else SimpleNamespace(
                requests=pci))
        return servers._is_pinned(instance, extra_specs)

    def test_plain(self):
        self.assertFalse(self.is_pinned())
        self.assertFalse(self.is_pinned(pci=[]))
        self.assertFalse(self.is_pinned(**{
            'resources:VCPU': '0', 'resources1:MEMORY_MB': '1',
            'hw_rng:allowed': 'true', 'resourcesVGPU': 'x'}))

    def test_not_plain(self):
        for values in ({'numa': object()}, {'pci': [object()]},
                       {'resources': [object()]},
                       {'resources:VGPU': '1'},
                       {'resources_gpu:CUSTOM_X': '1'},
                       {'accel:device_profile': 'a'}):
            self.assertTrue(self.is_pinned(**values), values)


class TestPieces(unittest.TestCase):
    """A cell is read a bounded number of servers at a time."""

    def read(self, count, filters=()):
        """The uuids that are read, piece by piece."""
        self.sorted_by = []
        uuids = [f'{number:04}' for number in range(count)]

        def get(context, filters, *, sort_key, sort_dir, limit, marker,
                expected_attrs):
            self.assertEqual('asc', sort_dir)
            self.sorted_by.append(sort_key)
            left = [uuid for uuid in uuids if marker is None or uuid > marker]
            return [SimpleNamespace(uuid=uuid) for uuid in left[:limit]]

        with mock.patch.object(servers.objects, 'InstanceList', create=True,
                               new=SimpleNamespace(get_by_filters=get)), (
                mock.patch.object(servers, 'PIECE', 3)):
            return [[instance.uuid for instance in piece]
                    for piece in servers.pieces(
                        None, dict(filters), [])]

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
