# SPDX-License-Identifier: Apache-2.0
"""A look at open requests: its readings, and its records."""

import datetime
import logging
import types
import unittest
from unittest import mock

import fixtures
import sqlalchemy as sa

from nova_preempt.backlog import backlog_loop
from nova_preempt.backlog import request_tracker
from nova_preempt.backlog import transition_recorder
from nova_preempt.backlog import user_nova_clients
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import backlog_store
from tests.unit.api import base
from tests.unit.db import test_backlog_store


class TestBodies(base.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.tracker = request_tracker.RequestTracker(
            self.db, mock.Mock(**{'look.return_value': {}}), mock.Mock(),
            mock.Mock())
        self.read = []
        sa.event.listen(self.db.engine, 'before_cursor_execute', self.note)

    def note(self, _conn, _cursor, statement, parameters, *_more):
        if statement.startswith('SELECT') and '.body' in statement:
            self.read += parameters

    def leave(self, *uuids):
        for uuid in uuids:
            backlog_store.create(self.db,
                                 test_backlog_store.request(uuid, body={
                                     'server': {'host': uuid, 'metadata': {
                                         'a': 'b' * 255}}}))

    def follow(self):
        found, _closed, _seen = self.tracker.look(test_backlog_store.NOW)
        # Only what a pass needs is kept.
        self.assertEqual([['host', 'block_device_mapping_v2']] * len(found),
                         [list(item.body['server']) for item in found])
        return {item.uuid: item.body['server']['host'] for item in found}

    def test_each_is_read_once(self):
        self.leave('r1', 'r2')
        for _look in range(2):
            self.assertEqual({'r1': 'r1', 'r2': 'r2'}, self.follow())
        self.assertEqual(['r1', 'r2'], self.read)
        self.leave('r3')
        self.assertEqual(3, len(self.follow()))
        self.assertEqual(['r1', 'r2', 'r3'], self.read)
        backlog_store.change(self.db, 'r1', backlog_model.OPEN,
                             test_backlog_store.NOW,
                             state=backlog_model.CANCELLED)
        self.assertEqual({'r2': 'r2', 'r3': 'r3'}, self.follow())
        self.assertEqual({'r2', 'r3'}, self.tracker._bodies.keys())

    def test_a_request_that_is_deleted_meanwhile(self):
        self.leave('r1', 'r2')
        with mock.patch.object(backlog_store, 'bodies', return_value=[
                ('r2', {'server': {'host': 'r2'}})]):
            self.assertEqual({'r2': 'r2'}, self.follow())


class TestNobodyMayDelete(base.DatabaseTestCase):
    """A late server whose user has no rights any more."""

    def setUp(self):
        super().setUp()
        logging.disable(logging.NOTSET)
        self.logger = fixtures.FakeLogger()
        self.logger.setUp()
        self.addCleanup(self.logger.cleanUp)
        backlog_store.create(self.db, test_backlog_store.request('r1'))
        self.servers = (ObservedServer('late', 'active',
                                       tags=('backlog:r1:1',)),)
        self.users = mock.Mock()
        self.loop = backlog_loop.BacklogLoop(
            types.SimpleNamespace(
                ask_timeout_s=60, pass_interval_s=10, hold_after_s=0),
            self.db, request_tracker.RequestTracker(
                self.db, mock.Mock(look=lambda requests, now: {
                    'r1': request_servers.FoundServers(
                        self.servers)} if requests
                    else {}),
                self.users,
                transition_recorder.TransitionRecorder(self.db,
                                                       lambda *_args: None)),
            mock.Mock(), mock.Mock())
        backlog_store.begin_boot(self.db, 'r1', (backlog_model.WAITING,),
                                 backlog_model.SentBoot(
                                     1, 'tag', 'f', 1, test_backlog_store.NOW,
                                     backlog_model.LOST))

    def follow(self, after_s=0):
        self.loop.run(test_backlog_store.NOW + datetime.timedelta(
            seconds=after_s), is_paused=True)
        return backlog_store.get(self.db, 'r1').reason

    def refuse(self, is_final):
        self.asked = 0

        def delete(request, uuids):
            if uuids:
                self.asked += 1
                raise user_nova_clients.ServersNotDeleted('policy', is_final)
        self.users.delete = delete

    def test_the_reason_is_logged_once(self):
        self.refuse(is_final=True)
        for _look in range(10):
            self.assertIn('Its servers late are left', self.follow())
        self.assertEqual(1, self.logger.output.count('late'))
        self.assertEqual(1, self.asked)

    def test_after_a_day(self):
        self.refuse(is_final=False)
        self.assertEqual('', self.follow())
        self.assertIn('cannot be cleaned up yet', self.logger.output)
        self.assertIn('are left', self.follow(86400))
        self.follow(86405)
        self.assertEqual(2, self.asked)


if __name__ == '__main__':
    unittest.main()
