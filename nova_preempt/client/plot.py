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
"""A report drawn over time, by matplotlib if that is installed."""

import argparse
import datetime
import os

#: What a file's name may end with.
FORMATS = ('.png', '.svg')


class NoPlot(Exception):
    """It says why it cannot be drawn."""


def path(text):
    """An argument that names the file."""
    if os.path.splitext(text)[1].lower() not in FORMATS:
        raise argparse.ArgumentTypeError(
            f'{text!r} does not end with {" or ".join(FORMATS)}')
    return text


def draw(report, file):
    """Draw a report of energy into a file.

    :raises NoPlot: matplotlib is not installed, or there is nothing to draw
    :raises OSError: the file cannot be written
    """
    series = report['series']
    figure = _figure(series, report)
    power, hosts = figure.subplots(2, sharex=True)
    times = _times(series)

    def values(name):
        return _known(item[name] for item in series)

    power.plot(times, values('watts'), drawstyle='steps-post',
               label='drawn')
    power.plot(times, values('watts_saved'), drawstyle='steps-post',
               label='saved by hosts asleep')
    power.set_ylabel('power (W)')
    power.set_title(f'{report["used_kwh"]:.1f} kWh drawn, '
                    f'{report["saved_kwh"]:.1f} kWh saved')
    for name, label in (('hosts_on', 'on'), ('hosts_busy', 'with servers'),
                        ('hosts_asleep', 'asleep')):
        hosts.plot(times, values(name), drawstyle='steps-post', label=label)
    hosts.set_ylabel('hosts')
    _finish(figure, hosts, (power, hosts), file)


def draw_availability(report, file):
    """Draw how much requests ran, each class a line; raises as draw()."""
    classes = [item for item in report['classes']
               if item['availability'] is not None]
    figure = _figure(classes, report)
    axes = figure.subplots()
    for item in classes:
        # The time of a point is the end of what it is about.
        axes.plot(_times(item['series']),
                  _known(point['availability'] for point in item['series']),
                  drawstyle='steps-pre',
                  label=f'{item["class"] or "(no class)"}: '
                        f'{item["availability"]:.1%} of '
                        f'{item["requests"]} requests')
    axes.set_ylabel('share of their time that requests ran')
    _finish(figure, axes, (axes,), file)


def _figure(found, report):
    try:
        import matplotlib.dates
        import matplotlib.figure
    except ImportError as exc:
        raise NoPlot('To plot, matplotlib is needed: pip install '
                     f'nova-preempt[report] ({exc})') from exc
    if not found:
        raise NoPlot('There is nothing to plot between '
                     f'{report["since"]} and {report["until"]}.')
    # Without pyplot, which would look for a screen.
    return matplotlib.figure.Figure(figsize=(10, 7), layout='constrained')


def _times(series):
    return [datetime.datetime.fromisoformat(item['time'])
            for item in series]


def _known(values):
    return [float('nan') if value is None else value for value in values]


def _finish(figure, lowest, every, file):
    """Label and write it; times are those of the lowest axes."""
    import matplotlib.dates
    lowest.set_xlabel('time (UTC)')
    locator = matplotlib.dates.AutoDateLocator()
    lowest.xaxis.set_major_locator(locator)
    lowest.xaxis.set_major_formatter(
        matplotlib.dates.ConciseDateFormatter(locator))
    for axes in every:
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.margins(x=0)
        # Beside the lines, which may be anywhere.
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
    figure.savefig(file)
