# SPDX-License-Identifier: Apache-2.0
"""Many reservations are moved on at once, as fast as the database can."""

import collections

import sqlalchemy as sa

from nova_preempt.db import change_log
from nova_preempt.db import models
from nova_preempt.db import reservation_rows as rows
from nova_preempt.db import transaction_retries

# No more than this in one transaction: others wait meanwhile.
_MANY = 500


def get_many(database, uuids):
    """The Reservations of these uuids, as far as there are any."""
    with database.reader() as session:
        return _fetch(session, uuids)


def change_many(database, uuids, decide, now):
    """Change reservations, each by what it is then.

    Nobody else changes a status or a time of them meanwhile.

    :param decide: given a Reservation, returns {column: value} of what
        changes, {} for nothing
    :param now: naive and in UTC
    :returns: [(Reservation as it was, what was changed)]
    """
    uuids = list(uuids)
    changed = []
    for start in range(0, len(uuids), _MANY):
        changed += _change(database, uuids[start:start + _MANY], decide, now)
    return changed


@transaction_retries.retried
def _change(database, uuids, decide, now):
    changed = []
    groups = collections.defaultdict(list)
    with database.writer() as session:
        change_log.raise_generation(session, reservations=uuids)
        for reservation in _fetch(session, uuids):
            values = decide(reservation)
            if values:
                changed.append((reservation, values))
                groups[tuple(sorted(values.items()))].append(reservation.uuid)
        row = models.Reservation
        for values, group in groups.items():
            session.execute(
                sa.update(row).where(row.uuid.in_(group)).values(
                    updated_at=now.replace(microsecond=0), **dict(values)))
    return changed


def _fetch(session, uuids):
    return rows.fetch(session, sa.select(models.Reservation).where(
        models.Reservation.uuid.in_(uuids)))
