# SPDX-License-Identifier: Apache-2.0
"""Summaries as tables, one beside the other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_EVENTS = ('asked', 'queued', 'placed', 'preempted', 'joined', 'woken',
           'refused', 'active', 'finished', 'ended', 'notice', 'kept',
           'deleted', 'shelved', 'stopped', 'expired', 'back', 'left', 'moved',
           'not moved', 'cleared')
#: Of reservations, what is no count.
_OF_HOURS = {'late_s': 'late by, s', 'host_hours': 'host-hours',
             'host_hours_used': 'host-hours used'}
_WAIT = ('mean', 'median', '95 %', 'most')


def rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (label, value) of a summary."""
    yield 'simulated', f'{summary["seconds"]:.0f} s'
    for kind, used in summary['used'].items():
        for name, share in used.items():
            yield f'{name}, {kind}', f'{100 * share:.2f} %'
    decisions = summary['decisions']
    yield 'preemptions', str(decisions.get('preemptions', 0))
    yield 'their cost', f'{decisions.get("cost_us", 0) / 1e6:.0f} s'
    yield 'given up', str(decisions.get('given_up', 0))
    yield from _energy(summary.get('energy', {}))
    yield from _reservations(summary.get('reservations', {}))
    for name, found in summary.get('promises', {}).items():
        yield f'{name}: promised', f'{100 * found["promised"]:.2f} %'
        yield f'{name}: ran, mean', f'{100 * found["mean"]:.2f} %'
        yield f'{name}: ran, least', f'{100 * found["least"]:.2f} %'
        yield f'{name}: promises kept', f'{100 * found["kept"]:.2f} %'
    for name, figures in summary['classes'].items():
        for event in _EVENTS:
            if event in figures:
                yield f'{name}: {event}', str(figures[event])
        yield f'{name}: lost work', f'{figures["lost_s"]:.0f} s'
        for key in _WAIT:
            yield f'{name}: wait, {key}', f'{figures["wait_s"][key]:.1f} s'


def _energy(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, name, unit in (
            ('hosts_on', 'hosts on, mean', ''),
            ('used_kwh', 'energy since time 0', ' kWh'),
            ('saved_kwh', 'energy saved since time 0', ' kWh'),
            ('core_hours_off', 'cores off', ' h'),
            ('delay_req', 'weighted delay', '')):
        if key in found:
            yield name, f'{found[key]:.2f}{unit}'
    for state, count in found.get('moves', {}).items():
        yield f'hosts: {state}', str(count)
    if 'waited' in found:
        yield 'waited for hosts', str(found['waited'])
        yield 'for how long', f'{found["waited_s"]:.0f} s'


def _reservations(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in found.items():
        if key not in _OF_HOURS:
            yield f'reservations: {key}', str(value)
    for key, text in _OF_HOURS.items():
        if key in found:
            yield f'reservations: {text}', f'{found[key]:.2f}'


def cells(titles: Sequence[str], summaries: Iterable[Mapping[str, Any]]
          ) -> list[list[str]]:
    """Return the rows of a table, the titles of the summaries first."""
    columns = [dict(rows(summary)) for summary in summaries]
    # In the order of the first that has them.
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [['', *titles], *(
        [name, *(column.get(name, '0') for column in columns)]
        for name in names)]


def table(titles: Sequence[str], summaries: Iterable[Mapping[str, Any]]
          ) -> list[str]:
    """Return the lines of a table.

    :param titles: of the summaries
    """
    found = cells(titles, summaries)[len(titles) == 1:]
    widths = [max(map(len, column)) for column in zip(*found, strict=True)]
    return ['  '.join([
        row[0].ljust(widths[0]),
        *(cell.rjust(width) for cell, width in zip(
            row[1:], widths[1:], strict=True))]).rstrip() for row in found]
