# SPDX-License-Identifier: Apache-2.0
"""Tests of the inventory of hosts."""

import collections
from types import SimpleNamespace
from unittest import mock

import testtools

from nova_preempt import exceptions
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import model
from nova_preempt.core.energy import host_classification
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.reservation import host_properties
from nova_preempt.reservation import host_inventory


class Nova:
    """Hypervisors h1 ... of one service each, in one aggregate and zone."""

    def __init__(self, count):
        self.names = [f'h{number}' for number in range(1, count + 1)]
        self.changed = {}
        self.reasons = {}

    def list_hypervisors(self):
        return [{
            'id': f'uuid-{name}', 'hypervisor_hostname': name,
            'hypervisor_type': 'QEMU', 'hypervisor_version': 9000000,
            'service': {'host': f'{name}.example', 'id': 1},
            'state': 'up', 'status': 'enabled', 'vcpus': 8,
            'cpu_info': {'vendor': 'AMD', 'topology': {'cores': 4},
                         'features': ['sse', 'avx']},
            **self.changed.get(name, {})} for name in self.names]

    def list_compute_services(self):
        return [{'host': f'{name}.example', 'zone': 'west',
                 'forced_down': False,
                 'disabled_reason': self.reasons.get(name)}
                for name in self.names]

    def list_aggregates(self):
        return [{'name': 'fast', 'hosts': ['h1.example', 'h2.example']}]


class Placement:
    """A provider for each hypervisor, h1 with a child."""

    def __init__(self, names):
        self.calls = collections.Counter()
        self.generations = dict.fromkeys([*names, 'gpu'], 1)
        self.traits = {name: ['COMPUTE_NODE', 'HW_CPU_X86_AVX']
                       for name in names}
        self.traits['gpu'] = ['CUSTOM_GPU']
        self.allocations = collections.defaultdict(dict)

    def list_providers(self, params):
        return [item for item in self.list_all_providers(params)
                if item.uuid == item.root_uuid]

    def list_all_providers(self, params):
        self.calls['list_all_providers'] += 1
        return [placement_api.Provider(
                    f'rp-{name}', name, generation,
                    'rp-h1' if name == 'gpu' else f'rp-{name}')
                for name, generation in self.generations.items()
                if not params or params[0][1] in self.traits[name]]

    def list_traits(self):
        return sorted({trait for traits in self.traits.values()
                       for trait in traits})

    def get_traits(self, uuid):
        self.calls['get_traits'] += 1
        return self.traits[uuid.removeprefix('rp-')]

    def get_provider_state(self, uuid, known=None):
        self.calls['get_provider_state'] += 1
        name = uuid.removeprefix('rp-')
        resource_class = 'VGPU' if name == 'gpu' else 'VCPU'
        return model.Provider(
            uuid, self.generations[name],
            {resource_class: model.Inventory(
                total=8, reserved=0, min_unit=1, max_unit=8, step_size=1,
                allocation_ratio=1.0)}, dict(self.allocations[name]))


class Occupancy:
    """Servers by node, as uuids; those that begin with p are preemptible."""

    def __init__(self, left):
        self.left = left
        self.servers = {}
        self.dark = frozenset()

    def refresh(self, max_age_s=0):
        pass

    def get(self, uuid):
        return next((item for node in self.servers
                     for item in self.on_node(node) if item.uuid == uuid),
                    None)

    def on_node(self, node):
        return [ObservedServer(uuid, 'active', host=node, node=node)
                for uuid in self.servers.get(node, ())]

    def is_preemptible(self, uuid):
        return uuid.startswith('p')

    def counts(self):
        return {node: (len(uuids), sum(not uuid.startswith('p')
                                       for uuid in uuids))
                for node, uuids in self.servers.items()}


