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
"""Requests that wait, as the database has them.

Times are naive and UTC. A change is made of a state that is named, so of two
who want to make one the second finds that it came too late.
"""

import dataclasses
import datetime
import functools
import json

import sqlalchemy as sa

from nova_preempt.core.backlog import history as history_core
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import servers as servers_core
from nova_preempt.db import backlog_begun
from nova_preempt.db import backlog_history
from nova_preempt.db import backlog_models
from nova_preempt.db import reservation_rows
from nova_preempt.db import retries

_REQUEST = backlog_models.BacklogRequest
_BOOT = backlog_models.BacklogBoot
_SERVER = backlog_models.BacklogServer
_CHANGE = backlog_models.BacklogChange

# States in which a pass has something to say of a request.
_WAITING = (model.WAITING, model.PARTLY_ACTIVE, model.EVICTED)

_APART = ('boots', 'servers')

#: Why one is cancelled that could not be forgotten.
NOT_TAKEN = 'It was not taken after all.'


@retries.retried
def create(database, request, begun=False):
    """Write a new request down.

    :param request: a core.backlog.model.Request
    :param begun: whether it was written down that a trust is made for it
    :returns: False: it was given up meanwhile, nothing was written
    """
    with database.writer() as session:
        if begun and not backlog_begun.end(session, request.uuid):
            # Unless that was this call, and the answer was lost.
            return session.execute(sa.select(_REQUEST.uuid).where(
                _REQUEST.uuid == request.uuid,
                _REQUEST.trust_id == request.trust_id)).first() is not None
        session.execute(sa.insert(_REQUEST).values(**_values(request)))
        serial = backlog_history.note(
            session, request.uuid, request.created_at, request.state,
            request.reason)
        session.execute(sa.update(_REQUEST).where(
            _REQUEST.uuid == request.uuid).values(serial=serial))
    return True


def get(database, uuid, project_id=None):
    """The Request, None if there is none (of this project)."""
    query = sa.select(_REQUEST).where(_REQUEST.uuid == uuid)
    if project_id is not None:
        query = query.where(_REQUEST.project_id == project_id)
    with database.reader() as session:
        return next(iter(_fetch(session, query)), None)


def find(database, states=None, project_id=None, user_id=None, marker=None,
         limit=None, newest_first=False, with_trust=False):
    """The Requests of which all this is true, in the order they came in.

    :param with_trust: only those whose trust has not been deleted
    :param marker: a Request; those after it in the order
    """
    query = sa.select(_REQUEST)
    if states is not None:
        query = query.where(_REQUEST.state.in_(states))
    if project_id is not None:
        query = query.where(_REQUEST.project_id == project_id)
    if user_id is not None:
        query = query.where(_REQUEST.user_id == user_id)
    if with_trust:
        query = query.where(_REQUEST.trust_id > '')
    key = (_REQUEST.created_at, _REQUEST.serial, _REQUEST.uuid)
    if marker is not None:
        row, at = sa.tuple_(*key), (marker.created_at, marker.serial,
                                    marker.uuid)
        query = query.where(row < at if newest_first else row > at)
    query = query.order_by(*(column.desc() if newest_first else column
                             for column in key)).limit(limit)
    with database.reader() as session:
        return _fetch(session, query)


def trusts(database):
    """The ids of the trusts of all requests, as a set."""
    with database.reader() as session:
        return set(session.execute(sa.select(_REQUEST.trust_id).where(
            _REQUEST.trust_id > '')).scalars())


def count(database, project_id, states=model.OPEN):
    """How many requests of a project are in these states."""
    with database.reader() as session:
        return session.execute(
            sa.select(sa.func.count()).select_from(_REQUEST).where(
                _REQUEST.project_id == project_id,
                _REQUEST.state.in_(states))).scalar()


@retries.retried
def change(database, uuid, of, now, **values):
    """Change a request that is in one of these states.

    A new state, or a reason with one, is noted in its history.

    :param of: the states that it may be in
    :param values: by the names of model.Request
    :returns: whether it was in one of them
    """
    with database.writer() as session:
        found = session.execute(
            sa.update(_REQUEST).where(
                _REQUEST.uuid == uuid, _REQUEST.state.in_(of)).values(
                **_columns(values), updated_at=now)).rowcount == 1
        if found and 'state' in values:
            backlog_history.note(session, uuid, now, values['state'],
                                 values.get('reason', ''))
    return found


@dataclasses.dataclass(frozen=True)
class Removal:
    """What has become of a request that is to be forgotten.

    :ivar is_gone: whether nothing is left of it; else it is kept, and the
        engine needs its trust to clear up
    :ivar cancelled: the state that it was in before it was cancelled now, ''
        where it was over already
    """

    is_gone: bool
    cancelled: str = ''


