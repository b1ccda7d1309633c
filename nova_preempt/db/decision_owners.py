# SPDX-License-Identifier: Apache-2.0
"""Processes that own decisions, and until when each is known to be alive.

A lease is dated by the database. One that has run out is never renewed: who
finds it so may take over what its owner was working on.
"""

import sqlalchemy as sa

from nova_preempt.db import database_clock
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import transaction_retries

# Rows of the dead are of use as long as somebody may ask for them. What an
# owner without a row has left is told by its own age.
_KEPT_S = 86_400


@transaction_retries.retried_upsert
def add(database, name, lease_s):
    """Begin a lease."""
    with database.writer() as session:
        session.execute(sa.delete(models.Owner).where(
            models.Owner.expires_at < database_clock.after(-_KEPT_S)))
        session.execute(sa.insert(models.Owner).values(
            name=name, expires_at=database_clock.after(lease_s)))


def renew(database, name, lease_s):
    """Go on with a lease, and give a sign of life for what it covers.

    :returns: False if it has run out
    """
    with database.writer() as session:
        renewed = session.execute(
            sa.update(models.Owner) .where(models.Owner.name == name)
            .where(models.Owner.expires_at > database_clock.now())
            .values(expires_at=database_clock.after(lease_s))).rowcount
        if renewed:
            session.execute(
                sa.update(models.Decision)
                .where(models.Decision.status.in_(decisions.OPEN))
                .where(models.Decision.owner == name)
                .values(updated_at=database_clock.now()))
        return renewed == 1


@transaction_retries.retried
def end(database, names):
    """These are dead, or about to be: their leases run out now."""
    database.write(
        sa.update(models.Owner) .where(models.Owner.name.in_(list(names)))
        .where(models.Owner.expires_at > database_clock.now())
        .values(expires_at=database_clock.now()))


def get_leader(database) -> str:
    """Return the name of the owner whose engine acts, '' if none does."""
    leader, = database.scalars(sa.select(models.Leader.owner))
    return leader


def replace_leader(database, old, new) -> bool:
    """Make another owner the leader, unless somebody was faster."""
    return database.write(
        sa.update(models.Leader) .where(models.Leader.owner == old)
        .values(owner=new)) == 1


@transaction_retries.retried
def get_leases(database) -> dict[str, bool]:
    """{name of an owner: whether its lease has not run out}."""
    query = sa.select(models.Owner.name,
                      models.Owner.expires_at > database_clock.now())
    return {name: bool(alive) for name, alive in database.read(query)}
