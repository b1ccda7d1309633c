# SPDX-License-Identifier: Apache-2.0
"""Leases of processes that own decisions, and the leader among them.

The database's clock dates leases. An expired lease is never renewed: another
process may take over the decisions of its owner.
"""

from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.db import database_clock
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import transaction_retries

# How long rows of dead owners are kept. Decisions of an owner without a row
# are recovered by their own age.
_KEPT_S = 86_400
# These are executed all the time; SQLAlchemy takes longer to build a
# statement than to execute it.
_LEADER = sa.select(models.Leader.owner, database_clock.now())
_LEASES = sa.select(models.Owner.name,
                    models.Owner.expires_at > database_clock.now())
_RENEWAL = (
    sa.update(models.Owner) .where(models.Owner.name == sa.bindparam('owner_'))
    .where(models.Owner.expires_at > database_clock.now())
    .values(expires_at=database_clock.SecondsFromNow(
        sa.bindparam('lease_s', type_=sa.Float))))
_KEEP = (
    sa.update(models.Decision)
    .where(models.Decision.status.in_(decisions.OPEN))
    .where(models.Decision.owner == sa.bindparam('owner_'))
    .values(updated_at=database_clock.now()))


@transaction_retries.retried_upsert
def add(database, name, lease_s):
    """Insert an owner with a new lease."""
    with database.writer() as session:
        session.execute(sa.delete(models.Owner).where(
            models.Owner.expires_at < database_clock.SecondsFromNow(-_KEPT_S)))
        session.execute(sa.insert(models.Owner).values(
            name=name, expires_at=database_clock.SecondsFromNow(lease_s)))


def renew(database, name, lease_s):
    """Renew a lease, and update the time of its owner's open decisions.

    :returns: False if the lease has expired
    """
    renewed = database.write(_RENEWAL, owner_=name, lease_s=lease_s) == 1
    if renewed:
        database.write(_KEEP, owner_=name)
    return renewed


@transaction_retries.retried
def end(database, names):
    """Expire the leases of these owners now."""
    database.write(
        sa.update(models.Owner) .where(models.Owner.name.in_(list(names)))
        .where(models.Owner.expires_at > database_clock.now())
        .values(expires_at=database_clock.now()))


def get_leader(database) -> str:
    """Return the name of the leading engine, '' if there is none."""
    return database.scalars(_LEADER)[0]


def get_leader_and_clock(database) -> tuple[str, float]:
    """Return the leader, and the seconds our clock is ahead of the database's.

    0 seconds where the time that the query takes may be the reason.
    """
    before = timeutils.utcnow()
    (leader, at), after = database.read(_LEADER)[0], timeutils.utcnow()
    return leader, max((before - at).total_seconds(),
                       min(0, (after - at).total_seconds()))


def replace_leader(database, old, new) -> bool:
    """Replace the leader; return False if it is no longer the old one."""
    return database.write(sa.update(models.Leader).where(
        models.Leader.owner == old).values(owner=new)) == 1


@transaction_retries.retried
def get_leases(database) -> dict[str, bool]:
    """Return {name of an owner: whether its lease is valid}."""
    return {name: bool(alive) for name, alive in database.read(_LEASES)}
