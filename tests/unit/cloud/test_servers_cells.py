# SPDX-License-Identifier: Apache-2.0
"""Tests of servers in cells that can or cannot be read."""

import contextlib
import datetime
import types
import unittest
from unittest import mock

import fixtures
from nova import context as nova_context
from oslo_utils import fixture as utils_fixture
import testtools

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import cell_reader
from nova_preempt.cloud import change_cursor
from nova_preempt.cloud import instances
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import preemptible_server_cache
from tests import instances as builders
from tests.unit.core.scheduling import world


class TestUnreadableCells(unittest.TestCase):
    """Two cells, each with a server on a node of its own."""

    def setUp(self):
        mappings = {uuid: types.SimpleNamespace(uuid=uuid, identity=uuid)
                    for uuid in ('one', 'two')}
        self.failing = set()
        self.by_flavor = ''
        self.now = 0
        self.view = preemptible_server_cache.ServerCache(
            lambda: mappings, lambda uuids: set(), monotonic=lambda: self.now)
        self.view._readings._calls._start = lambda run: run()
        for patch in (mock.patch.object(preemptible_server_cache.ServerCache,
                                        '_read', self.read), mock.patch.object(
                          nova_context, 'target_cell', mock.MagicMock())):
            patch.start()
            self.addCleanup(patch.stop)

    def read(self, context, cell, filters):
        if cell.uuid in self.failing:
            raise OSError('away')
        uuid = f'server-{cell.uuid}'
        return {uuid: world.server(uuid, node=f'node-{cell.uuid}',
                                   cell_uuid=cell.uuid,
                                   class_name=self.by_flavor)}

    def wait(self, condition, seconds):
        self.now += seconds

    def offered(self):
        """The nodes and servers that offer victims."""
        found = self.view.by_node()
        return set(found), {uuid for on_node in found.values()
                            for uuid in on_node}

    def test_classes_that_change(self):
        classes = {}
        self.view._known._class_of = lambda uuid, by_flavor: classes.get(
            uuid, by_flavor)
        self.view.refresh()
        before = self.view.get('server-one')
        self.assertEqual('', before.class_name)
        for name in ('gold', 'bronze'):
            classes['server-one'] = name
            self.view.note_classes({'server-one', 'of another process'})
            found = self.view.by_node()['node-one']['server-one']
            self.assertEqual((name, 'shelve', True), (
                found.class_name, found.action, found.restore))
        self.assertEqual('', self.view.get('server-two').class_name)
        classes.clear()
        self.view.note_classes({'server-one'})
        self.assertEqual(before, self.view.get('server-one'))

    def test_a_flavor_names_a_class_that_is_no_more(self):
        self.by_flavor = 'iron'
        self.view.refresh()
        self.assertEqual('', self.view.get('server-one').class_name)

    def test_only_its_own_servers(self):
        self.view.refresh()
        self.failing = {'one'}
        with self.assertLogs(cell_reader.__name__, 'ERROR'):
            self.view.refresh()
        self.assertEqual(({'node-two'}, {'server-two'}), self.offered())
        # Nor do they end at their maximum run time, or for headroom.
        self.assertEqual(['server-two'],
                         [server.uuid for server in self.view.servers()])
        self.assertIsNotNone(self.view.get('server-one'), 'it is forgotten')
        self.failing = set()
        self.view.refresh()
        self.assertEqual(({'node-one', 'node-two'},
                          {'server-one', 'server-two'}), self.offered())

    def test_a_cell_that_never_answers(self):
        calls = self.view._readings._calls
        calls._wait = self.wait
        calls._start = lambda run: (
            None if run.args[1].cell.uuid == 'one' else run())
        self.view.refresh()
        self.assertEqual(cell_calls.LIMIT_S, self.now)
        self.assertEqual({'node-two'}, self.offered()[0])
        self.assert_nova_is_not_asked_about_its_servers()

    def test_the_cell_of_a_known_server_is_known(self):
        self.view.refresh()
        calls = self.view._readings._calls
        calls._wait = self.wait
        calls._start = lambda run: (
            None if run.args[1].cell.uuid == 'one' else run())
        self.view.refresh()
        # A query could be slow, and it is asked right before an eviction.
        with mock.patch.object(instances, 'find_cells') as find_cells:
            self.assertTrue(self.view.is_away('server-one'))
            self.assertFalse(self.view.is_away('server-two'))
        find_cells.assert_not_called()

    def assert_nova_is_not_asked_about_its_servers(self):
        """Nova's API waits a minute for that cell each time."""
        def find_cells(uuids):
            return {uuid: types.SimpleNamespace(uuid=uuid) for uuid in uuids}

        api = nova_api.NovaAPI(None)
        api.is_away = self.view.is_away
        api._client = mock.Mock()
        with mock.patch.object(instances, 'find_cells', find_cells):
            self.assertRaisesRegex(
                nova_api.NovaError, 'get server one: its cell does not',
                api.get, 'one')
            api.force_delete('two')
        api._client.servers.force_delete.assert_called_once_with('two')
        api._client.servers.get.assert_not_called()


