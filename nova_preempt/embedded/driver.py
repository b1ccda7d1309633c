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
"""A fake hypervisor of exactly the size that it was told."""

import dataclasses

from nova.virt import fake


@dataclasses.dataclass(frozen=True, slots=True)
class HostSize:
    """What one host offers."""

    vcpus: int
    memory_mb: int
    disk_gb: int


class SizedFakeDriver(fake.FakeDriver):
    """Nova's fake driver with a size of its own."""

    def __init__(self, virtapi, size):
        # The parent reads these names when it is made.
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