class TestInventory(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.settings = {}
        self.efficiency = {}
        self.asleep = {}
        self.make(2)

    def make(self, count):
        self.nova = Nova(count)
        self.placement = Placement(self.nova.names)
        self.inventory = host_inventory.HostInventory(
            SimpleNamespace(reservable_default=True),
            self.nova, self.placement, lambda: self.settings,
            lambda: {'vcpus'}, Occupancy, lambda: self.efficiency,
            lambda: self.asleep, lambda: self.now,
            lambda uuid: not uuid.endswith('locked'),
            lambda: {'stand-in': 'coming'})

    def find(self, query=None):
        return [host['name'] for host in self.inventory.find_hosts(query)]

    def used(self):
        return {host.name: root.used.get('VCPU', 0)
                for host, (root, *_parts) in self.inventory.rooms()}

    def test_capacity_of_departed_servers_is_free(self):
        """A departure does not change the provider's generation."""
        self.inventory.occupancy.servers = {'h1': ['n1', 'n2']}
        for uuid in ('n1', 'n2'):
            self.placement.allocations['h1'][uuid] = {'VCPU': 2}
        self.assertEqual({'h1': 4, 'h2': 0}, self.used())
        reads = self.placement.calls['get_provider_state']
        self.assertEqual({'h1': 4, 'h2': 0}, self.used())
        self.assertEqual(reads, self.placement.calls['get_provider_state'])
        # Nova has deleted it, and has not freed its space yet.
        self.inventory.occupancy.servers = {'h1': ['n2']}
        self.assertEqual({'h1': 4, 'h2': 0}, self.used())
        del self.placement.allocations['h1']['n1']
        self.assertEqual({'h1': 2, 'h2': 0}, self.used())

    def test_capacities_are_trees_of_providers(self):
        self.placement.allocations['gpu']['n1'] = {'VGPU': 3}
        self.assertEqual(
            {'h1': [('VCPU', 8), ('VGPU', 5)], 'h2': [('VCPU', 8)]},
            {host.name: [(name, provider.free(name))
                         for provider in providers
                         for name in provider.inventories]
             for host, providers in self.inventory.rooms()})

    def test_properties(self):
        self.settings = {'h1': (None, {'rack': 7})}
        self.efficiency = {'h1': 2.5e9}
        first, second = self.inventory.list_hosts()
        self.assertEqual({
            'hypervisor_hostname': 'h1', 'hypervisor_type': 'QEMU',
            'hypervisor_version': 9000000, 'state': 'up',
            'status': 'enabled', 'vcpus': 8, 'service_host': 'h1.example',
            'availability_zone': 'west', 'cpu_info.vendor': 'AMD',
            'cpu_info.topology.cores': 4,
            'cpu_info.features': ['avx', 'sse'], 'inventory.VCPU': 8,
            'inventory.VGPU': 8, 'aggregates': ['fast'], 'extra.rack': 7,
            'traits': ['COMPUTE_NODE', 'CUSTOM_GPU', 'HW_CPU_X86_AVX'],
            'flops_per_watt': 2.5e9}, first['properties'])
        self.assertEqual((True, 0, 2.5e9), (
            first['vacant'], first['running_servers'],
            first['flops_per_watt']))
        self.assertNotIn('inventory.VGPU', second['properties'])

    def test_queries(self):
        self.settings = {'h2': (None, {'rack': 7})}
        for query, names in (
                (None, ['h1', 'h2']), (['=', '$extra.rack', 7], ['h2']),
                (['in', 'CUSTOM_GPU', '$traits'], ['h1']),
                (['>', '$vcpus', 8], [])):
            self.assertEqual(names, self.find(query))
        with self.assertRaisesRegex(exceptions.InvalidReservation, 'like'):
            self.find(['like', '$vcpus', 1])
        self.settings = {'h1': (True, {'many': list(range(1000))})}
        with self.assertRaisesRegex(exceptions.InvalidReservation, 'one host'):
            self.find(['or', *(['in', -1, '$extra.many'],) * 2])

    def test_reservable_hosts(self):
        self.make(5)
        self.nova.changed = {'h1': {'state': 'down'},
                             'h2': {'status': 'disabled'}}
        self.settings = {'h3': (False, {}), 'h4': (True, {})}
        self.assertEqual(['h4', 'h5'], self.find())
        self.asleep = {'h1': host_classification.OffHost()}
        self.assertEqual(['h1', 'h4', 'h5'], self.find(['=', '$state', 'up']))

    def test_a_sleeping_host_disabled_by_an_operator(self):
        self.make(3)
        off = {'state': 'down', 'status': 'disabled'}
        self.nova.changed = {'h1': off, 'h2': off}
        self.nova.reasons = {'h1': 'nova-preempt-engine: no servers',
                             'h2': 'waits for a fan'}
        self.asleep = dict.fromkeys(('h1', 'h2'),
                                    host_classification.OffHost())
        self.assertEqual(['h1', 'h3'], self.find())

    def test_a_host_that_will_not_wake_is_not_vacant(self):
        self.make(2)
        self.asleep = {'h1': host_classification.OffHost('power is paused',
                                                         300),
                       'h2': host_classification.OffHost('', 300)}
        self.assertEqual([('h1', False), ('h2', True)], [
            (host['name'], host['vacant'])
            for host in self.inventory.find_hosts([])])

    def test_vacant_hosts(self):
        self.make(4)
        for name, uuids in (('h2', ['p1']), ('h3', ['p2', 'n']),
                            ('h4', [])):
            self.inventory.occupancy.servers[name] = uuids
            self.placement.allocations[name] = {
                uuid: {} for uuid in uuids}
        # What a migration has left, or a server that is being built.
        self.placement.allocations['h4']['unknown'] = {}
        self.assertEqual({'h1': True, 'h2': True, 'h3': False, 'h4': False},
                         {host['name']: host['vacant']
                          for host in self.inventory.find_hosts([])})
        # Placement did not count the change, and is asked all the same.
        self.placement.allocations['h4'].clear()
        self.assertTrue(self.inventory.find_hosts([])[3]['vacant'])

    def test_a_partly_used_host_is_not_vacant(self):
        self.placement.allocations['gpu'] = {'unknown': {}}
        self.assertEqual([False, True],
                         [host['vacant']
                          for host in self.inventory.find_hosts([])])
        host = self.inventory.hosts()['h1']
        self.assertIn('unknown', self.inventory.occupants(host))

    def test_a_server_that_waits_for_victims_counts(self):
        """A stand-in holds its space."""
        self.placement.allocations['h2'] = {'stand-in': {'VCPU': 3},
                                            'other': {'VCPU': 1}}
        self.assertEqual({'h1': 0, 'h2': 4}, self.used())
        (_, _), (_, (root,)) = self.inventory.rooms()
        self.assertEqual({'coming': {'VCPU': 3}, 'other': {'VCPU': 1}},
                         root.allocations)
        self.assertEqual({'coming', 'other'}, self.inventory.occupants(
            self.inventory.hosts()['h2']))

    def test_only_changes_are_read(self):
        self.make(100)
        self.inventory.refresh()
        # Every trait once rather than every provider.
        self.assertEqual({'list_all_providers': 4,
                          'get_provider_state': 101}, self.placement.calls)
        self.placement.calls.clear()
        self.placement.generations['h7'] = 2
        self.placement.traits['h7'] = ['CUSTOM_NEW']
        self.inventory.refresh()
        self.assertEqual({'list_all_providers': 1, 'get_traits': 1,
                          'get_provider_state': 1}, self.placement.calls)
        self.assertEqual(['h7'], self.find(['in', 'CUSTOM_NEW', '$traits']))

    def test_answers_have_a_limited_age(self):
        self.assertEqual(['h1', 'h2'], self.find())
        self.nova.names.append('h3')
        self.placement.generations['h3'] = 1
        self.placement.traits['h3'] = []
        self.now = 119.0
        self.assertEqual(['h1', 'h2'], self.find())
        self.now = 120.0
        self.assertEqual(['h1', 'h2', 'h3'], self.find())
        self.assertEqual(60, self.inventory.keep())

    def test_a_cell_without_which_nova_lists_no_hypervisors(self):
        self.find()
        self.now += 1000
        with mock.patch.object(self.nova, 'list_hypervisors',
                               side_effect=nova_api.NovaError('500')):
            self.assertRaises(nova_api.NovaError, self.find)
            self.inventory.occupancy.dark = frozenset(('h2.example',))
            with mock.patch.object(
                    self.nova, 'list_compute_services', return_value=[
                        {'host': 'h1.example', 'zone': 'west',
                         'state': 'down', 'status': 'disabled',
                         'forced_down': False, 'disabled_reason': 'broken'},
                        {'host': 'h2.example', 'status': 'UNKNOWN'}]):
                self.assertEqual(
                    [('h2', False)],
                    [(host['name'], host['vacant'])
                     for host in self.inventory.find_hosts(None)])
                h1, h2 = self.inventory.hosts().values()
            # Nothing is started while nobody knows of all.
            self.assertRaises(nova_api.NovaError, self.inventory.rooms)
        self.assertEqual(
            ('down', 'disabled', 'broken', 'up', 'enabled'),
            (h1.state, h1.status, h1.disabled_reason, h2.state, h2.status))
        self.assertEqual(('down', 'disabled'), (
            h1.properties['state'], h1.properties['status']))
        self.now += 1000
        self.assertEqual(['h1', 'h2'], self.find())
        self.assertEqual({'h1': 0, 'h2': 0}, self.used())

    def test_a_compute_that_never_reported(self):
        self.nova.names.append('h3')
        self.assertEqual(['h1', 'h2'], self.find())

    def test_list_properties(self):
        listed = {item['name']: item
                  for item in self.inventory.list_properties()}
        self.assertEqual(
            {'name': 'vcpus', 'type': 'number', 'values': [8],
             'hidden': True}, listed['vcpus'])
        self.assertEqual(
            {'name': 'cpu_info.features', 'type': 'list',
             'values': ['avx', 'sse'], 'hidden': False},
            listed['cpu_info.features'])


class TestDescribe(testtools.TestCase):

    def test_types_of_properties(self):
        self.assertEqual([
            {'name': 'a', 'type': 'text', 'values': [1, 'one']},
            {'name': 'b', 'type': 'boolean', 'values': [False, True]},
        ], host_properties.describe([{'a': 1, 'b': True}, {'a': 'one'},
                                     {'b': False}]))

    def test_the_number_of_values_is_limited(self):
        listed, = host_properties.describe({'a': f'{number:03}'}
                                           for number in range(1000))
        self.assertEqual([f'{number:03}' for number
                          in range(host_properties.MAX_VALUES)],
                         listed['values'])
        self.assertEqual([], host_properties.describe([{'a': 'x' * 999}])[0][
            'values'])
