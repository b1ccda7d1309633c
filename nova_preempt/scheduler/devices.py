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
"""Devices that come back to a host state, as Nova's PCI tracker has them."""

import copy

from nova.pci import stats

_OF_DEVICE = ('vendor_id', 'product_id', 'numa_node')


def give_back(pci_stats, devices):
    """A copy of the PciDeviceStats of a host with these devices free.

    A pool of which nothing was free is not known to Nova's scheduler: it is
    made of what its devices say.

    :param devices: [(PciDevice, spec of the request it was taken for)]
    """
    found = copy.copy(pci_stats) if pci_stats is not None else (
        stats.PciDeviceStats(None))
    found.pools = copy.deepcopy(found.pools)
    for device, spec in devices:
        pool = next((pool for pool in found.pools
                     if _is_of(device, pool)), None)
        if pool is None:
            pool = _make_pool(device, spec)
            found.pools.append(pool)
        pool['count'] += 1
    return found


def _is_of(device, pool):
    rp_uuid = device.extra_info.get('rp_uuid')
    if rp_uuid and 'rp_uuid' in pool:
        return rp_uuid == pool['rp_uuid']
    return all(getattr(device, key) == pool.get(key) for key in _OF_DEVICE) \
        and pool.get('dev_type', device.dev_type) == device.dev_type \
        and pool.get('address', _address(device)) == _address(device)


def _address(device):
    return device.parent_addr or device.address


def _make_pool(device, spec):
    pool = {key: getattr(device, key) for key in _OF_DEVICE}
    pool.update(count=0, devices=[], dev_type=device.dev_type,
                address=_address(device))
    for key in ('rp_uuid', 'parent_ifname'):
        if device.extra_info.get(key):
            pool[key] = device.extra_info[key]
    for key in ('physical_network', 'remote_managed'):
        if key in spec:
            pool[key] = spec[key]
    stats.PciDeviceStats._ensure_remote_managed_tag(device, pool)
    return pool
