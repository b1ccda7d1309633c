# SPDX-License-Identifier: Apache-2.0
"""Copies of host states without some of their servers."""

import datetime
import unittest

from nova import objects
from nova.objects import fields
from nova.scheduler import host_manager

from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.scheduler import host_states

objects.register_all()


def server(uuid, numa_topology=None, vcpus=1, memory_mb=1024, disk_mb=10240):
    return preemptible_server_cache.CachedServer(
        uuid=uuid, host='host1', node='host1', cell_uuid='cell',
        project_id='project', user_id='user', flavor='spot',
        launched_at=datetime.datetime(
            2026, 1, 1, tzinfo=datetime.timezone.utc),
        vm_state='active', task_state=None,
        minimum_runtime_s=0, vcpus=vcpus, memory_mb=memory_mb,
        disk_mb=disk_mb, numa_topology=numa_topology)


def host(uuids='abc', numa_topology=None):
    """A host of 4 slots, of which 3 are taken."""
    state = host_manager.HostState('host1', 'host1', 'cell')
    state.uuid = 'provider'
    state.free_ram_mb = 1024
    state.free_disk_mb = 10240
    state.vcpus_total = 4
    state.vcpus_used = 3
    state.num_instances = 3
    state.instances = {uuid: objects.Instance(uuid=uuid) for uuid in uuids}
    state.numa_topology = numa_topology
    return state


def numa_cell(number, cpus, pinned=(), memory_usage=0, pages_used=0):
    return objects.NUMACell(
        id=number, cpuset=set(), pcpuset=set(cpus), pinned_cpus=set(pinned),
        siblings=[{cpu} for cpu in cpus], memory=4096, socket=number,
        memory_usage=memory_usage, cpu_usage=len(pinned),
        mempages=[
            objects.NUMAPagesTopology(size_kb=4, total=262144, used=0,
                                      reserved=0),
            objects.NUMAPagesTopology(size_kb=2048, total=1536,
                                      used=pages_used, reserved=0)])


def pinned_to(number, *cpus, memory_mb=1024, page_size_kb=None):
    """The NUMA topology of a server on these CPUs of one cell."""
    return objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
        id=number, cpuset=set(), pcpuset=set(range(len(cpus))),
        cpu_policy=fields.CPUAllocationPolicy.DEDICATED,
        cpu_pinning=dict(enumerate(cpus)), memory=memory_mb,
        pagesize=page_size_kb)])


class TestWithout(unittest.TestCase):

    def figures(self, state):
        return (state.free_ram_mb, state.free_disk_mb, state.vcpus_used,
                state.num_instances, sorted(state.instances))

    def test_space_and_counts(self):
        state = host()
        shared = state.instances
        left = host_states.without(state, [server('a'), server('c', vcpus=2,
                                                               memory_mb=512,
                                                               disk_mb=0)])
        self.assertEqual((2560, 20480, 0, 1, ['b']), self.figures(left))
        self.assertEqual((1024, 10240, 3, 3, ['a', 'b', 'c']),
                         self.figures(state))
        self.assertIs(shared, state.instances)
        self.assertEqual(('host1', 'host1', 'provider', 'cell'), (
            left.host, left.nodename, left.uuid, left.cell_uuid))

    def test_without_no_servers(self):
        state = host()
        left = host_states.without(state, [])
        self.assertIsNot(state, left)
        self.assertEqual(self.figures(state), self.figures(left))

    def test_a_server_that_nova_does_not_track(self):
        """[filter_scheduler]track_instance_changes may be off."""
        left = host_states.without(host(uuids=''), [server('a')])
        self.assertEqual((2048, 20480, 2, 2, []), self.figures(left))

    def test_twice(self):
        state = host()
        once = host_states.without(state, [server('a')])
        twice = host_states.without(once, [server('b')])
        self.assertEqual(
            self.figures(host_states.without(state,
                                             [server('a'), server('b')])),
            self.figures(twice))

    def test_remove_changes_the_state_itself(self):
        state = host()
        shared = state.instances
        host_states.remove(state, [server('a')])
        self.assertEqual((2048, 20480, 2, 2, ['b', 'c']),
                         self.figures(state))
        # What Nova tracks of all hosts is not ours to change.
        self.assertEqual({'a', 'b', 'c'}, set(shared))


class TestNUMA(unittest.TestCase):

    def setUp(self):
        self.topology = objects.NUMATopology(cells=[
            numa_cell(0, (0, 1), pinned=(0, 1), memory_usage=2048),
            numa_cell(1, (2, 3), pinned=(2,), memory_usage=1024,
                      pages_used=512)])
        self.state = host(numa_topology=self.topology)

    def pinned(self, state):
        return [set(cell.pinned_cpus) for cell in state.numa_topology.cells]

    def memory(self, state):
        return [cell.memory_usage for cell in state.numa_topology.cells]

    def test_pinning_and_memory(self):
        left = host_states.without(self.state, [server('a', pinned_to(0, 1))])
        self.assertEqual([{0}, {2}], self.pinned(left))
        self.assertEqual([1024, 1024], self.memory(left))
        left = host_states.without(self.state, [
            server('a', pinned_to(0, 1)), server('b', pinned_to(0, 0)),
            server('c', pinned_to(1, 2))])
        self.assertEqual([set(), set()], self.pinned(left))
        self.assertEqual([0, 0], self.memory(left))
        self.assertEqual([{0, 1}, {2}], self.pinned(self.state))
        self.assertEqual([2048, 1024], self.memory(self.state))
        self.assertIs(self.topology, self.state.numa_topology)

    def test_huge_pages(self):
        left = host_states.without(self.state, [
            server('c', pinned_to(1, 2, page_size_kb=2048))])
        self.assertEqual(0, left.numa_topology.cells[1].mempages[1].used)
        self.assertEqual(
            512, self.state.numa_topology.cells[1].mempages[1].used)

    def test_servers_without_a_topology(self):
        left = host_states.without(self.state, [server('a')])
        self.assertEqual([{0, 1}, {2}], self.pinned(left))
        self.assertEqual(2, left.num_instances)

    def test_a_host_without_a_topology(self):
        left = host_states.without(host(), [server('a', pinned_to(0, 1))])
        self.assertIsNone(left.numa_topology)
        self.assertEqual(2, left.num_instances)

    def test_cpus_that_the_host_has_not_pinned_are_not_freed(self):
        """The host's record may be older than the server's."""
        with self.assertLogs(host_states.LOG.logger, 'DEBUG') as logs:
            left = host_states.without(self.state, [
                server('new', pinned_to(1, 3)), server('a', pinned_to(0, 1))])
        self.assertEqual([{0}, {2}], self.pinned(left))
        self.assertEqual([{0, 1}, {2}], self.pinned(self.state))
        self.assertIn('new', logs.output[0])
