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
"""Which servers have PCI devices that can be used once only.

With ``one_time_use`` in ``[pci]device_spec`` (Nova 2025.2) a device stays
reserved after its use, until somebody has cleaned it. To shelve such a server
frees nothing of it, and its return takes another one.
"""

import functools

TRAIT = 'HW_PCI_ONE_TIME_USE'

# So many answers are remembered.
_MANY = 10000


class OneTimeDevices:
    """Asks Placement, once for each server while it is on one host.

    :param placement: a nova_preempt.cloud.placement.Placement
    """

    def __init__(self, placement):
        self._placement = placement
        self.has = functools.lru_cache(_MANY)(self._has)

    def _has(self, uuid, host, flavor):
        """Whether a server with PCI devices has such a one.

        :param host, flavor: as long as these are the same, so is the answer
        :raises PlacementError: nobody knows
        """
        # Older releases do not know the trait.
        if TRAIT not in self._placement.list_traits():
            return False
        providers = {provider.uuid for provider in
                     self._placement.list_all_providers([('required', TRAIT)])}
        return not providers.isdisjoint(
            self._placement.get_consumer(uuid).allocations)
