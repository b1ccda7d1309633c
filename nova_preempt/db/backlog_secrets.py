# SPDX-License-Identifier: Apache-2.0
"""Reads and replaces encrypted secrets of waiting requests."""

import sqlalchemy as sa

from nova_preempt.db import backlog_models
from nova_preempt.db import transaction_retries

_REQUEST = backlog_models.BacklogRequest

# Each row has at most about 100 kB of secrets.
_AT_ONCE = 50


def get(database, uuid):
    """Return the secrets of a request, None if it has none."""
    return next(iter(database.scalars(sa.select(_REQUEST.sealed).where(
        _REQUEST.uuid == uuid))), None)


def each(database):
    """Iterate over (uuid, secrets) of all requests with secrets."""
    query = sa.select(_REQUEST.uuid, _REQUEST.sealed).where(
        _REQUEST.sealed.is_not(None)).order_by(_REQUEST.uuid).limit(_AT_ONCE)
    after = ''
    while rows := database.read(query.where(_REQUEST.uuid > after)):
        yield from map(tuple, rows)
        after = rows[-1].uuid


@transaction_retries.retried
def replace(database, uuid, old, new):
    """Replace secrets by re-encrypted secrets, unless they have changed.

    Secrets of a request that was closed meanwhile remain deleted.
    """
    database.write(sa.update(_REQUEST).where(
        _REQUEST.uuid == uuid, _REQUEST.sealed == old).values(sealed=new))
