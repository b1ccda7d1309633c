# SPDX-License-Identifier: Apache-2.0
"""Stores quota claims of schedulers that Nova's records do not show yet.

A scheduler first writes its claim and then counts the claims that precede it.
A lock row serializes claims across processes.
"""

import datetime

from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.core import quotas as core
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

_LOCK = 'quotas'

# Claims are released once Nova's records show their servers. A claim that is
# not released expires after a day; no request takes as long.
LIFETIME_S = 86_400


class QuotaClaims:
    """Store of the claims of all schedulers.

    :param database: a nova_preempt.db.Database
    """

    def __init__(self, database):
        self._db = database

    @transaction_retries.retried
    def claim(self, project_id, amounts):
        """Claim quota for servers, replacing their earlier claims.

        :param amounts: {server uuid: object with preemptible, vcpus and
            memory_mb}
        :returns: (ids of the new claims, core Claims of the project that
            precede them)
        """
        now = timeutils.utcnow()
        model = models.QuotaClaim
        claims = [model(project_id=project_id, server_uuid=uuid,
                        preemptible=item.preemptible, vcpus=item.vcpus,
                        memory_mb=item.memory_mb, expires_at=now
                        + datetime.timedelta(seconds=LIFETIME_S))
                  for uuid, item in sorted(amounts.items())]
        with self._db.writer() as session:
            row_schemas.lock(session, models.Lock, _LOCK)
            session.execute(sa.delete(model).where(
                (model.expires_at < now) | (model.project_id == project_id)
                & model.server_uuid.in_(list(amounts))))
            others = session.execute(
                row_schemas.select(model, core.QuotaClaim)
                .where(model.project_id == project_id)
                .order_by(model.id)).all()
            session.add_all(claims)
            session.flush()
            return ([claim.id for claim in claims],
                    [core.QuotaClaim(*row) for row in others])

    @transaction_retries.retried
    def release(self, ids):
        """Delete claims."""
        if not ids:
            return
        with self._db.writer() as session:
            # The same lock order as in claim().
            row_schemas.lock(session, models.Lock, _LOCK)
            session.execute(sa.delete(models.QuotaClaim).where(
                models.QuotaClaim.id.in_(list(ids))))
