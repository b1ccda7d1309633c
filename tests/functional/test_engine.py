# SPDX-License-Identifier: Apache-2.0
"""Tests of the engine's background work."""

from unittest import mock

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.db import decisions
from nova_preempt.handover import allocation_audit
from tests.functional import base


class EngineTestCase(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.add_hosts('host1')
        self.engine = self.start_engine()

    def run_engine(self, at_once=False):
        self.engine.rounds.run_once(at_once)
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'decisions to be closed')

    def shelvable(self, **extra_specs):
        return self.create_flavor(
            'shelvable', 1, 1024, 10, preemptible=True,
            **{'preemptible:action': 'shelve', 'preemptible:restore': 'true',
               **extra_specs})


class TestReturns(EngineTestCase):

    def shelve(self):
        """Two shelved victims, the one that ended first before the other."""
        flavor = self.shelvable()
        first = self.boot_spot('a', 'host1', 100, flavor)
        second = self.boot_spot('b', 'host1', 1000, flavor)
        self.normal = [self.boot_normal('n1')['id'],
                       self.boot_normal('n2')['id']]
        for server in (first, second):
            self.assertEqual('SHELVED_OFFLOADED',
                             self.api.get_server(server)['status'])
        return first, second

    def status(self, server):
        victim, = self.decisions.get_decisions(victim_uuid=server)[-1].victims
        return victim.status

    def test_victims_return_when_there_is_space(self):
        first, second = self.shelve()
        self.run_engine()
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(first)['status'])
        self.delete(self.normal[0])
        self.run_engine()
        self.wait(first)
        self.run_engine()
        self.assertEqual(decisions.RESTORED, self.status(first))
        self.assertEqual(decisions.SHELVED, self.status(second))
        self.assertIn(self.normal[1], self.alive())
        self.assert_consistent()

    def test_a_server_shelved_by_its_owner_does_not_return(self):
        """Nova leaves it on its host, and an eviction offloads it."""
        self.flags(shelved_offload_time=-1)
        flavor = self.shelvable()
        first = self.boot_spot('a', 'host1', 100, flavor)
        self.boot_spot('b', 'host1', 1000)
        self.act(first, 'shelve')
        normal = self.boot_normal()['id']
        self.assertEqual(decisions.SHELVED, self.status(first))
        self.delete(normal)
        self.run_engine()
        self.run_engine()
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(first)['status'])
        self.assert_consistent()

    def test_a_returned_server_shelved_by_its_owner_does_not_return(self):
        first, second = self.shelve()
        for normal in self.normal:
            self.delete(normal)
        self.act(first, 'unshelve')
        self.act(first, 'shelve')
        self.run_engine()
        self.wait(second)
        self.run_engine()
        self.assertEqual([decisions.RESTORED, decisions.RESTORED],
                         [self.status(first), self.status(second)])
        self.assertEqual('SHELVED_OFFLOADED',
                         self.api.get_server(first)['status'])


