# SPDX-License-Identifier: Apache-2.0
"""Host states of some hosts equal those of all hosts."""

from unittest import mock

from nova import context as nova_context
from nova import exception
from nova import objects

from nova_preempt.scheduler import host_states
from tests.functional import base

KNOWN = ('host', 'nodename', 'cell_uuid', 'free_ram_mb', 'free_disk_mb',
         'vcpus_total', 'vcpus_used', 'num_instances', 'aggregates')


class TestFewHosts(base.PreemptionTestCase):

    def setUp(self):
        super().setUp()
        self.flavor = self.create_flavor('tiny', 1, 1024, 10)
        for number in range(3):
            self.add_host(f'host{number}', 4, 4096, 40)
            self.wait(self.boot(f'server{number}', self.flavor,
                                host=f'host{number}'))
        self.context = nova_context.get_admin_context()
        with nova_context.target_cell(
                self.context, self.cell_mappings['cell1']) as context:
            nodes = objects.ComputeNodeList.get_all(context)
        self.uuids = sorted(node.uuid for node in nodes)

    def states(self, get, uuids):
        """Return the attributes of each host state."""
        found = {}
        for state in get(self.context, uuids, None):
            found[state.uuid] = {
                'instances': sorted(state.instances),
                'service': state.service['host'],
                **{name: str(getattr(state, name)) for name in KNOWN}}
        return found

    def few(self, *args):
        return host_states.get_few(self.scheduler.host_manager, *args)

    def nova(self, *args):
        return self.scheduler.host_manager.get_host_states_by_uuids(*args)

    def test_states_equal_those_of_nova(self):
        for uuids in (self.uuids[:1], self.uuids, []):
            expected = self.states(self.nova, uuids)
            self.assertEqual(len(uuids), len(expected))
            self.assertEqual(expected, self.states(self.few, uuids))
        self.assertEqual(self.states(self.nova, None),
                         self.states(self.few, None))
        # Only their services are read.
        with mock.patch.object(objects.ServiceList, 'get_by_binary',
                               side_effect=AssertionError):
            self.assertEqual(2, len(self.states(self.few, self.uuids[:2])))

    def test_unreadable_hosts_are_omitted(self):
        with mock.patch.object(
                objects.Service, 'get_by_compute_host',
                side_effect=exception.ComputeHostNotFound(host='host0')):
            self.assertEqual({}, self.states(self.few, self.uuids[:1]))
        with mock.patch.object(objects.ComputeNodeList, 'get_all_by_uuids',
                               side_effect=exception.NovaException):
            self.assertEqual({}, self.states(self.few, self.uuids[:1]))
