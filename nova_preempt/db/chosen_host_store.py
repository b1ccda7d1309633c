# SPDX-License-Identifier: Apache-2.0
"""Hosts that were chosen for boots, by the digests of their secrets.

Who reads the database learns no secret that still works.
"""

import hashlib

import sqlalchemy as sa

from nova_preempt.core.backlog import host_choice
from nova_preempt.db import backlog_models
from nova_preempt.db import rows
from nova_preempt.db import transaction_retries

_CHOSEN = backlog_models.BacklogChosenHosts


@transaction_retries.retried_upsert
def keep(database, secret, choice):
    """Write down what a secret stands for.

    :param choice: a core.backlog.host_choice.Choice
    """
    with database.writer() as session:
        rows.upsert(session, _CHOSEN, {'digest': _digest(secret)},
                    rows.values(choice))


def get(database, secret):
    """The Choice that a secret stands for, None if there is none."""
    return next(iter(_choices(database, _CHOSEN.digest == _digest(secret))),
                None)


@transaction_retries.retried
def use(database, secret):
    """Have it used; returns whether it was not used before."""
    return database.write(sa.update(_CHOSEN).where(
        _CHOSEN.digest == _digest(secret),
        _CHOSEN.used == sa.false()).values(used=True)) == 1


def of_boots(database):
    """{(uuid of the request, number of the boot): {host: how many}}."""
    return {(item.request_uuid, item.number): item.hosts
            for item in _choices(database)}


@transaction_retries.retried
def forget(database, before):
    """Delete those that were to be used before then."""
    database.write(sa.delete(_CHOSEN).where(_CHOSEN.expires_at < before))


def _digest(secret):
    # JSON can have what UTF-8 has not; that is nobody's secret.
    return hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()


def _choices(database, *conditions):
    return [host_choice.Choice(*row) for row in database.read(sa.select(
        *rows.columns(_CHOSEN, host_choice.Choice)).where(*conditions))]
