# SPDX-License-Identifier: Apache-2.0
"""Estimates the remaining wait of a request from recent starts."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import datetime

from nova_preempt.core import capacity
from nova_preempt.core.model import Resources

#: Fewer starts than these allow no estimate.
LEAST_STARTS = 5

#: The longest estimate, in seconds: a hundred years.
MOST_S = 100 * 365 * 86400


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementPace:
    """Amounts that were placed recently.

    :param window_s: the length of the window
    :param placed: the sum of demands, by resource class
    :param starts: how many requests were started
    """

    window_s: int
    placed: Resources
    starts: int

    @classmethod
    def of(cls, window_s: int, demands: Iterable[Resources]) -> PlacementPace:
        """Return the pace at which these demands were placed."""
        found = list(demands)
        return cls(window_s, capacity.total(found), len(found))

    def wait_s(self, ahead: Resources) -> int | None:
        """Return how long it takes to place so much, None if unknown.

        It is unknown if little or nothing was placed, or nothing of a wanted
        class, and beyond MOST_S. The slowest class counts, rounded up.

        :param ahead: the demand until its turn, itself included
        """
        if self.starts < LEAST_STARTS:
            return None
        longest = 0
        for name, amount in ahead.items():
            if amount <= 0:
                continue
            placed = self.placed.get(name, 0)
            if placed <= 0:
                return None
            longest = max(longest, -(-amount * self.window_s // placed))
        return longest if longest <= MOST_S else None


def seconds_until(at: datetime.datetime | None, now: datetime.datetime) -> int:
    """Return whole seconds until then, rounded up; 0 if it is over."""
    if at is None or at <= now:
        return 0
    return -((now - at) // datetime.timedelta(seconds=1))
