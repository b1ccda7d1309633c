# SPDX-License-Identifier: Apache-2.0
"""Stores which servers are preemptible by a scheduler hint.

Nova keeps hints with the request for a server, in another database than its
records of servers, which are read often.
"""

from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.db import models

_UUIDS = sa.select(models.PreemptibleHint.uuid)
_AMONG = _UUIDS.where(models.PreemptibleHint.uuid.in_(
    sa.bindparam('uuids', expanding=True)))


def add(database, uuids):
    """Record that these servers are preemptible by a hint."""
    known = get(database, uuids)
    now = timeutils.utcnow()
    with database.writer() as session:
        session.add_all(models.PreemptibleHint(uuid=uuid, created_at=now)
                        for uuid in uuids if uuid not in known)


def remove(database, uuids):
    """Delete the records of these servers."""
    database.write(sa.delete(models.PreemptibleHint).where(
        models.PreemptibleHint.uuid.in_(list(uuids))))


def get(database, uuids=None) -> set[str]:
    """Return the servers preemptible by a hint, among uuids if given."""
    return set(database.scalars(_UUIDS) if uuids is None else
               database.scalars(_AMONG, uuids=list(uuids)))