class TestArchived(testtools.TestCase):
    """Servers deleted and archived are in no list of changes."""

    def setUp(self):
        super().setUp()
        self.time = self.useFixture(utils_fixture.TimeFixture())
        self.cell = types.SimpleNamespace(uuid='one', identity='one')
        self.failing = False
        self.records = {'a', 'b'}
        self.looked_for = []
        self.left = []
        # Nova's are not there before it has registered them.
        self.patch(instances, 'objects', types.SimpleNamespace(
            InstanceList=types.SimpleNamespace(get_by_filters=self.find)))
        self.patch(nova_context, 'target_cell', self.target_cell)
        self.patch(preemptible_server_cache.ServerCache, '_read', self.read)
        self.cache = preemptible_server_cache.ServerCache(
            lambda: {'one': self.cell}, lambda uuids: set(),
            self.left.append)
        self.cache._readings._calls._start = lambda run: run()
        self.cache.refresh()

    def patch(self, target, name, replacement):
        self.useFixture(fixtures.MockPatchObject(target, name, replacement))

    @contextlib.contextmanager
    def target_cell(self, context, cell):
        yield cell

    def read(self, context, cell, reading):
        if self.failing:
            raise OSError('away')
        reading.saw([types.SimpleNamespace(
            updated_at=datetime.datetime(2026, 11, 20))])
        return {} if 'changes-since' in reading.changes else {
            uuid: world.server(uuid, node=f'node-{uuid}', cell_uuid='one')
            for uuid in self.records}

    def find(self, cell, filters, expected_attrs):
        self.assertFalse(filters['deleted'])
        self.looked_for += filters['uuid']
        return [builders.instance(uuid) for uuid in filters['uuid']
                if uuid in self.records]

    def refresh(self, after_s):
        self.time.advance_time_seconds(after_s)
        self.cache.refresh()

    def known(self):
        return {server.uuid for server in self.cache.servers()}

    def test_while_the_cell_could_not_be_read(self):
        self.failing = True
        with self.assertLogs(cell_reader.__name__):
            for _ in range(5):
                self.refresh(30)
        self.records = {'a'}
        self.failing = False
        self.refresh(30)
        self.assertEqual(({'a'}, {'node-a'}),
                         (self.known(), set(self.cache.by_node())))
        self.assertEqual([{'node-b'}], self.left)

    def test_between_two_readings(self):
        self.records = {'a'}
        self.refresh(change_cursor.GAP_S)
        self.assertEqual(({'a', 'b'}, []), (self.known(), self.looked_for))
        for _ in range(change_cursor.WHOLE_S // change_cursor.GAP_S):
            self.refresh(change_cursor.GAP_S)
        self.assertEqual({'a'}, self.known())
        self.assertEqual(2, len(self.looked_for))
