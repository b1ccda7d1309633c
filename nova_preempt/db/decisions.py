# SPDX-License-Identifier: Apache-2.0
"""Stores decisions and their victims.

Only its owner changes a decision: every change is conditional on the owner
(compare and swap). A process whose change fails has lost the decision to the
recovery.
"""

from oslo_db import exception as db_exc
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.core import eviction_status
from nova_preempt.db import database_clock
from nova_preempt.db import models
from nova_preempt.db import row_schemas
from nova_preempt.db import transaction_retries

# Statuses of a decision. A decision in OPEN has to be finished.
INTENT = 'intent'              # written; the space may be claimed or not
CLAIMED = 'claimed'            # the space is claimed, victims are evicted
ROLLING_BACK = 'rolling_back'  # allocations of victims are being restored
DONE = 'done'                  # victims are gone, the server may be built
ROLLED_BACK = 'rolled_back'    # restored, as far as victims still exist
ABORTED = 'aborted'            # ended before any effect
REFUSED = 'refused'            # a record only: preemption cannot help
OPEN = (INTENT, CLAIMED, ROLLING_BACK)

#: How long after its decision was closed a victim that Nova still deletes or
#: shelves counts as ending.
LEAVING_S = 3600

# Statuses of a victim.
PENDING = eviction_status.PENDING
NOTICED = eviction_status.NOTICED
ENDING = eviction_status.ENDING
GONE = eviction_status.GONE
SHELVED = eviction_status.SHELVED
STOPPED = eviction_status.STOPPED
MIGRATED = eviction_status.MIGRATED
KEPT = eviction_status.KEPT
RESTORED = eviction_status.RESTORED
LEFT = eviction_status.LEFT
LEFT_PLACE = eviction_status.LEFT_PLACE
ENDED = eviction_status.ENDED


class AlreadyEnding(Exception):
    """Another open decision evicts the same servers."""

    def __init__(self, uuids):
        super().__init__(f'end already: {", ".join(sorted(uuids))}')


class LostDecision(Exception):
    """Another process has taken over the decision."""


class OverBudget(Exception):
    """An eviction budget does not allow the evictions."""


# Tables rather than classes: faster, and no objects of a session have to be
# synchronized.
_DECISIONS = models.Decision.__table__
_VICTIMS = models.Victim.__table__
_WITH_STATUS = (
    sa.select(models.Victim)
    .where(models.Victim.status.in_(sa.bindparam('statuses', expanding=True)))
    .order_by(models.Victim.ended_at, models.Victim.server_uuid))
_SURVIVED = (
    sa.select(models.Victim.server_uuid, sa.func.count())
    .where(models.Victim.status.in_(eviction_status.SURVIVED))
    .group_by(models.Victim.server_uuid))

Decision = row_schemas.Decision
Victim = row_schemas.Victim


