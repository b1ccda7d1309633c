# SPDX-License-Identifier: Apache-2.0
"""The database of an exploration, with the real tables, on one connection.

Opening a session, a connection and a transaction for each access costs more
than most of its statements. No task waits within a transaction, so all of them
use the same session in turn.
"""

import collections
import contextlib
import re
from unittest import mock

import sqlalchemy as sa

from nova_preempt.db import connection
from tests import tables

#: Nobody else opens the file, and it is not kept.
_PRAGMAS = ('synchronous=OFF', 'journal_mode=MEMORY',
            'locking_mode=EXCLUSIVE')

#: Most writes renew leases. Of decisions that changes what no invariant sees.
_RENEWAL = re.compile('UPDATE decisions SET updated_at=[^,]* WHERE ')

_TABLE = re.compile(r'(?:UPDATE|INSERT INTO|DELETE FROM) (\w+)')


class MemoryDatabase(connection.Database):
    """A Database for tasks that take turns.

    :param conf: a ConfigOpts whose [preemption_database]connection is a
        SQLite file
    :ivar writes: {table: how many statements wrote it}
    """

    def __init__(self, conf):
        self.writes = collections.Counter()
        # The pool would close the connection after an hour.
        conf.set_override('connection_recycle_time', -1,
                          'preemption_database')
        with mock.patch.object(sa.pool, 'NullPool', sa.pool.StaticPool):
            super().__init__(conf)
            # A connection only knows the listeners of before it was opened.
            sa.event.listen(self.engine, 'after_cursor_execute', self._count)
            self._session = self._facade.writer.get_sessionmaker()(
                bind=self.engine.connect())
        self._driver = self._session.get_bind(
            ).connection.driver_connection
        for each in _PRAGMAS:
            self._driver.execute(f'PRAGMA {each}')

    def _count(self, connection, cursor, statement, parameters, context,
               executemany):
        if (context.isinsert or context.isupdate or context.isdelete) and (
                not _RENEWAL.match(statement)):
            self.writes[_TABLE.match(statement)[1]] += 1

    def empty(self):
        """Empty all tables."""
        self._session.close()
        tables.make(self)
        # The session is within a transaction from now on, as far as it knows.
        self._session.connection()
        self._driver.rollback()

    def reader(self):
        """Return a context manager: the session of a read transaction."""
        return self._transaction('ROLLBACK')

    def writer(self):
        """Return a context manager: the session of a write transaction."""
        return self._transaction('COMMIT')

    @contextlib.contextmanager
    def _transaction(self, end):
        self._driver.execute('BEGIN')
        try:
            yield self._session
            self._session.flush()
            self._driver.execute(end)
        except BaseException:
            self._session.close()
            self._session.connection()
            self._driver.rollback()
            raise
        self._session.expunge_all()
