# SPDX-License-Identifier: Apache-2.0
"""Each kind of request that Nova translates itself, on hosts that have it.

Mediated devices are missing here: the libvirt driver alone makes them. To
Placement they are VGPU (test_nested).
"""

import copy
import json
import unittest

from nova import context as nova_context
from nova import objects
from nova.compute import pci_placement_translator
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import test_servers_resource_request as qos
from oslo_utils.fixture import uuidsentinel as uuids

from nova_preempt.embedded import embedded_cloud
from tests.functional import test_nested
from tests.functional import tree_driver

BANDWIDTH = {'NET_BW_EGR_KILOBIT_PER_SEC': 1000,
             'NET_BW_IGR_KILOBIT_PER_SEC': 1000}
PACKETS = {'NET_PACKET_RATE_KILOPACKET_PER_SEC': 1000}


class KindsTestCase(test_nested.TreeTestCase):
    """Two spot servers use all of a resource; the cheap one is evicted."""

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, self.driver_class, 'numa', {})
        self.flags(group='filter_scheduler', enabled_filters=[
            *embedded_cloud.CONF.filter_scheduler.enabled_filters,
            'NUMATopologyFilter'])
        self.restart_scheduler()

    def boot(self, name, flavor_id, host=None, image=None, port=None):
        server = self._build_server(
            name=name, image_uuid=image or embedded_cloud.IMAGE,
            flavor_id=flavor_id,
            networks=[{'port': port}] if port else 'none', host=host)
        return self.api.post_server({'server': server})['id']

    def flavors(self, name, vcpus=1, **extra_specs):
        return [self.create_flavor(f'{kind}-{name}', vcpus, 1024, 10,
                                   kind == 'spot', **extra_specs)
                for kind in ('normal', 'spot')]

    def check(self, flavor, spot_flavor, host, kwargs=({}, {}, {})):
        """Returns the ids of the normal and the cheap server."""
        cheap = self.boot_spot('cheap', host, 60, spot_flavor, **kwargs[0])
        dear = self.boot_spot('dear', host, 1800, spot_flavor, **kwargs[1])
        had = self.had(cheap)
        server = self.boot_normal(flavor=flavor, **kwargs[2])
        self.assertEqual({cheap}, self.last_victims())
        self.assertEqual(host, server['OS-EXT-SRV-ATTR:host'])
        self.wait_consistent()
        self.delete(dear)
        return server['id'], had

    def had(self, server_id):
        """Return the devices and the topology of a server."""
        return self.devices(server_id), self.topology(server_id)

    def topology(self, server_id):
        with self.cell_context() as context:
            return objects.Instance.get_by_uuid(
                context, server_id, expected_attrs=['numa_topology']
            ).numa_topology


class TestNUMA(KindsTestCase):
    """Nova's own claim on the host succeeds: it is that which pins."""

    def setUp(self):
        super().setUp()
        self.driver_class.numa = {
            'new': tree_driver.numa_topology(2, huge_pages=512),
            'old': tree_driver.numa_topology(1)}

    def test_pinned_processors_and_huge_pages(self):
        self.add_tree('new', {}, ((), {'VCPU': 0, 'PCPU': 4}))
        pinned = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'}
        server, (had, numa) = self.check(
            *self.flavors('pinned', 2, **pinned), 'new')
        self.assertEqual(2, self.devices(server)['new']['PCPU'])
        self.assertEqual(had, self.devices(server))
        self.assertEqual(numa.cells[0].cpu_pinning_raw,
                         self.topology(server).cells[0].cpu_pinning_raw)
        self.delete(server)

        # Placement has room: it does not count pages.
        server, (_, numa) = self.check(
            *self.flavors('huge', 1, **pinned, **{
                'hw:mem_page_size': '2048'}), 'new')
        self.assertEqual({}, self.last_decision().record['missing'])
        cell, = self.topology(server).cells
        self.assertEqual((numa.cells[0].id, 2048), (cell.id, cell.pagesize))

    def test_pinned_processors_of_hosts_without_pcpu(self):
        self.add_host('old', 2, 4096, 40)
        server, (had, numa) = self.check(
            *self.flavors('pinned', **{'hw:cpu_policy': 'dedicated'}), 'old')
        self.assertEqual(
            {'old': {'VCPU': 1, 'MEMORY_MB': 1024, 'DISK_GB': 10}}, had)
        self.assertEqual(had, self.devices(server))
        self.assertEqual({'VCPU': 1}, self.last_decision().record['missing'])
        self.assertEqual(numa.cells[0].cpu_pinning_raw,
                         self.topology(server).cells[0].cpu_pinning_raw)
        # A host that has PCPU is asked for nothing else.
        self.flags(group='workarounds', disable_fallback_pcpu_query=True)
        self.boot_in_vain(flavor=self.create_flavor(
            'two', 2, 1024, 10, **{'hw:cpu_policy': 'dedicated'}))


