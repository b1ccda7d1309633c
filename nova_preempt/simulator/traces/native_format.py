# SPDX-License-Identifier: Apache-2.0
"""The native format: one JSON object per line.

``{"t": 0.5, "kind": "boot", "id": "one", "flavor": "m1.small", "class":
"normal", "duration": 3600}``: a server is asked for after half a second, and
has to run for an hour. ``resources``, {resource class: amount}, may stand for
a flavor. Without a ``duration`` it runs until ``{"t": 90, "kind": "end",
"id": "one"}``. ``project`` is its owner, ``group`` its server group, and
``reservation`` the one that it names. Times are in seconds.

``{"t": 0, "kind": "reserve", "id": "r", "hosts": 2, "start": 3600, "end":
7200}``: two hosts are wanted from 3,600 to 7,200 s. With a ``duration`` these
are the earliest start and the latest end. ``resources`` is what a host has to
have, {resource class: amount}, or ``host_properties`` is a query of the API.
"""

from collections.abc import Iterable
import json
from typing import Any, NoReturn, TextIO

from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import host_query
from nova_preempt.simulator.traces import line_reader
from nova_preempt.simulator.traces import trace_model

_KEYS = {'boot': {'t', 'kind', 'id', 'flavor', 'resources', 'class',
                  'duration', 'project', 'group', 'reservation'},
         'reserve': {'t', 'kind', 'id', 'hosts', 'start', 'end', 'duration',
                     'resources', 'host_properties', 'project', 'end_action'},
         'end': {'t', 'kind', 'id'}}
#: What becomes of the servers of a reservation at its end.
_END_ACTIONS = ('shelve', 'delete')


def load(line: str) -> dict[str, Any]:
    """Return the object in a line.

    :raises ValueError: there is none
    """
    try:
        found = json.loads(line, parse_constant=_no_number)
    except RecursionError:
        raise ValueError('the JSON is nested too deeply') from None
    except json.JSONDecodeError as exc:
        raise ValueError(f'invalid JSON: {exc.msg} at column '
                         f'{exc.colno}') from None
    if not isinstance(found, dict):
        raise ValueError('the line must be a JSON object')
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f'{name} is not a number')


class Reader(line_reader.LineReader):
    """Reads it."""

    def parse(self, line: str) -> Iterable[trace_model.Event]:
        item = load(line)
        kind = item.get('kind')
        if not isinstance(kind, str) or kind not in _KEYS:
            raise ValueError(f'kind is {kind!r:.50}; it must be "boot", '
                             '"reserve" or "end"')
        unknown = sorted(item.keys() - _KEYS[kind])
        if unknown:
            raise ValueError(f'{unknown[0]!r:.50} is not a key of the kind '
                             f'"{kind}"')
        if 't' not in item or 'id' not in item:
            raise ValueError('"t" and "id" are required')
        at_us = trace_model.microseconds(item['t'], 't')
        id = trace_model.text(item['id'], 'id')
        if kind == 'end':
            return (trace_model.End(at_us, id),)
        if kind == 'reserve':
            return (_reserve(item, at_us, id),)
        return (_boot(item, at_us, id),)


def _boot(item: dict[str, Any], at_us: int, id: str) -> trace_model.Boot:
    flavor = trace_model.text(item.get('flavor', ''), 'flavor', True)
    resources = item.get('resources')
    if bool(flavor) == (resources is not None):
        raise ValueError('give either "flavor" or "resources"')
    duration = item.get('duration')
    return trace_model.Boot(
        at_us, id, None if resources is None else _resources(resources),
        flavor, trace_model.text(item.get('class', 'normal'), 'class'),
        None if duration is None
        else trace_model.microseconds(duration, 'duration'),
        *(trace_model.text(item.get(name, ''), name, True)
          for name in ('project', 'group', 'reservation')))


def _reserve(item: dict[str, Any], at_us: int, id: str) -> trace_model.Reserve:
    if 'resources' in item and 'host_properties' in item:
        raise ValueError('give either "resources" or "host_properties", not '
                         'both')
    query = item.get('host_properties')
    if 'resources' in item:
        wanted = [['>=', f'$inventory.{name}', amount] for name, amount
                  in _resources(item['resources']).items() if amount]
        query = ['and', *wanted] if wanted else None
    try:
        query = host_query.load(query) or None
        host_query.parse(query)
    except host_query.InvalidQuery as exc:
        raise ValueError(str(exc)) from None
    start_s, end_s = (
        None if item.get(name) is None else trace_model.whole(
            item[name], name, most=trace_model.LATEST_US // SECOND)
        for name in ('start', 'end'))
    duration = item.get('duration')
    action = item.get('end_action', '')
    if action not in ('', *_END_ACTIONS):
        raise ValueError(f'end_action is {action!r:.50}; it must be one of '
                         + ', '.join(_END_ACTIONS))
    return trace_model.Reserve(
        at_us, id, trace_model.whole(item.get('hosts', 1), 'hosts', 1),
        start_s, end_s, None if duration is None
        else trace_model.whole(duration, 'duration', 1),
        query, trace_model.text(item.get('project', ''), 'project', True),
        action)


def _resources(found: object) -> dict[str, int]:
    if not isinstance(found, dict) or not found:
        raise ValueError('resources must be {"CLASS": amount, ...}')
    return {trace_model.text(name, 'a resource class'):
            trace_model.whole(amount, f'resources of {name:.50}')
            for name, amount in sorted(found.items())}


def dump(event: trace_model.Event) -> str:
    """The line of an event, without its end."""
    item: dict[str, Any] = {'t': seconds(event.at_us), 'kind': 'end',
                            'id': event.id}
    if isinstance(event, trace_model.Reserve):
        item.update(_said(
            kind='reserve', hosts=event.hosts, start=event.start_s,
            end=event.end_s, duration=event.duration_s,
            host_properties=event.query, project=event.project,
            end_action=event.end_action))
    elif isinstance(event, trace_model.Boot):
        item.update(_said(
            kind='boot', flavor=event.flavor,
            resources=None if event.resources is None
            else dict(sorted(event.resources.items()))))
        item['class'] = event.class_name
        item.update(_said(
            duration=None if event.duration_us is None
            else seconds(event.duration_us), project=event.project,
            group=event.group, reservation=event.reservation))
    return json.dumps(item)


def _said(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items()
            if value not in (None, '')}


def seconds(value_us: int) -> float:
    """Microseconds in seconds; whole ones as such."""
    whole, rest = divmod(value_us, SECOND)
    return value_us / SECOND if rest else whole


def write(stream: TextIO, events: Iterable[trace_model.Event]) -> int:
    """Write events.

    :param stream: of text
    :returns: how many there were
    """
    count = 0
    for event in events:
        stream.write(dump(event) + '\n')
        count += 1
    return count
