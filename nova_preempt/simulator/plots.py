# SPDX-License-Identifier: Apache-2.0
"""The pictures of simulations."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import itertools
import math

from nova_preempt.core.model import SECOND
from nova_preempt.pictures import drawing
from nova_preempt.pictures.drawing import FigureSeries
from nova_preempt.pictures.drawing import Panel
from nova_preempt.pictures.drawing import Plot
from nova_preempt.simulator import time_series
from nova_preempt.simulator.time_series import Span

_HOUR_US = 3600 * SECOND
#: How levels of simulation_report.Report begin.
_WANTED, _RUNNING = 'wanted ', 'running '
#: {resource class: its name}.
_NAMES = {'VCPU': 'vCPUs', 'MEMORY_MB': 'memory'}
#: A curve has so many steps at most: more of them hide what happens.
_MOST_STEPS = 60
#: Up to how many hours a unit of time is used, its name, units an hour.
_UNITS = ((2, 'min', 60.0), (72, 'h', 1.0), (math.inf, 'days', 1 / 24))

#: The spans of each policy, by its name.
_Spans = Mapping[str, Sequence[Span]]
_Value = Callable[[Span], float]


def plots(found: Mapping[str, tuple[time_series.Series, Mapping[str, int]]]
          ) -> list[Plot]:
    """Return the pictures of simulations; what never happens is left out.

    :param found: {name of a policy: (its series, the cloud's capacity)}
    """
    spans = {name: list(time_series.steps(each, capacity, _MOST_STEPS))
             for name, (each, capacity) in found.items()}
    of_all = {name for _, capacity in found.values() for name in capacity}
    drawn = [name for name in _NAMES if name in of_all] or sorted(of_all)[:1]
    is_powered = any('milliwatts' in span.levels for each in spans.values()
                     for span in each)
    every = (
        ('use', [*(_use(name, spans) for name in drawn), _of_classes(spans)],
         [_title(f'use of {_NAMES.get(name, name)}', spans, _all_used(name),
                 '.0f', ' %', is_mean=True) for name in drawn]),
        ('servers', _of_servers(spans), [
            _title('evictions', spans, _rate('notice')),
            _title('requests refused', spans, _rate('refused'))]),
        ('hosts', _of_hosts(spans), [
            _title('energy', spans, _level('milliwatts', 1e6), '.1f', ' kWh')
            if is_powered else _title('host-hours reserved', spans,
                                      _level('hosts reserved', 1))]))
    return [Plot(f'simulation-{name}', shown,
                 '; '.join(titles)[0].upper() + '; '.join(titles)[1:])
            for name, panels, titles in every
            if (shown := [panel for panel in panels if any(
                value and not math.isnan(value) for each in panel.series
                for value in each.y)])]


def _title(what: str, spans: _Spans, of: _Value, form: str = '.0f',
           unit: str = '', is_mean: bool = False) -> str:
    """Return the integral of a value over time, or its mean, by policy."""
    found = []
    for name, each in spans.items():
        value = math.fsum(of(span) * span.hours for span in each)
        if is_mean and each:
            value /= math.fsum(span.hours for span in each)
        found.append((name, f'{value:{form}}{unit}'))
    return drawing.one_line(what, found)


def _use(name: str, spans: _Spans) -> Panel:
    return _panel(
        f'Mean use of {_NAMES.get(name, name)}', '% of the cloud', spans,
        {f'{kind} servers': _used(kind, name)
         for kind in ('normal', 'preemptible')})


def _of_servers(spans: _Spans) -> list[Panel]:
    return [
        _panel('Time from a request until the server is active',
               'mean, seconds', spans, {'': _wait}),
        _panel('Evictions', 'servers per hour', spans, {'': _rate('notice')}),
        _panel('Work lost', 'server-hours per hour', spans,
               {'': _rate('lost_us', _HOUR_US)}),
        _panel('Requests refused', 'requests per hour', spans,
               {'': _rate('refused')})]


def _of_classes(spans: _Spans) -> Panel:
    names = sorted({name.removeprefix(_WANTED) for each in spans.values()
                    for span in each for name in span.levels
                    if name.startswith(_WANTED)})
    return _panel('Requested servers that run, by class', '%', spans, {
        name or '(no class)': _availability(name) for name in names}, 100)


def _availability(name: str) -> _Value:
    def of(span: Span) -> float:
        wanted = span.levels.get(_WANTED + name, 0.0)
        return (100 * span.levels.get(_RUNNING + name, 0.0) / wanted
                if wanted else math.nan)

    return of


def _of_hosts(spans: _Spans) -> list[Panel]:
    power = _level('milliwatts', 1e6)
    energy = _panel('Energy since the first event', 'kWh', spans, {'': power})
    return [
        _panel('Hosts reserved', 'hosts', spans, {
            'reserved': _level('hosts reserved', 1),
            'used': _level('hosts reserved and used', 1)}),
        _panel('Hosts awake', 'hosts', spans, {'': _level('hosts on', 1)}),
        _panel('Power drawn', 'kW', spans, {'': power}),
        dataclasses.replace(energy, series=[
            dataclasses.replace(line, style='line', y=[
                0.0, *itertools.accumulate(power(span) * span.hours
                                           for span in each)])
            for line, each in zip(energy.series, spans.values(),
                                  strict=True)])]


def _unit(spans: _Spans) -> tuple[str, float]:
    """Return (the unit of time, units an hour) for all of them."""
    length_h = max((each[-1].from_h + each[-1].hours
                    for each in spans.values() if each), default=0.0)
    return next((name, per_hour) for most_h, name, per_hour in _UNITS
                if length_h <= most_h)


def _edges(each: Sequence[Span], spans: _Spans) -> list[float]:
    """Return when each span begins, and the last one ends."""
    _, per_hour = _unit(spans)
    return [per_hour * at_h for at_h in (
        *(span.from_h for span in each),
        *(span.from_h + span.hours for span in each[-1:]))]


def _panel(title: str, label: str, spans: _Spans,
           values: Mapping[str, _Value], top: float = 0) -> Panel:
    """Return axes with a line for each policy and value."""
    several = len(spans) > 1
    return Panel(title, f'time since the first event ({_unit(spans)[0]})',
                 label, [
        FigureSeries(
            ': '.join(filter(None, (policy if several else '', name)))
            or 'all servers', _edges(each, spans), [of(span) for span in each],
            'step', *((nth, number) if several else (number, 0)))
        for nth, (policy, each) in enumerate(spans.items())
        for number, (name, of) in enumerate(values.items())], top)


def _used(kind: str, name: str) -> _Value:
    return lambda span: 100 * span.used.get((kind, name), 0.0)


def _all_used(name: str) -> _Value:
    return lambda span: 100 * sum(
        share for (_, each), share in span.used.items() if each == name)


def _level(name: str, unit: float) -> _Value:
    return lambda span: span.levels.get(name, 0.0) / unit


def _rate(name: str, unit: float = 1) -> _Value:
    return lambda span: span.counts.get(name, 0) / span.hours / unit


def _wait(span: Span) -> float:
    count = span.counts.get('waits', 0)
    return (span.counts.get('waited_us', 0) / SECOND / count if count
            else math.nan)
