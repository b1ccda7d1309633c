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
"""What is drawn of a simulation, or of several side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import itertools
import math

from nova_preempt.core.model import SECOND
from nova_preempt.simulator import series
from nova_preempt.simulator.papers.figures import Panel
from nova_preempt.simulator.papers.figures import Plot
from nova_preempt.simulator.papers.figures import Series

_HOUR_US = 3600 * SECOND
#: How levels of report.Report begin.
_WANTED, _RUNNING = 'wanted ', 'running '
_DRAWN = ('VCPU', 'MEMORY_MB')


def plot(found: Mapping[str, tuple[series.Series, Mapping[str, int]]]
         ) -> Plot:
    """Return the picture.

    :param found: {title of a policy: (its series, the cloud's capacity)}
    """
    steps = {title: list(series.steps(each, capacity))
             for title, (each, capacity) in found.items()}
    names = [name for name in _DRAWN
             if any(name in capacity for _, capacity in found.values())]
    return Plot('simulation', [
        *(_panel(f'{name} in use', 'share of all', steps, {
            kind: _used(kind, name) for kind in ('normal', 'preemptible')})
          for name in names or _largest(steps)),
        _panel('Time from a request until the server is active',
               'mean, seconds', steps, {'': _wait}),
        _panel('Evictions', 'servers an hour', steps, {'': _evictions}),
        _panel('Work lost', 'server-hours an hour', steps, {'': _lost}),
        _panel('Requests refused', 'an hour', steps, {'': _refused}),
        *_of_classes(steps),
        *_of_hosts(steps),
    ])


def _of_classes(steps: Mapping[str, Sequence[series.Step]]
                ) -> Iterator[Panel]:
    """Which part of those that are wanted is there."""
    names = sorted({name.removeprefix(_WANTED) for each in steps.values()
                    for step in each for name in step.levels
                    if name.startswith(_WANTED)})
    if names:
        yield _panel('Availability by class',
                     'share of the servers that are wanted', steps,
                     {name: _availability(name) for name in names})


def _availability(name: str) -> Callable[[series.Step], float]:
    def of(step: series.Step) -> float:
        wanted = step.levels.get(_WANTED + name, 0.0)
        return (step.levels.get(_RUNNING + name, 0.0) / wanted if wanted
                else math.nan)

    return of


def _of_hosts(steps: Mapping[str, Sequence[series.Step]]) -> Iterator[Panel]:
    """What is known of their power, and of reservations."""
    for name, title, label, unit in (
            ('hosts on', 'Hosts awake', 'hosts', 1),
            ('milliwatts', 'Power drawn', 'kW', 1_000_000)):
        if any(name in step.levels for each in steps.values()
               for step in each):
            yield _panel(title, label, steps, {'': _level(name, unit)})
    if any('hosts reserved' in step.levels for each in steps.values()
           for step in each):
        yield _panel('Hosts reserved', 'hosts', steps, {
            'reserved': _level('hosts reserved', 1),
            'used': _level('hosts reserved and used', 1)})
    if any('milliwatts' in step.levels for each in steps.values()
           for step in each):
        yield Panel('Energy', 'time (h)', 'kWh since the beginning', [
            Series(policy if len(steps) > 1 else 'all',
                   [step.from_h + step.hours for step in each],
                   list(itertools.accumulate(
                       step.levels.get('milliwatts', 0) / 1e6 * step.hours
                       for step in each)), 'line')
            for policy, each in steps.items()])


def _largest(steps: Mapping[str, Sequence[series.Step]]) -> list[str]:
    """The first class that anything is used of."""
    names = sorted({name for each in steps.values() for step in each
                    for _, name in step.used})
    return names[:1]


def _panel(title: str, label: str,
           steps: Mapping[str, Sequence[series.Step]],
           values: Mapping[str, Callable[[series.Step], float]]) -> Panel:
    """Return axes with a line for each policy and value."""
    several = len(steps) > 1
    return Panel(title, 'time (h)', label, [
        Series(': '.join(filter(None, (policy if several else '', name)))
               or 'all', [step.from_h for step in each],
               [of(step) for step in each], 'step')
        for policy, each in steps.items() for name, of in values.items()])


def _used(kind: str, name: str) -> Callable[[series.Step], float]:
    return lambda step: step.used.get((kind, name), 0.0)


def _level(name: str, unit: float) -> Callable[[series.Step], float]:
    return lambda step: step.levels.get(name, 0.0) / unit


def _per_hour(step: series.Step, name: str) -> float:
    return step.counts.get(name, 0) / step.hours


def _evictions(step: series.Step) -> float:
    return _per_hour(step, 'notice')


def _refused(step: series.Step) -> float:
    return _per_hour(step, 'refused')


def _lost(step: series.Step) -> float:
    return _per_hour(step, 'lost_us') / _HOUR_US


def _wait(step: series.Step) -> float:
    count = step.counts.get('waits', 0)
    return step.counts.get('waited_us', 0) / SECOND / count if count else 0.0
