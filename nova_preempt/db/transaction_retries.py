# SPDX-License-Identifier: Apache-2.0
"""Transactions that are tried again."""

from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from sqlalchemy import exc as sqla_exc


def _is_locked(exc):
    # As oslo.db has it where it says more, and as it is where it does not.
    return (isinstance(exc, (db_exc.DBError, sqla_exc.OperationalError))
            and 'database is locked' in str(exc))


def _is_locked_or_duplicate(exc):
    return isinstance(exc, db_exc.DBDuplicateEntry) or _is_locked(exc)


# For a cluster of databases may find out at the commit that two of its
# members have given the same lock away, and SQLite, which is not fair, may
# let somebody wait for its lock in vain. And a connection that is lost is no
# reason to leave half-way what a decision has begun: one that was lost at the
# commit may have committed, so whoever writes has to do with being asked
# twice.
retried = oslo_db_api.wrap_db_retry(
    max_retries=5, retry_on_deadlock=True, retry_on_disconnect=True,
    exception_checker=_is_locked)

# Also where two may write the first row of something: that happens once only.
retried_upsert = oslo_db_api.wrap_db_retry(
    max_retries=5, retry_on_deadlock=True, retry_on_disconnect=True,
    exception_checker=_is_locked_or_duplicate)
