# SPDX-License-Identifier: Apache-2.0

import unittest

from nova import objects
from nova.pci import stats

from nova_preempt.scheduler import host_states


def device(number, rp_uuid=None, parent=None, **values):
    return objects.PciDevice(
        address=f'0000:0{number}:00.0', vendor_id='10de', product_id='20b0',
        numa_node=number % 2, dev_type='type-VF' if parent else 'type-PCI',
        parent_addr=parent, extra_info={'rp_uuid': rp_uuid}
        if rp_uuid else {}, **values)


class TestGiveBack(unittest.TestCase):
    """Returns devices to a host's pools in Nova's scheduler."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.stats = stats.PciDeviceStats(None, dev_filter=object())
        self.stats.pools = [
            {'vendor_id': '10de', 'product_id': '20b0', 'numa_node': 1,
             'dev_type': 'type-PCI', 'rp_uuid': 'rp1', 'count': 1,
             'address': '0000:01:00.0', 'devices': []}]

    def test_a_pool_that_has_some(self):
        found = host_states.free_devices(self.stats, [(device(1, 'rp1'), {})])
        self.assertEqual([2], [pool['count'] for pool in found.pools])
        # The host's own state is as it was.
        self.assertEqual(1, self.stats.pools[0]['count'])

    def test_a_pool_of_which_nothing_was_free(self):
        found = host_states.free_devices(self.stats, [(device(2, 'rp2'), {})])
        self.assertEqual(['rp1', 'rp2'],
                         [pool['rp_uuid'] for pool in found.pools])
        self.assertEqual(0, found.pools[1]['numa_node'])
        self.assertEqual(1, found.pools[1]['count'])

    def test_the_physical_network_that_was_asked_for(self):
        found = host_states.free_devices(self.stats, [(
            device(3, parent='0000:09:00.0'),
            {'physical_network': 'physnet1', 'remote_managed': 'False'})])
        self.assertEqual('physnet1', found.pools[1]['physical_network'])
        self.assertEqual('0000:09:00.0', found.pools[1]['address'])
