# SPDX-License-Identifier: Apache-2.0
"""Forecasts of the number of hosts needed.

A forecast is a pure function of the history, oldest first, the time, and the
length of a step. It returns how many hosts will have servers in the step that
begins now; callers round parts of a host up.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import itertools
import math
from typing import TypeAlias

#: The weight of the latest step in ewma(): about the last six have a say.
ALPHA = 0.3
#: How far max_window() looks back.
WINDOW_S = 3600
#: The number of weeks that seasonal() looks back.
WEEKS = 4

_HOUR_S = 3600
_WEEK_S = 7 * 24 * _HOUR_S
# The number of steps that matter to the smoothing.
_SMOOTHED = 30


@dataclasses.dataclass(frozen=True)
class Load:
    """The load at a time.

    :param time_s: seconds since the epoch
    :param busy: how many hosts had servers, or waited for them
    """

    time_s: int
    busy: int


Forecast: TypeAlias = Callable[[Sequence[Load], int, int], float]


def windows(now_s: int, step_s: int) -> list[tuple[int, int]]:
    """Return the time windows of the history that forecasts read, half-open.

    The last steps, and the same hour of earlier weeks, oldest first.
    """
    begins = [now_s - week * _WEEK_S for week in range(WEEKS, 0, -1)]
    recent_s = max(WINDOW_S, _SMOOTHED * step_s)
    return [*((begin_s, begin_s + _HOUR_S) for begin_s in begins),
            (now_s - recent_s, now_s + 1)]


def ewma(history: Sequence[Load], now_s: int, step_s: int) -> float:
    """Return the hosts in use now plus the smoothed arrivals.

    Arrivals of a step are the rise of the number of hosts in use, the most
    within the step, since the step before. They are smoothed with the weight
    ALPHA for the latest. In a step without samples the number is taken to be
    unchanged.
    """
    steps = _steps(history, now_s, step_s)
    arrivals = 0.0
    for number, (before, after) in enumerate(itertools.pairwise(steps)):
        risen = max(0, after - before)
        weight = ALPHA if number else 1.0
        arrivals += weight * (risen - arrivals)
    return _latest(history, now_s) + arrivals


def max_window(history: Sequence[Load], now_s: int, step_s: int) -> float:
    """Return the most hosts that were in use within the window."""
    return max(_latest(history, now_s),
               _most(history, now_s - WINDOW_S, now_s + 1) or 0)


def seasonal(history: Sequence[Load], now_s: int, step_s: int) -> float:
    """Return the mean of the same hour of earlier weeks.

    The hour begins now, and each week counts with the most hosts that were in
    use; weeks without samples are left out. Not fewer than are in use now.
    Without any such week it is the result of ewma().
    """
    weeks = []
    for number in range(1, WEEKS + 1):
        start_s = now_s - number * _WEEK_S
        most = _most(history, start_s, start_s + _HOUR_S)
        if most is not None:
            weeks.append(most)
    if not weeks:
        return ewma(history, now_s, step_s)
    return max(_latest(history, now_s), math.fsum(weeks) / len(weeks))


def _latest(history: Sequence[Load], now_s: int) -> int:
    past = [load for load in history if load.time_s <= now_s]
    return past[-1].busy if past else 0


def _most(history: Iterable[Load], start_s: int, end_s: int) -> int | None:
    """Return the most hosts in use in [start, end), None if unknown."""
    return max((load.busy for load in history
                if start_s <= load.time_s < end_s), default=None)


def _steps(history: Iterable[Load], now_s: int, step_s: int) -> list[int]:
    """Return the most hosts in use in each step up to now, oldest first."""
    most: dict[int, int] = {}
    for load in history:
        if load.time_s <= now_s:
            ago = (now_s - load.time_s) // step_s
            most[ago] = max(most.get(ago, 0), load.busy)
    steps: list[int] = []
    for ago in range(max(most, default=-1), -1, -1):
        steps.append(most[ago] if ago in most else steps[-1])
    return steps
