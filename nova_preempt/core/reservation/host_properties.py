# SPDX-License-Identifier: Apache-2.0
"""Builds the properties of a host that a query can name.

They are those of the hypervisor in Nova's API, and of its provider in
Placement.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

# Properties of a hypervisor in Nova's API.
_OF_HYPERVISOR = (
    'hypervisor_hostname', 'hypervisor_type', 'hypervisor_version', 'state',
    'status', 'vcpus', 'memory_mb', 'local_gb')

# The most values of one property that are listed.
MAX_VALUES = 100

# The longest value that is listed.
_MAX_LENGTH = 255

FLOPS_PER_WATT = 'flops_per_watt'


def of_host(
    hypervisor: Mapping[str, Any], zone: str | None,
    aggregates: Collection[str], inventories: Mapping[str, int],
    traits: Collection[str], ) -> dict[str, Any]:
    """Return {name: number, str, bool or list of str} of a host.

    :param hypervisor: as Nova's API has it
    :param zone: the name of its availability zone, None if unknown
    :param aggregates: the names of its aggregates
    :param inventories: {resource class: total}
    :param traits: their names
    """
    found = {name: hypervisor[name] for name in _OF_HYPERVISOR
             if hypervisor.get(name) is not None}
    found['service_host'] = hypervisor['service']['host']
    if zone is not None:
        found['availability_zone'] = zone
    if isinstance(hypervisor.get('cpu_info'), Mapping):
        found.update(_flatten('cpu_info', hypervisor['cpu_info']))
    found.update((f'inventory.{name}', total)
                 for name, total in inventories.items())
    found['traits'] = sorted(traits)
    found['aggregates'] = sorted(aggregates)
    return found


def _flatten(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return {prefix.name: value} of values that a query can compare."""
    found = {}
    for name, value in values.items():
        path = f'{prefix}.{name}'
        if isinstance(value, Mapping):
            found.update(_flatten(path, value))
        elif isinstance(value, (list, tuple)):
            found[path] = sorted(str(item) for item in value)
        elif isinstance(value, (str, int, float)):
            found[path] = value
    return found


def extra(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return {extra.name: value} of an administrator's properties of a host.
    """
    return {f'extra.{name}': value for name, value in values.items()}


def describe(hosts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the properties that a query can name.

    :param hosts: the properties of each host
    :returns: [{'name', 'type', 'values'}] by name; type is 'number', 'text',
        'boolean' or 'list', and 'text' where hosts differ
    """
    types: dict[str, set[str]] = {}
    values: dict[str, set[Any]] = {}
    for properties in hosts:
        for name, value in properties.items():
            types.setdefault(name, set()).add(_type(value))
            seen = values.setdefault(name, set())
            seen.update(value if isinstance(value, list) else [value])
    return [{'name': name,
             'type': types[name].pop() if len(types[name]) == 1 else 'text',
             'values': _some(values[name])}
            for name in sorted(types)]


def _type(value: object) -> str:
    if isinstance(value, list):
        return 'list'
    if isinstance(value, bool):
        return 'boolean'
    return 'number' if isinstance(value, (int, float)) else 'text'


def _some(values: Iterable[Any]) -> list[Any]:
    """Return the first values in order, numbers before text."""
    short = [value for value in values
             if not isinstance(value, str) or len(value) <= _MAX_LENGTH]
    return sorted(short, key=lambda value: (
        isinstance(value, str), value))[:MAX_VALUES]