@retries.retried
def remove(database, begun, now):
    """Forget a request that was not taken after all. Fine if it is gone.

    It is as it was when it was begun: its trust is still there. One for which
    Nova was asked meanwhile is cancelled instead, with its servers.

    :param begun: a nova_preempt.db.backlog_begun.Begun
    :returns: a Removal
    """
    uuid = begun.uuid
    with database.writer() as session:
        # First, so that nobody begins anything for it from now on.
        was_open = session.execute(sa.update(_REQUEST).where(
            _REQUEST.uuid == uuid, _REQUEST.state.in_(model.OPEN)).values(
            state=model.CANCELLED, reason=NOT_TAKEN, ends_servers=True,
            updated_at=now)).rowcount
        if not was_open and session.execute(sa.select(_REQUEST.uuid).where(
                _REQUEST.uuid == uuid)).first():
            return Removal(is_gone=False)
        if session.execute(sa.select(_BOOT.number).where(
                _BOOT.request_uuid == uuid)).first():
            before = list(backlog_history.changes(
                session, uuid).values())[-1].state
            backlog_history.note(session, uuid, now, model.CANCELLED,
                                 NOT_TAKEN)
            return Removal(is_gone=False, cancelled=before)
        backlog_begun.begin_again(session, begun)
        for table, column in ((_CHANGE, _CHANGE.request_uuid),
                              (_REQUEST, _REQUEST.uuid)):
            session.execute(sa.delete(table).where(column == uuid))
    return Removal(is_gone=True)


@retries.retried
def begin_boot(database, uuid, of, boot, reason='', forgotten=()):
    """Write down that Nova will be asked, before it is.

    :param of: the states that the request may be in
    :param boot: a model.Boot
    :param forgotten: the numbers of boots to delete, see
        core.backlog.servers.forgotten_boots
    :returns: False: the request is in another state, nothing was written
    """
    with database.writer() as session:
        found = session.execute(
            sa.update(_REQUEST).where(
                _REQUEST.uuid == uuid, _REQUEST.state.in_(of)).values(
                state=model.PLACING, reason=reason,
                updated_at=boot.asked_at)).rowcount == 1
        if found:
            session.execute(sa.insert(_BOOT).values(
                request_uuid=uuid, **dataclasses.asdict(boot)))
            if forgotten:
                _forget(session, uuid, forgotten, boot.asked_at)
            backlog_history.note(session, uuid, boot.asked_at, model.PLACING,
                                 reason)
    return found


def _forget(session, uuid, numbers, now):
    """Delete boots that came to nothing, and what history has of such."""
    for some in reservation_rows.batches(numbers):
        session.execute(sa.delete(_BOOT).where(
            _BOOT.request_uuid == uuid, _BOOT.number.in_(some)))
    changes = backlog_history.changes(session, uuid)
    before = now - datetime.timedelta(seconds=servers_core.LATE_S)
    ids = list(changes)
    forgotten = [ids[index] for index in history_core.tries_in_vain(
        list(changes.values()), before)]
    for number in forgotten:
        del changes[number]
    not_before = session.execute(sa.select(_REQUEST.not_before).where(
        _REQUEST.uuid == uuid)).scalar()
    replaced, sums = history_core.condensed(list(changes.values()),
                                            not_before)
    first = list(changes)[:replaced]
    for number, change in zip(first, sums, strict=False):
        session.execute(sa.update(_CHANGE).where(_CHANGE.id == number).values(
            at=change.at, state=change.state, reason=change.reason))
    for some in reservation_rows.batches(forgotten + first[len(sums):]):
        session.execute(sa.delete(_CHANGE).where(_CHANGE.id.in_(some)))


class _Outdated(Exception):
    """A boot was ended by somebody else."""


def record(database, uuid, of, now, verdict):
    """Write down what has become of a request, all of it or nothing.

    :param of: the states that the request may be in
    :param verdict: a core.backlog.answers.Verdict
    :returns: False: the request is in another state, or one of the boots has
        ended; nothing was written
    """
    try:
        return _record(database, uuid, of, now, verdict)
    except _Outdated:
        return False


@retries.retried
def _record(database, uuid, of, now, verdict):
    with database.writer() as session:
        if not session.execute(sa.update(_REQUEST).where(
                _REQUEST.uuid == uuid, _REQUEST.state.in_(of)).values(
                **_columns(verdict.values), state=verdict.state,
                updated_at=now)).rowcount:
            return False
        for boot in verdict.boots:
            if not session.execute(sa.update(_BOOT).where(
                    _BOOT.request_uuid == uuid, _BOOT.number == boot.number,
                    _BOOT.state.in_(servers_core.OPEN_BOOTS)).values(
                    state=boot.state)).rowcount:
                raise _Outdated
        if verdict.state not in of:
            backlog_history.note(session, uuid, now, verdict.state,
                                 verdict.values.get('reason', ''))
        _write_servers(session, uuid, verdict.servers)
        if verdict.forgotten:
            session.execute(sa.delete(_SERVER).where(
                _SERVER.uuid.in_(verdict.forgotten)))
    return True


