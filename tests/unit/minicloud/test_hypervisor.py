# SPDX-License-Identifier: Apache-2.0
"""The hypervisor of a fake compute, which is started again."""

import types
import unittest
from unittest import mock

from minicloud.inside import hypervisor
from nova import objects
from nova.compute import power_state
from nova.virt import node

NODE = 'b1de5dd4-8a0c-4be6-9f1b-0d4f5a3b2c10'
SERVER = types.SimpleNamespace(
    name='instance-1', power_state=power_state.RUNNING,
    uuid='5f6e2ad3-7ff2-44a1-9c3f-0d2b6a1c9e01')


class TestHypervisor(unittest.TestCase):

    def setUp(self):
        super().setUp()
        for target, name, value in (
                (node, 'get_local_node_uuid', NODE),
                (objects.InstanceList, 'get_by_host', [SERVER])):
            patch = mock.patch.object(target, name, return_value=value)
            patch.start()
            self.addCleanup(patch.stop)
        self.driver = hypervisor.Hypervisor(None)
        self.driver.init_host('compute1')

    def test_the_identity_is_that_of_the_node(self):
        self.assertEqual({NODE: 'compute1'},
                         self.driver.get_nodenames_by_uuid())
        self.assertEqual(
            NODE, self.driver.get_available_resource('compute1')['uuid'])

    def test_servers_run_on_after_a_restart(self):
        self.assertEqual([SERVER.uuid], self.driver.list_instance_uuids())
        self.assertEqual(power_state.RUNNING,
                         self.driver.get_info(SERVER).state)
