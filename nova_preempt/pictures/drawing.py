# SPDX-License-Identifier: Apache-2.0
"""Draws all pictures in one style, with matplotlib if it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses
import io
import itertools
import math
import pathlib
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Suffixes of files that can be written.
FORMATS = ('png', 'svg')
#: The most panels of a picture.
MOST_PANELS = 4
#: Of M. Okabe and K. Ito, "Color Universal Design" (2008): people with any
#: kind of colour blindness can tell them apart. Their yellow is left out,
#: which is illegible on white.
COLOURS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9',
           '#000000')
_DASHES = ('-', (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_MARKERS = 'osv^'
_WIDTH_IN, _PANEL_IN, _ROW_IN = 8.0, 2.1, 0.21
# The most rows of names that are legible on an axis, and the most letters.
_MOST_NAMES, _MOST_LETTERS, _MOST_COLUMNS = 60, 40, 78
_STYLE: dict[Any, Any] = {
    'axes.axisbelow': True, 'axes.grid': True, 'axes.grid.axis': 'y',
    'axes.spines.right': False, 'axes.spines.top': False,
    'axes.titlelocation': 'left', 'axes.titlesize': 10,
    'date.converter': 'concise', 'font.size': 9,
    'grid.alpha': 0.3, 'lines.linewidth': 1.6, 'savefig.dpi': 125,
    # Names may have dollar signs, which are no formulas.
    'text.parse_math': False}


class NoPlot(Exception):
    """The message says why nothing can be drawn."""


@dataclasses.dataclass(frozen=True)
class FigureSeries:
    """Points of one colour, with their name beside the last one.

    :param x: places; of a step one more than of y if the last one ends there;
        of bars and areas the names of rows and columns
    :param y: values, NaN where there is none
    :param style: "line", "step", "points", "bar" or "area"
    :param colour: number of its colour, its place in the panel by default
    :param dash: number of its kind of line or marker
    :param is_published: whether it is of a paper: hollow and black
    """

    label: str
    x: Sequence[Any]
    y: Sequence[float]
    style: str = 'line'
    colour: int | None = None
    dash: int = 0
    is_published: bool = False


@dataclasses.dataclass(frozen=True)
class Panel:
    """Axes with their curves.

    :param y_label: with the unit; the axis of values, which begins at 0
    :param top: how far the axis of values reaches at least
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[FigureSeries]
    top: float = 0


@dataclasses.dataclass(frozen=True)
class Plot:
    """A picture of up to four panels, one below the other.

    :param name: of the file
    :param panels: at most MOST_PANELS
    :param title: what the picture shows, in a sentence
    """

    name: str
    panels: Sequence[Panel]
    title: str = ''


def check() -> None:
    """Do nothing if pictures can be drawn.

    :raises NoPlot: matplotlib is not installed
    """
    try:
        import matplotlib.figure  # noqa: F401, whether it is there
    except ImportError as exc:
        raise NoPlot('to plot, matplotlib is needed: pip install '
                     f'nova-preempt[report] ({exc})') from exc


def write(plot: Plot, file: Any, format_: str | None = None) -> None:
    """Draw a picture into a file.

    The same picture gives the same file.

    :param file: its path, or a stream of bytes
    :param format_: one of FORMATS, by default the suffix of the path
    :raises NoPlot: matplotlib is not installed
    :raises OSError: the file cannot be written
    """
    check()
    import matplotlib

    with matplotlib.rc_context({**_STYLE, 'svg.hashsalt': plot.name}):
        _figure(plot).savefig(
            file, format=format_, metadata={'Date': None} if 'svg' in (
                format_, str(file)[-3:].lower()) else {})


def draw(plot: Plot, directory: str, format_: str) -> str:
    """Draw a picture into a directory; return the path of the file.

    :param directory: made if it is not there
    :raises: as write()
    """
    path = pathlib.Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    file = str(path / f'{plot.name}.{format_}')
    write(plot, file, format_)
    return file


def svg(plot: Plot) -> bytes:
    """Return a picture as SVG; raises as write()."""
    stream = io.BytesIO()
    write(plot, stream, 'svg')
    return stream.getvalue()


def _figure(plot: Plot) -> Figure:
    import matplotlib.figure

    heights = [_height_in(panel) for panel in plot.panels]
    title = textwrap.wrap(_plain(plot.title, 1000).replace(
        ' %', '\N{NO-BREAK SPACE}%'), _MOST_COLUMNS)
    # Without pyplot, which would look for a screen.
    figure = matplotlib.figure.Figure(
        figsize=(_WIDTH_IN, sum(heights) + 0.2 * len(title)),
        layout='constrained')
    if title:
        figure.suptitle('\n'.join(title), x=0.01, ha='left', size=11,
                        weight='bold')
    for axes, panel, height_in in zip(
            figure.subplots(len(heights), squeeze=False,
                            height_ratios=heights)[:, 0],
            plot.panels, heights, strict=True):
        axes.set_title(panel.title)
        if any(each.style == 'bar' for each in panel.series):
            _draw_bars(axes, panel)
        else:
            _draw_panel(axes, panel, height_in, panel is plot.panels[-1])
    return figure


