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
