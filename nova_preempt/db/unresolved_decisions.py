# SPDX-License-Identifier: Apache-2.0
"""The decisions of which nobody knows yet what became of their servers."""

import dataclasses

import sqlalchemy as sa

from nova_preempt.core import victim_status
from nova_preempt.db import database_clock
from nova_preempt.db import decisions
from nova_preempt.db import models

# So many are looked at in one go.
LIMIT = 1000


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A decision that is closed.

    :ivar in_vain: how many victims have ended if the server was not served
    """

    uuid: str
    server_uuid: str
    status: str
    host: str
    operation: str
    flavor: str
    in_vain: int

    @property
    def is_placed(self):
        """Whether a server was to get the space of those that have gone."""
        return bool(self.server_uuid) and self.status == decisions.DONE


def get_unknown(database):
    """The Unknowns, the oldest first."""
    row = models.Decision
    query = (sa.select(row).where(row.outcome.is_(None))
             .where(row.status.not_in(decisions.OPEN))
             .order_by(row.created_at, row.uuid).limit(LIMIT))
    with database.reader() as session:
        return [_unknown(item) for item in
                session.execute(query).unique().scalars()]


def get_placed(database, within_s):
    """{uuid of a server: its host} of decisions that were closed lately.

    Those of which nobody knows yet whether Nova has the server there.
    """
    row = models.Decision
    query = (sa.select(row.server_uuid, row.host) .where(row.outcome.is_(None))
             .where(row.status == decisions.DONE) .where(row.server_uuid != '')
             .where(row.updated_at >= database_clock.after(-within_s))
             .order_by(row.created_at, row.uuid))
    return dict(map(tuple, database.read(query)))


def set_outcome(database, uuid, outcome):
    """Remember it.

    :returns: False if somebody else was faster
    """
    row = models.Decision
    query = (sa.update(row).where(row.uuid == uuid)
             .where(row.outcome.is_(None)).values(outcome=outcome))
    return database.write(query) == 1


def leave_out(database, uuids):
    """These have none."""
    if not uuids:
        return
    row = models.Decision
    query = (sa.update(row).where(row.uuid.in_(uuids))
             .where(row.outcome.is_(None)).values(outcome=''))
    database.write(query)


def get_ending(database):
    """[(decision uuid, server uuid)] of victims of closed decisions that
    were still on their way out then.
    """
    victim, decision = models.Victim, models.Decision
    query = (sa.select(victim.decision_uuid, victim.server_uuid)
             .join(decision, decision.uuid == victim.decision_uuid)
             .where(victim.status == decisions.ENDING)
             .where(decision.status.not_in(decisions.OPEN)))
    return [tuple(item) for item in database.read(query)]


def _unknown(row):
    return Unknown(
        row.uuid, row.server_uuid, row.status, row.host, row.operation,
        row.record.get('flavor', ''),
        sum(victim.status in victim_status.LOST_IN_VAIN
            for victim in row.victims))
