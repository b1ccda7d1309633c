# SPDX-License-Identifier: Apache-2.0
"""Creates the tables of the models, until the first release freezes them.

MariaDB commits each DDL statement, so a run that was killed may have created
some tables: each table is created unless it exists.

Revision ID: initial
Revises:
"""

from alembic import op
from oslo_utils import uuidutils
import sqlalchemy as sa
from sqlalchemy import schema

from nova_preempt.db import backlog_models  # noqa: F401 (its tables)
from nova_preempt.db import models

revision = 'initial'
down_revision = None
branch_labels = None
depends_on = None

LOCKS = ('budgets', 'quotas', 'promises')


def upgrade():
    connection = op.get_bind()
    inspector = sa.inspect(connection)
    there = set(inspector.get_table_names())
    for table in models.Base.metadata.sorted_tables:
        indexes = set()
        if table.name in there:
            indexes = {index['name']
                       for index in inspector.get_indexes(table.name)}
        else:
            connection.execute(schema.CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: index.name):
            if index.name not in indexes:
                connection.execute(schema.CreateIndex(index))
    _insert_rows(connection)


def _insert_rows(connection):
    """Insert rows of locks and counters; alembic commits them."""
    _insert(connection, 'locks', [{'name': name} for name in LOCKS])
    _insert(connection, 'leaders', [{'name': 'engine', 'owner': ''}])
    _insert(connection, 'counters', [{'name': 'calendar', 'value': 0}])
    # The first change of the log, from which readers continue.
    _insert(connection, 'calendar_changes', [{
        'generation': 0, 'reservations': [], 'hosts': [],
        'stamp': uuidutils.generate_uuid(dashed=False)}])


def _insert(connection, name, rows):
    table = models.Base.metadata.tables[name]
    if connection.execute(sa.select(table).limit(1)).first() is None:
        connection.execute(sa.insert(table), rows)
