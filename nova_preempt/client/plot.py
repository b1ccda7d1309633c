# SPDX-License-Identifier: Apache-2.0
"""Draws reports and plans with matplotlib, if it is installed."""

import argparse
import datetime
import os

from nova_preempt.pictures import drawing
from nova_preempt.pictures.drawing import FigureSeries
from nova_preempt.pictures.drawing import Panel

#: Suffixes of files that can be written.
FORMATS = tuple(f'.{name}' for name in drawing.FORMATS)

#: A report cannot be drawn; the text has the reason.
CannotPlot = drawing.NoPlot

_USUAL = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB')
_NOTHING = {'capacity': 0, 'used': 0, 'used_after': 0}
_TIME = 'time (UTC)'


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
    times = _times(series)
    _write('energy', series and [
        Panel(title, _TIME, unit, [
            FigureSeries(label, times, _known(item[name] for item in series),
                         'step') for name, label in lines])
        for title, unit, lines in (
            ('Power', 'W', (('watts', 'drawn'),
                            ('watts_saved', 'saved by hosts asleep'))),
            ('Hosts', 'hosts', (('hosts_on', 'on'),
                                ('hosts_busy', 'with servers'),
                                ('hosts_asleep', 'asleep'))))],
        f'{report["used_kwh"]:.1f} kWh drawn, {report["saved_kwh"]:.1f} kWh '
        'saved by hosts asleep', file, _why_none(report))


def draw_availability(report, file):
    """Draw the share of run time by class; raises as draw_energy()."""
    classes = [(item['class'] or '(no class)', item)
               for item in report['classes']
               if item['availability'] is not None]
    # The time of a point is the end of its part of the period.
    _write('availability', classes and [Panel(
        'Requests that run, of those that wait or run', _TIME, '%', [
            FigureSeries(
                f'{name}, {item["requests"]} requests',
                _times([{'time': report['since']}, *item['series']]),
                [100 * share for share in _known(
                    point['availability'] for point in item['series'])],
                'step') for name, item in classes], 100)],
        'Share of their time that requests ran: ' + ', '.join(
            f'{name} {100 * item["availability"]:.1f} %'
            for name, item in classes), file, _why_none(report))


def draw_plan(plan, file):
    """Draw hosts before and after a plan; raises as draw_energy()."""
    hosts = [host['name'] for host in plan['hosts']]
    classes = sorted(
        {name for host in plan['hosts']
         for name, use in host['resources'].items() if use['capacity']},
        key=lambda name: ((*_USUAL, name).index(name), name))
    servers = sum(item['count'] for item in plan['starts'])
    _write('plan', [
        Panel(f'Use of {name}', 'hosts', '%', [
            FigureSeries(label, hosts, [
                _share(host['resources'].get(name, _NOTHING), key)
                for host in plan['hosts']], 'area', colour)
            for colour, key, label in ((1, 'used_after', 'started now'),
                                       (0, 'used', 'used'))], 100)
        for name in classes[:drawing.MOST_PANELS]],
        f'{servers} servers of {len(plan["starts"])} requests start now, of '
        f'{plan["requests_waiting"]} that wait', file,
        'There is nothing to plot: no host is in use.')


def _share(use, name):
    return 100 * use[name] / use['capacity'] if use['capacity'] else 0


def _why_none(report):
    return ('There is nothing to plot between '
            f'{report["since"]} and {report["until"]}.')


def _write(name, panels, title, file, why_none):
    drawing.check()
    if not panels:
        raise CannotPlot(why_none)
    drawing.write(drawing.Plot(name, panels, title), file)


def _times(series):
    return [datetime.datetime.fromisoformat(item['time']) for item in series]


def _known(values):
    return [float('nan') if value is None else value for value in values]
