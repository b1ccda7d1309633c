# SPDX-License-Identifier: Apache-2.0
"""Event queue of a simulation, and its clock."""

from collections.abc import Callable
import enum
import heapq
import itertools
from typing import Any


class Phase(enum.IntEnum):
    """Order of the events that happen at the same microsecond."""

    END = 0      # releases capacity, which the later phases can use
    STEP = 1     # continues an operation
    POLL = 2     # periodic work of a service
    BOOT = 3     # a request arrives


class EventQueue:
    """Queue of pending events.

    Events happen in order of time, phase and insertion. Times are whole
    microseconds, so nothing depends on rounding.

    :ivar now_us: time of the last event
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

        :raises ValueError: the time is in the past
        """
        if at_us < self.now_us:
            msg = f'{at_us} us is over, it is {self.now_us} us'
            raise ValueError(msg)
        heapq.heappush(self._heap, (at_us, phase, next(self._serial), happen,
                                    arguments))

    def run(self, until_us: int, before: Phase | None = None) -> None:
        """Run the events up to and including a time.

        :param before: at that time only events of earlier phases
        """
        heap = self._heap
        last = (until_us, len(Phase) if before is None else before)
        while heap and heap[0][:2] < last:
            at_us, _, _, happen, arguments = heapq.heappop(heap)
            self.now_us = at_us
            happen(*arguments)
        self.now_us = max(self.now_us, until_us)


class Alarm:
    """Timer that calls a function at the earliest time it was set to."""

    def __init__(self, events: EventQueue, phase: Phase,
                 ring: Callable[[], None]) -> None:
        self._events = events
        self._phase = phase
        self._happen = ring
        self._at_us: int | None = None

    def set(self, at_us: int) -> None:
        """Call the function at this time, unless an earlier one is set."""
        if self._at_us is None or at_us < self._at_us:
            self._at_us = at_us
            self._events.add(at_us, self._phase, self._ring, at_us)

    def _ring(self, at_us: int) -> None:
        if at_us == self._at_us:
            self._at_us = None
            self._happen()
