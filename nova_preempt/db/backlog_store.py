# SPDX-License-Identifier: Apache-2.0
"""Stores waiting requests.

Times are naive and UTC. Each change is conditional on the state it expects
(compare and swap), so the later of two concurrent changes fails.
"""

import dataclasses
import datetime

import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_history
from nova_preempt.core.backlog import request_servers
from nova_preempt.db import backlog_history
from nova_preempt.db import backlog_models
from nova_preempt.db import backlog_rows
from nova_preempt.db import backlog_submissions
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

_REQUEST = backlog_models.BacklogRequest
_BOOT = backlog_models.BacklogBoot
_SERVER = backlog_models.BacklogServer
_CHANGE = backlog_models.BacklogChange

# Bodies in memory at once; each may have 100 kB.
_BODIES = 50

# Fields that a user may change until servers start, and until the end.
_STARTS = ('count', 'least_count', 'not_before')
_ENDS = ('not_after', 'longest_wait_s', 'comes_back', 'back_until',
         'most_returns')

#: Reason of a request that is cancelled because it cannot be removed.
NOT_ACCEPTED = 'The request was not accepted after all.'


@transaction_retries.retried
def create(database, request, begun=False, sealed=None):
    """Insert a new request.

    :param request: a core.backlog.backlog_model.Request
    :param begun: whether a PendingSubmission was written for it
    :param sealed: its secrets, encrypted
    :returns: False if the submission was given up; then nothing is written
    """
    with database.writer() as session:
        if begun and not backlog_submissions.complete(session, request.uuid):
            # True if this call committed before and its answer was lost.
            return _has_trust(session, request.uuid, request.trust_id)
        session.execute(sa.insert(_REQUEST).values(
            **backlog_rows.closing({
                'sealed': sealed,
                **row_schemas.values(request, 'boots', 'servers')})))
        serial = backlog_history.note(
            session, request.uuid, request.created_at, request.state,
            request.reason)
        session.execute(sa.update(_REQUEST).where(
            _REQUEST.uuid == request.uuid).values(serial=serial))
    return True


def _update(session, uuid, of, *conditions, **values):
    """Set values of a request; return whether it was in these states."""
    return session.execute(sa.update(_REQUEST).where(
        _REQUEST.uuid == uuid, _REQUEST.state.in_(of), *conditions).values(
        **backlog_rows.closing(values))).rowcount == 1


def _has_trust(session, uuid, trust_id):
    return session.execute(sa.select(_REQUEST.uuid).where(
        _REQUEST.uuid == uuid,
        _REQUEST.trust_id == trust_id)).first() is not None


def get(database, uuid, project_id=None):
    """Return the Request, None if there is none (of this project)."""
    query = backlog_rows.QUERIES[True].where(_REQUEST.uuid == uuid)
    if project_id is not None:
        query = query.where(_REQUEST.project_id == project_id)
    with database.reader() as session:
        return next(iter(backlog_rows.fetch(session, query)), None)


def find(database, states=None, project_id=None, user_id=None, marker=None,
         limit=None, newest_first=False, with_trust=False, with_bodies=True):
    """Return the Requests that match all conditions, oldest first.

    :param with_trust: only requests whose trust has not been deleted
    :param with_bodies: False to leave bodies, which are large, as {}
    :param marker: a Request; only requests after it in the order
    """
    query = backlog_rows.QUERIES[with_bodies]
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
        return backlog_rows.fetch(session, query)


def bodies(database, uuids):
    """Iterate over (uuid, body) of these requests, as far as they exist."""
    for some in row_schemas.batches(sorted(uuids), _BODIES):
        yield from map(tuple, database.read(
            sa.select(_REQUEST.uuid, _REQUEST.body)
            .where(_REQUEST.uuid.in_(some))))


def trusts(database):
    """Return the set of trust ids of all requests."""
    return set(database.scalars(sa.select(_REQUEST.trust_id).where(
        _REQUEST.trust_id > '')))


def count(database, project_id, states=backlog_model.OPEN, since=None):
    """Return the number of requests of a project in these states.

    :param since: only requests that were created after this time
    """
    query = sa.select(sa.func.count()).select_from(_REQUEST).where(
        _REQUEST.project_id == project_id, _REQUEST.state.in_(states))
    if since is not None:
        query = query.where(_REQUEST.created_at > since)
    number, = database.scalars(query)
    return number


@dataclasses.dataclass(frozen=True)
class TrustReplacement:
    """A new trust that replaces the trust of a request.

    :ivar begun: the PendingSubmission of the new trust, already written
    :ivar replaced: the id of the old trust
    :ivar left: a PendingSubmission of the old trust, which is deleted once
        no call can use it
    """

    begun: backlog_submissions.PendingSubmission
    replaced: str
    left: backlog_submissions.PendingSubmission