class Decisions:
    """Store of the decisions of all processes.

    :param database: a nova_preempt.db.Database
    """

    def __init__(self, database):
        self._db = database

    def create_decision(self, decision, check=None, since=None):
        """Insert a new decision.

        :param check: called with the result of get_ending(), including the
            victims of this decision; raises OverBudget if they are too many.
            A lock serializes these checks across processes
        :param since: see get_ending()
        :raises AlreadyEnding: another open decision has one of the victims
        """
        try:
            self._create_decision(decision, check, since)
        except db_exc.DBDuplicateEntry:
            # The connection was lost after the commit.
            if self.get_decision(decision.uuid) is None:
                raise

    @transaction_retries.retried
    def _create_decision(self, decision, check, since):
        values = {**row_schemas.values(decision, 'victims'),
                  'created_at': timeutils.utcnow(),
                  'updated_at': database_clock.now()}
        victims = [{**row_schemas.values(victim),
                    'decision_uuid': decision.uuid}
                   for victim in decision.victims]
        with self._db.writer() as session:
            if check is not None:
                # Without the lock, concurrent transactions do not see each
                # other's victims, except in SQLite.
                row_schemas.lock(session, models.Lock, 'budgets')
            session.execute(sa.insert(_DECISIONS).values(**values))
            if victims:
                session.execute(sa.insert(_VICTIMS), victims)
            if decision.victims and decision.status in OPEN:
                # After the insert, so that SQLite waits for its lock.
                self._check_ending(session, decision)
            if check is not None:
                check(_ending(session, since))

    @staticmethod
    def _check_ending(session, decision):
        uuids = {victim.server_uuid for victim in decision.victims}
        if ending := set(session.execute(_open_victims().where(
                models.Decision.uuid != decision.uuid,
                models.Victim.server_uuid.in_(uuids))).scalars()):
            raise AlreadyEnding(ending)

    def update_decision(self, uuid, owner, status, *, new_owner=None,
                        from_status=None, **values) -> bool:
        """Change the status of a decision.

        :param owner: the owner that it must have
        :param from_status: the status that it must have; None for any
        :returns: False if the owner or status differs
        """
        query = (sa.update(_DECISIONS) .where(models.Decision.uuid == uuid)
                 .where(models.Decision.owner == owner))
        if from_status is not None:
            query = query.where(models.Decision.status == from_status)
        values.update(status=status, updated_at=database_clock.now(),
                      owner=owner if new_owner is None else new_owner)
        tries = []

        @transaction_retries.retried
        def update():
            tries.append(uuid)
            return self._db.write(query.values(**values)) == 1

        if update():
            return True
        # The connection may have been lost after the commit: no other process
        # sets this owner and status.
        return len(tries) > 1 and self._is(uuid, status, values['owner'])

    @transaction_retries.retried
    def _is(self, uuid, status, owner):
        return bool(self._db.read(sa.select(models.Decision.uuid).where(
            models.Decision.uuid == uuid, models.Decision.status == status,
            models.Decision.owner == owner)))

    @transaction_retries.retried
    def update_victim(self, decision_uuid, server_uuid, status, owner=None,
                      **values):
        """Change the record of a victim.

        :param owner: the decision must still be of this owner; None: of any
        :raises LostDecision: it has another owner
        """
        is_ours = sa.true() if owner is None else sa.exists().where(
            models.Decision.uuid == decision_uuid,
            models.Decision.owner == owner)
        if not self._db.write(sa.update(_VICTIMS).where(
                models.Victim.decision_uuid == decision_uuid,
                models.Victim.server_uuid == server_uuid, is_ours).values(
                    status=status, **values)) and owner is not None:
            raise LostDecision(f'{decision_uuid} is of another process now')

    @transaction_retries.retried
    def reopen(self, uuid, owner):
        """Make an owner roll back a decision, whoever owns it.

        Its kept victims are PENDING again. Victims that another open decision
        has by now are left to that one: they are KEPT here.

        :returns: False if it does not exist, or is DONE
        """
        query = sa.update(_DECISIONS).where(
            models.Decision.uuid == uuid, models.Decision.status != DONE
        ).values(owner=owner, status=ROLLING_BACK,
                 updated_at=database_clock.now())
        victims = sa.update(_VICTIMS).where(
            models.Victim.decision_uuid == uuid)
        unfinished = models.Victim.status.not_in(ENDED)
        with self._db.writer() as session:
            if session.execute(query).rowcount != 1:
                return False
            # Not a subquery: MySQL refuses one of the table that is changed.
            theirs = models.Victim.server_uuid.in_(session.execute(
                _open_victims().where(models.Decision.uuid != uuid, unfinished)
            ).scalars().all())
            session.execute(victims.where(theirs, unfinished).values(
                status=KEPT, ended_at=timeutils.utcnow()))
            session.execute(victims.where(
                ~theirs, models.Victim.status == KEPT
            ).values(status=PENDING, ended_at=None))
            return True

    @transaction_retries.retried
    def get_decision(self, uuid):
        """Return a Decision, None if there is none."""
        with self._db.reader() as session:
            row = session.get(models.Decision, uuid)
            return row and load(row)

    @transaction_retries.retried
    def get_decisions(self, *, statuses=None, server_uuid=None,
                      request_id=None, provider_uuid=None,
                      victim_uuid=None, stand_in=None):
        """Return Decisions, oldest first.

        :param stand_in: the uuid of a consumer in the record; the search reads
            the whole table
        """
        query = sa.select(models.Decision).order_by(
            models.Decision.created_at, models.Decision.uuid)
        for column, value in (('server_uuid', server_uuid),
                              ('request_id', request_id),
                              ('provider_uuid', provider_uuid)):
            if value is not None:
                query = query.where(getattr(models.Decision, column) == value)
        if victim_uuid is not None:
            query = query.where(models.Decision.victims.any(
                models.Victim.server_uuid == victim_uuid))
        if stand_in is not None:
            query = query.where(sa.type_coerce(
                models.Decision.record, sa.Text).contains(stand_in))
        if statuses is not None:
            query = query.where(models.Decision.status.in_(statuses))
        return load_all(self._db, query)

    def get_victims(self, *statuses):
        """Return [(decision uuid, Victim)] of victims with these statuses.

        They are sorted by the time they ended.
        """
        return [(row.decision_uuid, row_schemas.load(Victim, row))
                for row in self._db.scalars(_WITH_STATUS, statuses=statuses)]

    def get_leaving(self):
        """Return the Victims that end after their decision was closed.

        Those of decisions that were closed within LEAVING_S.
        """
        return [row_schemas.load(Victim, row) for row
                in self._db.scalars(_leaving(models.Victim))]

    def get_statuses(self, uuids):
        """Return {server uuid: its status as a victim} of these servers.

        The last decision counts that was not rolled back before it had an
        effect on the server.
        """
        victim, decision = models.Victim, models.Decision
        found = {}
        with self._db.reader() as session:
            for some in row_schemas.batches(sorted(uuids)):
                found.update(session.execute(
                    sa.select(victim.server_uuid, victim.status)
                    .join(decision, decision.uuid == victim.decision_uuid)
                    .where(victim.server_uuid.in_(some), has_effect())
                    .order_by(decision.created_at, decision.uuid)
                ).tuples().all())
        return found

    def get_claimed_uuids(self):
        """Return the set of uuids of CLAIMED decisions."""
        return set(self._db.scalars(sa.select(
            models.Decision.uuid).where(models.Decision.status == CLAIMED)))

    def get_ending(self, since=None):
        """Return {uuid of a server that is being evicted: its project id}.

        They are the victims of open decisions, and those of get_leaving();
        with since, a naive UTC time, also victims that ended after it.
        """
        with self._db.reader() as session:
            return _ending(session, since)

    def count_preemptions(self):
        """{uuid of a server: number of evictions that it survived}."""
        return dict(map(tuple, self._db.read(_SURVIVED)))

    @transaction_retries.retried
    def get_open_decisions(self):
        """Return [(Decision, age_s)] of open decisions, oldest first.

        age_s is the time since its owner last renewed its lease, or since the
        decision was given up, by the database's clock.
        """
        query = (sa.select(models.Decision)
                 .where(models.Decision.status.in_(OPEN))
                 .order_by(models.Decision.created_at, models.Decision.uuid))
        with self._db.reader() as session:
            now = session.execute(sa.select(database_clock.now())).scalar_one()
            return [(load(row), (now - row.updated_at).total_seconds())
                    for row in session.execute(query).unique().scalars()]


