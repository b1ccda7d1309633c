# SPDX-License-Identifier: Apache-2.0
"""Promises of sleeping hosts to waiting requests.

One lock row gives all of them one order, whichever engine is asked.
"""

import datetime

import sqlalchemy as sa

from nova_preempt.core.energy import wake_demand
from nova_preempt.db import models
from nova_preempt.db import rows
from nova_preempt.db import transaction_retries

_LOCK = 'promises'


def get(database, since):
    """[core.energy.wake_demand.Promise] of those made since then."""
    with database.reader() as session:
        return _read(session, since)


@transaction_retries.retried
def make(database, request, choose, now, lifetime_s, is_on):
    """Promise hosts to a request, in place of what was promised to it.

    But for hosts that are on, see core.energy.wake_demand.kept().

    :param request: what tells it from others
    :param choose: given the Promises to others, returns those to this one
    :param lifetime_s: older ones are forgotten
    :param is_on: returns whether a host is
    :returns: what choose() did
    """
    since = now - datetime.timedelta(seconds=lifetime_s)
    table = models.PowerPromise
    with database.writer() as session:
        rows.lock(session, models.Lock, _LOCK)
        promised = _read(session, since)
        session.execute(sa.delete(table).where(
            (table.promised_at < since) | (table.request == request)))
        found = choose(promised)
        session.add_all(
            table(**rows.values(item), promised_at=now)
            for item in (*found, *wake_demand.kept(request, promised, is_on)))
    return found


@transaction_retries.retried
def release(database, request):
    """A request waits no more."""
    table = models.PowerPromise
    database.write(sa.delete(table).where(table.request == request))


@transaction_retries.retried
def forget(database, hosts):
    """These hosts will not be on."""
    table = models.PowerPromise
    database.write(sa.delete(table).where(table.host.in_(sorted(hosts))))


def _read(session, since):
    table = models.PowerPromise
    return [wake_demand.Promise(*row) for row in session.execute(
        sa.select(*rows.columns(table, wake_demand.Promise))
        .where(table.promised_at >= since)
        .order_by(table.promised_at, table.request, table.host))]
