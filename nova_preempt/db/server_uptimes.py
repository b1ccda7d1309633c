# SPDX-License-Identifier: Apache-2.0
"""Stores clocks of servers of a class, and mean restart overheads.

The leading engine writes them from Nova's records; schedulers and engines read
them. They survive restarts.
"""

import math

import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.classes import clock_events
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.times import microseconds
from nova_preempt.db import backlog_models
from nova_preempt.db import database_clock
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

_SERVER = models.ServerUptime
_OVERHEAD = models.RestartOverhead
_CELL = models.CellScan

# States of a server of a request that may exist in Nova.
_THERE = (backlog_model.BUILDING, backlog_model.RUNNING, backlog_model.AWAY)

ServerUptime = row_schemas.ServerUptime


def find(database, uuids=None):
    """Return {uuid: ServerUptime} of all servers of a class in Nova.

    Shelved servers are included.

    :param uuids: only these servers; None for all
    """
    query = sa.select(*_SERVER.__table__.c)
    queries = [query] if uuids is None else [
        query.where(_SERVER.uuid.in_(some))
        for some in row_schemas.batches(sorted(uuids))]
    with database.reader() as session:
        return dict(item for each in queries
                    for item in _fetch(session, each))


def _fetch(session, query):
    for row in session.execute(query):
        mark = server_clocks.ClockState(server_clocks.Kind(row.kind),
            server_clocks.Times(*(getattr(row, name)
                                  for name in row_schemas.TIMES)),
            *(getattr(row, name) for name in row_schemas.MARK))
        yield row.uuid, row_schemas.load(
            ServerUptime, row, clocks=server_clocks.ServerClocks((), mark))


def uuids_of(database, cell_uuid, kind=None):
    """Return the uuids of servers of a class in a cell.

    :param kind: the clock_events.Kind of their last event; None for any
    """
    query = sa.select(_SERVER.uuid).where(_SERVER.cell_uuid == cell_uuid)
    if kind is not None:
        query = query.where(_SERVER.kind == kind)
    return set(database.scalars(query))


def overheads(database):
    """Return {ServerUptime.kind: mean time in us to restart a victim}.

    A kind without observations is absent.
    """
    return {(row.flavor, row.from_volume): row.mean_us
            for row in database.read(sa.select(*_OVERHEAD.__table__.c))}


def scan_ages_s(database):
    """Return {cell uuid: seconds since the last scan of its servers}.

    Changes of servers up to that scan are recorded.
    """
    return {row.cell_uuid: (row.now - row.looked_at).total_seconds()
            for row in database.read(sa.select(
                _CELL.cell_uuid, _CELL.looked_at,
                database_clock.now().label('now')))}


def cells(database):
    """Return the uuids of all cells with a scan or a server."""
    return set(database.scalars(sa.union(
        sa.select(_CELL.cell_uuid), sa.select(_SERVER.cell_uuid))))


def request_classes(database, uuids=None):
    """Return {server uuid: class name} of servers of requests of a class.

    :param uuids: only these few servers; None for all
    """
    request, server = (backlog_models.BacklogRequest,
                       backlog_models.BacklogServer)
    return {row.uuid: row.class_name for row in database.read(
        sa.select(server.uuid, request.class_name)
        .join(request, request.uuid == server.request_uuid)
        .where(request.class_name > '', server.state.in_(_THERE),
               *([] if uuids is None else [server.uuid.in_(uuids)])))}


def unrecorded_classes(database, names):
    """Return {server uuid: class name of its request} where it is unrecorded.

    The name is '' if the request has no class any more. Requests that are
    closed and cleaned up are left out: their servers are no longer followed.

    :param names: the configured classes; a request of another has no class
    """
    request, server = (backlog_models.BacklogRequest,
                       backlog_models.BacklogServer)
    name = sa.case((request.class_name.in_(sorted(names)),
                    request.class_name), else_='')
    return {row.uuid: row.name for row in database.read(
        sa.select(server.uuid, name.label('name'))
        .join(request, request.uuid == server.request_uuid)
        .outerjoin(_SERVER, _SERVER.uuid == server.uuid)
        .where(server.state.in_(_THERE),
               sa.or_(request.state.in_(backlog_model.OPEN),
                      request.trust_id > ''),
               name != sa.func.coalesce(_SERVER.class_name, '')))}


