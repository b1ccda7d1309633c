# SPDX-License-Identifier: Apache-2.0
"""Reads, inserts and advances reservations with their hosts."""

import collections

import sqlalchemy as sa

from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

# The most reservations changed in one transaction: other writers wait for it.
_MANY = 500
#: The query of all reservations. SQLAlchemy makes many tuples faster than
#: objects, and takes longer to build a query than to execute it.
ALL = sa.select(models.Reservation.__table__)


def insert(session, reservation):
    """Insert a new Reservation and its hosts."""
    session.execute(sa.insert(models.Reservation).values(
        **row_schemas.values(reservation, 'hosts')))
    session.execute(sa.insert(models.ReservationHost), [
        {'reservation_uuid': reservation.uuid, **row_schemas.values(host)}
        for host in reservation.hosts])


def fetch(session, query):
    """Return the Reservations of a query, in its order, with their hosts.

    :param query: ALL, with conditions
    """
    found = session.execute(query).all()
    hosts = {row.uuid: [] for row in found}
    host = models.ReservationHost
    for uuids in row_schemas.batches(hosts):
        for uuid, *values in session.execute(
                row_schemas.select(host, reservation_model.Assignment,
                                   'reservation_uuid')
                .where(host.reservation_uuid.in_(uuids)) .order_by(host.host)):
            hosts[uuid].append(reservation_model.Assignment(*values))
    return [row_schemas.load(reservation_model.Reservation, row,
                             hosts=tuple(hosts[row.uuid])) for row in found]


def fetch_open(session, uuids=None, project_id=None):
    """Return the open Reservations, unordered.

    :param uuids: only these; None for all
    :param project_id: only of this project; None for all
    """
    row = models.Reservation
    query = ALL.where(row.status.in_(reservation_model.OPEN))
    if uuids is not None:
        query = query.where(row.uuid.in_(uuids))
    if project_id is not None:
        query = query.where(row.project_id == project_id)
    return fetch(session, query)


def fetch_many(session, uuids):
    """Return the Reservations of these uuids, as far as they exist."""
    return fetch(session, ALL.where(
        models.Reservation.uuid.in_(uuids)))


def get_many(database, uuids):
    """Return the result of fetch_many() in its own transaction."""
    with database.reader() as session:
        return fetch_many(session, uuids)


def change_many(database, uuids, decide, now):
    """Change reservations, each by its current state.

    The lock on the calendar excludes concurrent changes of status and times.

    :param decide: called with a Reservation, returns {column: value} of
        changes, {} for none
    :param now: naive and in UTC
    :returns: [(Reservation before, {column: value})] of changed reservations
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
        calendar_changes.raise_generation(session, reservations=uuids)
        for reservation in fetch_many(session, uuids):
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
