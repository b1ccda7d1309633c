# SPDX-License-Identifier: Apache-2.0
import contextlib
import datetime
from types import SimpleNamespace
from unittest import mock

from oslo_utils import fixture as utils_fixture
import testtools

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import change_cursor
from nova_preempt.cloud import host_records
from nova_preempt.cloud import instances
from nova_preempt.cloud import request_specs
from nova_preempt.reservation import host_occupancy
from tests import instances as builders

NOW = datetime.datetime(2026, 11, 20, 12)


def instance(uuid, node='n1', deleted=False, locked_by=None):
    return builders.instance(uuid, host=node, deleted=deleted, updated_at=NOW,
                             locked=bool(locked_by), locked_by=locked_by)


class TestOccupancy(testtools.TestCase):
    """Tests with two cells, one of which may be unreadable."""

    def setUp(self):
        super().setUp()
        self.time = self.useFixture(utils_fixture.TimeFixture(NOW))
        self.cells = {name: SimpleNamespace(uuid=name, id=name,
                                            identity=name)
                      for name in ('c1', 'c2')}
        self.servers = {'c1': [instance('a'), instance('b')],
                        'c2': [instance('c', 'n2')]}
        self.changed = {'c1': [], 'c2': []}
        self.dark = set()
        self.left = []
        self.whole = []            # cells read as a whole
        view = SimpleNamespace(refresh=lambda: None, get=lambda uuid: None)
        # Nova's are not there before it has registered them.
        objects = SimpleNamespace(
            InstanceList=SimpleNamespace(get_by_filters=self.read),
            HostMappingList=SimpleNamespace(get_by_cell_id=self.hosts_of))
        for target, name, replacement in (
                (cell_calls.nova_context, 'target_cell', self.target_cell),
                (host_records, 'objects', objects),
                (instances, 'objects', objects)):
            patch = mock.patch.object(target, name, replacement)
            patch.start()
            self.addCleanup(patch.stop)
        self.occupancy = host_occupancy.HostOccupancy(
            lambda: self.cells, view, self.left.append)

    @contextlib.contextmanager
    def target_cell(self, context, cell):
        yield cell

    def read(self, cell, filters, expected_attrs):
        if cell.uuid in self.dark:
            raise OSError('dark')
        if 'changes-since' in filters:
            return self.changed[cell.uuid]
        self.whole.append(cell.uuid)
        return self.servers[cell.uuid]

    def hosts_of(self, context, cell_id):
        return [SimpleNamespace(host=f'host of {cell_id}')]

    def on(self, node):
        return [item.uuid for item in self.occupancy.on_node(node)]

    def refresh(self, after_s=0):
        self.time.advance_time_seconds(after_s)
        self.occupancy.refresh()

    def test_changes_only(self):
        self.refresh()
        self.changed['c1'] = [instance('b', deleted=True), instance('d')]
        self.refresh(5)
        self.assertEqual((['a', 'd'], ['c']), (self.on('n1'), self.on('n2')))
        # Cells are read side by side.
        self.assertCountEqual(['c1', 'c2'], self.whole)
        self.assertEqual([{'n1'}], self.left)

    def test_servers_archived_during_a_pause(self):
        """No list of changes has it."""
        self.refresh()
        self.servers['c1'] = [instance('a')]
        self.refresh(change_cursor.GAP_S)
        self.assertEqual(['a', 'b'], self.on('n1'))
        self.refresh(change_cursor.GAP_S + 1)
        self.assertEqual((['a'], ['c']), (self.on('n1'), self.on('n2')))
        self.assertEqual([{'n1'}], self.left)

    def test_servers_archived_between_full_readings(self):
        self.refresh()
        self.servers['c1'] = []
        for _ in range(change_cursor.WHOLE_S // 100 + 1):
            self.refresh(100)
        self.assertEqual([], self.on('n1'))
        self.assertEqual(4, len(self.whole))

    def test_hints_of_deleted_servers_are_forgotten(self):
        """A server is deleted before its hints are read."""
        with mock.patch.object(request_specs, 'reservations_of',
                               lambda uuid: frozenset({'r'})):
            self.refresh()
            for uuid in ('a', *map(str, range(100))):
                self.assertEqual({'r'}, self.occupancy.reservations_of(uuid))
            for _ in range(change_cursor.WHOLE_S // 100 + 1):
                self.refresh(100)
        self.assertEqual({'a'}, self.occupancy._hints.keys())

    def test_a_cell_that_hangs_does_not_delay_others(self):
        waits_s = []
        for name, value in (
                ('_start', lambda run: (
                    run.args[1].cell.uuid == 'c1' or run())),
                ('_wait', lambda condition, seconds: waits_s.append(seconds)),
                ('_monotonic', lambda: sum(waits_s))):
            patch = mock.patch.object(self.occupancy._readings._calls, name,
                                      value)
            patch.start()
            self.addCleanup(patch.stop)
        self.refresh()
        self.assertEqual(([], ['c']), (self.on('n1'), self.on('n2')))
        self.assertEqual({'host of c1'}, self.occupancy.dark)

    def test_a_late_answer_changes_nothing(self):
        """Another thread has read newer data."""
        self.refresh()
        self.time.advance_time_seconds(5)
        late = self.occupancy._since.begin('c1')
        self.changed['c1'] = [instance('b', deleted=True)]
        self.refresh(5)
        self.changed['c1'] = [instance('b')]
        with mock.patch.object(self.occupancy._since, 'begin',
                               return_value=late):
            self.occupancy._refresh_cell(self.cells['c1'], self.cells['c1'])
        self.assertEqual(['a'], self.on('n1'))

    def test_an_unreadable_cell_keeps_its_last_state(self):
        self.refresh()
        self.assertEqual(frozenset(), self.occupancy.dark)
        self.dark = {'c1'}
        self.servers['c2'] = []
        self.refresh(300)
        self.assertEqual((['a', 'b'], []), (self.on('n1'), self.on('n2')))
        self.assertEqual({'host of c1'}, self.occupancy.dark)
        self.dark = set()
        self.refresh(5)
        self.assertEqual(frozenset(), self.occupancy.dark)