@transaction_retries.retried
def change(database, uuid, of, now, renewal=None, **values):
    """Change a request that is in one of these states.

    A new state is recorded in its history, with its reason.

    :param of: the states that it may be in
    :param renewal: a TrustReplacement if its trust is among the values
    :param values: {field of backlog_model.Request: value}
    :returns: whether it was in these states, and had the trust to replace
    """
    conditions = []
    with database.writer() as session:
        if renewal is not None:
            if not backlog_submissions.complete(session, renewal.begun.uuid):
                # True if this call committed before and its answer was lost.
                return _has_trust(session, uuid, values['trust_id'])
            conditions.append(_REQUEST.trust_id == renewal.replaced)
        found = _update(session, uuid, of, *conditions, updated_at=now,
                        **values)
        if renewal is not None:
            backlog_submissions.restore(
                session, renewal.left if found else renewal.begun)
        if found and 'state' in values:
            backlog_history.note(session, uuid, now, values['state'],
                                 values.get('reason', ''))
            backlog_rows.shorten(session, uuid, values['state'])
    return found


@dataclasses.dataclass(frozen=True)
class RequestRemoval:
    """The result of removing a request.

    :ivar is_gone: whether it was deleted; otherwise it is kept, since the
        engine needs its trust to clean up
    :ivar cancelled: its state before this call cancelled it, '' if it was
        closed already
    """

    is_gone: bool
    cancelled: str = ''


@transaction_retries.retried
def remove(database, begun, now):
    """Delete a request whose submission failed; idempotent.

    Its submission is pending again, since its trust still exists. A request
    for which Nova was called meanwhile is cancelled instead, with its servers.

    :param begun: a nova_preempt.db.backlog_submissions.PendingSubmission
    :returns: a RequestRemoval
    """
    uuid = begun.uuid
    with database.writer() as session:
        # First, so that no boot begins for it from now on.
        was_open = _update(
            session, uuid, backlog_model.OPEN, state=backlog_model.CANCELLED,
            reason=NOT_ACCEPTED, ends_servers=True, updated_at=now)
        if not was_open and session.execute(sa.select(_REQUEST.uuid).where(
                _REQUEST.uuid == uuid)).first():
            return RequestRemoval(is_gone=False)
        if session.execute(sa.select(_BOOT.number).where(
                _BOOT.request_uuid == uuid)).first():
            before = list(backlog_history.changes(
                session, uuid).values())[-1].state
            backlog_history.note(session, uuid, now, backlog_model.CANCELLED,
                                 NOT_ACCEPTED)
            backlog_rows.shorten(session, uuid, backlog_model.CANCELLED)
            return RequestRemoval(is_gone=False, cancelled=before)
        backlog_submissions.restore(session, begun)
        for table, column in ((_CHANGE, _CHANGE.request_uuid),
                              (_REQUEST, _REQUEST.uuid)):
            session.execute(sa.delete(table).where(column == uuid))
    return RequestRemoval(is_gone=True)


def _unchanged(decided, names):
    """Return conditions that these fields of a Request did not change."""
    return [getattr(_REQUEST, name) == getattr(decided, name)
            for name in names if decided is not None]


@transaction_retries.retried
def begin_boot(database, uuid, of, boot, reason='', forgotten=(),
               decided=None):
    """Write a boot before Nova is called for it.

    :param of: the states that the request may be in
    :param boot: a backlog_model.SentBoot
    :param forgotten: the numbers of boots to delete, see
        core.backlog.request_servers.forgotten_boots
    :param decided: the Request for which the boot was decided; its user may
        have changed it since
    :returns: False if the request is in another state or was changed; then
        nothing is written
    """
    with database.writer() as session:
        found = _update(
            session, uuid, of, *_unchanged(decided, _STARTS),
            state=backlog_model.PLACING, reason=reason, position=None,
            estimate_s=None, updated_at=boot.asked_at)
        if found:
            session.execute(sa.insert(_BOOT).values(
                request_uuid=uuid, **row_schemas.values(boot)))
            if forgotten:
                _forget(session, uuid, forgotten, boot.asked_at)
            backlog_history.note(session, uuid, boot.asked_at,
                                 backlog_model.PLACING, reason)
    return found


