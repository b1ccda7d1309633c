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
"""A fake hypervisor whose host is a tree of resource providers."""

from oslo_serialization import jsonutils

from nova_preempt.embedded import driver


def pci_device(number, numa_node):
    """A GPU in a slot of its own."""
    return {'address': f'0000:{number + 1:02x}:00.0', 'product_id': '20b0',
            'vendor_id': '10de', 'status': 'available',
            'dev_type': 'type-PCI', 'parent_addr': None,
            'numa_node': numa_node, 'label': 'label_10de_20b0'}


class TreeFakeDriver(driver.SizedFakeDriver):
    """Nova's fake driver that reports providers below the compute node.

    :cvar trees: {host: {name of a provider: (name of its parent, {class:
        amount}, traits)}}, what is below each host; the parent '' is the
        compute node
    :cvar pci: {host: PCI devices as libvirt's driver lists them}
    :cvar roots: {host: (traits, {class: amount} of the node's own provider,
        where it is not what the driver says)}
    """

    trees = {}
    roots = {}
    pci = {}

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        devices = self.pci.get(nodename)
        if found and devices:
            found['pci_passthrough_devices'] = jsonutils.dumps(devices)
        return found

    def update_provider_tree(self, provider_tree, nodename,
                             allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        traits, amounts = self.roots.get(nodename, ((), {}))
        if traits:
            provider_tree.add_traits(nodename, *traits)
        if amounts:
            own = dict(provider_tree.data(nodename).inventory)
            for name, amount in amounts.items():
                if amount:
                    own[name] = _inventory(amount)
                else:
                    own.pop(name, None)
            provider_tree.update_inventory(nodename, own)
        for name, (parent, amounts, traits) in self.trees.get(
                nodename, {}).items():
            name = f'{nodename}_{name}'
            if not provider_tree.exists(name):
                provider_tree.new_child(
                    name, f'{nodename}_{parent}' if parent else nodename)
            provider_tree.update_inventory(
                name, {each: _inventory(amount)
                       for each, amount in amounts.items()})
            provider_tree.update_traits(name, traits)


def _inventory(amount):
    return {'total': amount, 'reserved': 0, 'min_unit': 1,
            'max_unit': amount, 'step_size': 1, 'allocation_ratio': 1.0}
