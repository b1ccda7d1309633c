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
"""The cloud of a simulation, as a file of YAML says it."""

import dataclasses

from nova_preempt.cloud import extra_specs
from nova_preempt.core.energy import efficiency
from nova_preempt.core.model import Inventory
from nova_preempt.embedded import nodes
from nova_preempt.simulator import delays
from nova_preempt.simulator import setting
from nova_preempt.simulator.traces import model

#: No more hosts than that.
MOST_HOSTS = 1_000_000
_MOST_RATIO = 1000
#: What a host computes and draws, as efficiency.Figures has it.
_FIGURES = ('flops', 'watts', 'idle_watts')
_MOST_FIGURE = 1e21


def read_cloud(path):
    """The simulator's Setting, and how many workers its schedulers have.

    :raises nodes.BadFile: it says where it is wrong, and how
    :raises OSError: it cannot be read
    """
    with open(path, 'rb') as stream:
        content = stream.read()
    return _Cloud(nodes.Reader(path)).read(content)


class _Cloud:

    def __init__(self, reader):
        self._reader = reader

    def read(self, content):
        reader = self._reader
        root = reader.compose(content)
        keys = reader.mapping(root, '', ('hosts',), (
            'flavors', 'classes', 'delays', 'spread', 'waiting', 'workers'))
        hosts = tuple(self._hosts(node, path) for node, path
                      in reader.items(keys['hosts'], 'hosts'))
        if not 0 < sum(kind.count for kind in hosts) <= MOST_HOSTS:
            reader.fail(keys['hosts'], 'hosts',
                        f'must be from 1 to {MOST_HOSTS} in all')
        names = [kind.name for kind in hosts]
        if len(set(names)) < len(names):
            reader.fail(keys['hosts'], 'hosts', 'two have the same name')
        return setting.Setting(
            hosts, self._named(keys, 'flavors', self._flavor),
            {**setting.CLASSES, **self._named(keys, 'classes', self._class)},
            self._delays(keys.get('delays')),
            'spread' not in keys or reader.boolean(keys['spread'], 'spread'),
            self._waiting(keys)), self._workers(keys)

    def _waiting(self, keys):
        if 'waiting' not in keys:
            return frozenset()
        return frozenset(self._reader.text(node, path) for node, path
                         in self._reader.items(keys['waiting'], 'waiting'))

    def _workers(self, keys):
        if 'workers' not in keys:
            return 4
        return self._reader.integer(keys['workers'], 'workers', 1, 10_000)

    def _named(self, keys, name, read):
        if name not in keys:
            return {}
        return {key.value: read(node, f'{name}.{key.value}')
                for key, node in self._reader.pairs(keys[name], name)}

    def _hosts(self, node, path):
        reader = self._reader
        keys = reader.mapping(node, path, ('name', 'count', 'resources'),
                              ('reserved', 'allocation_ratios', *_FIGURES,
                               'asleep_watts', 'reservable'))
        totals = self._amounts(keys['resources'], f'{path}.resources', 1)
        reserved = self._amounts(keys.get('reserved'), f'{path}.reserved')
        ratios = self._amounts(
            keys.get('allocation_ratios'), f'{path}.allocation_ratios',
            read=lambda node, path: reader.number(node, path, 0.01,
                                                  _MOST_RATIO))
        for name in sorted({*reserved, *ratios} - totals.keys()):
            reader.fail(node, path, f'there is no {name} among its resources')
        return setting.HostKind(
            reader.text(keys['name'], f'{path}.name'),
            reader.integer(keys['count'], f'{path}.count', 1, MOST_HOSTS), {
                name: Inventory(total, reserved.get(name, 0), max_unit=total,
                                allocation_ratio=float(ratios.get(name, 1)))
                for name, total in totals.items()},
            self._figures(node, keys, path),
            self._watts(keys, 'asleep_watts', path) or 0.0,
            reader.boolean(keys['reservable'], f'{path}.reservable')
            if 'reservable' in keys else None)

    def _figures(self, node, keys, path):
        """What is known of a host's power."""
        found = efficiency.Figures(*(
            self._watts(keys, name, path) for name in _FIGURES))
        for name, why in efficiency.what_is_wrong(found).items():
            self._reader.fail(keys[name], f'{path}.{name}', why)
        if found.idle_watts is None and found.watts is not None:
            self._reader.fail(node, path, 'watts needs idle_watts, too')
        return found

    def _watts(self, keys, name, path):
        if name not in keys:
            return None
        return float(self._reader.number(keys[name], f'{path}.{name}', 0,
                                         _MOST_FIGURE))

    def _amounts(self, node, path, least=0, read=None):
        """{resource class: amount}."""
        if node is None:
            return {}
        if read is None:
            def read(node, path):
                return self._reader.integer(node, path, least, model.MOST)
        return {key.value: read(value, f'{path}.{key.value}')
                for key, value in self._reader.pairs(node, path)}

    def _flavor(self, node, path):
        keys = self._reader.mapping(node, path, ('resources',),
                                    ('extra_specs',))
        return setting.Flavor(
            self._amounts(keys['resources'], f'{path}.resources'),
            self._terms(keys.get('extra_specs'), f'{path}.extra_specs'))

    def _class(self, node, path):
        keys = self._reader.mapping(node, path, ('extra_specs',))
        return self._terms(keys['extra_specs'], f'{path}.extra_specs')

    def _terms(self, node, path):
        """Terms, None of normal servers."""
        specs = {} if node is None else {
            key.value: value.value if hasattr(value.value, 'lower')
            else self._reader.text(value, f'{path}.{key.value}')
            for key, value in self._reader.pairs(node, path)}
        if not extra_specs.flavor_is_preemptible(specs):
            return None
        return setting.Terms(
            extra_specs.minimum_runtime_s(specs),
            extra_specs.maximum_runtime_s(specs),
            extra_specs.notice_s(specs), extra_specs.action(specs),
            extra_specs.restore(specs), extra_specs.class_name(specs))

    def _delays(self, node):
        if node is None:
            return delays.Delays()
        names = [field.name for field in dataclasses.fields(delays.Delays)]
        keys = self._reader.mapping(node, 'delays', (), names)
        found = {}
        for name, value in keys.items():
            text = self._reader.text(value, f'delays.{name}')
            try:
                found[name] = delays.Delay(text)
            except ValueError as exc:
                self._reader.fail(value, f'delays.{name}', str(exc))
        return delays.Delays(**found)
