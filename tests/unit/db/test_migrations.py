# SPDX-License-Identifier: Apache-2.0
"""The tables are made in steps of which each may be the last."""

import logging
import os
import tempfile
import unittest

from alembic import autogenerate
from alembic import migration
from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_preempt.db import backlog_models  # noqa: F401 (its tables)
from nova_preempt.db import models
from nova_preempt.db import schema_upgrade
from tests import tables
from tests.unit.db import test_decisions


class Killed(Exception):
    """The process ended after a statement."""


def is_other_type(_context, _inspected, _column, found, wanted):
    """Return None to let alembic tell DOUBLE from FLOAT(53)."""
    both = isinstance(found, sa.Double) and isinstance(wanted, sa.Float)
    return False if both and wanted.precision == 53 else None


class TestSQLite(unittest.TestCase):

    # Whether a definition is taken back with its transaction.
    rolls_back = True

    def setUp(self):
        super().setUp()
        # oslo.db tells of each that is killed.
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.db = test_decisions.make_database(self.make_url())
        self.addCleanup(self.db.engine.dispose)

    def make_url(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return f'sqlite:///{directory.name}/test.sqlite'

    def kill(self, statement, count=1):
        """Kill sync() after it has executed some statements.

        :returns: whether it was, and so did not end
        """
        left = [count]

        def after(_connection, _cursor, text, *_rest):
            left[0] -= text.strip().startswith(statement)
            if not left[0]:
                raise Killed('killed')

        sa.event.listen(self.db.engine, 'after_cursor_execute', after)
        try:
            schema_upgrade.sync(self.db)
        except (Killed, db_exc.DBError):
            if left[0] > 0:
                raise
        finally:
            sa.event.remove(self.db.engine, 'after_cursor_execute', after)
        return left[0] <= 0

    def assert_complete(self):
        with self.db.engine.connect() as connection:
            context = migration.MigrationContext.configure(connection, opts={
                'compare_type': is_other_type,
                'compare_server_default': True})
            self.assertEqual([], autogenerate.compare_metadata(
                context, models.Base.metadata))
            for table, rows in (('locks', 3), ('leaders', 1),
                                ('counters', 1), ('calendar_changes', 1)):
                self.assertEqual(rows, connection.execute(sa.text(
                    f'SELECT count(*) FROM {table}')).scalar(), table)
        schema_upgrade.check(self.db)

    def test_tables_agree_with_the_models(self):
        schema_upgrade.sync(self.db)
        self.assert_complete()
        schema_upgrade.sync(self.db)
        self.assert_complete()

    def test_killed_after_each_definition(self):
        tables = models.Base.metadata.tables.values()
        # With the one of alembic.
        definitions = 1 + len(tables) + sum(
            len(item.indexes) for item in tables)
        for number in range(definitions):
            # Each run goes on where the one before it was killed.
            self.assertTrue(self.kill(
                'CREATE', number + 1 if self.rolls_back else 1))
        schema_upgrade.sync(self.db)
        self.assert_complete()

    def test_killed_as_rows_are_written(self):
        for table in ('locks', 'leaders', 'counters', 'calendar_changes',
                      'alembic_version'):
            self.assertTrue(self.kill(f'INSERT INTO {table} '))
        schema_upgrade.sync(self.db)
        self.assert_complete()

    def test_revisions_before_the_first_release(self):
        with self.assertRaisesRegex(
                schema_upgrade.WrongTables, 'has no tables'):
            schema_upgrade.check(self.db)
        schema_upgrade.sync(self.db)
        for revision in ('0001', '0017'):
            with self.db.engine.begin() as connection:
                connection.execute(sa.text(
                    'UPDATE alembic_version SET version_num = :revision'),
                    {'revision': revision})
            for act in (schema_upgrade.sync, schema_upgrade.check):
                with self.assertRaisesRegex(
                        schema_upgrade.WrongTables,
                        f'is at revision {revision}, '
                        'which this version does not know'):
                    act(self.db)


class TestMariaDB(TestSQLite):

    rolls_back = False

    def make_url(self):
        return tables.make_mariadb(self)


class Server(TestSQLite):
    """Runs on an empty database of OS_TEST_DATABASES."""

    url = None

    def make_url(self):
        return self.url

    def tearDown(self):
        with self.db.engine.begin() as connection:
            models.Base.metadata.drop_all(connection)
            connection.execute(sa.text(
                'DROP TABLE IF EXISTS alembic_version'))
        super().tearDown()


def load_tests(loader, tests, pattern):
    found = unittest.TestSuite(
        loader.loadTestsFromTestCase(case) for case in (TestSQLite,
                                                        TestMariaDB))
    for number, url in enumerate(
            os.environ.get('OS_TEST_DATABASES', '').split()):
        case = type(f'TestServer{number}', (Server,), {
            'url': url, 'rolls_back': url.startswith('postgresql')})
        found.addTests(loader.loadTestsFromTestCase(case))
    return found


if __name__ == '__main__':
    unittest.main()
