# SPDX-License-Identifier: Apache-2.0
"""Reads and resolves closed decisions with an unknown outcome."""

import dataclasses

import sqlalchemy as sa

from nova_preempt.core import eviction_status
from nova_preempt.db import database_clock
from nova_preempt.db import decisions
from nova_preempt.db import models

_ROW = models.Decision

# Decisions that are read at once.
LIMIT = 1000


@dataclasses.dataclass(frozen=True)
class PendingOutcome:
    """A closed decision whose outcome is unknown.

    :ivar victims_in_vain: number of victims that were evicted in vain if the
        server was not placed
    """

    uuid: str
    server_uuid: str
    status: str
    host: str
    operation: str
    flavor: str
    victims_in_vain: int

    @property
    def is_placed(self):
        """Return whether the decision has a server to place."""
        return bool(self.server_uuid) and self.status == decisions.DONE


def get_unresolved(database):
    """Return closed decisions with an unknown outcome, oldest first."""
    query = (sa.select(_ROW).where(_ROW.outcome.is_(None))
             .where(_ROW.status.not_in(decisions.OPEN))
             .order_by(_ROW.created_at, _ROW.uuid).limit(LIMIT))
    with database.reader() as session:
        return [PendingOutcome(
            row.uuid, row.server_uuid, row.status, row.host, row.operation,
            row.record.get('flavor', ''),
            sum(victim.status in eviction_status.LOST_IN_VAIN
                for victim in row.victims))
            for row in session.execute(query).unique().scalars()]


def get_placed(database, within_s):
    """Return {server uuid: host} of decisions that were closed lately.

    Nova may not show these servers on their hosts yet.
    """
    return dict(map(tuple, database.read(
        sa.select(_ROW.server_uuid, _ROW.host).where(
            _ROW.outcome.is_(None), _ROW.status == decisions.DONE,
            _ROW.server_uuid != '', _ROW.updated_at
            >= database_clock.SecondsFromNow(-within_s))
        .order_by(_ROW.created_at, _ROW.uuid))))


def set_outcome(database, uuid, outcome):
    """Set the outcome of a decision.

    :returns: False if it has an outcome already
    """
    return bool(database.write(sa.update(_ROW).where(
        _ROW.uuid == uuid, _ROW.outcome.is_(None)).values(outcome=outcome)))


def set_no_outcome(database, uuids):
    """Mark decisions as having no outcome."""
    if uuids:
        database.write(sa.update(_ROW).where(
            _ROW.uuid.in_(uuids), _ROW.outcome.is_(None)).values(outcome=''))


def get_ending(database):
    """Return [(decision uuid, server uuid)] of ENDING victims.

    Their decisions were closed before the victims were gone.
    """
    return [tuple(item) for item in database.read(decisions.ending_late(
        models.Victim.decision_uuid, models.Victim.server_uuid))]
