# SPDX-License-Identifier: Apache-2.0
"""Hosts of several cells."""

import contextlib
import functools
import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import cell_reader
from nova_preempt.cloud import host_records
from nova_preempt.power import compute_hosts


class TestCells(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.away = set()
        self.hanging = set()
        self.hung = []
        self.now = 0.0
        self.cells = {uuid: types.SimpleNamespace(uuid=uuid, identity=uuid)
                      for uuid in ('one', 'two')}
        nova = mock.MagicMock()
        nova.AggregateList.get_all.return_value = [
            types.SimpleNamespace(name='rack', hosts=['h two'])]
        for name, value in (
                ('servicegroup', mock.Mock()), ('objects', nova),
                ('nova_context', mock.MagicMock())):
            patch = mock.patch.object(host_records, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(cell_calls.nova_context, 'target_cell',
                                  self.cell)
        patch.start()
        self.addCleanup(patch.stop)
        nova.ServiceList.get_by_binary.side_effect = self.services
        nova.ComputeNodeList.get_all.side_effect = self.nodes
        self.hosts = compute_hosts.ComputeHosts(
            None, lambda: self.cells, lambda: self.now, functools.partial(
                cell_reader.CellReader, start=self.start, wait=self.wait))

    def start(self, run):
        if run.args[1].cell.uuid in self.hanging:
            self.hung.append(run)
        else:
            run()

    def wait(self, condition, seconds):
        self.now += seconds

    @contextlib.contextmanager
    def cell(self, context, cell):
        if cell.uuid in self.away:
            raise db_exc.DBConnectionError('away')
        yield cell

    @staticmethod
    def services(cell, binary, include_disabled):
        return [types.SimpleNamespace(
            host=f'h {cell.uuid}', uuid='s', last_seen_up=None,
            disabled=False, disabled_reason=None)]

    @staticmethod
    def nodes(cell):
        return [types.SimpleNamespace(
            host=f'h {cell.uuid}', hypervisor_hostname=f'host of {cell.uuid}',
            uuid='p', vcpus=1, vcpus_used=0, running_vms=None)]

    def test_hosts_of_all_cells(self):
        found = self.hosts.read()
        self.assertEqual(
            {'host of one': ('h one', 'one', frozenset()),
             'host of two': ('h two', 'two', frozenset(['rack']))},
            {name: (host.host, host.cell_uuid, host.aggregates)
             for name, host in found.items()})
        del self.cells['one']
        self.assertEqual({'host of two'}, self.hosts.read().keys())

    def test_a_cell_that_hangs_does_not_delay_others(self):
        self.hosts.read()
        self.hanging.add('one')
        self.now += 60
        self.assertEqual({'host of two'},
                         self.hosts.read(30, partly=True).keys())
        self.assertEqual(60 + cell_calls.LIMIT_S, self.now)
        with self.assertRaisesRegex(compute_hosts.CellsUnreadable, 'cell one'):
            self.hosts.read()
        self.assertEqual(60 + cell_calls.LIMIT_S, self.now)
        self.hanging.clear()
        for run in self.hung:
            run()
        self.assertEqual(2, len(self.hosts.read()))

    def test_an_unreadable_cell_is_omitted_on_request_only(self):
        self.away.add('one')
        self.assertRaises(compute_hosts.CellsUnreadable, self.hosts.read)
        self.assertEqual({'host of two'},
                         self.hosts.read(30, partly=True).keys())
        # That these are all is not remembered.
        self.assertRaises(compute_hosts.CellsUnreadable, self.hosts.read, 30)
        self.away.clear()
        self.assertEqual(2, len(self.hosts.read(30)))
        self.away.add('one')
        self.assertEqual(2, len(self.hosts.read(30, partly=True)))


if __name__ == '__main__':
    unittest.main()
