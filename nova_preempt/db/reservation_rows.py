# SPDX-License-Identifier: Apache-2.0
"""Reservations and their hosts, and their rows in the database."""

import sqlalchemy as sa

from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import models
from nova_preempt.db import rows


def insert(session, reservation):
    """Write a new Reservation and its hosts."""
    session.execute(sa.insert(models.Reservation).values(
        **rows.values(reservation, 'hosts')))
    session.execute(sa.insert(models.ReservationHost), [
        {'reservation_uuid': reservation.uuid, **rows.values(host)}
        for host in reservation.hosts])


def fetch(session, query):
    """The Reservations of a query, in its order, with their hosts."""
    # Columns, not objects: of so many rows SQLAlchemy makes tuples faster.
    found = session.execute(query.with_only_columns(
        *models.Reservation.__table__.c, maintain_column_froms=True)).all()
    hosts = {row.uuid: [] for row in found}
    host = models.ReservationHost
    for uuids in rows.batches(hosts):
        for uuid, *values in session.execute(
                sa.select(host.reservation_uuid,
                          *rows.columns(host, reservation_model.Assignment))
                .where(host.reservation_uuid.in_(uuids)) .order_by(host.host)):
            hosts[uuid].append(reservation_model.Assignment(*values))
    return [rows.load(reservation_model.Reservation, row,
                      hosts=tuple(hosts[row.uuid])) for row in found]


def fetch_open(session, uuids=None, project_id=None):
    """The open Reservations, in no order.

    :param uuids: of those of these uuids; of all if None
    :param project_id: of which project; of all if None
    """
    row = models.Reservation
    query = sa.select(row).where(row.status.in_(reservation_model.OPEN))
    if uuids is not None:
        query = query.where(row.uuid.in_(uuids))
    if project_id is not None:
        query = query.where(row.project_id == project_id)
    return fetch(session, query)
