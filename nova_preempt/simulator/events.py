# SPDX-License-Identifier: Apache-2.0
"""Events of a simulation, and a clock that jumps from one to the next."""

from collections.abc import Callable
import enum
import heapq
import itertools
from typing import Any


class Phase(enum.IntEnum):
    """Order of the events that happen at the same microsecond."""

    END = 0      # what is given up is there for all others
    STEP = 1     # of what has begun before
    POLL = 2     # of services that look every so often
    BOOT = 3


class EventQueue:
    """Holds the events that are still to happen.

    In order of time; at a time by their phase, and then as they were added.
    Times are whole microseconds, so nothing depends on rounding.

    :ivar now_us: when the last one happened
    """

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, int, Callable[..., None],
                               tuple[Any, ...]]] = []
        self._serial = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at_us: int, phase: Phase, happen: Callable[..., None],
            *arguments: Any) -> None:
        """Schedule an event.

        :raises ValueError: that time is over
        """
        if at_us < self.now_us:
            msg = f'{at_us} us is before the current time, {self.now_us} us'
            raise ValueError(msg)
        heapq.heappush(self._heap, (at_us, phase, next(self._serial), happen,
                                    arguments))

    def run(self, until_us: int, before: Phase | None = None) -> None:
        """Run the events until a time, inclusive.

        :param before: at that time only what has an earlier phase
        """
        heap = self._heap
        last = (until_us, len(Phase) if before is None else before)
        while heap and heap[0][:2] < last:
            at_us, _, _, happen, arguments = heapq.heappop(heap)
            self.now_us = at_us
            happen(*arguments)
        self.now_us = max(self.now_us, until_us)


class Alarm:
    """Calls a function when the earliest time comes that it is set to."""

    def __init__(self, events: EventQueue, phase: Phase,
                 ring: Callable[[], None]) -> None:
        self._events = events
        self._phase = phase
        self._happen = ring
        self._at_us: int | None = None

    def set(self, at_us: int) -> None:
        """Ring at this time, unless it is set to ring earlier."""
        if self._at_us is None or at_us < self._at_us:
            self._at_us = at_us
            self._events.add(at_us, self._phase, self._ring, at_us)

    def _ring(self, at_us: int) -> None:
        if at_us == self._at_us:
            self._at_us = None
            self._happen()
