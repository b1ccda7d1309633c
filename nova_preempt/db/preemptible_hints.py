# SPDX-License-Identifier: Apache-2.0
"""Servers that are preemptible by a scheduler hint.

Nova keeps hints with the request for a server, in another database than its
records of servers, of which all are read again and again: so they are
remembered here.
"""

from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.db import models


def add(database, uuids):
    """Remember that these servers are preemptible by a hint."""
    known = get(database, uuids)
    now = timeutils.utcnow()
    with database.writer() as session:
        session.add_all(models.PreemptibleServer(uuid=uuid, created_at=now)
                        for uuid in uuids if uuid not in known)


def remove(database, uuids):
    """Forget these."""
    database.write(sa.delete(models.PreemptibleServer).where(
        models.PreemptibleServer.uuid.in_(list(uuids))))


def get(database, uuids=None) -> set[str]:
    """The set of uuids that are, among the given ones if any."""
    query = sa.select(models.PreemptibleServer.uuid)
    if uuids is not None:
        query = query.where(models.PreemptibleServer.uuid.in_(list(uuids)))
    return set(database.scalars(query))