class TestDevices(KindsTestCase):
    """Tests of requests by Neutron, Cyborg and flavors."""

    def setUp(self):
        super().setUp()
        self.neutron = self.useFixture(
            qos.MultiGroupResourceRequestNeutronFixture(self))
        self.cyborg = self.useFixture(nova_fixtures.CyborgFixture())

    def test_each_kind_of_device(self):
        self.add_tree('host', {
            'sev': ('', {'MEM_ENCRYPTION_CONTEXT': 2},
                    ['HW_CPU_X86_AMD_SEV']),
            'ovs': ('', {name: 2 * n for name, n in PACKETS.items()},
                    ['CUSTOM_VNIC_TYPE_NORMAL']),
            'br': ('ovs', {name: 2 * n for name, n in BANDWIDTH.items()},
                   ['CUSTOM_VNIC_TYPE_NORMAL', 'CUSTOM_PHYSNET2']),
            'fpga0': ('', {'FPGA': 1}, [self.cyborg.trait]),
            'fpga1': ('', {'FPGA': 1}, [self.cyborg.trait]),
        })
        with self.subTest('memory encryption'):
            self.check_encryption()
        with self.subTest('a port with bandwidth and packet rate'):
            self.check_port()
        with self.subTest('a device profile'):
            self.check_profile()

    def check_encryption(self):
        image = self.glance.create(nova_context.get_admin_context(), {
            'name': 'uefi', 'container_format': 'raw', 'disk_format': 'raw',
            'status': 'active', 'visibility': 'public', 'min_ram': 0,
            'min_disk': 0, 'size': 1, 'properties': {
                'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'},
        })['id']
        server, _ = self.check(
            *self.flavors('sev', **{'hw:mem_encryption': 'true'}), 'host',
            [{'image': image}] * 3)
        self.assertEqual({'MEM_ENCRYPTION_CONTEXT': 1},
                         self.devices(server)['host_sev'])

    def check_port(self):
        port = self.neutron.port_with_resource_request
        ports = [port['id'], uuids.second, uuids.third]
        for uuid in ports[1:]:
            self.neutron._ports[uuid] = {**copy.deepcopy(port), 'id': uuid}
        server, _ = self.check(
            self.small, self.spot, 'host', [{'port': uuid} for uuid in ports])
        has = self.devices(server)
        self.assertEqual((BANDWIDTH, PACKETS),
                         (has['host_br'], has['host_ovs']))
        # As Neutron is told by nova-compute, which has it from the mappings.
        providers = self.providers()
        groups = port['resource_request']['request_groups']
        self.assertEqual(
            {groups[0]['id']: providers['host_br'],
             groups[1]['id']: providers['host_ovs']},
            self.neutron._ports[uuids.third]['binding:profile']['allocation'])

    def check_profile(self):
        server, (had, _) = self.check(
            *self.flavors('fpga', **{
                'accel:device_profile': self.cyborg.dp_name}), 'host')
        self.assertEqual(had, self.devices(server))
        fpga, = [name for name in had if 'fpga' in name]
        bound, = self.cyborg.fake_get_arqs_for_instance(server)
        self.assertEqual(
            ('host', self.providers()[fpga]),
            (bound['hostname'], bound['device_rp_uuid']))


@unittest.skipUnless(
    hasattr(pci_placement_translator.PciResourceProvider,
            '_handle_one_time_use'), 'Nova 2025.1 knows no such devices')
class TestDevicesUsedOnce(test_nested.PCITestCase):
    """Host "once" has one device, which stays reserved after its use."""

    def setUp(self):
        super().setUp()
        device = {'vendor_id': '10de', 'product_id': '20b1'}
        specs = embedded_cloud.CONF.pci
        self.flags(
            group='pci', device_spec=[*specs.device_spec, json.dumps(
                {**device, 'one_time_use': 'true'})],
            alias=[*specs.alias, json.dumps({
                **device, 'name': 'once', 'device_type': 'type-PCI'})])
        self.driver_class.pci = {**self.driver_class.pci, 'once': [
            {**tree_driver.pci_device(64, 0), **device}]}
        self.add_tree('once', {})
        self.flags(actions=['shelve', 'delete'], group='preemption')

    def capacities(self):
        """Return capacities with the device, reserved while it is used."""
        return {**super().capacities(),
                'once_0000:41:00.0': {'CUSTOM_PCI_10DE_20B1': 1}}

    def test_no_server_is_evicted_for_a_used_device(self):
        """The more expensive server is shelved, then no other one."""
        cheap = self.boot_spot('cheap', 'once', 60, self.create_flavor(
            'once', 1, 1024, 10, preemptible=True,
            **{'pci_passthrough:alias': 'once:1'}))
        self.assertIn('once_0000:41:00.0', self.devices(cheap))
        dear = self.boot_spot('dear', 'host', 1800, self.pci_flavor(
            1, preemptible=True))
        large = self.create_flavor('large', 64, 1024, 10)
        self.boot_normal(flavor=large)
        self.assertEqual({dear}, self.last_victims())
        self.assertEqual([], self.last_decision().record['one_time'])
        self.boot_in_vain(flavor=large)
        self.assertEqual('ACTIVE', self.api.get_server(cheap)['status'])
        # One that is deleted needs no other device.
        self.flags(actions=['migrate', 'delete'], group='preemption')
        self.boot_normal(flavor=large)
        self.assertEqual({cheap}, self.last_victims())
        self.assertEqual([cheap], self.last_decision().record['one_time'])
        self.wait_consistent()
