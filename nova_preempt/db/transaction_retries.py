# SPDX-License-Identifier: Apache-2.0
"""Decorators that retry failed transactions."""

from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from sqlalchemy import exc as sqla_exc


def _is_locked(exc):
    # oslo.db translates the error only where it recognizes it.
    return (isinstance(exc, (db_exc.DBError, sqla_exc.OperationalError))
            and 'database is locked' in str(exc))


def _is_locked_or_duplicate(exc):
    return isinstance(exc, db_exc.DBDuplicateEntry) or _is_locked(exc)


# A database cluster may detect conflicting locks only at the commit, and
# SQLite, which is not fair, may time out a waiting writer. A lost connection
# must not interrupt a decision half-way: the transaction may have committed,
# so retried functions must be idempotent.
retried = oslo_db_api.wrap_db_retry(
    max_retries=5, retry_on_deadlock=True, retry_on_disconnect=True,
    exception_checker=_is_locked)

# Also retries concurrent inserts of the same row, which conflict only once.
retried_upsert = oslo_db_api.wrap_db_retry(
    max_retries=5, retry_on_deadlock=True, retry_on_disconnect=True,
    exception_checker=_is_locked_or_duplicate)
