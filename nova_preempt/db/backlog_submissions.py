# SPDX-License-Identifier: Apache-2.0
"""Records pending submissions, whose trust no request refers to yet.

A submission that is still here long after it began belongs to a process that
died; its trust is orphaned.
"""

import sqlalchemy as sa

from nova_preempt.db import backlog_models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries
from nova_preempt.db.row_schemas import PendingSubmission

_BEGUN = backlog_models.BacklogBegun


@transaction_retries.retried
def begin(database, begun):
    """Record a submission before its trust is created."""
    with database.writer() as session:
        _insert(session, begun)


def restore(session, begun):
    """Record a submission in this transaction, unless it is recorded."""
    if not session.execute(sa.select(_BEGUN.uuid).where(
            _BEGUN.uuid == begun.uuid)).first():
        _insert(session, begun)


def _insert(session, begun):
    session.execute(sa.insert(_BEGUN).values(
        **row_schemas.values(begun), given_up=False))


def older(database, before, limit=None):
    """Return [PendingSubmission] from before a time, oldest first."""
    with database.reader() as session:
        return _older(session, before, limit)


def _older(session, before, limit=None):
    query = (sa.select(*row_schemas.columns(_BEGUN, PendingSubmission))
             .where(_BEGUN.begun_at < before)
             .order_by(_BEGUN.begun_at, _BEGUN.uuid).limit(limit))
    return [PendingSubmission(*row) for row in session.execute(query)]


def count(database, project_id):
    """Return the number of pending submissions of a project."""
    number, = database.scalars(
        sa.select(sa.func.count()).select_from(_BEGUN)
        .where(_BEGUN.project_id == project_id))
    return number


@transaction_retries.retried
def give_up(database, before):
    """Give up submissions from before a time, whose trusts are deleted.

    They can no longer be completed.

    :returns: [PendingSubmission], oldest first
    """
    with database.writer() as session:
        session.execute(sa.update(_BEGUN).where(
            _BEGUN.begun_at < before).values(given_up=True))
        return _older(session, before)


@transaction_retries.retried
def forget(database, uuid):
    """Delete a submission without a trust; idempotent."""
    database.write(sa.delete(_BEGUN).where(_BEGUN.uuid == uuid))


def complete(session, uuid):
    """Complete a submission; False if it was given up."""
    return session.execute(sa.delete(_BEGUN).where(
        _BEGUN.uuid == uuid, _BEGUN.given_up.is_(False))).rowcount == 1
