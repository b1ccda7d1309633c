# SPDX-License-Identifier: Apache-2.0
"""Tests of claims after the end of their victims."""

import tempfile
import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.core.eviction import eviction_values
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import handover
from tests import tables
from tests.unit.db import test_decisions


class TestSeveralServers(unittest.TestCase):
    """Two servers of one request, whose victims have ended."""

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        database = test_decisions.make_database(
            f'sqlite:///{directory.name}/test.sqlite')
        tables.make(database)
        self.addCleanup(database.engine.dispose)
        self.decisions = db_decisions.Decisions(database)
        self.claimed = [db_decisions.Decision(
            uuid, f'server of {uuid}', owner='me',
            status=db_decisions.CLAIMED) for uuid in ('d1', 'd2')]
        for decision in self.claimed:
            self.decisions.create_decision(decision)
        self.keeps = True
        self.handover = handover.Handover.__new__(handover.Handover)
        self.handover.claims = mock.Mock()
        self.handover.recovery = mock.Mock()
        self.handover._given_up = lambda uuids: self.given_up
        self.given_up = set()
        self.handover._process = types.SimpleNamespace(
            decisions=self.decisions, owner=types.SimpleNamespace(
                keeps=lambda decisions: self.keeps))

    def settle(self, **values):
        return self.handover.settle(
            self.claimed, eviction_values.Memory({}, 0, **values))

    def found(self):
        return [(each.status, each.owner) for each
                in map(self.decisions.get_decision, ('d1', 'd2'))]

    def test_both_are_closed(self):
        self.assertEqual(0, self.settle())
        self.assertEqual(2 * [(db_decisions.DONE, '')], self.found())

    def test_one_was_deleted(self):
        self.assertEqual(1, self.settle(unwanted={'d1': 'deleted'}))
        self.handover.recovery.roll_back.assert_called_once_with(
            'd1', 'deleted')
        self.assertEqual((db_decisions.DONE, ''), self.found()[1])

    def test_their_backlog_request_was_closed(self):
        """Nova would build the first: the engine has not deleted it yet."""
        self.given_up = {'server of d1'}
        with self.assertRaises(handover.ServersNotWanted):
            self.settle(unwanted={'d1': 'closed'})
        self.assertEqual(2 * [(db_decisions.CLAIMED, 'me')], self.found())

    def test_a_lost_decision_rolls_the_other_back(self):
        """Neither server is built, so the other must not keep its space."""
        self.decisions.update_decision('d2', 'me', db_decisions.ROLLING_BACK,
                                       new_owner='other')
        with self.assertRaises(db_decisions.LostDecision):
            self.settle()
        self.assertEqual([(db_decisions.CLAIMED, 'me'),
                          (db_decisions.ROLLING_BACK, 'other')], self.found())

    def test_the_database_fails_at_the_second(self):
        real = self.decisions.update_decision

        def update(uuid, *args, **values):
            if uuid == 'd2':
                self.keeps = False
                raise db_exc.DBError
            return real(uuid, *args, **values)

        with mock.patch.object(self.decisions, 'update_decision', update), (
                self.assertRaises(db_exc.DBError)):
            self.settle()
        self.assertEqual(2 * [(db_decisions.CLAIMED, 'me')], self.found())
