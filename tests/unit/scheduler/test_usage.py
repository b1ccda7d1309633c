# SPDX-License-Identifier: Apache-2.0
"""Tests of quotas while a cell cannot be read."""

import types
import unittest
from unittest import mock

from nova import objects

from nova_preempt.cloud import cell_calls
from nova_preempt.core import quotas as core
from nova_preempt.scheduler import preemption_quotas
from tests.unit.core.scheduling import world

objects.register_all()


class TestCellAway(unittest.TestCase):

    def servers(self, answers):
        servers = preemption_quotas.ProjectServerReader(
            dict, lambda uuids: set(),
            lambda project_id, cells: [world.server(
                f'old-{uuid}', vcpus=2, memory_mb=512) for uuid in cells])
        with mock.patch.object(cell_calls, 'gather', return_value=answers):
            return servers.servers('p')

    def test_the_last_reading_counts(self):
        found = [types.SimpleNamespace(
            uuid='new', host='h', vm_state='active', task_state=None,
            flavor=objects.Flavor(vcpus=1, memory_mb=1), new_flavor=None,
            old_flavor=None)]
        self.assertEqual(
            {'new': core.CountedServer([core.ServerSize(False, 1, 1)],
                                       False),
             'old-two': core.CountedServer([core.ServerSize(True, 2, 512)],
                                           False)},
            self.servers({'one': found, 'two': cell_calls.CellDown()}))

    def test_nothing_is_remembered_where_all_answer(self):
        self.assertEqual({}, self.servers({'one': [], 'two': []}))


if __name__ == '__main__':
    unittest.main()
