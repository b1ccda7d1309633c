# SPDX-License-Identifier: Apache-2.0
"""The database: its connection, and the transactions on it.

Each write is one short transaction that begins with a write, so that SQLite
waits for its lock instead of refusing. What a room keeps is read and written
by the module beside this one that is called after it, each of whose functions
is given the Database.
"""

import contextlib
import os

from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

from nova_preempt import exceptions

_FACADE_OPTIONS = (
    'connection', 'connection_debug', 'connection_parameters',
    'connection_recycle_time', 'connection_trace', 'max_overflow',
    'max_pool_size', 'max_retries', 'mysql_sql_mode', 'mysql_wsrep_sync_wait',
    'pool_timeout', 'retry_interval', 'slave_connection', 'sqlite_synchronous')

#: What Nova raises where one of its databases fails. oslo.db passes some of
#: SQLAlchemy's errors on as they are: that of an exhausted pool, for one.
ERRORS = (db_exc.DBError, sa.exc.SQLAlchemyError)


class PoolExhausted(db_exc.DBError):
    """No connection was free in time, as where the database hangs."""


def check_url(conf):
    """Fail where [preemption_database]connection cannot be a database.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :raises InvalidConfiguration: without the URL, which has a password
    """
    option = '[preemption_database]connection'
    try:
        url = sa.engine.make_url(conf.preemption_database.connection)
    except sa.exc.ArgumentError:
        raise exceptions.InvalidConfiguration(
            f'{option} is no URL of a database, such as '
            'mysql+pymysql://USER:PASSWORD@HOST/NAME') from None
    try:
        url.get_dialect().import_dbapi()
    except (sa.exc.NoSuchModuleError, ImportError) as exc:
        raise exceptions.InvalidConfiguration(
            f'{option} begins with {url.drivername}://, which cannot be '
            f'loaded: {exc}') from None


@enginefacade.transaction_context_provider
class _Context:
    """What enginefacade hangs a session on."""


def _hide_parameters(engine):
    """Keep values out of SQLAlchemy's errors: requests hold passwords."""
    engine.hide_parameters = True


class Database:
    """The database behind [preemption_database].

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    """

    def __init__(self, conf):
        self._conf = conf.preemption_database
        self._facade = enginefacade.transaction_context()
        self._facade.append_on_engine_create(_hide_parameters)
        options = dict(self._conf.items())
        self._facade.configure(**{
            key: value for key, value in options.items()
            if key in _FACADE_OPTIONS and value is not None})

    @property
    def is_sqlite(self):
        return self._conf.connection.startswith('sqlite')

    @property
    def is_there(self):
        """False where it is a file that nobody has made yet.

        To open one makes it.
        """
        path = sa.engine.make_url(self._conf.connection).database
        return (not self.is_sqlite or not path or path.startswith(
            ('file:', ':memory:')) or os.path.exists(path))

    @property
    def engine(self):
        """SQLAlchemy's."""
        return self._facade.writer.get_engine()

    def reader(self):
        """A transaction that reads, for a with statement: its session."""
        return _named(self._facade.reader.using(_Context()))

    def writer(self):
        """A transaction that writes, for a with statement: its session."""
        return _named(self._facade.writer.using(_Context()))

    def read(self, query):
        """The rows of a query, in a transaction of their own."""
        with self.reader() as session:
            return session.execute(query).all()

    def scalars(self, query):
        """The first values of the rows of a query."""
        with self.reader() as session:
            return session.scalars(query).all()

    def write(self, statement):
        """Write in a transaction of its own; how many rows that concerns."""
        with self.writer() as session:
            return session.execute(statement).rowcount


@contextlib.contextmanager
def _named(transaction):
    """The same transaction, all of whose failures are DBErrors."""
    try:
        with transaction as session:
            yield session
    except sa.exc.TimeoutError as exc:
        raise PoolExhausted(exc) from exc
