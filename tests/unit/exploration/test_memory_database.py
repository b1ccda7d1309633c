# SPDX-License-Identifier: Apache-2.0
"""The database of an exploration."""

import tempfile
import time
import unittest
from unittest import mock

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_utils import timeutils
import sqlalchemy as sa

import nova_preempt.conf
from nova_preempt.db import decision_owners
from nova_preempt.db import models
from tests.exploration import memory_database


class TestMemoryDatabase(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        conf = cfg.ConfigOpts()
        nova_preempt.conf.register_opts(conf)
        conf.set_override('connection', f'sqlite:///{directory.name}/db',
                          'preemption_database')
        self.database = memory_database.MemoryDatabase(conf)
        self.addCleanup(self.database.engine.dispose)
        self.database.empty()

    def test_a_failed_transaction_is_rolled_back(self):
        decision_owners.add(self.database, 'first', 60)
        with self.assertRaises(db_exc.DBDuplicateEntry), (
                self.database.writer()) as session:
            session.execute(sa.delete(models.Owner))
            for _ in range(2):
                session.add(models.Owner(
                    name='second', expires_at=timeutils.utcnow()))
                session.flush()
        self.assertEqual({'first': True},
                         decision_owners.get_leases(self.database))
        decision_owners.add(self.database, 'second', 60)
        self.assertEqual({'first': True, 'second': True},
                         decision_owners.get_leases(self.database))

    def test_the_connection_stays_open_for_hours(self):
        with mock.patch('time.time', return_value=time.time() + 36_000):
            self.database.empty()
        self.assertEqual({}, decision_owners.get_leases(self.database))

    def test_a_reader_writes_nothing(self):
        with self.database.reader() as session:
            session.execute(sa.update(models.Leader).values(owner='me'))
        self.assertEqual('', decision_owners.get_leader(self.database))

    def test_empty_leaves_the_first_rows_alone(self):
        decision_owners.add(self.database, 'first', 60)
        decision_owners.replace_leader(self.database, '', 'first')
        self.database.empty()
        self.assertEqual({}, decision_owners.get_leases(self.database))
        self.assertEqual('', decision_owners.get_leader(self.database))