def _forget(session, uuid, numbers, now):
    """Delete boots without servers, and condense their history."""
    for some in row_schemas.batches(numbers):
        session.execute(sa.delete(_BOOT).where(
            _BOOT.request_uuid == uuid, _BOOT.number.in_(some)))
    changes = backlog_history.changes(session, uuid)
    before = now - datetime.timedelta(seconds=request_servers.LATE_S)
    ids = list(changes)
    forgotten = [ids[index] for index in request_history.failed_tries(
        list(changes.values()), before)]
    for number in forgotten:
        del changes[number]
    not_before = session.execute(sa.select(_REQUEST.not_before).where(
        _REQUEST.uuid == uuid)).scalar()
    replaced, sums = request_history.condensed(list(changes.values()),
                                               not_before)
    first = list(changes)[:replaced]
    for number, change in zip(first, sums, strict=False):
        session.execute(sa.update(_CHANGE).where(_CHANGE.id == number).values(
            **row_schemas.values(change)))
    for some in row_schemas.batches(forgotten + first[len(sums):]):
        session.execute(sa.delete(_CHANGE).where(_CHANGE.id.in_(some)))


def _write_servers(session, uuid, servers):
    for server in sorted(servers, key=lambda item: item.uuid):
        values = row_schemas.values(server, 'uuid')
        if not session.execute(sa.update(_SERVER).where(
                _SERVER.uuid == server.uuid).values(**values)).rowcount:
            session.execute(sa.insert(_SERVER).values(
                uuid=server.uuid, request_uuid=uuid, **values))


class _Outdated(Exception):
    """Another process has ended a boot."""


def record(database, uuid, of, now, verdict, decided=None):
    """Write a verdict on a request, atomically.

    :param of: the states that the request may be in
    :param verdict: a core.backlog.boot_outcome.Transition
    :param decided: the Request that was judged; its limits on waiting must
        be unchanged if the verdict closes it
    :returns: False if the request is in another state or was changed, or a
        boot has ended; then nothing is written
    """
    ends = verdict.state in backlog_model.CLOSED
    try:
        return _record(database, uuid, of, now, verdict,
                       _unchanged(decided, _ENDS if ends else ()))
    except _Outdated:
        return False


@transaction_retries.retried
def _record(database, uuid, of, now, verdict, conditions):
    with database.writer() as session:
        if not _update(session, uuid, of, *conditions, **{
                **verdict.values, 'state': verdict.state, 'updated_at': now}):
            return False
        for boot in verdict.boots:
            if not session.execute(sa.update(_BOOT).where(
                    _BOOT.request_uuid == uuid, _BOOT.number == boot.number,
                    _BOOT.state.in_(request_servers.OPEN_BOOTS)).values(
                    state=boot.state)).rowcount:
                raise _Outdated
        if verdict.state not in of:
            backlog_history.note(session, uuid, now, verdict.state,
                                 verdict.values.get('reason', ''))
            backlog_rows.shorten(session, uuid, verdict.state)
        _write_servers(session, uuid, verdict.servers)
        if verdict.forgotten:
            session.execute(sa.delete(_SERVER).where(
                _SERVER.uuid.in_(verdict.forgotten)))
    return True


@transaction_retries.retried
def note(database, notes):
    """Write what a pass found about requests that still wait.

    :param notes: {uuid: a core.backlog.dispatch.WaitNote}
    """
    if not notes:
        return
    statement = sa.update(_REQUEST.__table__).where(
        _REQUEST.uuid == sa.bindparam('of'),
        # Not IN, whose parameters executemany does not support.
        sa.or_(*(_REQUEST.state == state
                 for state in backlog_model.IN_ORDER))).values(
        position=sa.bindparam('place'), waits_for=sa.bindparam('why'),
        estimate_s=sa.bindparam('wait_s'))
    found = [{'of': uuid, 'place': item.position, 'why': item.waits_for,
              'wait_s': item.estimate_s}
             for uuid, item in sorted(notes.items())]
    for some in row_schemas.batches(found):
        with database.writer() as session:
            session.execute(statement, some)


def placed(database, since):
    """Return [{resource class: amount}] of settled boots since then."""
    query = (sa.select(_REQUEST.alternatives, _BOOT.flavor_id, _BOOT.count)
             .join(_REQUEST, _REQUEST.uuid == _BOOT.request_uuid)
             .where(_BOOT.asked_at >= since,
                    _BOOT.state == backlog_model.SETTLED))
    return [{name: amount * count for name, amount in item.resources.items()}
            for alternatives, flavor_id, count in database.read(query)
            for item in alternatives if item.flavor_id == flavor_id]


def history(database, uuid):
    """Return [backlog_model.StateChange] of a request, oldest first."""
    with database.reader() as session:
        return list(backlog_history.changes(session, uuid).values())
