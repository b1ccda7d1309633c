# SPDX-License-Identifier: Apache-2.0
"""Draws reports and plans with matplotlib, if it is installed."""

import argparse
import datetime
import os

#: Suffixes of files that can be written.
FORMATS = ('.png', '.svg')

# The most hosts whose names are legible.
_MOST_NAMES = 60
_NOTHING = {'capacity': 0, 'used': 0, 'used_after': 0}


class CannotPlot(Exception):
    """A report cannot be drawn; the text has the reason."""


def path(text):
    """Return the path of an argument, if its suffix is supported."""
    if os.path.splitext(text)[1].lower() not in FORMATS:
        raise argparse.ArgumentTypeError(
            f'{text!r} must end with {" or ".join(FORMATS)}')
    return text


def draw_energy(report, file):
    """Draw a report of energy into a file.

    :raises CannotPlot: matplotlib is not installed, or there is nothing to
        draw
    :raises OSError: the file cannot be written
    """
    series = report['series']
    figure = _figure(series, report)
    power, hosts = figure.subplots(2, sharex=True)
    times = _times(series)

    def values(name):
        return _known(item[name] for item in series)

    power.plot(times, values('watts'), drawstyle='steps-post', label='drawn')
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
    """Draw the share of run time by class; raises as draw_energy()."""
    classes = [item for item in report['classes']
               if item['availability'] is not None]
    figure = _figure(classes, report)
    axes = figure.subplots()
    for item in classes:
        # The time of a point is the end of its part of the period.
        axes.plot(_times(item['series']),
                  _known(point['availability'] for point in item['series']),
                  drawstyle='steps-pre',
                  label=f'{item["class"] or "(no class)"}: '
                        f'{item["availability"]:.1%} of '
                        f'{item["requests"]} requests')
    axes.set_ylabel('share of their time that requests ran')
    _finish(figure, axes, (axes,), file)


def draw_plan(plan, file):
    """Draw hosts before and after a plan; raises as draw_energy()."""
    classes = sorted({name for host in plan['hosts']
                      for name, use in host['resources'].items()
                      if use['capacity']}, key=_place)
    figure = _empty_figure(
        classes, 'There is nothing to plot: no host is in use.')
    every = figure.subplots(len(classes), sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(every, classes, strict=True):
        uses = [host['resources'].get(name, _NOTHING)
                for host in plan['hosts']]
        before = [_share(use, 'used') for use in uses]
        after = [_share(use, 'used_after') for use in uses]
        # Not bars: thousands of them would take minutes.
        axes.stairs(after, baseline=before, fill=True, color='tab:orange',
                    label='started now')
        axes.stairs(before, fill=True, color='tab:blue', label='used')
        axes.set_ylabel(name)
        axes.set_ylim(0, max([100, *before, *after]))
        axes.grid(alpha=0.3)
        axes.margins(x=0)
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
    servers = sum(item['count'] for item in plan['starts'])
    every[0].set_title(
        f'{servers} servers of {len(plan["starts"])} requests start now, of '
        f'{plan["requests_waiting"]} that wait; use of hosts in %')
    names = [host['name'] for host in plan['hosts']]
    if len(names) <= _MOST_NAMES:
        every[-1].set_xticks([number + 0.5 for number in range(len(names))],
                             names, rotation=90)
    every[-1].set_xlabel('hosts')
    figure.savefig(file)


def _place(name):
    """Return the sort key: usual resource classes first."""
    usual = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB')
    return (usual.index(name) if name in usual else len(usual)), name


def _share(use, name):
    return 100 * use[name] / use['capacity'] if use['capacity'] else 0


def _figure(found, report):
    return _empty_figure(found, 'There is nothing to plot between '
                                f'{report["since"]} and {report["until"]}.')


def _empty_figure(found, why_none):
    try:
        import matplotlib.dates
        import matplotlib.figure
    except ImportError as exc:
        raise CannotPlot('A plot needs matplotlib: pip install '
                         f'nova-preempt[report] ({exc})') from exc
    if not found:
        raise CannotPlot(why_none)
    # Without pyplot, which needs a display.
    return matplotlib.figure.Figure(figsize=(10, 7), layout='constrained')


def _times(series):
    return [datetime.datetime.fromisoformat(item['time']) for item in series]


def _known(values):
    return [float('nan') if value is None else value for value in values]


def _finish(figure, lowest, every, file):
    """Label the axes and write the file; the lowest axes show times."""
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
        # Outside the axes, where it hides no line.
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
    figure.savefig(file)
