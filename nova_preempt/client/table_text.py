# SPDX-License-Identifier: Apache-2.0
"""Text of values of the API in tables, for people to read."""

import json

_PREFIXES = ((1e12, ' T'), (1e9, ' G'), (1e6, ' M'))

# Where an object has the id of a server or a project: {key: kind}.
_IDS = {'server_id': 'server', 'project_id': 'project'}
_SERVERS = ('server', 'servers', 'victims')


def scalar(value, names=None):
    """Return a value as text: '' for None, numbers in four digits.

    :param names: {id: name of the server or project}
    """
    if value is None:
        return ''
    if isinstance(value, float):
        return _number(value)
    name = (names or {}).get(value)
    return f'{name} ({value})' if name else str(value)


def _number(value):
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f'{value / factor:.4g}{prefix}'
    if abs(value) >= 1000:
        return f'{value:.0f}'
    if abs(value) < 0.001:     # where :g has an exponent
        return f'{value:.6f}'.rstrip('0').rstrip('.')
    return f'{value:.4g}'


def block(value, names=None):
    """Return a value as lines: one for each member that has a value."""
    if isinstance(value, dict):
        return '\n'.join(f'{key}: {_inline(item, names)}'
                         for key, item in _members(value))
    if isinstance(value, list) and any(isinstance(item, dict)
                                       for item in value):
        return '\n'.join(_inline(item, names) for item in value)
    return _inline(value, names)


def _inline(value, names):
    if isinstance(value, dict):
        return ', '.join(
            f'{key}: ({_inline(item, names)})' if isinstance(item, dict)
            else f'{key}: {_inline(item, names)}'
            for key, item in _members(value))
    if isinstance(value, list):
        if any(isinstance(item, list) for item in value):
            return json.dumps(value)
        return ', '.join(f'({_inline(item, names)})' if isinstance(item, dict)
                         else _inline(item, names) for item in value)
    return scalar(value, names)


def _members(value):
    """Yield the members that have a value; costs are in seconds."""
    for key, item in value.items():
        if item in (None, '', [], {}):
            continue
        if key == 'cost_us':
            key, item = 'cost_s', item / 1e6
        yield key, item


def rows(item):
    """Return [(name, value)] of the members that have a value, by name."""
    return sorted(_members(item))


def find_ids(value, key='', found=None):
    """Return {kind: {ids}} of servers and projects in an answer.

    :param key: of the member that has the value
    """
    found = {'server': set(), 'project': set()} if found is None else found
    if isinstance(value, dict):
        for name, item in value.items():
            kind = 'server' if name == 'id' and key in _SERVERS else name
            find_ids(item, kind, found)
    elif isinstance(value, list):
        for item in value:
            find_ids(item, key, found)
    elif isinstance(value, str) and value:
        kind = _IDS.get(key) or ('server' if key in _SERVERS else None)
        if kind:
            found[kind].add(value)
    return found


def counted(number, noun):
    """Return "1 server" or "2 servers"."""
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'
