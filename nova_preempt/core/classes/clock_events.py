# SPDX-License-Identifier: Apache-2.0

"""Derives clock events of a server from Nova's records.

Nova keeps each thing that was asked of a server, an action, with when and by
whom, until the server is purged. So the list is complete whenever it is read:
nothing is lost with a notification, or while nobody looks.

A server has what it was promised while it has its place on a host, whatever
its owner does with it there: one that was paused, stopped or resized by its
owner runs. Who gives its place up, by shelving or deleting, waits for nothing
and no clock counts, until it is asked for again. What others do to it, above
all a preemption, has it wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
import dataclasses
import datetime
import itertools
import operator

from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.times import microseconds

# Nova's names of what is asked of a server; others take nobody's place.
CREATE = "create"
DELETE = "delete"
RESTORE = "restore"
SHELVE = "shelve"
START = "start"
STOP = "stop"
UNSHELVE = "unshelve"
ACTIONS = frozenset((CREATE, DELETE, RESTORE, SHELVE, START, STOP, UNSHELVE))
#: Those of which it matters when they were over.
RUN = frozenset((CREATE, START, UNSHELVE))

# By how much the clocks of two hosts may differ.
_SLACK_US = 2 * SECOND


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """Something that was asked of a server; times as in clocks.

    ``number`` orders those of the same time. ``by_owner``: see is_by_owner();
    a preemption may be by one, too. ``placed_us``: since
    when a host works on it, None if none does. ``done_us``: since when the
    server runs by it, or it has failed, None if neither is so.
    """

    name: str
    number: int
    asked_us: int
    by_owner: bool
    placed_us: int | None = None
    done_us: int | None = None
    failed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Preemption:
    """From when to when a server gave way; None: it does still."""

    from_us: int
    until_us: int | None = None

    def includes(self, at_us: int) -> bool:
        """Tell whether what was asked then was its part."""
        # Who has written it down has another clock than Nova.
        after_us = at_us - self.from_us + _SLACK_US
        return after_us >= 0 and (
            self.until_us is None or at_us <= self.until_us + _SLACK_US)


def events(server: ObservedServer, actions: Iterable[Action],
           preemptions: Collection[Preemption] = ()) -> tuple[Event, ...]:
    """Return what has happened to a server since it was asked for."""
    ordered = [_checked(action, preemptions) for action in sorted(
        actions, key=operator.attrgetter("asked_us", "number"))]
    found: list[Event] = []
    if not any(action.name == CREATE for action in ordered):
        # Older than Nova's records of what was asked.
        found += _dated(server.created_at, Kind.QUEUED)
        found += _dated(server.launched_at, Kind.RUNNING)
    for action, after in itertools.zip_longest(ordered, ordered[1:]):
        before = found[-1].kind if found else None
        found.extend(_told(_ended_before(action, after), before))
    found += _dated(server.ended_at, Kind.ENDED)
    return tuple(found)


def _dated(at: datetime.datetime | None, kind: Kind) -> list[Event]:
    return [] if at is None else [Event(microseconds(at), kind)]


def is_by_owner(asked_by: str | None, owner: str) -> bool:
    """Tell whether a server's owner had something done to it.

    Nova itself, which has no project, stops a server whose guest has shut
    down or is off for another reason: it has its place still.

    :param asked_by: the project of who asked, None or '' for Nova itself
    :param owner: the project of the server
    """
    return not asked_by or asked_by == owner


def may_be_late(kind: Kind | None, task_state: str | None) -> bool:
    """Tell whether Nova may have to write still that a server runs.

    A host writes that of the server first, and of what was asked when it has
    told others, which may take long; the server does not change by it.
    """
    return kind is Kind.ALLOCATING and not task_state


def _checked(action: Action, preemptions: Collection[Preemption]) -> Action:
    if any(item.includes(action.asked_us) for item in preemptions):
        return dataclasses.replace(action, by_owner=False)
    return action


def _ended_before(action: Action, after: Action | None) -> Action:
    """Return the same, over when the server was asked to leave.

    Nova says that a server is there, tells everybody, and only then writes
    down that what brought it there is over. Who leaves was there.
    """
    begun_us = (
        action.asked_us if action.placed_us is None else (action.placed_us))
    if (
            after is not None and after.name in (SHELVE, STOP, DELETE)
            and not (after.failed or action.failed)
            and action.done_us is not None
            and begun_us <= after.asked_us < action.done_us):
        return dataclasses.replace(action, done_us=after.asked_us)
    return action


def _told(action: Action, before: Kind | None) -> Iterator[Event]:
    if action.name == CREATE:
        yield Event(action.asked_us, Kind.QUEUED)
        yield from _run(action, action.placed_us, Kind.ASIDE)
    elif action.name == UNSHELVE or (
        # What its owner has stopped has kept its place.
        action.name == START and before is Kind.EVICTED):
        yield from _run(action, action.asked_us, Kind.QUEUED)
    elif not action.failed:
        yield from _left(action, before)


def _run(
    action: Action, placed_us: int | None, failing: Kind) -> Iterator[Event]:
    """Tell of an attempt to run; where it has failed nobody tries on.

    One that has failed at once is none: of one instant the clocks would take
    what comes later in their round for the last.
    """
    if placed_us is not None and not (
            action.failed and action.done_us == placed_us):
        yield Event(placed_us, Kind.ALLOCATING)
    if action.done_us is not None:
        kind = failing if action.failed else Kind.RUNNING
        yield Event(action.done_us, kind)


def _left(action: Action, before: Kind | None) -> Iterator[Event]:
    if action.name == RESTORE and before is Kind.ASIDE:
        yield Event(action.asked_us, Kind.RUNNING)
    elif action.name == DELETE or (action.name == SHELVE and action.by_owner):
        yield Event(action.asked_us, Kind.ASIDE)
    elif action.name in (SHELVE, STOP) and not action.by_owner:
        yield Event(action.asked_us, Kind.EVICTED)


def returns(
    told: Sequence[Event], after_us: int = 0) -> tuple[tuple[int, int], ...]:
    """Return how long it took to get the server back, each time.

    As (when it was there, microseconds); the first time, when it was built,
    does not count.

    :param after_us: those that were over later
    """
    taken = [
        (after.at_us, after.at_us - before.at_us)
        for before, after in itertools.pairwise(told)
        if (before.kind, after.kind) == (Kind.ALLOCATING, Kind.RUNNING)]
    first = 1 if taken and not _ran_before(told, taken[0][0]) else 0
    return tuple(item for item in taken[first:] if item[0] > after_us)


def _ran_before(told: Sequence[Event], at_us: int) -> bool:
    return any(
        event.kind is Kind.RUNNING and event.at_us < at_us for event in told)