def _height_in(panel: Panel) -> float:
    rows = len(panel.series)
    if any(each.style == 'bar' for each in panel.series):
        rows = sum(len(each.x) for each in panel.series) + len(
            panel.series[0].x) // 2
        return 0.7 + _ROW_IN * rows
    return max(_PANEL_IN, 0.7 + _ROW_IN * rows)


def _draw_bars(axes: Axes, panel: Panel) -> None:
    """Draw a row for each bar, with its name and value at its end."""
    at, middles = 0.0, []
    names = list(dict.fromkeys(name for each in panel.series
                               for name in each.x))
    for name in names:
        begin = at
        for number, each in enumerate(panel.series):
            value = dict(zip(each.x, each.y, strict=True)).get(name, math.nan)
            if math.isnan(value):
                continue
            colour = _colour(number, each)
            axes.barh(at, value, 0.8, edgecolor=colour,
                      color='none' if each.is_published else colour)
            label = each.label if (
                each.is_published or len(panel.series) > 1) else ''
            shown = f'{value:{",.0f" if value >= 1000 else ".3g"}}'
            axes.annotate(
                f'{shown}  {_plain(label)}'.rstrip(), (value, at),
                (4, 0), textcoords='offset points', va='center')
            at += 1
        middles.append((begin + at - 1) / 2)
        at += 0.5
    axes.set_yticks(middles, [_plain(name) for name in names])
    axes.tick_params(axis='y', length=0)
    axes.set_ylim(at - 0.8, -0.7)
    axes.set_xlabel(panel.y_label)
    axes.set_xlim(0, max(panel.top, axes.get_xlim()[1]))
    axes.grid(visible=False)


def _draw_panel(axes: Axes, panel: Panel, height_in: float, is_last: bool
                ) -> None:
    for number, each in enumerate(panel.series):
        look: dict[str, Any] = {'color': _colour(number, each),
                                'clip_on': False}
        if each.style == 'area':
            # Not bars: thousands of them would take minutes.
            axes.stairs(each.y, fill=True, **look)
            axes.set_xticks(())
            if is_last and len(each.x) <= _MOST_NAMES:
                axes.set_xticks([place + 0.5 for place in range(len(each.x))],
                                [_plain(name) for name in each.x], rotation=90)
        elif each.style == 'points':
            axes.plot(each.x, each.y, 'D' if each.is_published
                      else _MARKERS[number % len(_MARKERS)],
                      markersize=7 if each.is_published else 3,
                      markerfacecolor='none' if each.is_published else None,
                      **look)
        else:
            end = each.y[-1:] if len(each.x) > len(each.y) else ()
            axes.plot(each.x, [*each.y, *end], drawstyle=(
                'steps-post' if each.style == 'step' else 'default'),
                linestyle=_DASHES[each.dash % len(_DASHES)], **look)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.margins(x=0.01)
    axes.set_ylim(0, max([panel.top, *(
        1.05 * value for each in panel.series for value in each.y
        if not math.isnan(value))]) or 1)
    _label(axes, panel.series, height_in)


def _label(axes: Axes, series: Sequence[FigureSeries], height_in: float
           ) -> None:
    """Write the name of each series beside its last value."""
    top = axes.get_ylim()[1]
    ends = [(next((value for value in reversed(each.y)
                   if not math.isnan(value)), math.nan) / top, number)
            for number, each in enumerate(series)]
    ends = sorted(end for end in ends if not math.isnan(end[0]))
    places = spread([end for end, _ in ends], 0.17 / (height_in - 0.6))
    for (end, number), place in zip(ends, places, strict=True):
        each = series[number]
        axes.annotate(
            _plain(each.label), (1.005, end), (1.05, place),
            'axes fraction', va='center', arrowprops={
                'arrowstyle': '-', 'color': _colour(number, each),
                'linestyle': _DASHES[each.dash % len(_DASHES)],
                'linewidth': 1.6, 'relpos': (0, 0.5), 'shrinkA': 2,
                'shrinkB': 0})


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return places that are apart, as near as possible to those given.

    :param places: in order, from 0 to 1
    :param gap: the least distance; smaller if not all fit
    """
    gap = min(gap, 1 / max(1, len(places) - 1))
    up = list(itertools.accumulate(
        places, lambda last, place: max(place, last + gap)))
    down = itertools.accumulate(reversed(
        [min(place, 1) for place in up]),
        lambda last, place: min(place, last - gap))
    return [*reversed(list(down))]


def _colour(number: int, series: FigureSeries) -> str:
    if series.is_published:
        return '#000000'
    chosen = number if series.colour is None else series.colour
    return COLOURS[chosen % len(COLOURS)]


def _plain(text: object, most: int = _MOST_LETTERS) -> str:
    """Return a text of a user such that it fits, and can be drawn."""
    found = ''.join(each if each.isprintable() else '?' for each in str(text))
    return found if len(found) <= most else f'{found[:most - 1]}…'


def one_line(what: str, values: Iterable[tuple[str, str]]) -> str:
    """Return the part of a title that compares values.

    :param values: (name, value), of a single one without its name
    """
    found = list(values)
    return f'{what}: ' + ', '.join(
        f'{value} ({name})' if len(found) > 1 else value
        for name, value in found)
