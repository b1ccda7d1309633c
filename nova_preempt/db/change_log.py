# SPDX-License-Identifier: Apache-2.0
"""The log of changes: who keeps what was read finds out what is new in it.

A counter has the generation of the calendar. Whoever changes who has which
host when raises it first, in the same transaction, and logs what it changes:
this holds the row, so changes happen one after the other, whatever process
makes them. The log has a row for each generation, with a stamp that nobody
else has: after a fail-over to a database that lags behind, the same number
may come again for another change, and only who still finds the row that he
knows may go on from there. Everybody else reads everything anew.
"""

import dataclasses

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_preempt.db import models

_NAME = 'calendar'

# So many changes are kept. Who has read nothing since reads everything.
_KEPT = 5000


@dataclasses.dataclass(frozen=True)
class Mark:
    """What was read last; the stamp is None where the log lacks it."""

    generation: int
    stamp: str | None


@dataclasses.dataclass(frozen=True)
class Changes:
    """What is new since a Mark.

    :ivar mark: the one to go on from
    :ivar reservations: uuids, also of those that are gone since
    :ivar hosts: names of those of which an administrator says something else
    """

    mark: Mark
    reservations: frozenset = frozenset()
    hosts: frozenset = frozenset()


def get_generation(session):
    """The number that every change of the calendar raises."""
    return session.execute(sa.select(models.Counter.value).where(
        models.Counter.name == _NAME)).scalar_one()


def raise_generation(session, *, reservations, hosts=()):
    """Raise and return the generation, and hold it until the commit.

    It has to be the first statement of a transaction: what a transaction
    sees is settled by its first read in some databases.

    :param reservations: uuids of what may be changed, so that it is read anew
    :param hosts: names of hosts, see Changes
    """
    counter, log = models.Counter, models.CalendarChange
    session.execute(sa.update(counter).where(counter.name == _NAME)
                    .values(value=counter.value + 1))
    generation = get_generation(session)
    # What is later is of a counter that was set back by hand.
    session.execute(sa.delete(log).where(
        (log.generation <= generation - _KEPT)
        | (log.generation >= generation)))
    session.execute(sa.insert(log).values(
        generation=generation, stamp=uuidutils.generate_uuid(dashed=False),
        reservations=sorted(reservations), hosts=sorted(hosts)))
    return generation


def get_mark(session, generation=None):
    """The Mark of what is read from now on.

    To be asked for before that: at worst some of it is read once more.

    :param generation: of which it is, if not of the last change
    """
    if generation is None:
        generation = get_generation(session)
    log = models.CalendarChange
    return Mark(generation, session.execute(sa.select(log.stamp).where(
        log.generation == generation)).scalar_one_or_none())


def get_since(session, mark, generation=None):
    """The Changes since a Mark; None if nobody knows them.

    :param generation: until which change, if not until the last one
    """
    counter, log = models.Counter, models.CalendarChange
    # One statement: the counter and the log are of one moment.
    rows = session.execute(
        sa.select(counter.value, log.generation, log.stamp, log.reservations,
                  log.hosts)
        .join_from(counter, log, log.generation >= mark.generation,
                   isouter=True)
        .where(counter.name == _NAME).order_by(log.generation)).all()
    last = rows[0].value
    if generation is not None:
        # What is later is our own change.
        last = generation
        rows = [row for row in rows if row.generation != last + 1]
    if (not rows or rows[0].stamp != mark.stamp
            or [row.generation for row in rows]
            != list(range(mark.generation, last + 1))):
        return None
    reservations, hosts = set(), set()
    for row in rows[1:]:
        reservations.update(row.reservations)
        hosts.update(row.hosts)
    return Changes(Mark(last, rows[-1].stamp), frozenset(reservations),
                   frozenset(hosts))
