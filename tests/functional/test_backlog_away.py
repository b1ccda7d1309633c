# SPDX-License-Identifier: Apache-2.0
"""Waiting requests whose resources are away or deleted."""

import contextlib
import threading
from unittest import mock

import fixtures
from nova import context as nova_context
from oslo_db import exception as db_exc

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.db import backlog_store
from nova_preempt.embedded import fake_hypervisor
from tests.functional import test_backlog
from tests.functional.test_backlog import PROJECT
from tests.functional.test_backlog import USER


class Outage:
    """Outage of a database: no transaction begins.

    :param facade: of oslo.db
    :param left: so many transactions go well before
    :param commits: whether the last of them commits, and its answer is lost;
        only those that write count then
    :param thread: only its transactions count; None for those of all
    :ivar began: whether it has
    """

    def __init__(self, facade, left=0, commits=False, thread=None):
        self._factory = facade._factory
        self._create = self._factory._create_session
        self._left = left
        self._commits = commits
        self._thread = thread
        self.began = False

    def __enter__(self):
        self._factory._create_session = self._session
        return self

    def __exit__(self, *_exc):
        self._factory._create_session = self._create

    def _session(self, mode, bind=None):
        if self._thread not in (None, threading.current_thread()):
            return self._create(mode=mode, bind=bind)
        if self.began or not (self._left or self._commits):
            self.began = True
            raise db_exc.DBConnectionError
        session = self._create(mode=mode, bind=bind)
        if not self._commits or 'writer' in repr(mode).lower():
            if not self._left:
                session.commit = self._lose(session.commit)
            self._left -= 1
        return session

    def _lose(self, commit):
        def lost():
            commit()
            self.began = True
            raise db_exc.DBConnectionError

        return lost


