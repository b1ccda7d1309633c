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
    """Draw a report of the API into a file.

    :raises NoPlot: matplotlib is not installed, or there is nothing to draw
    :raises OSError: the file cannot be written
    """
    try:
        import matplotlib.dates
        import matplotlib.figure
    except ImportError as exc:
        raise NoPlot('To plot, matplotlib is needed: pip install '
                     f'nova-preempt[report] ({exc})') from exc
    series = report['series']
    if not series:
        raise NoPlot('There is nothing to plot between '
                     f'{report["since"]} and {report["until"]}.')
    # Without pyplot, which would look for a screen.
    figure = matplotlib.figure.Figure(figsize=(10, 7), layout='constrained')
    power, hosts = figure.subplots(2, sharex=True)
    times = [datetime.datetime.fromisoformat(item['time'])
             for item in series]

    def values(name):
        return [float('nan') if item[name] is None else item[name]
                for item in series]

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
    hosts.set_xlabel('time (UTC)')
    locator = matplotlib.dates.AutoDateLocator()
    hosts.xaxis.set_major_locator(locator)
    hosts.xaxis.set_major_formatter(
        matplotlib.dates.ConciseDateFormatter(locator))
    for axes in (power, hosts):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.margins(x=0)
        # Beside the lines, which may be anywhere.
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
    figure.savefig(file)
