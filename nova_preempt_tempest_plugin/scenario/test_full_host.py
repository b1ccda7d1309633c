# SPDX-License-Identifier: Apache-2.0
"""Scenario: a normal server boots on a host full of preemptible servers."""

from tempest import config
from tempest.lib import decorators
from tempest.lib.common.utils import data_utils

from nova_preempt_tempest_plugin import base

CONF = config.CONF


# Serial: no other test may use the host meanwhile.
@decorators.serial
class FullHostTest(base.PreemptionTest):
    """Tests in an availability zone of one host that has no servers."""

    @classmethod
    def setup_clients(cls):
        super().setup_clients()
        cls.hypervisors_client = cls.os_admin.hypervisor_client
        cls.aggregates_client = cls.os_admin.aggregates_client
        cls.providers_client = (
            cls.os_admin.placement.ResourceProvidersClient())

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.host, ram = cls.find_host()
        cls.zone = data_utils.rand_name(
            prefix=CONF.resource_name_prefix, name='one-host')
        aggregate = cls.aggregates_client.create_aggregate(
            name=cls.zone, availability_zone=cls.zone)['aggregate']
        cls.addClassResourceCleanup(
            cls.aggregates_client.delete_aggregate, aggregate['id'])
        cls.aggregates_client.add_host(aggregate['id'], host=cls.host)
        cls.addClassResourceCleanup(
            cls.aggregates_client.remove_host, aggregate['id'],
            host=cls.host)
        # Two of a size fill it; the disk is that of the image.
        cls.normal = cls.create_flavor(ram=ram)
        cls.spot = cls.create_flavor(preemptible=True, ram=ram)

    @classmethod
    def find_host(cls):
        """Return (name of a host without servers, half of its memory)."""
        for hypervisor in cls.hypervisors_client.list_hypervisors(
                detail=True)['hypervisors']:
            if (hypervisor['running_vms'] or hypervisor['state'] != 'up'
                    or hypervisor['status'] != 'enabled'):
                continue
            provider, = cls.providers_client.list_resource_providers(
                name=hypervisor['hypervisor_hostname'])['resource_providers']
            memory = cls.providers_client.list_resource_provider_inventories(
                provider['uuid'])['inventories']['MEMORY_MB']
            usable = (memory['total'] - memory['reserved']) * memory[
                'allocation_ratio']
            return (hypervisor['service']['host'],
                    min(int(usable) // 2, memory['max_unit']))
        raise cls.skipException('each host has servers')

    def fill(self):
        return [self.create_server(self.spot, availability_zone=self.zone)
                for _ in range(2)]

    @decorators.attr(type='slow')
    @decorators.idempotent_id('d8c0665a-0377-4e15-97ae-88b31b215d2f')
    def test_the_cheapest_gives_way(self):
        spots = self.fill()
        told = self.client.explain(
            flavor=self.normal, availability_zone=self.zone)['explain']
        self.assertEqual(('preempts', 1),
                         (told['outcome'], told['victim_count']))
        normal = self.create_server(self.normal, availability_zone=self.zone)
        gone = self.wait_for('nobody has ended', lambda: [
            spot for spot in spots if not self.is_there(spot)])
        self.assertEqual([told['victims'][0]['server_id']], gone)
        server = self.os_admin.servers_client.show_server(normal)['server']
        self.assertEqual(self.host, server['OS-EXT-SRV-ATTR:host'])
        record, = self.client.list_preemptions(
            server_id=normal)['preemptions']
        self.assertEqual('create', record['operation'])
        self.assertEqual(gone, [victim['server_id']
                                for victim in record['victims']])
        # The victim finds the same preemption.
        other, = self.client.list_preemptions(
            victim_id=gone[0])['preemptions']
        self.assertEqual(record['id'], other['id'])
        why = self.admin_client.show_preemption(
            record['id'])['preemption']['record']['why']
        self.assertIn(self.host, why)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('65dded47-ffb1-407a-9efd-488732464627')
    def test_preemptible_ones_do_not_preempt(self):
        spots = self.fill()
        chances = self.client.list_placement_chances(
            self.spot, availability_zone=self.zone)['placement_chances']
        self.assertEqual([0], [chance['preemptible'] for chance in chances])
        server = self.create_server(
            self.spot, wait_until=None, availability_zone=self.zone)
        self.wait_for('it was not refused', lambda: (
            self.servers_client.show_server(server)['server']['status']
            == 'ERROR'))
        self.assertTrue(all(map(self.is_there, spots)))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('b238cfb7-cb5f-4fc8-911f-acc665c7dd9e')
    def test_nobody_ends_in_a_pause(self):
        spots = self.fill()
        self.admin_client.pause('preemption', 'a test')
        self.addCleanup(self.admin_client.resume, 'preemption')
        server = self.create_server(
            self.normal, wait_until=None, availability_zone=self.zone)
        self.wait_for('it was not refused', lambda: (
            self.servers_client.show_server(server)['server']['status']
            == 'ERROR'))
        self.assertTrue(all(map(self.is_there, spots)))
