# SPDX-License-Identifier: Apache-2.0

"""Computes waits and run times from the history of requests.

A request waits from when it is queued until servers of it run, however often
Nova was asked meanwhile. Its run time is counted by the clocks of
``core/classes/server_clocks.py``.
"""

import bisect
import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.times import microseconds

#: {state: kind of the clock event of a change to it}; see kinds().
KINDS: Mapping[str, server_clocks.Kind] = {
    backlog_model.WAITING: server_clocks.Kind.QUEUED,
    backlog_model.PLACING: server_clocks.Kind.ALLOCATING,
    backlog_model.ACTIVE: server_clocks.Kind.RUNNING,
    backlog_model.PARTLY_ACTIVE: server_clocks.Kind.RUNNING,
    backlog_model.EVICTED: server_clocks.Kind.EVICTED,
    **dict.fromkeys(backlog_model.CLOSED, server_clocks.Kind.ENDED),
}
#: The longest history, for requests that come back for years.
MOST_CHANGES = 1000
_RUNS = (backlog_model.ACTIVE, backlog_model.PARTLY_ACTIVE)
_TRIED = (backlog_model.WAITING, backlog_model.EVICTED,
          backlog_model.PARTLY_ACTIVE)
_US = datetime.timedelta(microseconds=1)
_SECOND = datetime.timedelta(seconds=1)
_LONG_AGO = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - as times are here


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """The changes of a request, the oldest first."""

    changes: Sequence[backlog_model.StateChange]
    class_name: str = ""
    not_before: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitStats:
    """Statistics of the waits of started requests; None if none has started.
    """

    started: int
    median_s: int | None
    p95_s: int | None


def waits(
    histories: Iterable[History], since: datetime.datetime
) -> Mapping[str, WaitStats]:
    """Return statistics of the waits of each class that ended since then.

    Time before ``not_before`` does not count as waiting at first.
    """
    found: dict[str, list[int]] = {}
    for history in histories:
        for wait_s in _waits_s(history, since):
            found.setdefault(history.class_name, []).append(wait_s)
    return {name: summary(values) for name, values in found.items()}


