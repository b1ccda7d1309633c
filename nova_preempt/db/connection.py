# SPDX-License-Identifier: Apache-2.0
"""The database connection and its transactions.

Each writing transaction is short and begins with a write, so that SQLite waits
for its lock instead of failing. The other modules of this package read and
write tables; each of their functions takes the Database.
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

#: Errors of Nova's databases. oslo.db passes on some of SQLAlchemy's errors,
#: such as that of an exhausted pool.
ERRORS = (db_exc.DBError, sa.exc.SQLAlchemyError)


class PoolExhausted(db_exc.DBError):
    """No connection was free in time, for example if the database hangs."""


def check_url(conf):
    """Check that [preemption_database]connection is a usable database URL.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :raises InvalidConfiguration: its text omits the URL and its password
    """
    option = '[preemption_database]connection'
    try:
        url = sa.engine.make_url(conf.preemption_database.connection)
    except sa.exc.ArgumentError:
        raise exceptions.InvalidConfiguration(
            f'{option} must be the URL of a database, such as '
            'mysql+pymysql://USER:PASSWORD@HOST/NAME') from None
    try:
        url.get_dialect().import_dbapi()
    except (sa.exc.NoSuchModuleError, ImportError) as exc:
        raise exceptions.InvalidConfiguration(
            f'{option} begins with {url.drivername}://, which cannot be '
            f'loaded: {exc}') from None


@enginefacade.transaction_context_provider
class _Context:
    """The context to which enginefacade attaches a session."""


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
        """Return whether the database exists.

        False for a missing SQLite file, which opening would create.
        """
        path = sa.engine.make_url(self._conf.connection).database
        return (not self.is_sqlite or not path or path.startswith(
            ('file:', ':memory:')) or os.path.exists(path))

    @property
    def engine(self):
        """The SQLAlchemy engine."""
        return self._facade.writer.get_engine()

    def reader(self):
        """Return a context manager: the session of a read transaction."""
        return _named(self._facade.reader.using(_Context()))

    def writer(self):
        """Return a context manager: the session of a write transaction."""
        return _named(self._facade.writer.using(_Context()))

    def read(self, query, **values):
        """Return the rows of a query with these values of its parameters."""
        with self.reader() as session:
            return session.execute(query, values).all()

    def scalars(self, query, **values):
        """Return the first column of the rows of a query."""
        with self.reader() as session:
            return session.scalars(query, values).all()

    def write(self, statement, **values):
        """Execute a write in its own transaction; return the row count."""
        with self.writer() as session:
            return session.connection().execute(statement, values).rowcount


@contextlib.contextmanager
def _named(transaction):
    """Wrap a transaction so that all its failures are DBErrors."""
    try:
        with transaction as session:
            yield session
    except sa.exc.TimeoutError as exc:
        raise PoolExhausted(exc) from exc
