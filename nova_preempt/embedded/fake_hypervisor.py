# SPDX-License-Identifier: Apache-2.0
"""Fake hypervisor with a configurable size."""

import dataclasses

from nova.virt import fake


@dataclasses.dataclass(frozen=True, slots=True)
class HostSize:
    """Capacity of a host."""

    vcpus: int
    memory_mb: int
    disk_gb: int


class SizedFakeDriver(fake.FakeDriver):
    """Nova's fake driver with a given capacity."""

    def __init__(self, virtapi, size):
        # The constructor of the parent reads these attributes.
        self.vcpus = size.vcpus
        self.memory_mb = size.memory_mb
        self.local_gb = size.disk_gb
        super().__init__(virtapi)

    def init_host(self, host):
        """Name the only node after its host, whatever the host's name.

        The parent gives a host that is called "compute" another node.
        """
        super().init_host(host)
        self._set_nodes([host])
