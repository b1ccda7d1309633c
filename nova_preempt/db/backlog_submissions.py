# SPDX-License-Identifier: Apache-2.0
"""Requests that are being taken: a trust is made, and is not kept yet.

What is left of one here long after it was begun tells that who took it died.
"""

import sqlalchemy as sa

from nova_preempt.db import backlog_models
from nova_preempt.db import rows
from nova_preempt.db import transaction_retries
from nova_preempt.db.rows import Begun

_BEGUN = backlog_models.BacklogBegun


@transaction_retries.retried
def begin(database, begun):
    """Write down that a trust will be made for a request, before it is."""
    with database.writer() as session:
        _insert(session, begun)


def begin_again(session, begun):
    """Write the same down in this transaction, if it is not there."""
    if not session.execute(sa.select(_BEGUN.uuid).where(
            _BEGUN.uuid == begun.uuid)).first():
        _insert(session, begun)


def _insert(session, begun):
    session.execute(sa.insert(_BEGUN).values(
        **rows.values(begun), given_up=False))


def older(database, before, limit=None):
    """[Begun] from before a time, the oldest first."""
    with database.reader() as session:
        return _older(session, before, limit)


def _older(session, before, limit=None):
    query = (sa.select(*rows.columns(_BEGUN, Begun))
             .where(_BEGUN.begun_at < before)
             .order_by(_BEGUN.begun_at, _BEGUN.uuid).limit(limit))
    return [Begun(*row) for row in session.execute(query)]


def count(database, project_id):
    """How many there are of a project."""
    number, = database.scalars(
        sa.select(sa.func.count()).select_from(_BEGUN)
        .where(_BEGUN.project_id == project_id))
    return number


@transaction_retries.retried
def give_up(database, before):
    """Let nobody end those from before a time: their trusts are deleted.

    :returns: [Begun] of them, the oldest first
    """
    with database.writer() as session:
        session.execute(sa.update(_BEGUN).where(
            _BEGUN.begun_at < before).values(given_up=True))
        return _older(session, before)


@transaction_retries.retried
def forget(database, uuid):
    """Nothing is left of it. Fine if it is gone."""
    database.write(sa.delete(_BEGUN).where(_BEGUN.uuid == uuid))


def end(session, uuid):
    """Its trust is kept, in this transaction; False if it was given up."""
    return session.execute(sa.delete(_BEGUN).where(
        _BEGUN.uuid == uuid, _BEGUN.given_up.is_(False))).rowcount == 1
