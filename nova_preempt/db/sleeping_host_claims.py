# SPDX-License-Identifier: Apache-2.0
"""Stores promises of sleeping hosts to waiting requests.

A lock row serializes them across processes.
"""

import datetime

import sqlalchemy as sa

from nova_preempt.core.energy import wake_choice
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

_LOCK = 'promises'
_PROMISE = models.PowerPromise


def get(database, since):
    """Return [core.energy.wake_choice.Promise] made since then."""
    with database.reader() as session:
        return _read(session, since)


@transaction_retries.retried
def make(database, request, choose, now, lifetime_s, is_on):
    """Promise hosts to a request, replacing its earlier promises.

    Promises of hosts that are on are kept, see core.energy.wake_choice.kept().

    :param request: the id of the request
    :param choose: called with the Promises to all requests, returns the
        Promises to this request
    :param lifetime_s: older promises are deleted
    :param is_on: returns whether a host is on
    :returns: the result of choose()
    """
    since = now - datetime.timedelta(seconds=lifetime_s)
    with database.writer() as session:
        row_schemas.lock(session, models.Lock, _LOCK)
        promised = _read(session, since)
        session.execute(sa.delete(_PROMISE).where(
            (_PROMISE.promised_at < since) | (_PROMISE.request == request)))
        found = choose(promised)
        session.add_all(
            _PROMISE(**row_schemas.values(item), promised_at=now)
            for item in (*found, *wake_choice.kept(request, promised, is_on)))
    return found


@transaction_retries.retried
def release(database, request):
    """Delete the promises to a request that no longer waits."""
    database.write(sa.delete(_PROMISE).where(_PROMISE.request == request))


@transaction_retries.retried
def forget(database, hosts):
    """Delete the promises of hosts that will not boot."""
    database.write(sa.delete(_PROMISE).where(_PROMISE.host.in_(sorted(hosts))))


def _read(session, since):
    return [wake_choice.Promise(*row) for row in session.execute(
        row_schemas.select(_PROMISE, wake_choice.Promise)
        .where(_PROMISE.promised_at >= since)
        .order_by(_PROMISE.promised_at, _PROMISE.request, _PROMISE.host))]
