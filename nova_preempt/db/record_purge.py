# SPDX-License-Identifier: Apache-2.0
"""Finds and deletes old closed records.

A closed record never reopens, so the search needs no lock. It reads pages in
the order of the primary key: one pass over the table, however many rows are
deleted.
"""

import collections
import dataclasses
import datetime
import typing

import sqlalchemy as sa
from sqlalchemy import orm

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import backlog_models
from nova_preempt.db import decisions
from nova_preempt.db import models

# Rows per transaction, few enough not to delay schedulers.
BATCH = 500


@dataclasses.dataclass(frozen=True)
class RecordKind:
    """A kind of records: a table, and tables of their parts.

    :ivar parts: {name in an archive: column that refers to the record}
    :ivar is_over: returns the conditions that a record is closed and clean
    :ivar changed: the column with the time of the last change
    """

    table: typing.Any
    parts: dict
    is_over: typing.Callable
    changed: str = 'updated_at'

    def find(self, database, before):
        """Yield lists of records, as dicts, that were closed before then.

        :param before: a naive datetime in UTC
        """
        query = self._first(sa.select(self.table), before).options(
            orm.lazyload('*'))
        for rows in _pages(database, query, self.table.uuid):
            parts = {}
            for name, column in self.parts.items():
                parts[name] = collections.defaultdict(list)
                for item in database.scalars(
                        sa.select(column.class_)
                        .where(column.in_([row.uuid for row in rows]))
                        .order_by(*column.class_.__table__.primary_key)):
                    parts[name][getattr(item, column.key)].append(
                        _values(item))
            yield [{**_values(row), **{name: found[row.uuid] for name, found
                                       in parts.items()}} for row in rows]

    def delete(self, database, uuids):
        """Delete records with their parts; return their number."""
        with database.writer() as session:
            # Explicitly, since SQLite does not enforce foreign keys.
            for column in self.parts.values():
                session.execute(sa.delete(column.class_).where(
                    column.in_(uuids)))
            return session.execute(sa.delete(self.table).where(
                self.table.uuid.in_(uuids))).rowcount

    def delete_old(self, database, before):
        """Delete the records that find() finds; return their number."""
        count = 0
        query = self._first(sa.select(self.table.uuid), before)
        while uuids := database.scalars(query):
            count += self.delete(database, uuids)
        return count

    def _first(self, query, before):
        """Return the query for the first batch of records closed by then."""
        return (query.where(*self.is_over(),
                            getattr(self.table, self.changed) < before)
                .order_by(self.table.uuid).limit(BATCH))


def _is_decision_over():
    """Return conditions: no victim has to be restored or deleted."""
    decision, victim = models.Decision, models.Victim
    matters = sa.exists().where(
        victim.decision_uuid == decision.uuid,
        (victim.status == decisions.STOPPED)
        | ((victim.status == decisions.SHELVED) & victim.restore))
    return decision.status.not_in(decisions.OPEN), ~matters


def _is_reservation_over():
    """Return conditions: its servers were cleaned up."""
    row = models.Reservation
    return row.status.not_in(reservation_model.OPEN), (
        (row.status != reservation_model.ENDED) | row.released_at.is_not(None))


def _is_request_over():
    """Return conditions: closed, and its trust was deleted."""
    row = backlog_models.BacklogRequest
    return row.state.in_(backlog_model.CLOSED), row.trust_id == ''


DECISIONS = RecordKind(
    models.Decision, {'victims': models.Victim.decision_uuid},
    _is_decision_over)
RESERVATIONS = RecordKind(
    models.Reservation, {'hosts': models.ReservationHost.reservation_uuid},
    _is_reservation_over)
REQUESTS = RecordKind(
    backlog_models.BacklogRequest,
    {'boots': backlog_models.BacklogBoot.request_uuid,
     'servers': backlog_models.BacklogServer.request_uuid,
     'history': backlog_models.BacklogChange.request_uuid}, _is_request_over)
#: Servers made preemptible by a hint.
HINTED = RecordKind(models.PreemptibleHint, {}, tuple, 'created_at')


def _pages(database, query, key):
    """Yield lists of rows of a query that is sorted by this column."""
    last = ''
    while rows := database.scalars(query.where(key > last)):
        # Read before the caller deletes the row.
        last = getattr(rows[-1], key.key)
        yield rows


def _values(row):
    """Return the columns of a row as JSON values."""
    return {column.name: _value(column, getattr(row, column.name))
            for column in row.__table__.columns}


def _value(column, value):
    if isinstance(column.type, models.Json):
        return column.type.process_bind_param(value, None)
    if isinstance(value, datetime.datetime):
        return value.isoformat() + 'Z'
    return value