def preemptions(database, uuids):
    """Return {server uuid: [core.classes.clock_events.PreemptionPeriod]}.

    Preemptions that were rolled back before the eviction are left out.

    :param uuids: only these servers
    """
    decision, victim = models.Decision, models.Victim
    found = {}
    with database.reader() as session:
        for some in row_schemas.batches(sorted(uuids)):
            for row in session.execute(
                    sa.select(victim.server_uuid, decision.created_at,
                              victim.ended_at)
                    .join(decision, decision.uuid == victim.decision_uuid)
                    .where(victim.server_uuid.in_(some),
                           victim.status != decisions.KEPT,
                           decisions.has_effect())):
                found.setdefault(row.server_uuid, []).append(
                    clock_events.PreemptionPeriod(_us(row.created_at),
                                                  _us(row.ended_at)))
    return found


def _us(at):
    return at and microseconds(at)


@transaction_retries.retried_upsert
def write(database, servers, means=None):
    """Replace what is stored of servers and kinds.

    :param servers: ServerUptimes
    :param means: {ServerUptime.kind: mean time to restart a server in us}
    """
    with database.writer() as session:
        _write_servers(session, {item.uuid: _values(item) for item in servers})
        for (flavor, from_volume), mean_us in sorted((means or {}).items()):
            row_schemas.upsert(session, _OVERHEAD, {
                'flavor': flavor, 'from_volume': from_volume},
                {'mean_us': mean_us})


@transaction_retries.retried_upsert
def record_scan(database, cell_uuid, ago_s):
    """Record when the servers of a cell were scanned.

    :param ago_s: seconds since the scan began
    """
    with database.writer() as session:
        row_schemas.upsert(session, _CELL, {'cell_uuid': cell_uuid},
                           {'looked_at': database_clock.SecondsFromNow(
                                -max(0, math.ceil(ago_s)))})


def _write_servers(session, found):
    """Write servers in bulk; single statements are too slow for thousands.

    :param found: {uuid: values}
    """
    for uuids in row_schemas.batches(sorted(found)):
        known = set(session.execute(sa.select(_SERVER.uuid).where(
            _SERVER.uuid.in_(uuids))).scalars())
        new = [{'uuid': uuid, **found[uuid]} for uuid in uuids
               if uuid not in known]
        if new:
            session.execute(sa.insert(_SERVER.__table__), new)
        if known:
            session.execute(
                sa.update(_SERVER.__table__)
                .where(_SERVER.uuid == sa.bindparam('of'))
                .values({name: sa.bindparam(f'new_{name}')
                         for name in found[uuids[0]]}),
                [{'of': uuid, **{f'new_{name}': value for name, value
                                 in found[uuid].items()}}
                 for uuid in uuids if uuid in known])


def _values(server):
    mark = server.clocks.mark
    return {
        **row_schemas.values(server, 'uuid', 'clocks'), 'kind': int(mark.kind),
        **{name: getattr(mark.times, name) for name in row_schemas.TIMES},
        **{name: getattr(mark, name) for name in row_schemas.MARK}}


@transaction_retries.retried
def forget(database, uuids):
    """Delete servers that Nova deleted or that have no class any more."""
    with database.writer() as session:
        for some in row_schemas.batches(sorted(uuids)):
            session.execute(sa.delete(_SERVER).where(_SERVER.uuid.in_(some)))


@transaction_retries.retried
def forget_cells(database, uuids):
    """Delete cells that no longer exist, with their servers."""
    with database.writer() as session:
        for table in (_SERVER, _CELL):
            session.execute(sa.delete(table).where(
                table.cell_uuid.in_(sorted(uuids))))
