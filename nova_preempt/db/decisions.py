# SPDX-License-Identifier: Apache-2.0
"""Decisions, and their victims.

A decision is only changed by its owner: every change is conditioned on it
(compare and swap), and whoever finds it changed has lost it to the recovery.
"""

from oslo_db import exception as db_exc
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_preempt.core import victim_status
from nova_preempt.db import database_clock
from nova_preempt.db import models
from nova_preempt.db import rows
from nova_preempt.db import transaction_retries

# Statuses of a decision. Those in OPEN need somebody to finish them.
INTENT = 'intent'              # written, the space may be ours or not
CLAIMED = 'claimed'            # the space is ours, the victims are ending
ROLLING_BACK = 'rolling_back'  # the space is being given back
DONE = 'done'                  # victims gone, the server may be built
ROLLED_BACK = 'rolled_back'    # given back, as far as victims still live
ABORTED = 'aborted'            # nothing had happened yet
REFUSED = 'refused'            # a record only: preemption could not help
OPEN = (INTENT, CLAIMED, ROLLING_BACK)

# Statuses of a victim.
PENDING = victim_status.PENDING
NOTICED = victim_status.NOTICED
ENDING = victim_status.ENDING
GONE = victim_status.GONE
SHELVED = victim_status.SHELVED
STOPPED = victim_status.STOPPED
MIGRATED = victim_status.MIGRATED
KEPT = victim_status.KEPT
RESTORED = victim_status.RESTORED
LEFT = victim_status.LEFT
SURVIVED = victim_status.SURVIVED
LEFT_PLACE = victim_status.LEFT_PLACE
ENDED = victim_status.ENDED
UNTOUCHED = victim_status.UNTOUCHED


class AlreadyEnding(Exception):
    """Servers end for another decision."""

    def __init__(self, uuids):
        super().__init__(f'end already: {", ".join(sorted(uuids))}')


class LostDecision(Exception):
    """The recovery of another process has taken the decision over."""


class OverBudget(Exception):
    """More servers would end at once than a budget allows."""


_BUDGETS_LOCK = 'budgets'

# Written to as tables: a decision waits for it, and the sessions of
# SQLAlchemy have nothing to keep in step.
_DECISIONS = models.Decision.__table__
_VICTIMS = models.Victim.__table__


Decision = rows.Decision
Victim = rows.Victim


