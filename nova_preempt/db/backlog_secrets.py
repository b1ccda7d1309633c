# SPDX-License-Identifier: Apache-2.0
"""The encrypted secrets of requests that wait."""

import sqlalchemy as sa

from nova_preempt.db import backlog_models
from nova_preempt.db import transaction_retries

_REQUEST = backlog_models.BacklogRequest

# A row has about a hundred kilobytes of them at most.
_AT_ONCE = 50


def get(database, uuid):
    """The secrets of a request, None if it has none."""
    return next(iter(database.scalars(sa.select(_REQUEST.sealed).where(
        _REQUEST.uuid == uuid))), None)


def each(database):
    """Go through (uuid, secrets) of all requests that have some."""
    query = sa.select(_REQUEST.uuid, _REQUEST.sealed).where(
        _REQUEST.sealed.is_not(None)).order_by(_REQUEST.uuid).limit(_AT_ONCE)
    after = ''
    while rows := database.read(query.where(_REQUEST.uuid > after)):
        yield from map(tuple, rows)
        after = rows[-1].uuid


@transaction_retries.retried
def replace(database, uuid, old, new):
    """Write secrets down that were encrypted anew, unless they changed.

    So those of a request that was closed meanwhile stay deleted.
    """
    database.write(sa.update(_REQUEST).where(
        _REQUEST.uuid == uuid, _REQUEST.sealed == old).values(sealed=new))
