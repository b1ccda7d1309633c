# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Pictures, by matplotlib if that is installed."""

import pathlib

from nova_preempt.simulator.papers.figures import Panel
from nova_preempt.simulator.papers.figures import Plot

#: What pictures may be.
FORMATS = ('png', 'svg')


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
        _panel(axes, panel)
    file = str(path / f'{plot.name}.{format_}')
    # The same picture gives the same file.
    with matplotlib.rc_context({'svg.hashsalt': plot.name}):
        figure.savefig(file, metadata={'Date': None}
                       if format_ == 'svg' else {})
    return file


def _panel(axes, panel: Panel) -> None:
    bars = [each for each in panel.series if each.style == 'bar']
    for number, series in enumerate(bars):
        width = 0.8 / len(bars)
        axes.bar([place + (number - (len(bars) - 1) / 2) * width
                  for place in range(len(series.x))], series.y, width,
                 label=series.label)
        axes.set_xticks(range(len(series.x)), series.x)
    for series in panel.series:
        if series.style == 'step':
            axes.plot(series.x, series.y, drawstyle='steps-post',
                      label=series.label)
        elif series.style == 'points':
            axes.plot(series.x, series.y, '.', markersize=3,
                      label=series.label)
        elif series.style == 'line':
            axes.plot(series.x, series.y, label=series.label)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.from_zero:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    # Beside the lines, which may be anywhere.
    axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
