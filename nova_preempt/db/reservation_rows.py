# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Reservations and their hosts, and their rows in the database."""

import dataclasses
import json

import sqlalchemy as sa

from nova_preempt.core.reservation import model
from nova_preempt.db import models

PENDING = model.PENDING
ACTIVE = model.ACTIVE
DEGRADED = model.DEGRADED
ENDED = model.ENDED
CANCELLED = model.CANCELLED
ERROR = model.ERROR
OPEN = model.OPEN
STATUSES = model.STATUSES

ASSIGNED = model.ASSIGNED
EMPTYING = model.EMPTYING
READY = model.READY
LOST = model.LOST

to_s = model.to_s
to_us = model.to_us
from_s = model.from_s

Assignment = model.Assignment
Reservation = model.Reservation


def insert(session, reservation):
    values = {field.name: getattr(reservation, field.name)
              for field in dataclasses.fields(reservation)}
    hosts = values.pop('hosts')
    values['host_properties'] = json.dumps(reservation.host_properties)
    session.execute(sa.insert(models.Reservation).values(**values))
    session.execute(sa.insert(models.ReservationHost), [
        {'reservation_uuid': reservation.uuid, **dataclasses.asdict(host)}
        for host in hosts])


def fetch(session, query):
    """The Reservations of a query, in its order, with their hosts."""
    # Columns, not objects: of so many rows SQLAlchemy makes tuples faster.
    rows = session.execute(query.with_only_columns(
        *models.Reservation.__table__.c, maintain_column_froms=True)).all()
    hosts = {row.uuid: [] for row in rows}
    host = models.ReservationHost
    for uuids in batches(hosts):
        for row in session.execute(
                sa.select(host.reservation_uuid, host.host, host.start_at,
                          host.end_at, host.status, host.reason,
                          host.public_reason)
                .where(host.reservation_uuid.in_(uuids))
                .order_by(host.host)):
            hosts[row[0]].append(Assignment(*row[1:]))
    return [_reservation(row, hosts[row.uuid]) for row in rows]


def batches(items, size=500):
    """Lists of so few that every database takes them as parameters."""
    items = list(items)
    return (items[start:start + size]
            for start in range(0, len(items), size))


def _reservation(row, hosts):
    values = {field.name: getattr(row, field.name)
              for field in dataclasses.fields(Reservation)
              if field.name != 'hosts'}
    values['host_properties'] = json.loads(row.host_properties)
    return Reservation(hosts=tuple(hosts), **values)
