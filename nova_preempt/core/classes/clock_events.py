# SPDX-License-Identifier: Apache-2.0

"""Derives clock events of a server from its Nova instance actions.

Nova keeps each action on a server, with its time and user, until the server is
purged. So the list is complete whenever it is read: no lost notification or
down time matters.

A server has what it was promised while it has its place on a host, whatever
its owner does with it there: a server that its owner paused, stopped or
resized counts as running. While its owner has shelved or deleted it, no clock
counts until it is wanted again. Any action by others, above all a preemption,
makes it wait.
"""

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

# Names of Nova's instance actions that start or end the use of a host.
CREATE = "create"
DELETE = "delete"
RESTORE = "restore"
SHELVE = "shelve"
START = "start"
STOP = "stop"
UNSHELVE = "unshelve"
ACTIONS = frozenset((CREATE, DELETE, RESTORE, SHELVE, START, STOP, UNSHELVE))
#: Actions whose end matters.
RUN = frozenset((CREATE, START, UNSHELVE))

# The largest difference between the clocks of two hosts.
_SLACK_US = 2 * SECOND


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceAction:
    """An instance action of a server; times as in server_clocks.

    ``number`` orders actions of the same time. ``by_owner``: see
    is_by_owner(); a preemption may be by one, too. ``placed_us``: since when a
    host works on it, None if none does. ``done_us``: since when the server
    runs by it, or it has failed, None if neither.
    """

    name: str
    number: int
    asked_us: int
    by_owner: bool
    placed_us: int | None = None
    done_us: int | None = None
    failed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PreemptionPeriod:
    """The time from eviction to return of a server; None: not returned."""

    from_us: int
    until_us: int | None = None

    def includes(self, at_us: int) -> bool:
        """Tell whether an action at that time was part of the preemption."""
        # It was recorded by another clock than Nova's.
        after_us = at_us - self.from_us + _SLACK_US
        return after_us >= 0 and (
            self.until_us is None or at_us <= self.until_us + _SLACK_US)


def events(server: ObservedServer, actions: Iterable[InstanceAction],
           preemptions: Collection[PreemptionPeriod] = (),
           ) -> tuple[Event, ...]:
    """Return the clock events of a server since its creation."""
    ordered = [_checked(action, preemptions) for action in sorted(
        actions, key=operator.attrgetter("asked_us", "number"))]
    found: list[Event] = []
    if not any(action.name == CREATE for action in ordered):
        # Older than Nova's instance actions.
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
    """Tell whether an action was by the server's owner.

    Actions of Nova itself, without a project, count as the owner's: Nova stops
    a server whose guest has shut down, which keeps its place.

    :param asked_by: the project of the action, None or '' for Nova itself
    :param owner: the project of the server
    """
    return not asked_by or asked_by == owner


def may_be_late(kind: Kind | None, task_state: str | None) -> bool:
    """Tell whether Nova may still have to record that a server runs.

    A compute host writes the state of the server first, and the end of the
    action after its notifications, which may take long; the server stays the
    same.
    """
    return kind is Kind.ALLOCATING and not task_state


def _checked(action: InstanceAction,
             preemptions: Collection[PreemptionPeriod]) -> InstanceAction:
    if any(item.includes(action.asked_us) for item in preemptions):
        return dataclasses.replace(action, by_owner=False)
    return action


def _ended_before(action: InstanceAction,
                  after: InstanceAction | None) -> InstanceAction:
    """Return the action, over at the latest when the next one begins.

    Nova sets the server active, sends notifications, and only then records the
    end of the action. A server that is asked to leave was active.
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


def _told(action: InstanceAction, before: Kind | None) -> Iterator[Event]:
    if action.name == CREATE:
        yield Event(action.asked_us, Kind.QUEUED)
        yield from _run(action, action.placed_us, Kind.ASIDE)
    elif action.name == UNSHELVE or (
        # A server stopped by its owner has kept its place.
        action.name == START and before is Kind.EVICTED):
        yield from _run(action, action.asked_us, Kind.QUEUED)
    elif not action.failed:
        yield from _left(action, before)


def _run(action: InstanceAction, placed_us: int | None,
         failing: Kind) -> Iterator[Event]:
    """Yield events of an attempt to run; a failed one is not retried.

    An attempt that failed at once is dropped: within an instant the clocks
    would take a later kind of event for the last one.
    """
    if placed_us is not None and not (
            action.failed and action.done_us == placed_us):
        yield Event(placed_us, Kind.ALLOCATING)
    if action.done_us is not None:
        kind = failing if action.failed else Kind.RUNNING
        yield Event(action.done_us, kind)


def _left(action: InstanceAction, before: Kind | None) -> Iterator[Event]:
    if action.name == RESTORE and before is Kind.ASIDE:
        yield Event(action.asked_us, Kind.RUNNING)
    elif action.name == DELETE or (action.name == SHELVE and action.by_owner):
        yield Event(action.asked_us, Kind.ASIDE)
    elif action.name in (SHELVE, STOP) and not action.by_owner:
        yield Event(action.asked_us, Kind.EVICTED)


def returns(
    told: Sequence[Event], after_us: int = 0) -> tuple[tuple[int, int], ...]:
    """Return (time of return, duration in microseconds) of each return.

    The first build does not count.

    :param after_us: only returns that ended later
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
