# SPDX-License-Identifier: Apache-2.0
"""A normal server in a full cloud, on real Nova and Placement."""

from unittest import mock

from nova_preempt.db import decisions
from nova_preempt.embedded import embedded_cloud
from nova_preempt.scheduler import retry_loop
from tests.functional import base


class TestCreate(base.PreemptionTestCase):

    def test_the_cheapest_victim_on_any_host_is_evicted(self):
        self.add_hosts('host1', 'host2')
        old = self.boot_spot('a', 'host1', 3600 + 1800)
        dear = self.boot_spot('b', 'host1', 3000)
        cheap = self.boot_spot('c', 'host2', 7200 + 60)
        other = self.boot_spot('d', 'host2', 2400)
        server = self.boot_normal()
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        left = {item['id'] for item in self.servers()}
        self.assertEqual({old, dear, other, server['id']}, left)
        self.assert_consistent()
        decision, = self.decisions.get_decisions()
        self.assertEqual(decisions.DONE, decision.status)
        self.assertEqual(server['id'], decision.server_uuid)
        self.assertEqual('create', decision.operation)
        self.assertEqual(60_000_000, decision.cost_us)
        self.assertEqual([(cheap, decisions.GONE, 60_000_000)], [
            (victim.server_uuid, victim.status, victim.cost_us)
            for victim in decision.victims])
        self.assertEqual('host1', decision.record['runner_up']['host'])

    def test_free_host_first(self):
        self.add_hosts('host1', 'host2')
        self.boot_spot('a', 'host1', 3600)
        self.boot_spot('b', 'host1', 3600)
        server = self.boot_normal()
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        self.assertEqual([], self.decisions.get_decisions())

    def test_no_valid_host_evicts_no_server(self):
        self.add_hosts('host1')
        self.boot_normal('n1')
        spot = self.boot_spot('a', 'host1')
        server = self.boot('n2', self.big)
        self.wait_failed(server)
        self.assertEqual('ACTIVE', self.api.get_server(spot)['status'])
        decision, = self.decisions.get_decisions()
        self.assertEqual(decisions.REFUSED, decision.status)

    def test_preemptible_never_preempts(self):
        self.add_hosts('host1')
        self.boot_spot('a', 'host1')
        self.boot_spot('b', 'host1')
        server = self.boot('c', self.spot)
        self.wait_failed(server)
        self.assertEqual([], self.decisions.get_decisions())

    def test_multi_create(self):
        self.add_hosts('host1', 'host2')
        for name, host in (('a', 'host1'), ('b', 'host1'), ('c', 'host2')):
            self.boot_spot(name, host)
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=self.small, networks='none')
        body.update(min_count=4, max_count=4)
        self.api.post_server({'server': body})
        for server in self.servers():
            if server['name'].startswith('m'):
                self.wait(server['id'])
        self.assertEqual(4, len(self.servers()))
        self.assert_consistent()

    def test_multi_create_all_or_nothing(self):
        self.add_hosts('host1', 'host2')
        spots = {self.boot_spot(name, host) for name, host in (
            ('a', 'host1'), ('b', 'host1'), ('c', 'host2'))}
        body = self._build_server(name='m', image_uuid=embedded_cloud.IMAGE,
                                  flavor_id=self.small, networks='none')
        body.update(min_count=5, max_count=5)
        self.api.post_server({'server': body})
        for server in self.servers():
            if server['name'].startswith('m'):
                self.assertRaises(embedded_cloud.CloudError, self.wait,
                                  server['id'])
        self.assertEqual(spots, {
            server['id'] for server in self.servers()
            if server['status'] == 'ACTIVE'})
        self.assert_consistent()

    def test_space_of_a_deleted_server_counts(self):
        """Placement does not tell of it by the provider's generation."""
        self.add_host('host1', 4, 4096, 40)
        normal = self.boot_normal('n1', self.big)['id']
        self.boot_normal('n2')
        spot = self.boot_spot('a', 'host1')
        self.scheduler.preemption.known.refresh()
        self.delete(normal)
        large = self.create_flavor('large', 3, 3072, 30)
        self.boot_normal('n3', large)
        self.assertNotIn(spot, {item['id'] for item in self.servers()})
        self.assert_consistent()

    def test_space_freed_by_deletion_in_placement_counts(self):
        """It suffices only with a victim; Nova reports no change."""
        self.add_hosts('host1')
        spot = self.boot_spot('a', 'host1')
        orphan = self.boot_normal()['id']
        self.boot_in_vain(flavor=self.big)
        self.scheduler.preemption.clients.placement.delete_allocations(orphan)
        with mock.patch.object(retry_loop, 'ROOM_AGE_S', 0):
            self.boot_normal('big', self.big)
        self.assertEqual({spot}, self.last_victims())