class TestLifetimes(EngineTestCase):

    def test_maximum_runtime(self):
        flavor = self.create_flavor(
            'day', 1, 1024, 10, preemptible=True,
            **{'preemptible:maximum_runtime_s': '3600'})
        old = self.boot_spot('old', 'host1', 3600, flavor)
        young = self.boot_spot('young', 'host1', 3599, flavor)
        self.run_engine()
        self.wait_gone(old)
        self.assertEqual('ACTIVE', self.api.get_server(young)['status'])
        self.assertEqual('maximum_runtime', self.last_decision().operation)
        self.assertEqual({old}, self.last_victims())
        self.assert_consistent()

    def test_maximum_runtime_where_servers_are_migrated_first(self):
        """Moved, it would have run too long elsewhere, and been moved on."""
        self.flags(actions=['migrate', 'shelve', 'delete'],
                   group='preemption')
        self.add_hosts('host2')
        for number, action in enumerate(('delete', 'migrate')):
            old = self.boot_spot('old', 'host1', 3600, self.create_flavor(
                f'day{number}', 1, 1024, 10, preemptible=True,
                **{'preemptible:maximum_runtime_s': '3600',
                   'preemptible:action': action}))
            self.run_engine()
            self.wait_for(lambda old=old: old not in self.alive() or (
                self.api.get_server(old)['status'] == 'SHELVED_OFFLOADED'),
                'the end')
            self.assertEqual('maximum_runtime',
                             self.last_decision().operation)
            victim, = self.last_decision().victims
            self.assertNotEqual(decisions.MIGRATED, victim.status)
        self.wait_consistent()

    def test_stopped_victims_are_deleted_in_the_end(self):
        flavor = self.create_flavor(
            'stops', 1, 1024, 10, preemptible=True,
            **{'preemptible:action': 'stop',
               'preemptible:maximum_runtime_s': '10'})
        server = self.boot_spot('a', 'host1', 100, flavor)
        self.run_engine()
        self.assertEqual('SHUTOFF', self.api.get_server(server)['status'])
        self.assertEqual({'DISK_GB': 10},
                         self.allocations()['host1'][server])
        self.flags(stop_retention_s=0, group='preemption')
        self.run_engine()
        self.wait_gone(server)
        self.run_engine()
        self.wait_consistent()

    def test_an_administrator_starts_a_stopped_victim(self):
        """It is never deleted, and gets its allocation when there is space."""
        self.flags(stop_retention_s=0, group='preemption')
        self.add_host('host2', 2, 2048, 40)
        stops = self.create_flavor('stops', 1, 1024, 10, preemptible=True,
                                   **{'preemptible:action': 'stop'})
        victim = self.boot_spot('a', 'host2', 100, stops)
        self.boot_spot('b', 'host2', 1000, stops)
        normal = self.boot_normal(host='host2')
        self.assertEqual('SHUTOFF', self.api.get_server(victim)['status'])
        self.act(victim, 'os-start')
        self.run_engine()
        self.run_engine()
        self.assertEqual('ACTIVE', self.api.get_server(victim)['status'])
        self.assertEqual({'DISK_GB': 10},
                         self.allocations()['host2'][victim])
        self.assertEqual([allocation_audit.PART_OF_ALLOCATION], [
            problem.kind for problem in allocation_audit.Audit(
                self.scheduler.preemption.clients.placement,
                self.engine.parts.known.servers, self.decisions,
                self.engine.parts.clients.get_cells, 60).look()])
        self.delete(normal['id'])
        self.run_engine()
        self.assert_consistent()
        status, = (found.status for found in self.last_decision().victims)
        self.assertEqual(decisions.KEPT, status)
        self.assertFalse(self.api.get_server(victim)['locked'])


class TestHeadroom(EngineTestCase):

    def test_headroom_is_kept_free(self):
        self.flags(headroom='VCPU:50%', group='preemption')
        self.engine._leadership.close()
        self.engine = self.start_engine()
        cheap = self.boot_spot('a', 'host1', 100)
        self.boot_spot('b', 'host1', 1000)
        self.run_engine()
        self.wait_gone(cheap)
        self.wait_consistent()
        self.run_engine()
        self.assertEqual(1, len(self.servers()))
        self.assertEqual('headroom', self.last_decision().operation)

    def test_no_further_server_gets_notice_meanwhile(self):
        """Space of servers with notice counts as free."""
        self.flags(headroom='VCPU:50%', notice_s=100, maximum_notice_s=100,
                   group='preemption')
        self.engine._leadership.close()
        self.engine = self.start_engine()
        jump = self.jumps(self.engine.parts.handover.terminator)
        cheap = self.boot_spot('a', 'host1', 100)
        other = self.boot_spot('b', 'host1', 1000)
        for _ in range(3):
            self.engine.rounds.run_once(at_once=True)
        decision, = self.decisions.get_decisions(statuses=[decisions.CLAIMED])
        self.assertEqual([cheap], [victim.server_uuid
                                   for victim in decision.victims])
        self.assertEqual({cheap, other}, self.alive())
        jump(100)
        self.wait_gone(cheap)
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'decisions to be closed')
        self.assertEqual({other}, self.alive())
        self.wait_consistent()


