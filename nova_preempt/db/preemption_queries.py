# SPDX-License-Identifier: Apache-2.0
"""Queries of the API and of reports: pages of preemptions and statistics.

If a project is given, only its own side counts: a preemption is found by a
server, and counted by a victim, of that project only.
"""

import collections
import dataclasses

import sqlalchemy as sa

from nova_preempt.core import eviction_loops
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.db import row_schemas

# The most evictions that are returned, the latest ones.
MAX_EVICTIONS = 10_000

#: Statuses that a query can name.
STATUSES = (*decisions.OPEN, decisions.DONE, decisions.ROLLED_BACK,
            decisions.ABORTED, decisions.REFUSED)


def get_preemption(database, uuid, project_id=None):
    """Return a Decision, None if there is none of the project.

    :param project_id: the project of the placed server or of a victim; None
        for any, and then refusals are found as well
    """
    query = sa.select(models.Decision).where(models.Decision.uuid == uuid)
    if project_id is not None:
        query = _with_side(query, project_id=project_id).where(
            models.Decision.status != decisions.REFUSED)
    return next(iter(decisions.load_all(database, query)), None)


def get_preemptions(database, *, project_id=None, server_uuid=None,
                    victim_uuid=None, flavor=None, host=None, status=None,
                    since=None, until=None, marker=None, limit=None):
    """Return Decisions, newest first.

    :param server_uuid: the placed server or a victim
    :param flavor: the flavor of a victim
    :param status: None for all but refusals, which have no victims
    :param since: the earliest naive UTC time; until: the time before which
        they were created
    :param marker: the Decision after which the page begins
    """
    decision = models.Decision
    query = _with_side(sa.select(decision), project_id=project_id,
                       server_uuid=server_uuid)
    if victim_uuid is not None:
        query = query.where(_has_victim(project_id=project_id,
                                        server_uuid=victim_uuid))
    if flavor is not None:
        query = query.where(_has_victim(project_id=project_id, flavor=flavor))
    if host is not None:
        query = query.where(decision.host == host)
    query = row_schemas.between(query.where(
        decision.status != decisions.REFUSED if status is None
        else decision.status == status), decision.created_at, since, until)
    if marker is not None:
        query = query.where(
            (decision.created_at < marker.created_at) |
            ((decision.created_at == marker.created_at) &
             (decision.uuid < marker.uuid)))
    query = query.order_by(decision.created_at.desc(),
                           decision.uuid.desc()).limit(limit)
    return decisions.load_all(database, query)


def count_open(database):
    """Return the number of decisions that are not finished."""
    return database.scalars(sa.select(sa.func.count()).where(
        models.Decision.status.in_(decisions.OPEN)))[0]


def count_victims(database, since):
    """Return a Counter of the victims of preemptions since, by flavor."""
    return collections.Counter(dict(map(tuple, database.read(_counted(
        None, (models.Victim.flavor,), (sa.func.count(),), since)))))


@dataclasses.dataclass(frozen=True)
class PreemptionCounts:
    """Counts of preemptions by victims of a flavor; of all if it is ''."""

    flavor: str
    preemptions: dict  # {status: number}
    victims: dict      # {status: number}
    servers_placed: int
    mean_lifetime_s: float | None = None


def get_statistics(database, *, project_id=None, since=None, until=None):
    """Return ([PreemptionCounts by flavor name], PreemptionCounts of all)."""
    decision, victim = models.Decision, models.Victim
    numbers = (sa.func.count(sa.distinct(decision.uuid)),
               # Decisions of the engine place no server.
               sa.func.count(sa.distinct(
                   sa.func.nullif(decision.server_uuid, ''))))

    def counted(columns, *numbers):
        return session.execute(
            _counted(project_id, columns, numbers, since, until))

    victims = collections.defaultdict(dict)
    preemptions = collections.defaultdict(dict)
    placed = collections.Counter()
    total = collections.Counter()
    lifetimes = collections.defaultdict(lambda: (0, 0))
    with database.reader() as session:
        for flavor, status, number, known, lifetime_s in counted(
                (victim.flavor, victim.status), sa.func.count(),
                sa.func.count(victim.lifetime_s),
                sa.func.sum(victim.lifetime_s)):
            victims[flavor][status] = number
            total[status] += number
            for key in (flavor, None):
                before = lifetimes[key]
                lifetimes[key] = (before[0] + known,
                                  before[1] + int(lifetime_s or 0))
        for flavor, status, number, servers in counted(
                (victim.flavor, decision.status), *numbers):
            preemptions[flavor][status] = number
            placed[flavor] += servers * (status == decisions.DONE)
        # Not the sum over flavors: a preemption with victims of two flavors
        # counts for both.
        rows = counted((decision.status,), *numbers).all()
    flavors = [PreemptionCounts(flavor, preemptions[flavor], victims[flavor],
                       placed[flavor], _mean(lifetimes[flavor]))
               for flavor in sorted(victims)]
    return flavors, PreemptionCounts(
        '', {status: number for status, number, _servers in rows},
        dict(total), sum(servers for status, _number, servers in rows
                         if status == decisions.DONE), _mean(lifetimes[None]))


def get_turns(database, since):
    """Return the latest MAX_EVICTIONS eviction_loops.Evictions since."""
    victim, decision = models.Victim, models.Decision
    query = (sa.select(victim.ended_at, decision.uuid, victim.server_uuid,
                       victim.project_id, decision.server_uuid,
                       decision.project_id)
             .join(decision, decision.uuid == victim.decision_uuid)
             .where(victim.ended_at > since)
             .where(victim.status.in_(
                 (*decisions.LEFT_PLACE, decisions.MIGRATED)))
             .order_by(victim.ended_at.desc()).limit(MAX_EVICTIONS))
    return [eviction_loops.Eviction(reservation_model.to_s(ended_at), *row)
            for ended_at, *row in database.read(query)]


def _mean(known):
    number, total = known
    return total / number if number else None


def _counted(project_id, columns, numbers, since, until=None):
    query = (sa.select(*columns, *numbers) .select_from(models.Decision)
             .join(models.Victim,
                   models.Victim.decision_uuid == models.Decision.uuid)
             .where(models.Decision.status != decisions.REFUSED)
             .group_by(*columns))
    if project_id is not None:
        query = query.where(models.Victim.project_id == project_id)
    return row_schemas.between(query, models.Decision.created_at, since, until)


def _with_side(query, **values):
    """Return the query for decisions whose server or victim has values."""
    values = {name: value for name, value in values.items()
              if value is not None}
    if not values:
        return query
    # Not an OR over two tables, for which MariaDB scans both.
    sides = sa.union(
        sa.select(models.Decision.uuid).filter_by(**values),
        sa.select(models.Victim.decision_uuid).filter_by(**values)).subquery()
    return query.join(sides, sides.c.uuid == models.Decision.uuid)


def _has_victim(**values):
    return sa.exists().where(
        models.Victim.decision_uuid == models.Decision.uuid,
        *(getattr(models.Victim, name) == value
          for name, value in values.items() if value is not None))
