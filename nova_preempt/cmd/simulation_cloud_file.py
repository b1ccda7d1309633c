# SPDX-License-Identifier: Apache-2.0
"""Reads the cloud of a simulation from a YAML file."""

import dataclasses

from nova_preempt.cloud import extra_specs
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.core.model import Inventory
from nova_preempt.embedded import checked_yaml
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import trace_model

#: Limit of the number of hosts.
MOST_HOSTS = 1_000_000
# Members of efficiency_ranking.Figures.
_FIGURES = ('flops', 'watts', 'idle_watts')
_WATTS = checked_yaml.number(0, 1e21)


def _named(schema):
    """Return the schema of a mapping with arbitrary keys."""
    return {'type': 'object', 'additionalProperties': schema}


_SPECS = _named(checked_yaml.SCALAR)
_HOSTS = checked_yaml.mapping({
    'name': checked_yaml.TEXT, 'count': checked_yaml.integer(1, MOST_HOSTS),
    'resources': _named(checked_yaml.integer(1, trace_model.MOST)),}, {
    'reserved': _named(checked_yaml.integer(0, trace_model.MOST)),
    'allocation_ratios': _named(checked_yaml.number(0.01, 1000)),
    **dict.fromkeys((*_FIGURES, 'asleep_watts'), _WATTS),
    'reservable': checked_yaml.FLAG})
_SCHEMA = checked_yaml.mapping({
    'hosts': {'type': 'array', 'items': _HOSTS},}, {
    'flavors': _named(checked_yaml.mapping(
        {'resources': _named(checked_yaml.integer(0, trace_model.MOST))},
        {'extra_specs': _SPECS})),
    'classes': _named(checked_yaml.mapping({'extra_specs': _SPECS})),
    'delays': checked_yaml.mapping({}, {
        field.name: checked_yaml.TEXT
        for field in dataclasses.fields(delays.Delays)}),
    'spread': checked_yaml.FLAG,
    'waiting': {'type': 'array', 'items': checked_yaml.TEXT},
    'workers': checked_yaml.integer(1, 10_000)})


def read_cloud(path):
    """Return the simulator's CloudSetting and the number of scheduler workers.

    :raises checked_yaml.BadFile: the file is invalid
    :raises OSError: the file cannot be read
    """
    with open(path, 'rb') as stream:
        file = checked_yaml.CheckedYaml(path, stream.read(), _SCHEMA)
    content = file.value
    hosts = tuple(_hosts(file, item, ('hosts', number))
                  for number, item in enumerate(content['hosts']))
    if not 0 < sum(kind.count for kind in hosts) <= MOST_HOSTS:
        file.fail(('hosts',), f'must have 1 to {MOST_HOSTS} hosts in all')
    if len({kind.name for kind in hosts}) < len(hosts):
        file.fail(('hosts',), 'each name must be unique')
    flavors = {
        name: simulation_settings.Flavor(item['resources'], _terms(
            file, item.get('extra_specs', ()), ('flavors', name)))
        for name, item in content.get('flavors', {}).items()}
    classes = {
        name: _terms(file, item['extra_specs'], ('classes', name))
        for name, item in content.get('classes', {}).items()}
    return simulation_settings.CloudSetting(
        hosts, flavors, {**simulation_settings.CLASSES, **classes},
        _delays(file, content.get('delays', {})), content.get('spread', True),
        frozenset(content.get('waiting', ()))), content.get('workers', 4)


def _hosts(file, item, path):
    totals = item['resources']
    reserved = item.get('reserved', {})
    ratios = item.get('allocation_ratios', {})
    for name in sorted({*reserved, *ratios} - totals.keys()):
        file.fail(path, f'its resources must include {name}')
    figures = efficiency_ranking.Figures(*(
        float(item[name]) if name in item else None for name in _FIGURES))
    for name, why in efficiency_ranking.invalid_figures(figures).items():
        file.fail((*path, name), why)
    if figures.idle_watts is None and figures.watts is not None:
        file.fail(path, 'watts requires idle_watts')
    return simulation_settings.HostKind(
        item['name'], item['count'], {
            name: Inventory(total, reserved.get(name, 0), max_unit=total,
                            allocation_ratio=float(ratios.get(name, 1)))
            for name, total in totals.items()},
        figures, float(item.get('asleep_watts', 0)), item.get('reservable'))


def _terms(file, names, path):
    """Return the Terms of extra specs, None for normal servers."""
    # Extra specs are text, whatever their type in YAML.
    specs = {name: file.text((*path, 'extra_specs', name)) for name in names}
    if not extra_specs.flavor_is_preemptible(specs):
        return None
    return simulation_settings.PreemptibleTerms(
        extra_specs.minimum_runtime_s(specs),
        extra_specs.maximum_runtime_s(specs),
        extra_specs.notice_s(specs), extra_specs.action(specs),
        extra_specs.restore(specs), extra_specs.class_name(specs))


def _delays(file, texts):
    found = {}
    for name, text in texts.items():
        try:
            found[name] = delays.Delay(text)
        except ValueError as exc:
            file.fail(('delays', name), str(exc))
    return delays.Delays(**found)
