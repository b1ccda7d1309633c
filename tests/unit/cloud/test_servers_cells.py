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
"""Which servers may be looked at."""

import types
import unittest
from unittest import mock

from nova_preempt.cloud import cells
from nova_preempt.cloud import servers
from tests.unit.core.scheduling import world


class TestUnreadableCells(unittest.TestCase):
    """Two cells, each with a server on a node of its own."""

    def setUp(self):
        mappings = {uuid: types.SimpleNamespace(uuid=uuid, identity=uuid)
                    for uuid in ('one', 'two')}
        self.failing = set()
        self.now = 0
        self.view = servers.ServerCache(lambda: mappings, lambda uuids: set(),
                                        monotonic=lambda: self.now)
        self.view._readings._start = lambda run: run()
        patch = mock.patch.object(servers.ServerCache, '_read', self.read)
        patch.start()
        self.addCleanup(patch.stop)

    def read(self, cell, filters):
        if cell.uuid in self.failing:
            raise OSError('away')
        uuid = f'server-{cell.uuid}'
        return {uuid: world.server(uuid, node=f'node-{cell.uuid}',
                                   cell_uuid=cell.uuid)}

    def wait(self, condition, seconds):
        self.now += seconds

    def offered(self):
        """The nodes and servers that offer victims."""
        return self.view.nodes(), {
            uuid for node in ('node-one', 'node-two')
            for uuid in self.view.on_node(node)}

    def test_only_its_own_servers(self):
        self.view.refresh()
        self.failing = {'one'}
        with self.assertLogs(cells.__name__, 'ERROR'):
            self.view.refresh()
        self.assertEqual(({'node-two'}, {'server-two'}), self.offered())
        self.assertEqual(2, len(self.view.servers()), 'it is forgotten')
        self.failing = set()
        self.view.refresh()
        self.assertEqual(({'node-one', 'node-two'},
                          {'server-one', 'server-two'}), self.offered())

    def test_one_that_never_answers(self):
        self.view._readings._wait = self.wait
        self.view._readings._start = lambda run: (
            None if run.__defaults__[0].uuid == 'one' else run())
        self.view.refresh()
        self.assertEqual(cells.LIMIT_S, self.now)
        self.assertEqual({'node-two'}, self.offered()[0])
