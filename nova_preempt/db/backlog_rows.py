# SPDX-License-Identifier: Apache-2.0
"""Loads requests of the backlog from their rows, and shortens closed ones."""

import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import redaction
from nova_preempt.db import backlog_models
from nova_preempt.db import row_schemas

_REQUEST = backlog_models.BacklogRequest
_BOOT = backlog_models.BacklogBoot
_SERVER = backlog_models.BacklogServer
#: {whether with their bodies, which are large: the query of all requests}
QUERIES = {has_bodies: sa.select(*row_schemas.columns(
    _REQUEST, backlog_model.Request, 'boots', 'servers',
    *(() if has_bodies else ('body',)))) for has_bodies in (True, False)}


def closing(values):
    """Return values of a request, without secrets if they close it."""
    # No server is started for a closed request.
    return {**values, 'sealed': None} if values.get(
        'state') in backlog_model.CLOSED else values


def shorten(session, uuid, state):
    """Drop most of the body of a request if this state closes it."""
    if state in backlog_model.CLOSED:
        body = session.execute(sa.select(_REQUEST.body).where(
            _REQUEST.uuid == uuid)).scalar_one()
        session.execute(sa.update(_REQUEST).where(
            _REQUEST.uuid == uuid).values(
                body=redaction.for_closed_request(body)))


def fetch(session, query):
    """Return the core Requests of a query, with their boots and servers.

    :param query: one of QUERIES, with conditions
    """
    found = session.execute(query).all()
    left_out = {} if found and 'body' in found[0]._fields else {'body': {}}
    uuids = [row.uuid for row in found]
    boots = _parts(session, uuids, _BOOT, backlog_model.SentBoot, _BOOT.number)
    servers = _parts(session, uuids, _SERVER, backlog_model.OwnServer,
                     _SERVER.boot, _SERVER.uuid)
    return [row_schemas.load(
        backlog_model.Request, row, boots=tuple(boots[row.uuid]),
        servers=tuple(servers[row.uuid]), **left_out) for row in found]


def _parts(session, uuids, table, cls, *order):
    """Return {uuid of a request: [its boots, or servers]}."""
    parts = {uuid: [] for uuid in uuids}
    for some in row_schemas.batches(uuids):
        for uuid, *values in session.execute(
                row_schemas.select(table, cls, 'request_uuid')
                .where(table.request_uuid.in_(some)).order_by(*order)):
            parts[uuid].append(cls(*values))
    return parts


def given_up(database, uuids):
    """Return which of these servers belong to requests that were closed.

    The servers were being built when their request was closed; the engine
    deletes them.
    """
    found = set()
    with database.reader() as session:
        for some in row_schemas.batches(uuids):
            found.update(session.scalars(
                sa.select(_SERVER.uuid).join(
                    _REQUEST, _REQUEST.uuid == _SERVER.request_uuid)
                .where(_SERVER.uuid.in_(some))
                .where(_SERVER.state == backlog_model.BUILDING)
                .where(_REQUEST.state.in_(backlog_model.CLOSED))))
    return found
