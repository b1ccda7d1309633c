# SPDX-License-Identifier: Apache-2.0
"""Requests that several providers of a host serve."""

import dataclasses

from nova import context as nova_context
from nova import objects
import oslo_messaging as messaging
from oslo_utils.fixture import uuidsentinel as uuids

from nova_preempt.cloud import nova_api
from nova_preempt.db import decisions
from nova_preempt.embedded import embedded_cloud
from nova_preempt.handover import allocation_audit
from nova_preempt.scheduler import scheduler_endpoint
from tests.functional import base
from tests.functional import tree_driver

ALIAS = '{"vendor_id": "10de", "product_id": "20b0", "name": "gpu"}'


def gpus(count, per_node=4, resource_class='CUSTOM_GPU', amount=1):
    """Two NUMA nodes with GPUs below them, every second one an A100."""
    tree = {f'numa{node}': ('', {}, ['HW_NUMA_ROOT'])
            for node in range(-(-count // per_node))}
    tree.update({
        f'gpu{number}': (
            f'numa{number // per_node}', {resource_class: amount},
            ['CUSTOM_A100' if number % 2 else 'CUSTOM_H100'])
        for number in range(count)})
    return tree


class TreeTestCase(base.PreemptionTestCase):
    """Hosts with nested providers and ample other resources."""

    driver_class = tree_driver.TreeFakeDriver

    def setUp(self):
        super().setUp()
        # These take long enough that on a busy machine a heartbeat is late.
        self.flags(service_down_time=3600)
        self._flavors = {}

    def add_tree(self, name, tree, root=((), {})):
        self.driver_class.trees = {**self.driver_class.trees, name: tree}
        self.driver_class.roots = {**self.driver_class.roots, name: root}
        self.addCleanup(setattr, self.driver_class, 'trees', {})
        self.addCleanup(setattr, self.driver_class, 'roots', {})
        self.add_host(name, 64, 65536, 640)

    def gpu_flavor(self, count, preemptible=False, resource_class='CUSTOM_GPU',
                   **extra_specs):
        specs = {f'resources{number}:{resource_class}': '1'
                 for number in range(1, count + 1)}
        if count > 1:
            specs['group_policy'] = 'none'
        kind = 'spot' if preemptible else 'normal'
        name = f'{kind}-{count}-{len(extra_specs)}'
        if name not in self._flavors:
            self._flavors[name] = self.create_flavor(
                name, 1, 1024, 10, preemptible, **specs, **extra_specs)
        return self._flavors[name]

    def devices(self, server_id):
        """Return a server's {provider name: {class: amount}}."""
        names = {provider['uuid']: provider['name']
                 for provider in self._get_all_providers()}
        found = self._get_allocations_by_server_uuid(server_id)
        return {names[uuid]: item['resources']
                for uuid, item in found.items()}

    def gpus_of(self, server_id):
        return {name for name in self.devices(server_id) if 'gpu' in name}

    def audit(self, trees=True):
        """Return the problems that verify or the engine finds."""
        clients = self.scheduler.preemption.clients
        return allocation_audit.Audit(
            clients.placement, self.scheduler.preemption.known.servers,
            self.decisions, clients.get_cells, 3600, trees).look()

    def assert_consistent(self):
        """No provider is over capacity, and no consumer is left over."""
        self.assertEqual([], self.decisions.get_open_decisions())
        capacities = self.capacities()
        alive = {server['id'] for server in self.servers()
                 if server['status'] not in ('ERROR', 'SHELVED_OFFLOADED')}
        for name, allocations in self.allocations().items():
            used = {}
            for server, resources in allocations.items():
                self.assertIn(server, alive)
                for each, amount in resources.items():
                    used[each] = used.get(each, 0) + amount
            for each, amount in used.items():
                self.assertLessEqual(amount, capacities[name][each],
                                     (name, each))


class TestGpus(TreeTestCase):
    """A host of 8 GPUs, full of spot servers with 1, 2 and 4 of them."""

    def setUp(self):
        super().setUp()
        self.add_tree('host', gpus(8))
        self.servers_by_size = {}
        # By the hour: what is in it of the last hour is what is lost.
        for size, uptime_s in ((4, 1800), (2, 600), (1, 2400), (1, 300)):
            flavor = self.spot_flavors().get(size)
            server = self.boot_spot(f'spot-{size}', 'host', uptime_s, flavor)
            self.servers_by_size.setdefault(size, []).append(server)

    def spot_flavors(self):
        if not hasattr(self, '_spots'):
            self._spots = {size: self.gpu_flavor(size, preemptible=True)
                           for size in (1, 2, 4)}
        return self._spots

    def check(self, size, victims):
        taken = set().union(*map(self.gpus_of, victims))
        server = self.boot_normal(flavor=self.gpu_flavor(size))
        self.assertEqual(set(victims), self.last_victims())
        self.assertEqual(size, len(self.gpus_of(server['id'])))
        self.assertLessEqual(self.gpus_of(server['id']), taken)
        self.wait_consistent()
        decision = self.last_decision()
        self.assertTrue(decision.record['optimal'])
        self.assertEqual(
            {name: {'CUSTOM_GPU': 1} for name in self.gpus_of(server['id'])},
            decision.record['devices'])
        return decision

    def test_requests_for_one_two_and_four_gpus(self):
        decision = self.check(1, [self.servers_by_size[1][1]])
        self.assertEqual({'CUSTOM_GPU': 1}, decision.record['missing'])
        self.check(2, [self.servers_by_size[2][0]])
        self.check(4, [self.servers_by_size[4][0]])
        self.check(1, [self.servers_by_size[1][0]])
        self.boot_in_vain(flavor=self.gpu_flavor(1))

    def test_a_request_for_eight_gpus(self):
        self.check(8, [server for servers in self.servers_by_size.values()
                       for server in servers])

    def test_questions_and_headroom(self):
        questions = scheduler_endpoint.QueryEndpoint(self.scheduler)
        context = nova_context.get_admin_context()
        flavors = [self.gpu_flavor(size) for size in (1, 4, 9)]
        chances = questions.placement_chances(
            context, flavors, self.api.project_id)
        self.assertEqual([(0, 8), (0, 2), (0, 0)], [
            (each['preemptible'], each['normal']) for each in chances])
        explained = questions.explain(
            context, flavors[0], self.api.project_id, 'user')
        self.assertEqual('preempts', explained['outcome'])
        self.assertEqual([self.servers_by_size[1][1]], [
            victim['server_uuid'] for victim in explained['victims']])
        self.assertEqual(4, len(self.alive()))

        self.add_aggregate('spare', ['host'],
                           **{'preemptible:headroom': 'CUSTOM_GPU:1'})
        engine = self.start_engine()
        engine.run_once()
        self.wait_gone(self.servers_by_size[1][1])
        # What is kept free is not for preemptible servers.
        server = self.boot('more', self.spot_flavors()[1])
        self.wait_failed(server)
        chance, = questions.placement_chances(context, flavors[:1],
                                              self.api.project_id)
        self.assertEqual((0, 8), (chance['preemptible'], chance['normal']))

    def test_verify(self):
        """It also checks providers below compute nodes."""
        self.assertEqual([], self.audit())
        placement = self.scheduler.preemption.clients.placement
        broken = self.servers_by_size[2][0]
        consumer = placement.get_consumer(broken)
        lost, kept = (self.providers()[name]
                      for name in sorted(self.gpus_of(broken)))
        path = f'/resource_providers/{kept}/inventories/CUSTOM_GPU'

        def put_inventory(**inventory):
            answer = self.placement.put(path, {
                'resource_provider_generation': placement.get_provider_state(
                    kept).generation, **inventory})
            self.assertEqual(200, answer.status, answer.body)

        put_inventory(total=3)
        placement.post_allocations([
            consumer.with_allocations({
                uuid: item for uuid, item in consumer.allocations.items()
                if uuid != lost}),
            dataclasses.replace(
                consumer, uuid=uuids.stranger, generation=None, allocations={
                    uuid: {'resources': {'CUSTOM_GPU': 1}}
                    for uuid in (lost, kept)})])
        put_inventory(total=3, reserved=2)
        name = {uuid: name for name, uuid in self.providers().items()}
        problems = {item.kind: item for item in self.audit()}
        self.assertEqual({
            allocation_audit.PART_OF_ALLOCATION: broken,
            allocation_audit.NO_SERVER: uuids.stranger,
            allocation_audit.OVER_CAPACITY: kept},
            {kind: item.uuid for kind, item in problems.items()})
        self.assertIn('has only CUSTOM_GPU:1, DISK_GB:10, MEMORY_MB:1024, '
                      'VCPU:1 of CUSTOM_GPU:2, ',
                      problems[allocation_audit.PART_OF_ALLOCATION].text)
        self.assertIn(f'{name[kept]} has CUSTOM_GPU 2 of 1 allocated',
                      problems[allocation_audit.OVER_CAPACITY].text)
        self.assertEqual([], self.audit(trees=False))
        placement.delete_allocations(uuids.stranger)

    def test_a_request_for_nine_gpus_is_refused(self):
        self.boot_in_vain(flavor=self.gpu_flavor(9))
        refused = self.last_decision()
        self.assertEqual(decisions.REFUSED, refused.status)


class PCITestCase(TreeTestCase):
    """8 GPUs that nova-compute's PCI tracker has, reported to Placement."""

    def setUp(self):
        super().setUp()
        self.flags(group='pci', report_in_placement=True, device_spec=[
            '{"vendor_id": "10de", "product_id": "20b0"}'], alias=[ALIAS])
        self.flags(group='filter_scheduler', pci_in_placement=True,
                   enabled_filters=[
                       *embedded_cloud.CONF.filter_scheduler.enabled_filters,
                       'PciPassthroughFilter'])
        self.restart_scheduler()
        self.driver_class.pci = {'host': [
            tree_driver.pci_device(number, number // 4)
            for number in range(8)]}
        self.addCleanup(setattr, self.driver_class, 'pci', {})
        self.add_tree('host', {})

    def pci_flavor(self, count, preemptible=False, **extra_specs):
        kind = 'spot' if preemptible else 'normal'
        return self.create_flavor(
            f'{kind}-pci-{count}', 1, 1024, 10, preemptible,
            **{'pci_passthrough:alias': f'gpu:{count}'}, **extra_specs)

    def addresses(self, server_id):
        """Return the addresses of the devices of a server."""
        with self.cell_context() as context:
            return {device.address for device in
                    objects.PciDeviceList.get_by_instance_uuid(
                        context, server_id)}


class TestPCIDevices(PCITestCase):

    def fill(self):
        """Fill the devices; return {number of devices: spot servers}."""
        spots = {}
        for size, uptime_s in ((4, 1800), (2, 600), (1, 2400), (1, 300)):
            spots.setdefault(size, []).append(self.boot_spot(
                f'spot-{size}', 'host', uptime_s, self.spots[size]))
        return spots

    def allocated(self, server_id):
        """Return the allocations in Placement, in the same form."""
        return {name.partition('_')[2].lower()
                for name in self.devices(server_id) if '_' in name}

    def check(self, size, victims):
        freed = set().union(*map(self.addresses, victims))
        server = self.boot_normal(flavor=self.normal[size])
        self.assertEqual(set(victims), self.last_victims())
        self.assertEqual(size, len(self.addresses(server['id'])))
        self.assertLessEqual(self.addresses(server['id']), freed)
        self.assertEqual(self.addresses(server['id']),
                         self.allocated(server['id']))
        self.wait_consistent()
        self._run_periodics()
        return server['id']

    def test_sizes(self):
        self.spots = {size: self.pci_flavor(size, preemptible=True)
                      for size in (1, 2, 4)}
        self.normal = {size: self.pci_flavor(size) for size in (1, 2, 4, 8)}
        spots = self.fill()
        self.delete(self.check(8, [
            server for servers in spots.values() for server in servers]))
        spots = self.fill()
        self.check_questions(spots[1][1])
        self.check(1, [spots[1][1]])
        self.check(2, [spots[2][0]])
        self.check(4, [spots[4][0]])
        self.check(1, [spots[1][0]])
        self.boot_in_vain(flavor=self.normal[1])

    def check_questions(self, cheap):
        """Check the queries with the PCI alias of a flavor."""
        questions = scheduler_endpoint.QueryEndpoint(self.scheduler)
        context = nova_context.get_admin_context()
        self.assertEqual([(0, 8), (0, 2), (0, 1)], [
            (each['preemptible'], each['normal'])
            for each in questions.placement_chances(
                context, [self.normal[size] for size in (1, 4, 8)],
                self.api.project_id)])
        explained = questions.explain(
            context, self.normal[1], self.api.project_id, 'user')
        self.assertEqual(('preempts', [cheap]), (
            explained['outcome'], [victim['server_uuid'] for victim in
                                   explained['victims']]))
        self.flags(group='pci', alias=[])
        caught = self.assertRaises(
            messaging.ExpectedException, questions.explain, context,
            self.normal[1], self.api.project_id, 'user')
        self.assertRegex(str(caught.exc_info[1]),
                         'devices that flavor normal-pci-1 requests')
        self.flags(group='pci', alias=[ALIAS])

    def test_the_rest_is_held_during_a_notice(self):
        self.flags(maximum_notice_s=1000, group='preemption')
        spot = self.pci_flavor(4, preemptible=True,
                               **{'preemptible:notice_s': '1000'})
        cheap = self.boot_spot('cheap', 'host', 60, spot)
        self.boot_spot('dear', 'host', 1800, spot)
        had = self.devices(cheap)
        first = self.boot('first', self.pci_flavor(1))
        self.wait_for(lambda: nova_api.NOTICE_KEY in self.api.get_server(
            cheap)['metadata'], 'notice')
        self.assertEqual({}, self.devices(cheap))
        record = self.last_decision().record
        stand_in = record['stand_ins'][cheap]
        # Another one holds what the server gets at the end.
        taken = self.devices(record['stand_in'])
        self.assertEqual({}, self.devices(first))
        rest = {name: item for name, item in had.items()
                if name not in taken} | {'host': had['host']}
        self.assertEqual(rest, self.devices(stand_in))
        self.assertEqual(3, len(rest) - 1)
        # nova-compute neither minds it nor restores the victim's devices.
        self._run_periodics()
        self.assertEqual(({}, rest), (self.devices(cheap),
                                      self.devices(stand_in)))
        self.assertEqual([], self.audit())
        # What it holds is waited for, and nobody else ends for it.
        second = self.boot('second', self.pci_flavor(2))
        self.wait_for(lambda: self.scheduler.preemption.releasing._taken,
                      'the second one to wait')
        self.api.post_server_action(cheap, {'os-stop': None})
        self.wait(first)
        self.assertEqual(taken, self.devices(first))
        self.wait(second)
        self.assertEqual({cheap}, self.last_victims())
        self.wait_consistent()


class TestKinds(TreeTestCase):
    """Other resources of nested and shared providers."""

    def check(self, flavor, spot_flavor):
        # For a host that is given Placement offers nothing that is shared.
        cheap = self.boot_spot('cheap', None, 60, spot_flavor)
        dear = self.boot_spot('dear', None, 1800, spot_flavor)
        server = self.boot_normal(flavor=flavor)
        self.assertEqual({cheap}, self.last_victims())
        self.wait_consistent()
        self.delete(dear)
        found = self.devices(server['id'])
        self.delete(server['id'])
        return found

    def flavors(self, name, **extra_specs):
        return [self.create_flavor(f'{kind}-{name}', 1, 1024, 10,
                                   kind == 'spot', **extra_specs)
                for kind in ('normal', 'spot')]

    def test_each_kind_of_provider(self):
        self.add_tree('host', {
            'pgpu0': ('', {'VGPU': 1}, ['CUSTOM_NVIDIA_35']),
            'pgpu1': ('', {'VGPU': 1}, ['CUSTOM_NVIDIA_35']),
            'sev': ('', {'MEM_ENCRYPTION_CONTEXT': 2}, []),
            'fpga0': ('', {'FPGA': 1}, ['CUSTOM_FPGA_A']),
            'fpga1': ('', {'FPGA': 1}, ['CUSTOM_FPGA_A']),
            'pf0': ('', {'SRIOV_NET_VF': 2,
                         'NET_BW_EGR_KILOBIT_PER_SEC': 10000}, []),
        })
        # As flavors for virtual GPUs ask: without a group.
        found = self.check(*self.flavors('vgpu', **{'resources:VGPU': '1'}))
        self.assertEqual(
            [{'VGPU': 1}], [item for name, item in found.items()
                            if 'pgpu' in name])
        # As the translation of hw:mem_encryption asks.
        found = self.check(*self.flavors(
            'sev', **{'resources:MEM_ENCRYPTION_CONTEXT': '1'}))
        self.assertEqual({'MEM_ENCRYPTION_CONTEXT': 1}, found['host_sev'])
        # As the group of a device profile, and of a port with a guaranteed
        # bandwidth, asks.
        found = self.check(*self.flavors('fpga', **{
            'resources_profile:FPGA': '1',
            'trait_profile:CUSTOM_FPGA_A': 'required'}))
        self.assertEqual(
            [{'FPGA': 1}], [item for name, item in found.items()
                            if 'fpga' in name])
        bandwidth = {'SRIOV_NET_VF': 1, 'NET_BW_EGR_KILOBIT_PER_SEC': 5000}
        found = self.check(*self.flavors('port', **{
            f'resources_port:{name}': str(amount)
            for name, amount in bandwidth.items()}))
        self.assertEqual(bandwidth, found['host_pf0'])

    def test_storage_that_hosts_share(self):
        self.add_tree('host', {}, ((), {'DISK_GB': 0}))
        share = self.placement.post('/resource_providers', {
            'name': 'share'}, version='1.20').body['uuid']
        path = f'/resource_providers/{share}'
        self.placement.put(f'{path}/inventories', {
            'resource_provider_generation': 0,
            'inventories': {'DISK_GB': {'total': 20}}}, version='1.20')
        self.placement.put(f'{path}/traits', {
            'resource_provider_generation': 1,
            'traits': ['MISC_SHARES_VIA_AGGREGATE']}, version='1.20')
        for uuid in (share, self.providers()['host']):
            generation = self.placement.get(
                f'/resource_providers/{uuid}').body['generation']
            self.placement.put(f'/resource_providers/{uuid}/aggregates', {
                'resource_provider_generation': generation,
                'aggregates': [uuids.aggregate]}, version='1.20')
        found = self.check(self.small, self.spot)
        self.assertEqual({'DISK_GB': 10}, found['share'])
        self.assertNotIn('DISK_GB', found['host'])