def has_effect():
    """Return the condition that a decision affects, or will affect, a victim.

    It is false where the decision was rolled back before.
    """
    return models.Decision.status.in_((*OPEN, DONE)) | (
        (models.Decision.status == ROLLED_BACK)
        & models.Victim.status.not_in(eviction_status.UNTOUCHED))


def load_all(database, query):
    """Return the Decisions of a query, with their victims."""
    with database.reader() as session:
        return [load(row) for row in session.execute(query).unique().scalars()]


def load(row):
    """Return the Decision of a row, with its victims."""
    return row_schemas.load(Decision, row, victims=tuple(
        row_schemas.load(Victim, victim) for victim in row.victims))


def _open_victims(*columns):
    """Return a query of the victims of open decisions.

    :param columns: of them, beside their server_uuid
    """
    return sa.select(models.Victim.server_uuid, *columns).join(
        models.Decision, models.Decision.uuid == models.Victim.decision_uuid
    ).where(models.Decision.status.in_(OPEN))


def ending_late(*columns):
    """Return a query of columns of ENDING victims of closed decisions."""
    return sa.select(*columns).join(
        models.Decision, models.Decision.uuid == models.Victim.decision_uuid
    ).where(models.Victim.status == ENDING,
            models.Decision.status.not_in(OPEN))


def _leaving(*columns):
    """Return a query of columns of victims, see Decisions.get_leaving()."""
    return ending_late(*columns).where(
        models.Decision.updated_at > database_clock.SecondsFromNow(
            -LEAVING_S))


def _ending(session, since):
    columns = models.Victim.server_uuid, models.Victim.project_id
    queries = [_open_victims(models.Victim.project_id), _leaving(*columns)]
    if since is not None:
        queries.append(sa.select(*columns).where(
            models.Victim.ended_at > since,
            models.Victim.status.in_(LEFT_PLACE)))
    return dict(session.execute(sa.union(*queries)).tuples().all())
