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
import datetime
import json

import sqlalchemy as sa

from nova_preempt.db import models

# Statuses of a reservation. Those in OPEN have their hosts.
PENDING = 'pending'      # granted, has not started
ACTIVE = 'active'        # its hosts are its own
DEGRADED = 'degraded'    # either of these, with fewer hosts than were asked
ENDED = 'ended'
CANCELLED = 'cancelled'  # before it started
ERROR = 'error'          # came to nothing; the reason says why
OPEN = (PENDING, ACTIVE, DEGRADED)
STATUSES = (*OPEN, ENDED, CANCELLED, ERROR)

# Statuses of a host of a reservation. All but LOST are held.
ASSIGNED = 'assigned'    # nothing was done yet
EMPTYING = 'emptying'    # what runs there is on its way out
READY = 'ready'          # is empty
LOST = 'lost'            # is down, or could not be emptied

_EPOCH = datetime.datetime.fromisoformat('1970-01-01')


def to_s(time):
    """Whole seconds since the epoch of a naive UTC datetime."""
    return seconds(time - _EPOCH)


def from_s(time_s):
    """The naive UTC datetime; OverflowError if there is none."""
    return _EPOCH + datetime.timedelta(seconds=time_s)


def seconds(delta):
    return delta.days * 86400 + delta.seconds


@dataclasses.dataclass(frozen=True)
class Assignment:
    """A host of a reservation, for [start_at, end_at)."""

    host: str
    start_at: datetime.datetime
    end_at: datetime.datetime
    status: str = ASSIGNED
    reason: str = ''
    # What its owner is told of that.
    public_reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Reservation:
    """A reservation; times are naive, UTC and in whole seconds."""

    uuid: str
    project_id: str
    quantity: int
    duration_s: int
    window_start: datetime.datetime
    end_action: str
    before_end_s: int
    name: str = ''
    user_id: str = ''
    status: str = PENDING
    # For operators: it may name servers of others.
    reason: str = ''
    # For its owner.
    public_reason: str | None = None
    # As they were asked for: a JSON value.
    host_properties: list = dataclasses.field(default_factory=list)
    window_end: datetime.datetime | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    start_at: datetime.datetime | None = None
    end_at: datetime.datetime | None = None
    ready_at: datetime.datetime | None = None
    noticed_at: datetime.datetime | None = None
    released_at: datetime.datetime | None = None
    hosts: tuple[Assignment, ...] = ()

    @property
    def held(self):
        """The names of the hosts that it has, sorted."""
        return tuple(item.host for item in self.hosts if item.status != LOST)

    @property
    def start_s(self):
        return to_s(self.start_at)

    @property
    def end_s(self):
        return to_s(self.end_at)


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
