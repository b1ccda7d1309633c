# SPDX-License-Identifier: Apache-2.0
"""Tests of the stored clocks of servers of a class."""

import dataclasses
import datetime
import tempfile
import types
import unittest
from unittest import mock

import sqlalchemy as sa

from nova_preempt.classes import uptime_recorder
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import change_cursor
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.classes import class_table
from nova_preempt.core.classes import clock_events
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import backlog_models
from nova_preempt.db import backlog_store
from nova_preempt.db import server_uptimes
from tests import tables
from tests.unit.db import test_decisions

AT = datetime.datetime(2026, 1, 1, 12)
CELL = types.SimpleNamespace(uuid='1a1f0b0e-0000-4000-8000-000000000001',
                             identity='cell')
TABLE = class_table.parse([
    {'name': 'gold', 'importance': '1', 'availability': '1'},
    {'name': 'bronze', 'importance': '2', 'availability': '0.5'}])


def server(uuid, class_name='', **changes):
    extra_specs = {'preemptible:enabled': 'true'}
    if class_name:
        extra_specs['preemptible:class'] = class_name
    return ObservedServer(uuid, **{
        'vm_state': 'active', 'project_id': 'p', 'flavor': 'spot',
        'extra_specs': extra_specs, 'created_at': AT, 'updated_at': AT,
        'launched_at': AT, **changes})


class TestKeeper(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.db = test_decisions.make_database(
            f'sqlite:///{directory.name}/test.sqlite')
        tables.make(self.db)
        self.addCleanup(self.db.engine.dispose)
        self.there = []
        self.actions = {}
        for module, name, answer in (
                (uptime_recorder.instances, 'pages', self.pages),
                (uptime_recorder.instances, 'read', self.read),
                (uptime_recorder.instance_actions, 'read',
                 lambda _, instances: {item.uuid: self.actions.get(
                                           item.uuid, [])
                                       for item in instances})):
            patch = mock.patch.object(module, name, answer)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(cell_calls, 'opened')
        patch.start()
        self.addCleanup(patch.stop)
        self.cells = {CELL.uuid: CELL}
        self.keeper = uptime_recorder.UptimeRecorder(
            self.db, lambda: dict(self.cells), TABLE)

    def pages(self, context, filters, attrs):
        """Nova changes none of them after the first look."""
        yield [item for item in self.there if 'changes-since' not in filters]

    def read(self, context, uuids, attrs):
        return [item for item in self.there if item.uuid in uuids]

    def look(self):
        """Run the recorder; return the recorded {uuid: class name}."""
        self.keeper.look()
        return {uuid: item.class_name for uuid, item
                in server_uptimes.find(self.db).items()}

    def ask(self, uuid, class_name):
        """A request has booted this server."""
        backlog_store.create(self.db, backlog_model.Request(
            uuid, 'p', 'u', 't', {}, '2.90', 1, 1, (), AT, AT,
            class_name=class_name))
        with self.db.writer() as session:
            session.execute(sa.insert(backlog_models.BacklogServer).values(
                uuid=uuid, request_uuid=uuid, boot=1,
                state=backlog_model.RUNNING, since=AT))

    def test_a_cell_is_removed(self):
        """It is not read any more and would be outdated for ever."""
        self.there = [server('a', 'gold')]
        self.look()
        other = types.SimpleNamespace(uuid='cell2', identity='cell2')
        self.cells[other.uuid] = other
        self.there = [server('b', 'gold')]
        self.assertEqual({'a': 'gold', 'b': 'gold'}, self.look())
        self.assertEqual({CELL.uuid, 'cell2'},
                         server_uptimes.scan_ages_s(self.db).keys())
        found = server_uptimes.find(self.db)
        self.assertEqual('cell2', found['b'].cell_uuid)
        del self.cells[CELL.uuid]
        self.assertEqual({'b': 'gold'}, self.look())
        self.assertEqual({'cell2'},
                         server_uptimes.scan_ages_s(self.db).keys())
        # It may be back, and what is there is read anew.
        self.cells[CELL.uuid] = CELL
        self.there = [server('a', 'gold')]
        self.assertEqual({'a': 'gold', 'b': 'gold'}, self.look())

    def test_the_class_of_a_server(self):
        self.ask('b', 'gold')
        self.ask('c', 'gold')
        self.ask('d', 'iron')
        self.there = [
            server('a', 'bronze'), server('b'), server('c', 'iron'),
            server('d'), server('e', 'iron'), server('f')]
        self.assertEqual({'a': 'bronze', 'b': 'gold', 'c': 'gold'},
                         self.look())

    def change(self, uuid, class_name):
        with self.db.writer() as session:
            session.execute(
                sa.update(backlog_models.BacklogRequest)
                .where(backlog_models.BacklogRequest.uuid == uuid)
                .values(class_name=class_name))

    def test_a_request_changes_its_class(self):
        for uuid in 'abc':
            self.ask(uuid, 'gold')
        self.there = [server('a'), server('b'), server('c', 'gold')]
        self.assertEqual(dict.fromkeys('abc', 'gold'), self.look())
        self.change('a', 'bronze')
        self.change('b', '')
        # Its flavor has a class.
        self.change('c', '')
        self.assertEqual({'a': 'bronze', 'c': 'gold'}, self.look())
        self.change('b', 'bronze')
        self.change('a', 'iron')
        self.assertEqual({'b': 'bronze', 'c': 'gold'}, self.look())
        # Nobody is looked at again and again.
        with mock.patch.object(uptime_recorder.instances, 'read') as read:
            self.look()
            self.look()
        read.assert_not_called()

    def test_nova_writes_late_that_one_runs(self):
        """The server itself does not change by that any more."""
        asked = clock_events.InstanceAction(clock_events.CREATE, 1, 1_000_000,
                                            True, 2_000_000)
        self.there = [server('a', 'gold'),
                      server('b', 'gold', task_state='spawning')]
        self.actions = {'a': [asked], 'b': [asked]}
        for whole in False, True:
            self.actions['a'] = [asked]
            self.keeper = uptime_recorder.UptimeRecorder(
                self.db, lambda: dict(self.cells), TABLE)
            server_uptimes.forget(self.db, {'a', 'b'})
            self.look()
            self.assertEqual({'a': Kind.ALLOCATING, 'b': Kind.ALLOCATING},
                             self.kinds())
            self.actions['a'] = [dataclasses.replace(
                asked, done_us=60_000_000)]
            if whole:
                self.keeper._since = change_cursor.ChangeCursor()
            self.look()
            self.assertEqual({'a': Kind.RUNNING, 'b': Kind.ALLOCATING},
                             self.kinds())

    def kinds(self):
        return {uuid: server.clocks.mark.kind for uuid, server
                in server_uptimes.find(self.db).items()}

    def test_when_a_cell_was_looked_at(self):
        self.look()
        ago_s, = server_uptimes.scan_ages_s(self.db).values()
        self.assertLess(ago_s, 300)
        server_uptimes.record_scan(self.db, CELL.uuid, 4000)
        # Nobody writes that of a cell that cannot be read.
        with mock.patch.object(
                uptime_recorder.instances, 'pages',
                side_effect=OSError('away')), (
                self.assertLogs(uptime_recorder.readings.__name__)):
            self.look()
        ago_s, = server_uptimes.scan_ages_s(self.db).values()
        self.assertGreaterEqual(ago_s, 4000)


if __name__ == '__main__':
    unittest.main()