def _waits_s(history: History, since: datetime.datetime) -> Iterator[int]:
    queued: datetime.datetime | None = None
    first = _first(history)
    for change in history.changes:
        if change.state == backlog_model.WAITING and queued is None:
            queued = max(change.at, first)
        elif change.state in _RUNS and queued is not None:
            if change.at >= since:
                yield max(0, (change.at - queued) // _SECOND)
            queued = None
        elif change.state == backlog_model.EVICTED:
            queued = None


def _first(history: History) -> datetime.datetime:
    """Return when the first wait begins to count: at ``not_before``.

    A ``not_before`` later than the first start was set after that start, and
    is ignored.
    """
    placed = (
        change.at for change in history.changes
        if change.state == backlog_model.PLACING)
    first = history.not_before or _LONG_AGO
    return first if first <= next(placed, first) else _LONG_AGO


def summary(values_s: Iterable[int]) -> WaitStats:
    """Return median and 95th percentile, both by nearest rank."""
    ordered = sorted(values_s)
    if not ordered:
        return WaitStats(0, None, None)
    return WaitStats(len(ordered), _ranked(ordered, 50), _ranked(ordered, 95))


def _ranked(ordered: Sequence[int], percent: int) -> int:
    return ordered[-(-len(ordered) * percent // 100) - 1]


def failed_tries(changes: Sequence[backlog_model.StateChange],
        before: datetime.datetime) -> list[int]:
    """Return the indexes of changes that may be deleted from a history.

    These are tries that ended before then, and left the state unchanged. Their
    time counts as waiting from then on; run time and total stay the same.
    """
    found: list[int] = []
    index = 1
    while index + 1 < len(changes) and changes[index + 1].at < before:
        state = changes[index - 1].state
        if (
            state in _TRIED and changes[index].state == backlog_model.PLACING
            and changes[index + 1].state == state):
            found += index, index + 1
            index += 2
        else:
            index += 1
    return found


def condensed(
    changes: Sequence[backlog_model.StateChange],
    not_before: datetime.datetime | None = None,
) -> tuple[int, tuple[backlog_model.StateChange, ...]]:
    """Return how many of the oldest changes to merge, and three instead.

    Nothing is merged up to MOST_CHANGES; beyond, all but about half of them,
    up to an eviction. The sums of time waited, in transit and run stay the
    same, to the second, as if each had passed in one go.
    """
    if len(changes) > MOST_CHANGES:
        for number in range(len(changes) - MOST_CHANGES // 2, 3, -1):
            if (
                changes[number].state == backlog_model.EVICTED
                and changes[number - 1].state in _RUNS):
                return number, _sums(
                    changes[:number], changes[number].at, not_before)
    return 0, ()


def _sums(
    changes: Sequence[backlog_model.StateChange], until: datetime.datetime,
    not_before: datetime.datetime | None,
) -> tuple[backlog_model.StateChange, ...]:
    history = History(changes, not_before=not_before)
    times = clocks_of(history).at(microseconds(until))
    begun = changes[0].at
    placed = max(begun, _first(history)) + times.waiting_us * _US
    bound = placed + times.binding_us * _US
    why = f"What was until {until} is kept as sums."
    return tuple(backlog_model.StateChange(*values) for values in (
        (begun, backlog_model.WAITING, changes[0].reason),
        (placed, backlog_model.PLACING),
        (bound, backlog_model.ACTIVE, why)))


@dataclasses.dataclass(frozen=True, slots=True)
class RunTimeStats:
    """Run times of the requests of a class, in total and by part."""

    requests: int
    total: server_clocks.Times
    parts: Sequence[server_clocks.Times]


def run_times(histories: Iterable[History], since: datetime.datetime,
        until: datetime.datetime, parts: int) -> Mapping[str, RunTimeStats]:
    """Return the RunTimeStats of each class between two times.

    The parts are of the same length but for a microsecond.
    """
    length_us = (until - since) // _US
    edges = [length_us * n // parts for n in range(parts + 1)]
    requests: collections.Counter[str] = collections.Counter()
    # {class: for each part, microseconds by kind}.
    sums: dict[str, list[collections.Counter[server_clocks.Kind]]] = {}
    for history in histories:
        spans = [
            (kind, start, end)
            for kind, start, end in _spans(history, since, until)
            if end > start]
        if not spans:
            continue
        requests[history.class_name] += 1
        found = sums.setdefault(
            history.class_name,
            [collections.Counter() for _part in range(parts)])
        for kind, start, end in spans:
            for number in range(bisect.bisect(edges, start) - 1, parts):
                if edges[number] >= end:
                    break
                found[number][kind] += (
                    min(end, edges[number + 1]) - max(start, edges[number]))
    return {name: RunTimeStats(
        requests[name], _times(sum(found, collections.Counter())),
        [_times(each) for each in found]) for name, found in sums.items()}


def _times(sums: Mapping[server_clocks.Kind, int]) -> server_clocks.Times:
    found = server_clocks.Times()
    for kind, amount_us in sums.items():
        found = found.later(kind, amount_us)
    return found


def kinds(changes: Iterable[backlog_model.StateChange]) -> Iterator[
    server_clocks.Kind]:
    """Iterate over the clock events of changes.

    A partly active request runs while more of its servers are started.
    """
    runs_in_part = False
    for change in changes:
        runs_in_part = change.state == backlog_model.PARTLY_ACTIVE or (
            runs_in_part and change.state == backlog_model.PLACING)
        yield server_clocks.Kind.RUNNING if runs_in_part else KINDS[
            change.state]


def clocks_of(history: History) -> server_clocks.ServerClocks:
    """Return the clocks of a request: time run, waited and in transit.

    As of its last change; from then on the clock of its state counts. A try
    that ended at once is dropped: the clocks, which know no order within an
    instant, would take it for the last event.
    """
    first = _first(history)
    told: list[server_clocks.Event] = []
    for change, kind in zip(
        history.changes, kinds(history.changes), strict=True):
        event = server_clocks.Event(microseconds(max(change.at, first)), kind)
        if (
            len(told) > 1
            and told[-1] == server_clocks.Event(
                event.at_us, server_clocks.Kind.ALLOCATING)
            and told[-2].kind is kind):
            told.pop()
        else:
            told.append(event)
    return server_clocks.ServerClocks(told)


def _spans(
    history: History, since: datetime.datetime, until: datetime.datetime
) -> Iterator[tuple[server_clocks.Kind, int, int]]:
    """Iterate over (kind, start, end), in microseconds since ``since``."""
    first = _first(history)
    ends = [*(change.at for change in history.changes[1:]), until]
    for change, end, kind in zip(
        history.changes, ends, kinds(history.changes), strict=False):
        start = max(change.at, first)
        if kind is not server_clocks.Kind.ENDED:
            yield (
                kind,
                (max(start, since) - since) // _US,
                (min(end, until) - since) // _US,
            )
