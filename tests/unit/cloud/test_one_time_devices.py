# SPDX-License-Identifier: Apache-2.0
"""Tests of servers with one-time devices."""

import datetime
from types import SimpleNamespace
import unittest
from unittest import mock

from nova_preempt.cloud import one_time_devices
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import preemptible_server_cache
from tests import instances as builders


class Flavor(dict):
    """Stands for an object of Nova with loaded extra specs."""

    name = 'spot'
    vcpus = root_gb = 1
    ephemeral_gb = 0
    memory_mb = 1024


class TestOneTimeDevices(unittest.TestCase):
    """Node h has a one-time device, which server nvme uses."""

    def setUp(self):
        self.now = 0
        self.placement = mock.Mock(spec=placement_api.Placement)
        self.placement.list_traits.return_value = [one_time_devices.TRAIT]
        self.placement.list_all_providers.return_value = [
            placement_api.Provider('nvme', 'h_0000:81:00.0', 1, 'root',
                                   'root')]
        self.placement.list_providers.return_value = [
            placement_api.Provider('root', 'h', 1), placement_api.Provider(
                'other', 'h2', 1)]
        self.placement.get_consumer.side_effect = lambda uuid: (
            placement_api.Consumer(uuid, {'root': {}, uuid: {}}))
        self.devices = one_time_devices.OneTimeDevices(
            self.placement, lambda: self.now)

    def has(self, uuid, node='h', flavor='spot'):
        self.devices.may_have(uuid, node, flavor)
        self.devices.refresh()
        return self.devices.may_have(uuid, node, flavor)

    def test_servers_with_a_one_time_device(self):
        self.assertTrue(self.has('nvme'))
        self.assertFalse(self.has('gpu'))
        self.placement.list_all_providers.assert_called_with(
            [('required', 'HW_PCI_ONE_TIME_USE')])

    def test_counts_as_having_one_until_it_is_known(self):
        self.assertTrue(self.devices.may_have('gpu', 'h', 'spot'))
        self.assertEqual({'gpu'}, self.devices.refresh())
        self.assertFalse(self.devices.may_have('gpu', 'h', 'spot'))
        self.assertTrue(self.devices.may_have('gpu', 'h', 'other'))

    def test_the_devices_are_listed_once_a_minute(self):
        for number in range(1000):
            self.devices.may_have(f'{number}', 'h2', 'spot')
        self.assertEqual(1000, len(self.devices.refresh()))
        self.now = one_time_devices.MAX_AGE_S - 1
        self.assertFalse(self.has('new', 'h2'))
        self.placement.list_traits.assert_called_once_with()
        self.now += 1
        self.devices.refresh()
        self.assertEqual(2, self.placement.list_traits.call_count)
        # Where there are no such devices nobody is asked for.
        self.placement.get_consumer.assert_not_called()

    def test_asked_once_for_each_while_it_is_on_one_node(self):
        self.placement.list_all_providers.return_value.append(
            placement_api.Provider('nvme2', 'h2_0000:81:00.0', 1, 'other'))
        for node in 'h', 'h', 'h2':
            self.has('nvme', node)
        self.assertEqual(2, self.placement.get_consumer.call_count)

    def test_devices_that_the_operator_declares_later(self):
        self.placement.list_traits.return_value = []
        self.assertFalse(self.has('nvme'))
        self.placement.list_all_providers.assert_not_called()
        self.placement.list_traits.return_value = [one_time_devices.TRAIT]
        self.now += one_time_devices.MAX_AGE_S
        self.assertEqual({'nvme'}, self.devices.refresh())
        self.assertTrue(self.has('nvme'))

    def test_unknown_devices(self):
        """The server counts as having one, and is read again soon."""
        error = placement_api.PlacementError('503')
        for name in 'list_traits', 'list_all_providers', 'get_consumer':
            method = getattr(self.placement, name)
            method.side_effect, before = error, method.side_effect
            with self.subTest(name), self.assertLogs(
                    one_time_devices.__name__, 'WARNING'):
                self.assertTrue(self.has(name))
            calls = method.call_count
            self.assertTrue(self.has(name))
            self.assertEqual(calls, method.call_count)
            method.side_effect = before
            self.now += one_time_devices.RETRY_S
            self.assertFalse(self.has(name))
            self.now += one_time_devices.MAX_AGE_S

    def test_without_such_servers_placement_is_not_called(self):
        self.devices.may_have('nvme', 'h', 'spot')
        self.devices.forget('nvme')
        self.assertEqual(set(), self.devices.refresh())
        self.placement.list_traits.assert_not_called()


class TestServers(unittest.TestCase):

    def setUp(self):
        self.devices = mock.Mock(
            spec=one_time_devices.OneTimeDevices,
            **{'may_have.return_value': True, 'refresh.return_value': set()})
        self.cell = SimpleNamespace(uuid='cell', identity='cell')
        self.view = preemptible_server_cache.ServerCache(
            lambda: {'cell': self.cell}, lambda uuids: set(uuids),
            devices=self.devices)
        self.view._readings = mock.Mock(
            read=lambda: self.view._refresh_cell(None, self.cell),
            **{'unreadable.return_value': (), 'hanging.return_value': ()})
        self.found = {}
        patch = mock.patch.object(preemptible_server_cache.ServerCache,
                                  '_read', lambda *args: dict(self.found))
        patch.start()
        self.addCleanup(patch.stop)

    def test_asked_for_servers_with_pci_devices_only(self):
        for requests, calls in ((None, 0), ([], 0), (['a device'], 1)):
            has = mock.Mock(return_value=True)
            server = self.server(requests, has)
            self.assertEqual(calls, has.call_count)
            self.assertEqual(bool(calls), server.one_time)

    def test_once_it_is_known(self):
        self.found = {'nvme': self.server(['a device'])}
        self.view.refresh()
        self.assertTrue(self.view.get('nvme').one_time)
        # What is said of servers that are gone changes nothing.
        self.devices.refresh.return_value = {'nvme', 'gone'}
        self.devices.may_have.return_value = False
        self.found = {}
        self.view.refresh()
        self.assertFalse(self.view.get('nvme').one_time)
        self.assertFalse(self.view.by_node()['h']['nvme'].one_time)

    def test_a_deleted_server_is_forgotten(self):
        self.found = {'nvme': None}
        self.view.refresh()
        self.devices.forget.assert_called_once_with('nvme')

    def server(self, requests, has=lambda *server: True):
        return preemptible_server_cache._server(self.instance(requests),
                                                'cell', True, has)

    def instance(self, requests):
        return builders.instance(
            'nvme', user_id='u', launched_at=datetime.datetime(2026, 1, 1),
            numa_topology=None, resources=None, flavor=Flavor(),
            pci_requests=None if requests is None else SimpleNamespace(
                requests=requests))


if __name__ == '__main__':
    unittest.main()
