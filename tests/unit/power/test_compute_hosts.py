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
"""Hosts of several cells."""

import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.power import compute_hosts


class TestCells(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.away = set()
        self.now = 0.0
        with mock.patch.object(compute_hosts, 'servicegroup'):
            self.hosts = compute_hosts.ComputeHosts(
                None, lambda: {uuid: types.SimpleNamespace(uuid=uuid)
                               for uuid in ('one', 'two')}, lambda: self.now)
        for owner, name, value in (
                (self.hosts, '_read_cell', self.read_cell),
                (compute_hosts, 'objects', mock.MagicMock())):
            patch = mock.patch.object(owner, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def read_cell(self, cell, aggregates):
        if cell.uuid in self.away:
            raise db_exc.DBConnectionError('away')
        return {f'host of {cell.uuid}': cell}

    def test_without_one_that_is_away_only_where_that_is_said(self):
        self.away.add('one')
        self.assertRaises(db_exc.DBError, self.hosts.read)
        self.assertEqual({'host of two'},
                         self.hosts.read(30, partly=True).keys())
        # That these are all is not remembered.
        self.assertRaises(db_exc.DBError, self.hosts.read, 30)
        self.away.clear()
        self.assertEqual(2, len(self.hosts.read(30)))
        self.away.add('one')
        self.assertEqual(2, len(self.hosts.read(30, partly=True)))


if __name__ == '__main__':
    unittest.main()
