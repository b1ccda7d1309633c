# SPDX-License-Identifier: Apache-2.0

"""Clocks of one server of a class: time run, waited and in transit.

The three clocks of M. Carvalho et al. (JISA 11, 2020, doi
10.1186/s13174-020-00129-0) count from the admission of a server to its end,
over all its evictions: R while it runs, W while it is queued, at first and
after an eviction, and B while it is allocated, resumed or built. Its promise
is a share of R in all three. No clock counts while its owner has set it aside.

Times are whole microseconds since the epoch. Events come from notifications,
which may be late, duplicated or in any order: the clocks after a number of
events are the same in any order. A lost event cannot be recovered, but can
often be detected (``has_gap``); then a complete list repairs it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
import dataclasses
import enum
import fractions
import itertools
import operator


class Kind(enum.IntEnum):
    """Kinds of events, in the cyclic order in which they happen."""

    QUEUED = 0
    ALLOCATING = 1  # has a host, and does not run there yet
    RUNNING = 2
    EVICTED = 3  # was preempted, and waits again
    ENDED = 4  # for good
    ASIDE = 5  # shelved or deleted by its owner


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Event:
    """An event and its time, in microseconds since the epoch."""

    at_us: int
    kind: Kind


#: {kind: kinds that may follow}; any other order means a lost event.
_NEXT: Mapping[Kind | None, frozenset[Kind]] = {
    None: frozenset((Kind.QUEUED,)),
    Kind.EVICTED: frozenset(
        (Kind.QUEUED, Kind.ALLOCATING, Kind.ENDED, Kind.ASIDE)),
    Kind.QUEUED: frozenset((Kind.ALLOCATING, Kind.ENDED, Kind.ASIDE)),
    # The build may fail on a host.
    Kind.ALLOCATING: frozenset(
        (Kind.RUNNING, Kind.QUEUED, Kind.EVICTED, Kind.ENDED, Kind.ASIDE)),
    Kind.RUNNING: frozenset((Kind.EVICTED, Kind.ENDED, Kind.ASIDE)),
    Kind.ENDED: frozenset(),
    Kind.ASIDE: frozenset(
        (Kind.QUEUED, Kind.ALLOCATING, Kind.RUNNING, Kind.ENDED)),
}


#: Kinds after which no clock counts.
_STOPPED = frozenset((Kind.ENDED, Kind.ASIDE))


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """Readings of the clocks, in microseconds; none is negative."""

    running_us: int = 0
    waiting_us: int = 0
    binding_us: int = 0

    @property
    def total_us(self) -> int:
        """Return the time since its admission."""
        return self.running_us + self.waiting_us + self.binding_us

    @property
    def availability(self) -> fractions.Fraction:
        """Return the share of time that it ran (Equation 1); 0 of no time."""
        return _share(self.running_us, self.total_us)

    def later(self, kind: Kind | None, elapsed_us: int) -> Times:
        """Return the readings after so long in the state of a kind."""
        if kind is Kind.RUNNING:
            return Times(
                self.running_us + elapsed_us, self.waiting_us, self.binding_us)
        if kind is Kind.ALLOCATING:
            return Times(
                self.running_us, self.waiting_us, self.binding_us + elapsed_us)
        if kind is None or kind in _STOPPED:
            return self
        return Times(
            self.running_us, self.waiting_us + elapsed_us, self.binding_us)


def _share(part: int, whole: int) -> fractions.Fraction:
    return fractions.Fraction(part, whole) if whole else fractions.Fraction()


@dataclasses.dataclass(frozen=True, slots=True)
class ClockState:
    """The state of the clocks right after an event.

    ``kind``: of the event, None before all. ``since_us``: the begin of that
    state; ``last_us``: of the last event, which may have repeated the state.
    ``gaps``: how many events came that cannot follow the one before.
    """

    kind: Kind | None = None
    times: Times = Times()
    admitted_us: int = 0
    since_us: int = 0
    last_us: int = 0
    gaps: int = 0

    def after(self, event: Event) -> ClockState:
        """Return the state after one more event, which is not earlier."""
        if self.kind is None:
            return ClockState(event.kind, Times(), event.at_us, event.at_us,
                event.at_us, int(event.kind is not Kind.QUEUED))
        if self.kind is Kind.ENDED:
            return self
        again = event.kind is self.kind
        return ClockState(event.kind, self.times.later(self.kind,
            event.at_us - self.last_us), self.admitted_us,
            self.since_us if again else event.at_us, event.at_us, self.gaps + (
            not again and event.kind not in _NEXT[self.kind]))


_NOTHING = ClockState()


def _fold(events: Iterable[Event], mark: ClockState) -> ClockState:
    """Return the state after ascending events.

    Events of the same instant are applied in the order in which they can have
    happened after the state before.
    """
    for _, instant in itertools.groupby(
            events, key=operator.attrgetter("at_us")):
        before = _place(mark.kind)
        for event in sorted(
                instant, key=lambda event: _distance(before, event.kind)):
            mark = mark.after(event)
    return mark


def _place(kind: Kind | None) -> Kind:
    """Return the position of a state in the cycle."""
    if kind is None:
        return Kind.EVICTED
    return Kind.QUEUED if kind is Kind.ASIDE else kind


def _distance(before: Kind, after: Kind) -> int:
    """Return how many steps of the cycle lie between; the end is last."""
    if after in _STOPPED:
        return len(Kind) - (after is Kind.ASIDE)
    return (after - before - 1) % Kind.ENDED


class ServerClocks:
    """The immutable clocks of one server.

    ``events``: known events that are not settled, ascending. Clocks are equal
    if they know the same events.
    """

    __slots__ = ("_base", "_mark", "events")

    def __init__(self, events: Iterable[Event] = (),
            base: ClockState = _NOTHING) -> None:
        self.events = tuple(sorted(set(events)))
        self._base = base
        self._mark = _fold(self.events, base)

    # -- readings ---------------------------------------------------------

    @property
    def mark(self) -> ClockState:
        """Return the state from which all readings follow."""
        return self._mark

    @property
    def kind(self) -> Kind | None:
        """Return the kind of the last event, None if there was none."""
        return self._mark.kind

    @property
    def admitted_us(self) -> int:
        """Return the time of admission; 0 if nothing is known of it."""
        return self._mark.admitted_us

    @property
    def has_gap(self) -> bool:
        """Tell whether an event must have been lost; see repaired()."""
        return self._mark.gaps > 0

    def at(self, now_us: int) -> Times:
        """Return the readings at a time.

        :param now_us: if it is earlier than the last event, since a clock was
            set back, the readings are those at that event
        """
        mark = self._mark
        return mark.times.later(mark.kind, max(0, now_us - mark.last_us))

    def ran_us(self, now_us: int) -> int:
        """Return for how long it has run without a break, 0 if not."""
        mark = self._mark
        if mark.kind is not Kind.RUNNING:
            return 0
        return max(0, now_us - mark.since_us)

    # -- changes ----------------------------------------------------------

    def applied(self, *events: Event) -> ServerClocks:
        """Return the clocks with these events as well.

        In any order, and as often as they come. Events up to the settled time
        are taken to be counted already.
        """
        clocks = self
        for event in events:
            clocks = clocks._one(event)
        return clocks

    def _one(self, event: Event) -> ServerClocks:
        if self._base.kind is not None and event.at_us <= self._base.last_us:
            return self
        if self.events and event.at_us <= self.events[-1].at_us:
            return ServerClocks((*self.events, event), self._base)
        # Most events are the latest: continue from the current state.
        clocks = ServerClocks.__new__(ServerClocks)
        clocks.events = (*self.events, event)
        clocks._base = self._base
        clocks._mark = self._mark.after(event)
        return clocks

    def repaired(self, complete: Iterable[Event],
                 until_us: int) -> ServerClocks:
        """Return the clocks with a complete list of events.

        :param complete: all events up to that time, since its admission; they
            replace all events known up to then
        :param until_us: known events after that stay
        """
        return ServerClocks(
            (
                *(event for event in complete if event.at_us <= until_us),
                *(event for event in self.events if event.at_us > until_us)))

    def settled(self, until_us: int) -> ServerClocks:
        """Return the same clocks without the events up to that time.

        So the list does not grow for ever. Times are kept, but later events of
        the time before are ignored.
        """
        place = bisect.bisect_right(
            self.events, until_us, key=lambda event: event.at_us)
        return ServerClocks(
            self.events[place:], _fold(self.events[:place], self._base))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerClocks):
            return NotImplemented
        return (self.events, self._base) == (other.events, other._base)

    def __hash__(self) -> int:
        return hash((self.events, self._base))

    def __repr__(self) -> str:
        return f"Clocks({self.events!r}, {self._base!r})"
