# SPDX-License-Identifier: Apache-2.0
"""Reads of the PCI devices of all candidates at once."""

import types
import unittest
from unittest import mock

from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_db import exception as db_exc
from sqlalchemy import exc as sqla_exc

from nova_preempt.scheduler import host_trees

objects.register_all()


def server(uuid, cell_uuid='c1'):
    return types.SimpleNamespace(uuid=uuid, cell_uuid=cell_uuid)


def instance(uuid):
    """A server with a requested device, and one with another device."""
    return types.SimpleNamespace(
        uuid=uuid,
        pci_devices=[types.SimpleNamespace(request_id=name, of=uuid)
                     for name in ('r', 'unknown')],
        pci_requests=types.SimpleNamespace(requests=[
            types.SimpleNamespace(request_id='r', spec=[{'a': '1'}])]))


class TestDevices(unittest.TestCase):

    def setUp(self):
        super().setUp()
        preemption = mock.Mock()
        preemption.clients.get_cells.return_value = {
            name: mock.Mock(identity=name) for name in ('c1', 'c2')}
        self.spec = mock.MagicMock(pci_requests=mock.Mock(requests=['some']))
        self.spec.__contains__.return_value = True
        self.trees = host_trees.HostTrees(
            preemption, mock.Mock(spec_obj=self.spec), None)
        self.reads = []
        self.gone = set()
        for patch in (
                mock.patch.object(nova_context, 'target_cell'),
                mock.patch.object(objects.InstanceList, 'get_by_filters',
                                  self.read)):
            patch.start()
            self.addCleanup(patch.stop)

    def read(self, context, filters, expected_attrs):
        self.reads.append(filters['uuid'])
        return [instance(uuid) for uuid in filters['uuid']
                if uuid not in self.gone]

    def test_no_allocation_requests_for_a_host_that_is_gone(self):
        preemption = mock.Mock()
        preemption.known.providers.known.return_value = None
        preemption.known.providers.read.return_value = None
        trees = host_trees.HostTrees(
            preemption, mock.Mock(spec_obj=self.spec), None)
        self.assertEqual((), trees.read('host'))
        self.assertEqual([], trees.allocation_requests('host', 'host', []))

    def test_once_for_all(self):
        servers = [server(uuid) for uuid in 'abc']
        found = self.trees.devices(servers[:1], servers)
        self.assertEqual(['a'], list(found))
        self.assertEqual([('a', {'a': '1'}), ('a', {})],
                         [(device.of, spec) for device, spec in found['a']])
        self.assertEqual(['c', 'b'],
                         list(self.trees.devices(servers[:0:-1], servers)))
        self.assertEqual([['a', 'b', 'c']], self.reads)

    def test_once_for_each_cell(self):
        self.trees.devices([server('a'), server('b', 'c2'),
                            server('d', 'unknown')])
        self.assertEqual([['a'], ['b']], self.reads)

    def test_many(self):
        uuids = [str(number) for number in range(2500)]
        found = self.trees.devices([server(uuid) for uuid in uuids])
        self.assertEqual(uuids, list(found))
        self.assertTrue(all(found.values()))
        self.assertEqual([500] * 5, [len(each) for each in self.reads])

    def test_a_deleted_server_frees_no_devices(self):
        self.gone.add('b')
        found = self.trees.devices([server('a'), server('b')])
        self.assertEqual((2, []), (len(found['a']), found['b']))

    def test_a_cell_that_cannot_be_read(self):
        for number, error in enumerate((exception.NovaException('away'),
                                        db_exc.DBConnectionError('away'),
                                        sqla_exc.TimeoutError('away'))):
            with mock.patch.object(objects.InstanceList, 'get_by_filters',
                                   side_effect=error), (
                    self.assertLogs(host_trees.__name__, 'WARNING')):
                self.assertEqual({number: []}, self.trees.devices(
                    [server(number)]))

    def test_a_request_without_devices(self):
        self.spec.pci_requests.requests = []
        self.assertEqual({}, self.trees.devices([server('a')]))
        self.assertEqual([], self.reads)
