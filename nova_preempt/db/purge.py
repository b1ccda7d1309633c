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
"""Deleting what has been finished for long.

A closed decision never opens again, so what was found to be old stays so, and
finding it needs no lock. It is found in pages of the primary key: one pass
over the table, however much of it goes.
"""

import collections
import datetime

import sqlalchemy as sa

from nova_preempt.core.backlog import model as backlog
from nova_preempt.db import backlog_models
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import reservation_rows

# So many rows go in one transaction: schedulers hardly wait for it.
BATCH = 500

_REQUEST_PARTS = {'boots': backlog_models.BacklogBoot,
                  'servers': backlog_models.BacklogServer,
                  'history': backlog_models.BacklogChange}


def find_decisions(database, before):
    """Lists of rows, as dicts, of decisions that were closed before then.

    Not of those with a victim that the engine has still to bring back, or to
    delete.

    :param before: a naive datetime in UTC
    """
    decision, victim = models.Decision, models.Victim
    matters = sa.exists().where(
        victim.decision_uuid == decision.uuid,
        (victim.status == decisions.STOPPED)
        | ((victim.status == decisions.SHELVED) & victim.restore))
    query = (sa.select(decision)
             .where(decision.status.not_in(decisions.OPEN))
             .where(decision.updated_at < before)
             .where(~matters)
             .order_by(decision.uuid)
             .limit(BATCH))
    for rows in _pages(database, query, decision.uuid):
        yield [{**_values(row),
                'victims': [_values(item) for item in row.victims]}
               for row in rows]


def delete_decisions(database, uuids):
    """Delete decisions and their victims; the number of decisions."""
    with database.writer() as session:
        # By hand, since SQLite does not enforce foreign keys.
        session.execute(sa.delete(models.Victim).where(
            models.Victim.decision_uuid.in_(uuids)))
        return session.execute(sa.delete(models.Decision).where(
            models.Decision.uuid.in_(uuids))).rowcount


def find_hinted(database, before):
    """Lists of rows, as dicts, of servers made preemptible before then."""
    server = models.PreemptibleServer
    query = (sa.select(server).where(server.created_at < before)
             .order_by(server.uuid).limit(BATCH))
    for rows in _pages(database, query, server.uuid):
        yield [_values(row) for row in rows]


def find_reservations(database, before):
    """Lists of rows, as dicts, of reservations that were over before then.

    Not of those whose servers the engine has still to clear away.
    """
    reservation, host = models.Reservation, models.ReservationHost
    query = _of_reservations(sa.select(reservation), before)
    for rows in _pages(database, query, reservation.uuid):
        hosts = collections.defaultdict(list)
        with database.reader() as session:
            for item in session.execute(
                    sa.select(host).where(host.reservation_uuid.in_(
                        [row.uuid for row in rows]))
                    .order_by(host.host)).scalars():
                hosts[item.reservation_uuid].append(_values(item))
        yield [{**_values(row), 'hosts': hosts[row.uuid]} for row in rows]


def _of_reservations(query, before):
    """The first batch of a query of these."""
    reservation = models.Reservation
    return (query.where(reservation.status.not_in(reservation_rows.OPEN))
            .where(reservation.updated_at < before)
            .where((reservation.status != reservation_rows.ENDED)
                   | reservation.released_at.is_not(None))
            .order_by(reservation.uuid).limit(BATCH))


def delete_old_reservations(database, before):
    """Delete what find_reservations() finds; how many they were."""
    return _delete_old(database, delete_reservations, _of_reservations(
        sa.select(models.Reservation.uuid), before))


def delete_reservations(database, uuids):
    """Delete reservations and their hosts; the number of reservations."""
    with database.writer() as session:
        session.execute(sa.delete(models.ReservationHost).where(
            models.ReservationHost.reservation_uuid.in_(uuids)))
        return session.execute(sa.delete(models.Reservation).where(
            models.Reservation.uuid.in_(uuids))).rowcount


def find_requests(database, before):
    """Lists of rows, as dicts, of requests that were closed before then.

    Not of those for which the engine has still to clear up.
    """
    request = backlog_models.BacklogRequest
    query = _of_requests(sa.select(request), before)
    for rows in _pages(database, query, request.uuid):
        parts = {}
        with database.reader() as session:
            for name, table in _REQUEST_PARTS.items():
                parts[name] = collections.defaultdict(list)
                for item in session.execute(sa.select(table).where(
                        table.request_uuid.in_([row.uuid for row in rows]))
                        .order_by(*sa.inspect(table).primary_key)).scalars():
                    parts[name][item.request_uuid].append(_values(item))
        yield [{**_values(row),
                **{name: found[row.uuid] for name, found in parts.items()}}
               for row in rows]


def _of_requests(query, before):
    """The first batch of a query of these."""
    request = backlog_models.BacklogRequest
    return (query.where(request.state.in_(backlog.CLOSED))
            .where(request.trust_id == '', request.updated_at < before)
            .order_by(request.uuid).limit(BATCH))


def delete_old_requests(database, before):
    """Delete what find_requests() finds; how many they were."""
    return _delete_old(database, delete_requests, _of_requests(
        sa.select(backlog_models.BacklogRequest.uuid), before))


def delete_requests(database, uuids):
    """Delete requests and all that is kept of them; how many they were."""
    with database.writer() as session:
        for table in _REQUEST_PARTS.values():
            session.execute(sa.delete(table).where(
                table.request_uuid.in_(uuids)))
        request = backlog_models.BacklogRequest
        return session.execute(sa.delete(request).where(
            request.uuid.in_(uuids))).rowcount


def _delete_old(database, delete, query):
    """Delete in batches, without reading more than ids."""
    count = 0
    while True:
        with database.reader() as session:
            uuids = session.execute(query).scalars().all()
        if not uuids:
            return count
        count += delete(database, uuids)


def _pages(database, query, key):
    """Lists of rows of a query that is in the order of this column."""
    last = ''
    while True:
        with database.reader() as session:
            rows = session.execute(query.where(
                key > last)).unique().scalars().all()
            session.expunge_all()
        if not rows:
            return
        # Before whoever gets it deletes it.
        last = getattr(rows[-1], key.key)
        yield rows


def _values(row):
    """The columns of a row as JSON has them."""
    values = {column.name: getattr(row, column.name)
              for column in row.__table__.columns}
    return {name: value.isoformat() + 'Z'
            if isinstance(value, datetime.datetime) else value
            for name, value in values.items()}
