# SPDX-License-Identifier: Apache-2.0
"""Geometry of a timeline that a template draws as SVG.

A row is a host, or anything that has a capacity. A bar covers a share of its
row, all of it by default, so that bars of parts of a host lie above each
other.
"""

import dataclasses
import datetime
import math

WIDTH = 1000
LABEL_WIDTH = 190
ROW_HEIGHT = 34
TOP = 26
_GAP = 4
# Below this a click would hardly hit a bar.
_LEAST_WIDTH = 3
_STEPS_H = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168)
_MOST_TICKS = 9
_CHARACTER_WIDTH = 7
_LABEL_OF_TICK = 110


@dataclasses.dataclass(frozen=True)
class Bar:
    """A period of a row.

    :ivar kind: a word that chooses the color
    :ivar text: in the bar, where there is space
    :ivar title: all of it in words
    :ivar url: of the page that a click opens, '' for none
    :ivar offset: the part of the row above the bar, from 0 to 1
    :ivar share: the part of the row that it covers
    """

    start: datetime.datetime
    end: datetime.datetime
    kind: str
    text: str = ''
    title: str = ''
    url: str = ''
    offset: float = 0
    share: float = 1


@dataclasses.dataclass(frozen=True)
class Row:
    label: str
    bars: tuple[Bar, ...] = ()


@dataclasses.dataclass(frozen=True)
class DrawnBar:
    bar: Bar
    x: float
    y: float
    width: float
    height: float

    @property
    def text(self):
        """The text, if the bar is wide and high enough for it."""
        fits = len(self.bar.text) * _CHARACTER_WIDTH + 8 <= self.width
        return self.bar.text if fits and self.height >= 12 else ''

    @property
    def text_y(self):
        return self.y + self.height / 2 + 4


@dataclasses.dataclass(frozen=True)
class DrawnRow:
    label: str
    y: float
    bars: tuple[DrawnBar, ...]

    @property
    def text_y(self):
        return self.y + ROW_HEIGHT / 2 + 4


@dataclasses.dataclass(frozen=True)
class Timeline:
    """The shapes to draw: rows, ticks as (x, datetime) and the x of now.

    :ivar now_x: None if it is outside
    """

    rows: tuple[DrawnRow, ...]
    ticks: tuple[tuple[float, datetime.datetime], ...]
    now_x: float | None
    width: int = WIDTH
    left: int = LABEL_WIDTH

    @property
    def height(self):
        return TOP + ROW_HEIGHT * len(self.rows)


def draw(rows, start, end, now=None):
    """Return the Timeline of rows from start to end."""
    def at(moment):
        passed = (moment - start) / (end - start)
        return LABEL_WIDTH + passed * (WIDTH - LABEL_WIDTH)

    last = WIDTH - _LABEL_OF_TICK
    return Timeline(
        tuple(_row(row, TOP + index * ROW_HEIGHT, at, start, end)
              for index, row in enumerate(rows)),
        tuple((round(at(tick), 1), tick) for tick in _ticks(start, end)
              if at(tick) <= last),
        round(at(now), 1) if now and start <= now <= end else None)


def _row(row, y, at, start, end):
    inner = ROW_HEIGHT - 2 * _GAP
    bars = []
    for bar in row.bars:
        if bar.end <= start or bar.start >= end:
            continue
        left = at(max(bar.start, start))
        width = max(at(min(bar.end, end)) - left, _LEAST_WIDTH)
        bars.append(DrawnBar(
            bar, round(min(left, WIDTH - _LEAST_WIDTH), 1),
            round(y + _GAP + bar.offset * inner, 1), round(width, 1),
            round(bar.share * inner, 1)))
    return DrawnRow(row.label, y, tuple(bars))


def _ticks(start, end):
    hours = (end - start).total_seconds() / 3600
    step = next((step for step in _STEPS_H if hours / step <= _MOST_TICKS),
                math.ceil(hours / _MOST_TICKS))
    tick = start.replace(hour=0, minute=0, second=0, microsecond=0)
    while tick < start:
        tick += datetime.timedelta(hours=step)
    while tick < end:
        yield tick
        tick += datetime.timedelta(hours=step)


CHART_HEIGHT = 200
_CHART_BOTTOM = 20


@dataclasses.dataclass(frozen=True)
class Chart:
    """A line over time.

    :ivar lines: the coordinates of each unbroken part, as SVG takes them
    :ivar levels: (y, value) of the marks of the axis
    """

    lines: tuple[str, ...]
    levels: tuple[tuple[float, float], ...]
    ticks: tuple[tuple[float, datetime.datetime], ...]
    width: int = WIDTH
    height: int = CHART_HEIGHT


def chart(points, start, end):
    """Return the Chart of points, (datetime, value or None), by time."""
    known = [value for _time, value in points if value is not None]
    top = max(known, default=0) or 1
    height = CHART_HEIGHT - TOP - _CHART_BOTTOM

    def x(moment):
        passed = (moment - start) / (end - start)
        return round(LABEL_WIDTH / 2 + passed * (WIDTH - LABEL_WIDTH / 2), 1)

    def y(value):
        return round(TOP + height * (1 - value / top), 1)

    lines = [[]]
    for moment, value in points:
        if value is None:
            lines.append([])
        else:
            lines[-1].append(f'{x(moment):.1f},{y(value)}')
    ticks = tuple((x(tick), tick) for tick in _ticks(start, end)
                  if x(tick) <= WIDTH - _LABEL_OF_TICK)
    return Chart(tuple(' '.join(line) for line in lines if line),
                 tuple((y(top * part), round(top * part, 1))
                       for part in (0, 0.5, 1)), ticks)