class TestAllocationRepair(EngineTestCase):

    def clean(self, times=2):
        for _ in range(times):
            self.run_engine(at_once=True)

    def test_servers_without_their_allocations(self):
        """A crash has left one without allocation, one with a part."""
        server = self.boot_spot('a', 'host1')
        other = self.boot_spot('b', 'host1')
        placement = self.engine.parts.clients.placement
        placement.delete_allocations(server)
        consumer = placement.get_consumer(other)
        provider, = consumer.allocations
        placement.post_allocations([consumer.with_allocations(
            {provider: {'resources': {'MEMORY_MB': 512, 'DISK_GB': 10}}})])
        self.clean(1)
        self.assertEqual({other: {'MEMORY_MB': 512, 'DISK_GB': 10}},
                         self.allocations()['host1'])
        self.clean(1)
        self.assert_consistent()
        self.assertIn('has only DISK_GB:10, MEMORY_MB:512 of DISK_GB:10, '
                      'MEMORY_MB:1024, VCPU:1 allocated',
                      self.stdlog.logger.output)

    def test_server_whose_space_was_taken(self):
        server = self.boot_spot('a', 'host1')
        self.engine.parts.clients.placement.delete_allocations(server)
        normal = self.boot_normal(flavor=self.big)
        self.clean()
        self.wait_gone(server)
        self.assertEqual({normal['id']}, self.alive())
        self.wait_consistent()

    def test_allocation_without_server(self):
        cheap = self.boot_spot('a', 'host1', 100)
        self.boot_spot('b', 'host1', 1000)
        normal = self.boot_normal()['id']
        self.wait_gone(cheap)
        self.delete(normal)
        placement = self.engine.parts.clients.placement
        provider = self.providers()['host1']
        stand_in = self.last_decision().record['stand_in']
        for uuid in (cheap, stand_in, '11111111-1111-4111-8111-111111111111'):
            placement.post_allocations([placement_api.Consumer(
                uuid, {provider: {'resources': {'DISK_GB': 1}}}, None,
                'project', 'user')])
        self.clean()
        self.assertNotIn(cheap, self.allocations()['host1'])
        self.assertNotIn(stand_in, self.allocations()['host1'])
        self.assertIn('Repaired an inconsistency: consumer '
                      f'{stand_in} has allocations on host1; it held '
                      'capacity for preemption '
                      f'{self.last_decision().uuid}, which is done.',
                      self.stdlog.logger.output)
        # Not ours: it is reported and left alone.
        self.assertIn('11111111-1111-4111-8111-111111111111',
                      self.allocations()['host1'])
        self.assertIn('Cannot repair an inconsistency: consumer 11111111',
                      self.stdlog.logger.output)

    def test_a_server_is_deleted_while_others_end_for_its_migration(self):
        self.flags(maximum_notice_s=1000, group='preemption')
        victim = self.boot_spot('a', 'host1', flavor=self.create_flavor(
            'noticed', 2, 2048, 20, preemptible=True,
            **{'preemptible:notice_s': '1000'}))
        self.add_hosts('host9')
        server = self.boot_normal(host='host9')['id']
        self.api.post_server_action(server, {'migrate': None})
        self.wait_for(lambda: nova_api.NOTICE_KEY in self.api.get_server(
            victim)['metadata'], 'notice')
        migration, = self.allocations()['host9']
        self.assertNotEqual(server, migration)
        self.delete(server)
        self.wait_for(lambda: not self.decisions.get_open_decisions(),
                      'the decision to be closed')
        self.clean()
        self.wait_consistent()
        self.assertEqual({victim}, self.alive())

    def test_services_that_are_down(self):
        """A task that fails does not keep the others from their work."""
        flavor = self.create_flavor(
            'day', 1, 1024, 10, preemptible=True,
            **{'preemptible:maximum_runtime_s': '10'})
        server = self.boot_spot('a', 'host1', 100, flavor)
        with mock.patch.object(
                placement_api.Placement, '_call',
                side_effect=placement_api.PlacementError('away')):
            self.engine.run_once()
        with mock.patch.object(nova_api.NovaAPI, '_call',
                               side_effect=nova_api.NovaError('away')):
            self.engine.run_once()
            self.assertIn(server, self.alive())
        self.run_engine(at_once=True)
        self.wait_gone(server)
        self.assert_consistent()
        self.assert_one_engine_acts()

    def assert_one_engine_acts(self):
        other = self.start_engine()
        self.assertTrue(self.engine._leadership.holds())
        self.assertFalse(other._leadership.holds())
        self.engine._leadership.close()
        self.assertTrue(other._leadership.holds())
        self.assertFalse(self.engine._leadership.holds())
