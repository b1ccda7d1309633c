# SPDX-License-Identifier: Apache-2.0

"""Reads counts and histories of waiting requests, and records changes."""

import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_history
from nova_preempt.db import backlog_models
from nova_preempt.db import row_schemas

_REQUEST = backlog_models.BacklogRequest
_CHANGE = backlog_models.BacklogChange


def note(session, uuid, at, state, reason):
    """Record a change of a request and return the change's id."""
    return session.execute(sa.insert(_CHANGE).values(
        request_uuid=uuid, at=at, state=state,
        reason=reason)).inserted_primary_key[0]


def changes(session, uuid):
    """Return {id: StateChange} of a request, oldest first."""
    return {number: backlog_model.StateChange(*values)
            for number, *values in session.execute(
                sa.select(_CHANGE.id, *row_schemas.columns(
                    _CHANGE, backlog_model.StateChange))
                .where(_CHANGE.request_uuid == uuid).order_by(_CHANGE.id))}


def numbers(database, project_id=None):
    """Return {class name: {state: number of requests}}.

    :param project_id: whose requests are counted; None for all projects
    """
    query = _of(sa.select(_REQUEST.class_name, _REQUEST.state,
                          sa.func.count()), project_id)
    found = {}
    for class_name, state, number in database.read(
            query.group_by(_REQUEST.class_name, _REQUEST.state)):
        found.setdefault(class_name, {})[state] = number
    return found


def started(database, since, project_id=None):
    """Iterate over the core Histories of requests whose servers ran since.

    :param since: a naive UTC time
    """
    ran = sa.select(_CHANGE.request_uuid).where(
        _CHANGE.at >= since,
        _CHANGE.state.in_((backlog_model.ACTIVE,
                           backlog_model.PARTLY_ACTIVE))).distinct()
    return _histories(database, _of(_heads(), project_id).where(
        _REQUEST.uuid.in_(ran)))


def between(database, since, until, project_id=None):
    """Iterate over the core Histories of requests open in this period."""
    return _histories(database, _of(_heads(), project_id).where(
        _REQUEST.created_at < until,
        sa.or_(_REQUEST.state.in_(backlog_model.OPEN),
               _REQUEST.updated_at >= since)))


def of(database, uuids):
    """Return {uuid: core History} of these requests."""
    found = {}
    for some in row_schemas.batches(sorted(uuids)):
        found.update(_by_uuid(database, _heads().where(
            _REQUEST.uuid.in_(some))))
    return found


def _heads():
    return sa.select(_REQUEST.uuid, _REQUEST.class_name, _REQUEST.not_before)


def _of(query, project_id):
    return query if project_id is None else query.where(
        _REQUEST.project_id == project_id)


def _histories(database, query):
    return (found for _uuid, found in _by_uuid(database, query))


def _by_uuid(database, query):
    with database.reader() as session:
        heads = {row.uuid: row for row in session.execute(query)}
        for uuids in row_schemas.batches(heads):
            changes = {}
            for row in session.execute(
                    sa.select(_CHANGE.request_uuid, _CHANGE.at, _CHANGE.state)
                    .where(_CHANGE.request_uuid.in_(uuids))
                    .order_by(_CHANGE.id)):
                changes.setdefault(row.request_uuid, []).append(
                    backlog_model.StateChange(row.at, row.state))
            for uuid, found in changes.items():
                yield uuid, request_history.History(found,
                                                    heads[uuid].class_name,
                                                    heads[uuid].not_before)
