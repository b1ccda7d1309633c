# SPDX-License-Identifier: Apache-2.0
"""Pictures, by matplotlib if that is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import itertools
import math
import pathlib
from typing import TYPE_CHECKING, Any

from nova_preempt.core.model import SECOND
from nova_preempt.simulator import time_series
from nova_preempt.simulator.papers.figures import FigureSeries
from nova_preempt.simulator.papers.figures import Panel
from nova_preempt.simulator.papers.figures import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What pictures may be.
FORMATS = ('png', 'svg')
_HOUR_US = 3600 * SECOND
#: How levels of report.Report begin.
_WANTED, _RUNNING = 'wanted ', 'running '
_DRAWN = ('VCPU', 'MEMORY_MB')
_STYLES: dict[str, dict[str, Any]] = {
    'step': {'drawstyle': 'steps-post'}, 'line': {},
    'points': {'linestyle': '', 'marker': '.', 'markersize': 3}}


class NoPlot(Exception):
    """The message says why nothing can be drawn."""


def check() -> None:
    """Do nothing if pictures can be drawn.

    :raises NoPlot: matplotlib is not installed
    """
    try:
        import matplotlib.figure  # noqa: F401, whether it is there
    except ImportError as exc:
        raise NoPlot('to plot, matplotlib is needed: pip install '
                     f'nova-preempt[report] ({exc})') from exc


def draw(plot: Plot, directory: str, format_: str = 'png') -> str:
    """Draw a picture; return the path of the file.

    :param directory: made if it is not there
    :raises NoPlot: matplotlib is not installed
    :raises OSError: the file cannot be written
    """
    check()
    import matplotlib
    import matplotlib.figure

    path = pathlib.Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    count = len(plot.panels)
    # Without pyplot, which would look for a screen.
    figure = matplotlib.figure.Figure(figsize=(10, 1 + 2.8 * count),
                                      layout='constrained')
    for axes, panel in zip(figure.subplots(count, squeeze=False)[:, 0],
                           plot.panels, strict=True):
        _draw_panel(axes, panel)
    file = str(path / f'{plot.name}.{format_}')
    # The same picture gives the same file.
    with matplotlib.rc_context({'svg.hashsalt': plot.name}):
        figure.savefig(file, metadata={'Date': None}
                       if format_ == 'svg' else {})
    return file


def _draw_panel(axes: Axes, panel: Panel) -> None:
    bars = [each for each in panel.series if each.style == 'bar']
    for number, each in enumerate(bars):
        width = 0.8 / len(bars)
        axes.bar([place + (number - (len(bars) - 1) / 2) * width
                  for place in range(len(each.x))], each.y, width,
                 label=each.label)
        axes.set_xticks(range(len(each.x)), each.x)
    for each in panel.series:
        if each.style in _STYLES:
            axes.plot(each.x, each.y, label=each.label, **_STYLES[each.style])
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.from_zero:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    # Beside the lines, which may be anywhere.
    axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))


def plot(found: Mapping[str, tuple[time_series.Series, Mapping[str, int]]]
         ) -> Plot:
    """Return the picture of simulations.

    :param found: {title of a policy: (its series, the cloud's capacity)}
    """
    steps = {title: list(time_series.steps(each, capacity))
             for title, (each, capacity) in found.items()}
    names = [name for name in _DRAWN
             if any(name in capacity for _, capacity in found.values())]
    return Plot('simulation', [
        *(_panel(f'{name} in use', 'share of all', steps, {
            kind: _used(kind, name) for kind in ('normal', 'preemptible')})
          for name in names or _largest(steps)),
        _panel('Time from a request until the server is active',
               'mean, seconds', steps, {'': _wait}),
        _panel('Evictions', 'servers an hour', steps, {'': _rate('notice')}),
        _panel('Work lost', 'server-hours an hour', steps,
               {'': _rate('lost_us', _HOUR_US)}),
        _panel('Requests refused', 'an hour', steps, {'': _rate('refused')}),
        *_of_classes(steps), *_of_hosts(steps)])


def _of_classes(steps: Mapping[str, Sequence[time_series.Span]]
                ) -> Iterator[Panel]:
    """Yield the panel of the availability of each class."""
    names = sorted({name.removeprefix(_WANTED) for each in steps.values()
                    for step in each for name in step.levels
                    if name.startswith(_WANTED)})
    if names:
        yield _panel('Availability by class',
                     'share of the servers that are wanted', steps,
                     {name: _availability(name) for name in names})


def _availability(name: str) -> Callable[[time_series.Span], float]:
    def of(step: time_series.Span) -> float:
        wanted = step.levels.get(_WANTED + name, 0.0)
        return (step.levels.get(_RUNNING + name, 0.0) / wanted if wanted
                else math.nan)

    return of


def _of_hosts(steps: Mapping[str,
                             Sequence[time_series.Span]]) -> Iterator[Panel]:
    """Yield the panels of the power of hosts, and of reservations."""
    for name, title, label, unit in (
            ('hosts on', 'Hosts awake', 'hosts', 1),
            ('milliwatts', 'Power drawn', 'kW', 1_000_000)):
        if any(name in at.levels for each in steps.values() for at in each):
            yield _panel(title, label, steps, {'': _level(name, unit)})
    if any('hosts reserved' in step.levels for each in steps.values()
           for step in each):
        yield _panel('Hosts reserved', 'hosts', steps, {
            'reserved': _level('hosts reserved', 1),
            'used': _level('hosts reserved and used', 1)})
    if any('milliwatts' in step.levels for each in steps.values()
           for step in each):
        yield Panel('Energy', 'time (h)', 'kWh since the beginning', [
            FigureSeries(policy if len(steps) > 1 else 'all',
                         [step.from_h + step.hours for step in each],
                         [*itertools.accumulate(
                             step.levels.get('milliwatts', 0) / 1e6
                             * step.hours for step in each)], 'line')
            for policy, each in steps.items()])


def _largest(steps: Mapping[str, Sequence[time_series.Span]]) -> list[str]:
    """The first class that anything is used of."""
    names = sorted({name for each in steps.values() for step in each
                    for _, name in step.used})
    return names[:1]


def _panel(title: str, label: str,
           steps: Mapping[str, Sequence[time_series.Span]],
           values: Mapping[str, Callable[[time_series.Span], float]]) -> Panel:
    """Return axes with a line for each policy and value."""
    several = len(steps) > 1
    return Panel(title, 'time (h)', label, [
        FigureSeries(': '.join(filter(None, (policy if several else '', name)))
                     or 'all', [step.from_h for step in each],
                     [of(step) for step in each], 'step')
        for policy, each in steps.items() for name, of in values.items()])


def _used(kind: str, name: str) -> Callable[[time_series.Span], float]:
    return lambda step: step.used.get((kind, name), 0.0)


def _level(name: str, unit: float) -> Callable[[time_series.Span], float]:
    return lambda step: step.levels.get(name, 0.0) / unit


def _rate(name: str, unit: float = 1) -> Callable[[time_series.Span], float]:
    return lambda step: step.counts.get(name, 0) / step.hours / unit


def _wait(step: time_series.Span) -> float:
    count = step.counts.get('waits', 0)
    return step.counts.get('waited_us', 0) / SECOND / count if count else 0.0