class TestAway(test_backlog.BacklogTestCase):
    """No server boots twice, and each request shows its error."""

    NUMBER_OF_CELLS = 2

    def setUp(self):
        super().setUp()
        # Between tries of transactions.
        self.useFixture(fixtures.MonkeyPatch('oslo_db.api.time',
                                             mock.Mock()))

    def test_outages_of_each_service(self):
        self.check_database(commits=False)
        self.check_database(commits=True)
        self.check_project_deleted()
        self.check_cell()
        self.wait_consistent()

    def recover(self, uuid, state=backlog_model.ACTIVE):
        def reached():
            self.step()
            self.pass_time(20)
            return self.get(uuid).state == state

        self.wait_for(reached, f'the request to be {state}')

    def assert_one_server(self, uuid):
        self.assertEqual([item['id'] for item in self.servers()],
                         [item.uuid for item in self.get(uuid).servers])
        self.assertEqual(1, len(self.servers()))

    def check_database(self, commits):
        """Our database goes away before, or in, each transaction."""
        uuid, number, boots = self.leave(), 0, []
        facade = self.engine.parts.process.db._facade
        while True:
            # It is read anew, as in each first look.
            self.engine.parts.process.pauses._read_at = None
            # Heartbeats come at any time, in threads of their own.
            with Outage(facade, number, commits,
                        threading.current_thread()) as outage:
                try:
                    self.step()
                except db_exc.DBConnectionError:
                    self.assertTrue(outage.began)
            if not outage.began:
                break
            number += 1
            found = self.get(uuid)
            if found.state == backlog_model.WAITING:
                self.assertEqual(((), []), (found.boots, self.servers()))
                # So that the next step writes the same once more.
                backlog_store.note(self.db,
                                   {uuid: dispatch.WaitNote(None, {}, None)})
                continue
            # Nova was asked, or was about to be.
            self.assertEqual((backlog_model.PLACING, [backlog_model.ASKING])
                             if (
                                 not commits or not self.servers()) else
                             (backlog_model.PLACING,
                              [backlog_model.ASKED]),
                             (found.state,
                              [item.state for item in found.boots]))
            self.recover(uuid)
            self.assert_one_server(uuid)
            boots.append(len(self.get(uuid).boots))
            self.end(uuid)
            uuid = self.leave()
        # What had not reached Nova was given up in time. How many
        # transactions there are after it depends on what is read anew.
        self.assertEqual({1, 2} if commits else {1}, set(boots))
        self.recover(uuid)
        self.assert_one_server(uuid)
        self.end(uuid)

    def end(self, uuid):
        for server in self.get(uuid).servers:
            self.delete(server.uuid)
        self.recover(uuid, backlog_model.DONE)
        self.step()

    def leave_asked(self):
        """A request for which Nova was asked before the engine died."""
        uuid = self.leave()
        with mock.patch.object(
                nova_as_user.UserNova, 'create', test_backlog.kill(
                    nova_as_user.UserNova.create, after=True)):
            self.assertRaises(test_backlog.Killed, self.step)
        return uuid

    def check_project_deleted(self):
        """Keystone deletes the trusts of a project with it."""
        runs = self.leave()
        self.step_until(runs, backlog_model.ACTIVE)
        asked, waits = self.leave_asked(), self.leave()
        self.engine = self.start_engine()
        made = set(self.trusts.made)
        self.trusts.made.clear()
        late = self.leave()
        self.trusts.gone[f'{USER}:{PROJECT}'] = 'Could not find project.'
        self.recover(asked)
        # There is no room for them, so nobody was asked yet.
        self.assertEqual({backlog_model.WAITING}, {
            self.get(uuid).state for uuid in (waits, late)})
        for uuid in (runs, asked):
            self.assertIn(self.get(uuid).trust_id, made)
            self.delete(self.get(uuid).servers[0].uuid)
        self.step()
        self.step()
        for uuid, state, reason in (
                (runs, backlog_model.DONE, 'Its servers were deleted.'),
                (asked, backlog_model.DONE, 'Its servers were deleted.'),
                (waits, backlog_model.FAILED, 'Could not find trust: '),
                (late, backlog_model.FAILED, 'Could not find project.')):
            found = self.get(uuid)
            self.assertEqual(state, found.state)
            self.assertTrue(found.reason.startswith(reason), found.reason)
            self.assertEqual('', found.trust_id)
        self.assertEqual([], self.servers())
        self.trusts.gone.clear()

    @contextlib.contextmanager
    def cell_away(self, name):
        context = nova_context.get_admin_context()
        with nova_context.target_cell(
                context, self.cell_mappings[name]) as cell_context:
            facade = cell_context.db_connection
        with Outage(facade):
            yield

    def check_cell(self):
        """Check that servers of an unreadable cell are neither given up nor
        created again."""
        runs = self.leave()
        self.step_until(runs, backlog_model.ACTIVE)
        self._sizes['host2'] = fake_hypervisor.HostSize(2, 2048, 20)
        self._start_compute('host2', cell_name='cell2')
        self.engine = self.start_engine()
        other = self.leave()
        self.step_until(other, backlog_model.ACTIVE)
        asked = self.leave_asked()
        self.wait_for(lambda: [server['status'] for server
                               in self.servers_of(asked)] == ['ACTIVE'],
                      'its server to be there')
        late = self.leave()
        uuids = runs, asked, other, late
        with self.cell_away('cell1'):
            # The one of which nobody knows counts as one that is to come, so
            # there is no room.
            self.step()
            self.pass_time(1000)
            self.step()
            self.assertEqual(
                [(backlog_model.ACTIVE, [backlog_model.SETTLED]),
                 (backlog_model.PLACING, [backlog_model.ASKING]),
                 (backlog_model.ACTIVE, [backlog_model.SETTLED]),
                 (backlog_model.WAITING, [])], self.seen(uuids))
            self.assertEqual('room', self.get(late).waits_for['code'])
            # One that has not seen the hosts before says that it cannot.
            self.engine = self.start_engine()
            self.assertRaises(nova_api.NovaError, self.step)
            self.assertEqual('room_unknown',
                             self.get(late).waits_for['code'])
        self.recover(late)
        self.assertEqual(
            [(backlog_model.ACTIVE, [backlog_model.SETTLED])] * 4,
            self.seen(uuids))
        self.assertEqual(4, len(self.servers()))

    def seen(self, uuids):
        """The state of each, and of its boots."""
        return [(item.state, [boot.state for boot in item.boots])
                for item in map(self.get, uuids)]
