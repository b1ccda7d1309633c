# SPDX-License-Identifier: Apache-2.0
"""Tests of exceptions of a database that fails."""

import tempfile
import unittest

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_preempt.db import connection
from tests.unit.db import test_decisions


class TestExhaustedPool(unittest.TestCase):
    """All connections are in use, as while the database hangs."""

    def test_an_exhausted_pool_is_a_database_error(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        db = test_decisions.make_database(
            f'sqlite:///{directory.name}/test.sqlite')
        # oslo.db gives SQLite none that has an end.
        db.engine.pool = sa.pool.QueuePool(
            db.engine.pool._creator, pool_size=1, max_overflow=0, timeout=0,
            dialect=db.engine.dialect)
        self.addCleanup(db.engine.dispose)
        with db.reader() as session:
            session.execute(sa.text('SELECT 1'))
            for transaction in db.reader, db.writer:
                with self.assertRaises(connection.PoolExhausted) as caught, (
                        transaction()) as other:
                    other.execute(sa.text('SELECT 1'))
                self.assertIsInstance(caught.exception, db_exc.DBError)
        with db.writer() as session:
            session.execute(sa.text('SELECT 1'))


if __name__ == '__main__':
    unittest.main()