@retries.retried
def note(database, notes):
    """Write down what a pass has found, of those that still wait.

    :param notes: {uuid: a core.backlog.passing.Note}
    """
    if not notes:
        return
    statement = sa.update(_REQUEST.__table__).where(
        _REQUEST.uuid == sa.bindparam('of'),
        # Not IN, whose parameters are not for many statements at once.
        sa.or_(*(_REQUEST.state == state for state in _WAITING))).values(
        position=sa.bindparam('place'), waits_for=sa.bindparam('why'),
        estimate_s=sa.bindparam('wait_s'))
    rows = [{'of': uuid, 'place': item.position,
             'why': json.dumps(dict(item.waits_for)),
             'wait_s': item.estimate_s}
            for uuid, item in sorted(notes.items())]
    for some in reservation_rows.batches(rows):
        with database.writer() as session:
            session.execute(statement, some)


def placed(database, since):
    """[{resource class: amount}] of the boots since then that went well."""
    query = (sa.select(_REQUEST.alternatives, _BOOT.flavor_id, _BOOT.count)
             .join(_REQUEST, _REQUEST.uuid == _BOOT.request_uuid)
             .where(_BOOT.asked_at >= since, _BOOT.state == model.SETTLED))
    with database.reader() as session:
        rows = session.execute(query).all()
    return [{name: amount * row.count for name, amount
             in item.resources.items()}
            for row in rows for item in _alternatives(row.alternatives)
            if item.flavor_id == row.flavor_id]


def history(database, uuid):
    """[model.Change] of a request, the oldest first."""
    with database.reader() as session:
        return list(backlog_history.changes(session, uuid).values())


# -- rows ------------------------------------------------------------------


def _write_servers(session, uuid, servers):
    for server in sorted(servers, key=lambda item: item.uuid):
        values = {'boot': server.boot, 'state': server.state,
                  'since': server.since}
        if not session.execute(sa.update(_SERVER).where(
                _SERVER.uuid == server.uuid).values(**values)).rowcount:
            session.execute(sa.insert(_SERVER).values(
                uuid=server.uuid, request_uuid=uuid, **values))


def _values(request):
    return _columns({
        field.name: getattr(request, field.name)
        for field in dataclasses.fields(request) if field.name not in _APART})


def _columns(values):
    """The same as the columns have them."""
    found = dict(values)
    if 'alternatives' in found:
        found['alternatives'] = json.dumps(
            [_alternative(item) for item in found['alternatives']])
    if found.get('priorities') is not None:
        found['priorities'] = json.dumps(
            dataclasses.asdict(found['priorities']))
    for name in ('body', 'waits_for'):
        if name in found:
            found[name] = json.dumps(dict(found[name]))
    return found


def _fetch(session, query):
    rows = session.execute(query.with_only_columns(
        *_REQUEST.__table__.c, maintain_column_froms=True)).all()
    boots = {row.uuid: [] for row in rows}
    servers = {row.uuid: [] for row in rows}
    for uuids in reservation_rows.batches(boots):
        for row in session.execute(
                sa.select(*_BOOT.__table__.c)
                .where(_BOOT.request_uuid.in_(uuids)).order_by(_BOOT.number)):
            boots[row.request_uuid].append(model.Boot(*row[1:]))
        for row in session.execute(
                sa.select(_SERVER.request_uuid, _SERVER.uuid, _SERVER.boot,
                          _SERVER.state, _SERVER.since)
                .where(_SERVER.request_uuid.in_(uuids))
                .order_by(_SERVER.boot, _SERVER.uuid)):
            servers[row.request_uuid].append(model.OwnServer(*row[1:]))
    return [_request(row, boots[row.uuid], servers[row.uuid])
            for row in rows]


def _alternative(item):
    # Where reservations lead is known in a pass alone.
    return {**{name: value for name, value
               in dataclasses.asdict(item).items()
               if name not in ('hosts', 'own_hosts')},
            'resources': dict(item.resources)}


@functools.lru_cache(maxsize=1024)
def _alternatives(text):
    """Most requests have those of others, as the same object."""
    return tuple(
        model.Alternative(**{
            **item, **{name: tuple(item.get(name, ()))
                       for name in ('required', 'forbidden')}})
        for item in json.loads(text))


def _request(row, boots, servers):
    values = {field.name: getattr(row, field.name)
              for field in dataclasses.fields(model.Request)
              if field.name not in _APART}
    for name in ('body', 'waits_for'):
        values[name] = json.loads(values[name])
    values['alternatives'] = _alternatives(values['alternatives'])
    if values['priorities'] is not None:
        values['priorities'] = model.Priorities(
            **json.loads(values['priorities']))
    return model.Request(**values, boots=tuple(boots),
                         servers=tuple(servers))
