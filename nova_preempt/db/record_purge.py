# SPDX-License-Identifier: Apache-2.0
"""Deleting records that were closed long ago.

A closed record never opens again, so what was found to be old stays so, and
finding it needs no lock. It is found in pages of the primary key: one pass
over the table, however much of it goes.
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

# So many rows go in one transaction: schedulers hardly wait for it.
BATCH = 500


@dataclasses.dataclass(frozen=True)
class Kind:
    """Records of one table, and their parts in other ones.

    :ivar parts: {name in an archive: column that refers to the record}
    :ivar is_over: returns the conditions that nothing is left to do for it
    :ivar changed: the column of when it changed last
    """

    table: typing.Any
    parts: dict
    is_over: typing.Callable
    changed: str = 'updated_at'

    def find(self, database, before):
        """Lists of rows, as dicts, of those that were over before then.

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
        """Delete these with their parts; how many they were."""
        with database.writer() as session:
            # By hand, since SQLite does not enforce foreign keys.
            for column in self.parts.values():
                session.execute(sa.delete(column.class_).where(
                    column.in_(uuids)))
            return session.execute(sa.delete(self.table).where(
                self.table.uuid.in_(uuids))).rowcount

    def delete_old(self, database, before):
        """Delete what find() finds, without reading more than ids."""
        count = 0
        query = self._first(sa.select(self.table.uuid), before)
        while uuids := database.scalars(query):
            count += self.delete(database, uuids)
        return count

    def _first(self, query, before):
        """The query for the first batch of those that were over by then."""
        return (query.where(*self.is_over(),
                            getattr(self.table, self.changed) < before)
                .order_by(self.table.uuid).limit(BATCH))


def _is_decision_over():
    """Without a victim that the engine has yet to bring back or delete."""
    decision, victim = models.Decision, models.Victim
    matters = sa.exists().where(
        victim.decision_uuid == decision.uuid,
        (victim.status == decisions.STOPPED)
        | ((victim.status == decisions.SHELVED) & victim.restore))
    return decision.status.not_in(decisions.OPEN), ~matters


def _is_reservation_over():
    """Without servers that the engine has yet to clear away."""
    row = models.Reservation
    return row.status.not_in(reservation_model.OPEN), (
        (row.status != reservation_model.ENDED) | row.released_at.is_not(None))


def _is_request_over():
    """Without anything that the engine has yet to clear up."""
    row = backlog_models.BacklogRequest
    return row.state.in_(backlog_model.CLOSED), row.trust_id == ''


DECISIONS = Kind(models.Decision, {'victims': models.Victim.decision_uuid},
                 _is_decision_over)
RESERVATIONS = Kind(
    models.Reservation, {'hosts': models.ReservationHost.reservation_uuid},
    _is_reservation_over)
REQUESTS = Kind(
    backlog_models.BacklogRequest,
    {'boots': backlog_models.BacklogBoot.request_uuid,
     'servers': backlog_models.BacklogServer.request_uuid,
     'history': backlog_models.BacklogChange.request_uuid}, _is_request_over)
#: Servers that were made preemptible by a hint.
HINTED = Kind(models.PreemptibleServer, {}, tuple, 'created_at')


def _pages(database, query, key):
    """Lists of rows of a query that is in the order of this column."""
    last = ''
    while rows := database.scalars(query.where(key > last)):
        # Before whoever gets it deletes it.
        last = getattr(rows[-1], key.key)
        yield rows


def _values(row):
    """The columns of a row as JSON has them."""
    return {column.name: _value(column, getattr(row, column.name))
            for column in row.__table__.columns}


def _value(column, value):
    if isinstance(column.type, models.Json):
        return column.type.process_bind_param(value, None)
    if isinstance(value, datetime.datetime):
        return value.isoformat() + 'Z'
    return value
