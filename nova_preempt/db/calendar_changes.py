# SPDX-License-Identifier: Apache-2.0
"""The log of calendar changes, by which caches read only changes.

A counter holds the generation of the calendar. A transaction that changes the
calendar first raises the counter and logs the change. That locks the
counter's row, so changes are serialized across processes. The log has a row
for each generation with a unique stamp: after a fail-over to a database that
lags behind, a generation number may recur for another change. Only a reader
that finds the stamp it knows may continue from there; other readers read
everything again.
"""

import dataclasses

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_preempt.db import models

_NAME = 'calendar'

# Changes that are kept. A reader that is older reads everything again.
_KEPT = 5000

_COUNTER, _LOG = models.Counter, models.CalendarChange
# One statement, so that the counter and the log are consistent.
_SINCE = (
    sa.select(_COUNTER.value, _LOG.generation, _LOG.stamp, _LOG.reservations,
              _LOG.hosts)
    .join_from(_COUNTER, _LOG, _LOG.generation >= sa.bindparam('since'),
               isouter=True)
    .where(_COUNTER.name == _NAME).order_by(_LOG.generation))


@dataclasses.dataclass(frozen=True)
class Mark:
    """The last change that was read; stamp is None if the log lacks it."""

    generation: int
    stamp: str | None


@dataclasses.dataclass(frozen=True)
class CalendarChanges:
    """Changes since a Mark.

    :ivar mark: the Mark after these changes
    :ivar reservations: uuids of changed and deleted reservations
    :ivar hosts: names of hosts whose settings changed
    """

    mark: Mark
    reservations: frozenset = frozenset()
    hosts: frozenset = frozenset()


def get_generation(session):
    """Return the generation, which every change of the calendar raises."""
    return session.execute(sa.select(_COUNTER.value).where(
        _COUNTER.name == _NAME)).scalar_one()


def raise_generation(session, *, reservations, hosts=()):
    """Raise and return the generation, and hold it until the commit.

    It has to be the first statement of a transaction: in some databases the
    first read fixes the snapshot of a transaction.

    :param reservations: uuids of reservations that may change
    :param hosts: names of hosts whose settings may change
    """
    session.execute(sa.update(_COUNTER).where(_COUNTER.name == _NAME)
                    .values(value=_COUNTER.value + 1))
    generation = get_generation(session)
    # Later rows remain of a counter that was set back by hand.
    session.execute(sa.delete(_LOG).where(
        (_LOG.generation <= generation - _KEPT)
        | (_LOG.generation >= generation)))
    session.execute(sa.insert(_LOG).values(
        generation=generation, stamp=uuidutils.generate_uuid(dashed=False),
        reservations=sorted(reservations), hosts=sorted(hosts)))
    return generation


def get_mark(session, generation=None):
    """Return the Mark for data that is read from now on.

    Call it before reading the data: at worst a change is read twice.

    :param generation: of which change; None for the last
    """
    if generation is None:
        generation = get_generation(session)
    return Mark(generation, session.execute(sa.select(_LOG.stamp).where(
        _LOG.generation == generation)).scalar_one_or_none())


def get_since(session, mark, generation=None):
    """Return the Changes since a Mark; None if the log lacks them.

    :param generation: until which change; None for the last
    """
    rows = session.execute(_SINCE, {'since': mark.generation}).all()
    last = rows[0].value
    if generation is not None:
        # The next generation is the change of this transaction.
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
    return CalendarChanges(Mark(last, rows[-1].stamp), frozenset(reservations),
                           frozenset(hosts))
