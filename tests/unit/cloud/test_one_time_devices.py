# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Which servers have devices that can be used once only."""

from types import SimpleNamespace
import unittest
from unittest import mock

from nova_preempt.cloud import one_time_devices
from nova_preempt.cloud import placement
from nova_preempt.cloud import servers


class Flavor(dict):
    """As an object of Nova tells whether it has its extra specs."""

    name = 'spot'
    vcpus = root_gb = 1
    ephemeral_gb = 0
    memory_mb = 1024


class TestOneTimeDevices(unittest.TestCase):

    def setUp(self):
        self.placement = mock.Mock(spec=placement.Placement)
        self.placement.list_traits.return_value = [one_time_devices.TRAIT]
        self.placement.list_all_providers.return_value = [
            placement.Provider('nvme', 'h_0000:81:00.0', 1)]
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement.Consumer(uuid, {'h': {}, uuid: {}}))
        self.devices = one_time_devices.OneTimeDevices(self.placement)

    def test_who_holds_one(self):
        self.assertTrue(self.devices.has('nvme', 'h', 'spot'))
        self.assertFalse(self.devices.has('gpu', 'h', 'spot'))
        self.placement.list_all_providers.assert_called_with(
            [('required', 'HW_PCI_ONE_TIME_USE')])

    def test_asked_once_for_each_while_it_is_on_one_host(self):
        for host in 'h', 'h', 'h2':
            self.devices.has('nvme', host, 'spot')
        self.assertEqual(2, self.placement.get_consumer.call_count)

    def test_a_release_without_such_devices(self):
        self.placement.list_traits.return_value = []
        self.assertFalse(self.devices.has('nvme', 'h', 'spot'))
        self.placement.list_all_providers.assert_not_called()

    def test_asked_again_where_nobody_knew(self):
        self.placement.list_traits.side_effect = [
            placement.PlacementError('503'), [one_time_devices.TRAIT]]
        self.assertRaises(placement.PlacementError, self.devices.has,
                          'nvme', 'h', 'spot')
        self.assertTrue(self.devices.has('nvme', 'h', 'spot'))

    def test_asked_for_servers_with_pci_devices_only(self):
        for requests, calls in ((None, 0), ([], 0), (['a device'], 1)):
            has = mock.Mock(return_value=True)
            server = servers._server(self.instance(requests), 'c', True, has)
            self.assertEqual(calls, has.call_count)
            self.assertEqual(bool(calls), server.one_time)

    def instance(self, requests):
        return mock.Mock(
            host='h', node='h', deleted=False, locked=False,
            project_id='p', user_id='u', vm_state='active', uuid='nvme',
            numa_topology=None, resources=None, flavor=Flavor(),
            pci_requests=None if requests is None else SimpleNamespace(
                requests=requests))
