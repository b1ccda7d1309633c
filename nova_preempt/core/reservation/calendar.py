# SPDX-License-Identifier: Apache-2.0

"""Calendar of hosts: finds free hosts in a time window, and ranks them.

Times are whole seconds since the epoch, intervals half-open: [start, end).
After F. Rossigneux et al., "A resource reservation system to improve the
support for HPC clouds" (the scheduler of "Climate").
"""

import bisect
from collections.abc import Callable, Iterable, Sequence
import dataclasses
import heapq
from typing import Any, TypeAlias

Interval: TypeAlias = tuple[int, int]

# Growth factor of the part of the window that is searched.
_FARTHER = 8


@dataclasses.dataclass(frozen=True, slots=True)
class ReservableHost:
    """A host and its busy times.

    :ivar busy: sorted, none overlaps the next; see merged()
    :ivar flops_per_watt: its efficiency, None if unknown
    :ivar not_before_s: when it is available at the earliest, None if always
    """

    name: str
    busy: tuple[Interval, ...] = ()
    flops_per_watt: float | None = None
    not_before_s: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class HostWindow:
    """A host that is free for the whole time, as a ranking sees it.

    :ivar gap_before_s: for how long it is free before, None if always
    :ivar gap_after_s: for how long it is free after, None if always
    """

    name: str
    flops_per_watt: float | None = None
    gap_before_s: int | None = None
    gap_after_s: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class FoundWindow:
    """A time window, and the names of its hosts, best first."""

    start_s: int
    end_s: int
    hosts: tuple[str, ...]


# Returns a unique sort key of a HostWindow, the best first.
Ranking: TypeAlias = Callable[[HostWindow], Any]


def name(fit: HostWindow) -> tuple[str]:
    """Rank by name."""
    return (fit.name,)


def energy(fit: HostWindow) -> tuple[float, str]:
    """Rank by operations per watt, unknown last; then by name."""
    return (-_efficiency(fit), fit.name)


def best_fit(fit: HostWindow) -> tuple[float, int, int, str]:
    """Rank by operations per watt; then by the free time around the window.

    A host with a neighbour on both sides comes before one with a neighbour
    on one side, and that before one with none; among equals, the one with
    less free time left; then by name. So long gaps stay whole.
    """
    gaps = (fit.gap_before_s, fit.gap_after_s)
    return (
        -_efficiency(fit), gaps.count(None),
        sum(gap for gap in gaps if gap is not None), fit.name)


def _efficiency(fit: HostWindow) -> float:
    return -1.0 if fit.flops_per_watt is None else fit.flops_per_watt


