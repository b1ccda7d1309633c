# SPDX-License-Identifier: Apache-2.0
"""Figures over time, in little memory, for pictures."""

from collections.abc import Iterator, Mapping
import dataclasses
import itertools

from nova_preempt.core.model import SECOND

#: So many points are kept; then every second one, at twice the distance.
MOST_POINTS = 1024
_FIRST_S = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """The totals up to a time.

    :param areas: {(kind of servers, resource class): amount times
        microseconds}
    :param counts: {what: how often, or how much}
    :param levels: {what: how much there was, times microseconds}
    """

    at_us: int
    areas: Mapping[tuple[str, str], int]
    counts: Mapping[str, int]
    levels: Mapping[str, int] = dataclasses.field(default_factory=dict)


class Series:
    """Points at equal distances, from the first event on.

    :ivar end: the totals at the end of the simulation
    """

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.end: Point | None = None
        self.next_us = 0
        self._interval_us = _FIRST_S * SECOND

    def add(self, point: Point) -> None:
        """Add one, at ``next_us``."""
        self.points.append(point)
        if len(self.points) > MOST_POINTS:
            self._interval_us *= 2
            self.points = self.points[::2]
        self.next_us = self.points[-1].at_us + self._interval_us

    def steps(self, most: int = MOST_POINTS
              ) -> Iterator[tuple[Point, Point]]:
        """Yield points with the one after each, at most so many pairs."""
        points = [*self.points]
        if points and self.end and self.end.at_us > points[-1].at_us:
            points.append(self.end)
        if len(points) > most + 1:
            points = [*points[:-1:-(-(len(points) - 1) // most)], points[-1]]
        return itertools.pairwise(points)


@dataclasses.dataclass(frozen=True)
class Span:
    """The means between two points.

    :param used: {(kind, resource class): mean share of all there is}
    :param counts: {what: how often, or how much}
    :param levels: {what: how much there was, as a mean}
    """

    from_h: float
    hours: float
    used: Mapping[tuple[str, str], float]
    counts: Mapping[str, int]
    levels: Mapping[str, float]


def steps(series: Series, capacity: Mapping[str, int],
          most: int = MOST_POINTS) -> Iterator[Span]:
    """Yield at most so many spans; their times are since the first point.

    :param capacity: of the cloud
    """
    hour_us = 3600 * SECOND
    for before, after in series.steps(most):
        took_us = after.at_us - before.at_us
        yield Span(
            (before.at_us - series.points[0].at_us) / hour_us,
            took_us / hour_us,
            {key: (area - before.areas.get(key, 0))
             / (capacity[key[1]] * took_us)
             for key, area in after.areas.items() if capacity.get(key[1])},
            {name: count - before.counts.get(name, 0)
             for name, count in after.counts.items()},
            {name: (area - before.levels.get(name, 0)) / took_us
             for name, area in after.levels.items()})
