# SPDX-License-Identifier: Apache-2.0
"""A fake hypervisor whose host is a tree of resource providers."""

from nova import objects
from oslo_serialization import jsonutils

from nova_preempt.embedded import fake_hypervisor


def pci_device(number, numa_node):
    """A GPU in a slot of its own."""
    return {'address': f'0000:{number + 1:02x}:00.0', 'product_id': '20b0',
            'vendor_id': '10de', 'status': 'available',
            'dev_type': 'type-PCI', 'parent_addr': None,
            'numa_node': numa_node, 'label': 'label_10de_20b0'}


def numa_topology(pcpus, huge_pages=0, cells=2, shared=()):
    """A topology as nova-compute keeps it.

    :param pcpus: for pinning, of each cell
    :param huge_pages: of 2 MiB, of each cell
    :param shared: CPUs of the first cell that are not for pinning only
    """
    return objects.NUMATopology(cells=[
        _numa_cell(number, set(range(number * pcpus, (number + 1) * pcpus)),
                   huge_pages, set() if number else set(shared))
        for number in range(cells)])


def _numa_cell(number, pcpus, huge_pages, shared):
    cpus = pcpus | shared
    return objects.NUMACell(
        id=number, cpuset=shared, pcpuset=pcpus, pinned_cpus=set(),
        siblings=[{cpu} for cpu in sorted(cpus)],
        mempages=[objects.NUMAPagesTopology(
            size_kb=4, total=1 << 22, used=0, reserved=0),
            objects.NUMAPagesTopology(
                size_kb=2048, total=huge_pages, used=0, reserved=0)],
        memory=1 << 14, memory_usage=0, cpu_usage=0, socket=number,
        network_metadata=objects.NetworkMetadata(
            physnets=set(), tunneled=False))


class TreeFakeDriver(fake_hypervisor.SizedFakeDriver):
    """Nova's fake driver that reports providers below the compute node.

    :cvar trees: {host: {name of a provider: (name of its parent, {class:
        amount}, traits)}}, what is below each host; the parent '' is the
        compute node
    :cvar pci: {host: PCI devices as libvirt's driver lists them}
    :cvar numa: {host: NUMATopology}
    :cvar roots: {host: (traits, {class: amount} of the node's own provider,
        where it is not what the driver says)}
    """

    trees = {}
    roots = {}
    pci = {}
    numa = {}
    capabilities = dict(fake_hypervisor.SizedFakeDriver.capabilities,
                        supports_pcpus=True)

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        devices = self.pci.get(nodename)
        if found and devices:
            found['pci_passthrough_devices'] = jsonutils.dumps(devices)
        if found and nodename in self.numa:
            found['numa_topology'] = self.numa[nodename]._to_json()
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