def merged(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return the union of intervals, as ReservableHost.busy has it."""
    result: list[Interval] = []
    for start_s, end_s in sorted(intervals):
        if start_s >= end_s:
            continue
        if result and start_s <= result[-1][1]:
            if end_s > result[-1][1]:
                result[-1] = (result[-1][0], end_s)
        else:
            result.append((start_s, end_s))
    return tuple(result)


def is_free(busy: Sequence[Interval], start_s: int, end_s: int) -> bool:
    """Tell whether the merged intervals leave [start_s, end_s) free."""
    after = bisect.bisect_left(busy, (end_s,))
    return not after or busy[after - 1][1] <= start_s


def find(
    hosts: Sequence[ReservableHost], *, window_start_s: int,
    window_end_s: int | None, duration_s: int, quantity: int,
    ranking: Ranking = best_fit, ) -> FoundWindow | None:
    """Return the earliest time at which so many hosts are free, and the best.

    Nothing is reserved before window_start_s or beyond window_end_s, None for
    no end. The result does not depend on the order of the hosts. With r
    intervals on H hosts it takes O((r + H) log (r + H)).

    :returns: None if there is no such time
    :raises ValueError: duration_s or quantity is not positive
    """
    if duration_s <= 0 or quantity <= 0:
        raise ValueError("duration_s and quantity must be positive")
    start_s = _earliest(
        hosts, window_start_s, window_end_s, duration_s, quantity)
    if start_s is None:
        return None
    end_s = start_s + duration_s
    fits = (_fit(host, start_s, end_s) for host in hosts)
    best = heapq.nsmallest(
        quantity, (fit for fit in fits if fit is not None), key=ranking)
    return FoundWindow(start_s, end_s, tuple(fit.name for fit in best))


def ranked(
    hosts: Iterable[ReservableHost], start_s: int, end_s: int, ranking: Ranking
) -> list[str]:
    """Return the names of hosts free for all that time, best first."""
    fits = (_fit(host, start_s, end_s) for host in hosts)
    free = [fit for fit in fits if fit is not None]
    return [fit.name for fit in sorted(free, key=ranking)]


def _earliest(
    hosts: Sequence[ReservableHost], first_s: int, window_end_s: int | None,
    duration_s: int, quantity: int, ) -> int | None:
    """Return the earliest start at which quantity hosts are free.

    The search covers ever longer parts of the window: most often the start is
    near, and later intervals need not be read.
    """
    if len(hosts) < quantity:
        return None
    # From then on all hosts are free.
    last_s = max(first_s, *map(_settled_s, hosts))
    if window_end_s is not None:
        last_s = min(last_s, window_end_s - duration_s)
    part_s = duration_s
    while part_s * _FARTHER < last_s - first_s:
        start_s = _earliest_until(
            hosts, first_s, first_s + part_s, duration_s, quantity)
        if start_s is not None:
            return start_s
        part_s *= _FARTHER
    if last_s < first_s:
        return None
    return _earliest_until(hosts, first_s, last_s, duration_s, quantity)


def _settled_s(host: ReservableHost) -> int:
    """Return from when on the host is free for good."""
    end_s = host.busy[-1][1] if host.busy else 0
    if host.not_before_s is None:
        return end_s
    return max(end_s, host.not_before_s)


def _earliest_until(
    hosts: Sequence[ReservableHost], first_s: int, last_s: int,
    duration_s: int, quantity: int, ) -> int | None:
    """Return the same for starts of [first_s, last_s].

    In a gap [a, b) of a host a reservation may start at any time of
    [a, b - duration_s]. So many such intervals as have opened by a time, less
    those that have closed before it, is the number of free hosts. It only
    grows where one opens: the earliest start is at the opening of one. If
    c have closed, that is the (quantity + c)th at the earliest, and it is
    this one if none has closed since.
    """
    opens, closes = _starts(hosts, first_s, last_s, duration_s)
    closed = 0
    while quantity + closed <= len(opens):
        start_s = opens[quantity + closed - 1]
        before = bisect.bisect_left(closes, start_s, closed)
        if before == closed:
            return start_s
        closed = before
    return None


def _starts(
    hosts: Sequence[ReservableHost], first_s: int, last_s: int, duration_s: int
) -> tuple[list[int], list[int]]:
    """Return the first and the last start of each gap, each in order.

    Of gaps that begin by last_s. The last gap of each host has no end, and
    has no last start.
    """
    opens: list[int] = []
    closes: list[int] = []
    for host in hosts:
        free_s = first_s
        if host.not_before_s is not None and host.not_before_s > first_s:
            free_s = host.not_before_s
            if free_s > last_s:
                continue
        for start_s, end_s in host.busy:
            if start_s - free_s >= duration_s:
                opens.append(free_s)
                closes.append(start_s - duration_s)
            if end_s > free_s:
                free_s = end_s
                if free_s > last_s:
                    break
        if free_s <= last_s:
            opens.append(free_s)
    opens.sort()
    closes.sort()
    return opens, closes


def _fit(host: ReservableHost, start_s: int, end_s: int) -> HostWindow | None:
    """Return the gaps of a host around a window, None if it is not free."""
    if host.not_before_s is not None and start_s < host.not_before_s:
        return None
    busy = host.busy
    after = bisect.bisect_left(busy, (end_s,))
    before_s = busy[after - 1][1] if after else None
    if before_s is not None and before_s > start_s:
        return None
    return HostWindow(
        host.name, host.flops_per_watt,
        None if before_s is None else start_s - before_s,
        busy[after][0] - end_s if after < len(busy) else None, )
