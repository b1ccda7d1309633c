# SPDX-License-Identifier: Apache-2.0
"""Tests of the data that are read of preemptible servers."""

from types import SimpleNamespace
import unittest

from nova_preempt.cloud import preemptible_server_cache


class TestPinned(unittest.TestCase):
    """Tests of servers that keep parts of their host when stopped."""

    def is_pinned(self, numa=None, pci=None, resources=None, **extra_specs):
        instance = SimpleNamespace(
            numa_topology=numa, resources=resources,
            pci_requests=None if pci is None else SimpleNamespace(
                requests=pci))
        return preemptible_server_cache._is_pinned(instance, extra_specs)

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
