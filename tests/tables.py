# SPDX-License-Identifier: Apache-2.0
"""The tables of a new database, for which the migration runs once a process.

For tests, of which many have a database of their own.
"""

import functools
import sqlite3
import uuid

import sqlalchemy as sa

from nova_preempt.db import schema_upgrade

MARIADB = 'mysql+pymysql://root@127.0.0.1:3306'


def make_mariadb(case):
    """Return the URL of an empty database, for as long as a test runs."""
    server = sa.create_engine(MARIADB)
    case.addCleanup(server.dispose)
    name = f'np_{uuid.uuid4().hex[:12]}'

    def execute(statement):
        with server.begin() as connection:
            connection.execute(sa.text(statement))

    try:
        execute(f'CREATE DATABASE {name} CHARACTER SET utf8mb4')
    except sa.exc.OperationalError as exc:
        case.skipTest(f'no MariaDB to try it with: {exc}')
    case.addCleanup(execute, f'DROP DATABASE {name}')
    return f'{MARIADB}/{name}'


def make(database):
    """Create the tables like schema_upgrade.sync()."""
    if not database.is_sqlite:
        schema_upgrade.sync(database)
        return
    with database.engine.connect() as connection:
        tables = connection.connection.driver_connection
        if not _has_tables(_template()):
            schema_upgrade.sync(database)
            tables.backup(_template())
        else:
            _template().backup(tables)


@functools.cache
def _template():
    return sqlite3.connect(':memory:', check_same_thread=False)


def _has_tables(connection):
    return connection.execute('SELECT 1 FROM sqlite_master').fetchone()
