# SPDX-License-Identifier: Apache-2.0
"""Stores the webhooks of projects, and the events that wait for them.

The API writes webhooks; nova-preempt-webhook writes and sends events. All
times are naive and UTC.
"""

import contextlib
import datetime

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_preempt.core import webhook_delivery
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

#: The most events that wait for the webhook of a project. Several processes
#: may exceed it by an event for each of their threads.
MOST_WAITING = 1000

_HOOK, _EVENT = models.Webhook, models.WebhookDelivery


def get(database, project_id):
    """Return the Webhook of a project, None if it has none."""
    rows = database.read(row_schemas.select(
        _HOOK, webhook_delivery.Webhook).where(_HOOK.project_id == project_id))
    return webhook_delivery.Webhook(**rows[0]._mapping) if rows else None


def count_waiting(database, project_id=None):
    """Return how many events wait for the webhook of a project, or of all."""
    return database.scalars(sa.select(sa.func.count(_EVENT.id)).where(
        project_id is None or _EVENT.project_id == project_id))[0]


@transaction_retries.retried_upsert
def put(database, webhook):
    """Write a webhook; failures of an earlier one are forgotten."""
    with database.writer() as session:
        row_schemas.upsert(
            session, _HOOK, {'project_id': webhook.project_id},
            row_schemas.values(webhook, 'project_id'))


@transaction_retries.retried
def delete(database, project_id):
    """Delete a webhook and its events; return whether there was one."""
    with database.writer() as session:
        found = session.execute(sa.delete(_HOOK).where(
            _HOOK.project_id == project_id)).rowcount
        session.execute(sa.delete(_EVENT).where(
            _EVENT.project_id == project_id))
    return bool(found)


@transaction_retries.retried
def add(database, event):
    """Store an event that is to be sent, unless it is stored already.

    If MOST_WAITING events wait, it is dropped and counted.

    :param event: a core webhook_delivery.Delivery
    :returns: how many events were dropped
    """
    is_full = count_waiting(database, event.project_id) >= MOST_WAITING
    with (contextlib.suppress(db_exc.DBDuplicateEntry),
          database.writer() as session):
        if is_full:
            _count_dropped(session, event.project_id)
        else:
            session.execute(sa.insert(_EVENT).values(**vars(event)))
    return int(is_full)


def due(database, now, most, limit):
    """Return [(Delivery, Webhook)] to be sent now.

    Projects take turns, so that none waits for the many events of another.

    :param most: events of a project at most
    :param limit: events at most
    """
    turn = sa.func.row_number().over(
        partition_by=_EVENT.project_id, order_by=_EVENT.next_at)
    ranked = sa.select(_EVENT.id, turn.label('turn')).join(
        _HOOK, _HOOK.project_id == _EVENT.project_id).where(
        _EVENT.next_at <= now, _HOOK.retry_at <= now).subquery()
    events = row_schemas.columns(_EVENT, webhook_delivery.Delivery)
    hooks = row_schemas.columns(_HOOK, webhook_delivery.Webhook)
    rows = database.read(
        sa.select(*events, *hooks).select_from(_EVENT)
        .join(ranked, ranked.c.id == _EVENT.id)
        .join(_HOOK, _HOOK.project_id == _EVENT.project_id)
        .where(ranked.c.turn <= most)
        .order_by(ranked.c.turn, _EVENT.next_at).limit(limit))
    return [(webhook_delivery.Delivery(*row[:len(events)]),
             webhook_delivery.Webhook(*row[len(events):])) for row in rows]


@transaction_retries.retried
def claim(database, event, until):
    """Claim an event for this process; return whether it has it.

    :param until: when another process may send it, if this one has died
    """
    return bool(database.write(sa.update(_EVENT).where(
        _EVENT.id == event.id, _EVENT.attempts == event.attempts).values(
            next_at=until, attempts=event.attempts + 1)))


@transaction_retries.retried
def delivered(database, event, now):
    """Delete an event that was delivered."""
    with database.writer() as session:
        session.execute(sa.delete(_EVENT).where(_EVENT.id == event.id))
        session.execute(
            sa.update(_HOOK).where(_HOOK.project_id == event.project_id)
            .values(failures=0, last_error='', delivered_at=now))


@transaction_retries.retried
def failed(database, event, webhook, error, now, wait_s):
    """Write why a call has failed, and when the next one is.

    :param webhook: as it was before the call. Calls that failed at the same
        time count as one
    :param wait_s: function of a number of failures
    :returns: how many events were dropped
    """
    attempts, failures = event.attempts + 1, webhook.failures + 1
    with database.writer() as session:
        if is_last := attempts >= webhook_delivery.MAX_ATTEMPTS:
            session.execute(sa.delete(_EVENT).where(_EVENT.id == event.id))
            _count_dropped(session, event.project_id)
        else:
            session.execute(
                sa.update(_EVENT).where(_EVENT.id == event.id)
                .values(next_at=_after(now, wait_s(attempts))))
        session.execute(
            sa.update(_HOOK).where(
                _HOOK.project_id == event.project_id,
                _HOOK.failures == webhook.failures,
                _HOOK.updated_at == webhook.updated_at)
            .values(failures=failures, last_error=error,
                    retry_at=_after(now, wait_s(failures))))
    return int(is_last)


@transaction_retries.retried
def delete_expired(database, now):
    """Delete the events that are of no use any more; return how many."""
    is_over = _EVENT.expires_at <= now
    found = database.read(sa.select(_EVENT.project_id, sa.func.count())
                          .where(is_over).group_by(_EVENT.project_id))
    if found:
        with database.writer() as session:
            session.execute(sa.delete(_EVENT).where(is_over))
            for project_id, count in found:
                _count_dropped(session, project_id, count)
    return sum(count for _project, count in found)


def _after(now, seconds):
    return now + datetime.timedelta(seconds=seconds)


def _count_dropped(session, project_id, count=1):
    session.execute(sa.update(_HOOK).where(_HOOK.project_id == project_id)
                    .values(dropped=_HOOK.dropped + count))