class Decisions:
    """The decisions of all processes.

    :param database: a nova_preempt.db.Database
    """

    def __init__(self, database):
        self._db = database

    def create_decision(self, decision, check=None, since=None):
        """Write a new decision.

        :param check: given what get_ending() would return, with the victims
            of this decision, raises OverBudget if these are too many; no two
            of these checks run at once, whoever runs them
        :param since: see get_ending()
        :raises AlreadyEnding: an open one has a victim of it already
        """
        try:
            self._create_decision(decision, check, since)
        except db_exc.DBDuplicateEntry:
            # A connection was lost at the commit, which had happened.
            if self.get_decision(decision.uuid) is None:
                raise

    @transaction_retries.retried
    def _create_decision(self, decision, check, since):
        values = {**rows.values(decision, 'victims'),
                  'created_at': timeutils.utcnow(),
                  'updated_at': database_clock.now()}
        victims = [{**rows.values(victim), 'decision_uuid': decision.uuid}
                   for victim in decision.victims]
        with self._db.writer() as session:
            if check is not None:
                # Without it neither of two transactions would see what the
                # other one has written, except in SQLite.
                rows.lock(session, models.Lock, _BUDGETS_LOCK)
            session.execute(sa.insert(_DECISIONS).values(**values))
            if victims:
                session.execute(sa.insert(_VICTIMS), victims)
            if decision.victims and decision.status in OPEN:
                # After the write: see there what the class says.
                self._check_ending(session, decision)
            if check is not None:
                check(_ending(session, since))

    @staticmethod
    def _check_ending(session, decision):
        query = (sa.select(models.Victim.server_uuid)
                 .join(models.Decision,
                       models.Decision.uuid == models.Victim.decision_uuid)
                 .where(models.Victim.server_uuid.in_(
                     [victim.server_uuid for victim in decision.victims]))
                 .where(models.Decision.status.in_(OPEN))
                 .where(models.Decision.uuid != decision.uuid))
        ending = set(session.execute(query).scalars())
        if ending:
            raise AlreadyEnding(ending)

    def update_decision(self, uuid, owner, status, *, new_owner=None,
                        from_status=None, **values) -> bool:
        """Move a decision on.

        :param owner: who it must belong to
        :param from_status: the status it must have; any if None
        :returns: False if it is not (or no longer) ours to change
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
            with self._db.writer() as session:
                return session.execute(query.values(**values)).rowcount == 1

        if update():
            return True
        # A connection may have been lost at the commit, which had happened:
        # nobody else writes our name, or this status for a status of ours.
        return len(tries) > 1 and self._is(uuid, status, values['owner'])

    @transaction_retries.retried
    def _is(self, uuid, status, owner):
        return bool(self._db.read(
            sa.select(models.Decision.uuid)
            .where(models.Decision.uuid == uuid)
            .where(models.Decision.status == status)
            .where(models.Decision.owner == owner)))

    @transaction_retries.retried
    def update_victim(self, decision_uuid, server_uuid, status, **values):
        self._db.write(
            sa.update(_VICTIMS)
            .where(models.Victim.decision_uuid == decision_uuid)
            .where(models.Victim.server_uuid == server_uuid)
            .values(status=status, **values))

    @transaction_retries.retried
    def reopen(self, uuid, owner):
        """Have an owner roll a decision back, whoever had it, or has.

        :returns: False if there is none, or its server may be built
        """
        query = (sa.update(models.Decision)
                 .where(models.Decision.uuid == uuid)
                 .where(models.Decision.status != DONE)
                 .values(owner=owner, status=ROLLING_BACK,
                         updated_at=database_clock.now())
                 .execution_options(synchronize_session=False))
        victims = (sa.update(models.Victim)
                   .where(models.Victim.decision_uuid == uuid)
                   .where(models.Victim.status == KEPT)
                   .values(status=PENDING, ended_at=None)
                   .execution_options(synchronize_session=False))
        with self._db.writer() as session:
            if session.execute(query).rowcount != 1:
                return False
            session.execute(victims)
            return True

    @transaction_retries.retried
    def get_decision(self, uuid):
        """A Decision, None if there is none."""
        with self._db.reader() as session:
            row = session.get(models.Decision, uuid)
            return row and load(row)

    @transaction_retries.retried
    def get_decisions(self, *, statuses=None, server_uuid=None,
                      request_id=None, provider_uuid=None,
                      victim_uuid=None, stand_in=None):
        """Decisions, oldest first.

        :param stand_in: the uuid of a consumer that the record names; finding
            it reads the whole table
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
        with self._db.reader() as session:
            return [load(row) for row in
                    session.execute(query).unique().scalars()]

    def get_victims(self, status):
        """[(decision uuid, Victim)] of victims with this status.

        Those that ended first come first.
        """
        query = (sa.select(models.Victim)
                 .where(models.Victim.status == status)
                 .order_by(models.Victim.ended_at, models.Victim.server_uuid))
        with self._db.reader() as session:
            return [(row.decision_uuid, rows.load(Victim, row))
                    for row in session.execute(query).scalars()]

    def get_statuses(self, uuids):
        """{uuid of a server: its status as a victim}, of these servers.

        By the last decision that made it one and was not taken back before
        it ended.
        """
        victim, decision = models.Victim, models.Decision
        found = {}
        with self._db.reader() as session:
            for some in rows.batches(sorted(uuids)):
                found.update(session.execute(
                    sa.select(victim.server_uuid, victim.status)
                    .join(decision, decision.uuid == victim.decision_uuid)
                    .where(victim.server_uuid.in_(some), has_effect())
                    .order_by(decision.created_at, decision.uuid)
                ).tuples().all())
        return found

    def get_claimed_uuids(self):
        """The uuids of the decisions that are CLAIMED, as a set."""
        return set(self._db.scalars(sa.select(
            models.Decision.uuid).where(models.Decision.status == CLAIMED)))

    def get_ending(self, since=None):
        """{uuid of a server that is ending: its project's id}.

        The victims of open decisions; with since, a naive UTC time, also
        those that have ended after it.
        """
        with self._db.reader() as session:
            return _ending(session, since)

    def count_preemptions(self):
        """{uuid of a server: how often it has given way and survived}."""
        return dict(map(tuple, self._db.read(
            sa.select(models.Victim.server_uuid, sa.func.count())
            .where(models.Victim.status.in_(SURVIVED))
            .group_by(models.Victim.server_uuid))))

    @transaction_retries.retried
    def get_open_decisions(self):
        """[(Decision, age_s)]: those that somebody must finish, oldest first.

        age_s is the time since its owner's last sign of life, or since it was
        given up, by the database's clock.
        """
        query = (sa.select(models.Decision)
                 .where(models.Decision.status.in_(OPEN))
                 .order_by(models.Decision.created_at, models.Decision.uuid))
        with self._db.reader() as session:
            now = session.execute(sa.select(database_clock.now())).scalar_one()
            return [(load(row), (now - row.updated_at).total_seconds())
                    for row in session.execute(query).unique().scalars()]


def has_effect():
    """Of victims: it is known what became of them by their decision.

    Or will be; not if that was taken back before.
    """
    return models.Decision.status.in_((*OPEN, DONE)) | (
        (models.Decision.status == ROLLED_BACK)
        & models.Victim.status.not_in(UNTOUCHED))


def load(row):
    """The Decision of a row, with its victims."""
    return rows.load(Decision, row, victims=tuple(
        rows.load(Victim, victim) for victim in row.victims))


def _ending(session, since):
    columns = models.Victim.server_uuid, models.Victim.project_id
    query = (sa.select(*columns)
             .join(models.Decision,
                   models.Decision.uuid == models.Victim.decision_uuid)
             .where(models.Decision.status.in_(OPEN)))
    if since is not None:
        query = query.union(
            sa.select(*columns) .where(models.Victim.ended_at > since)
            .where(models.Victim.status.in_(LEFT_PLACE)))
    return dict(session.execute(query).tuples().all())
