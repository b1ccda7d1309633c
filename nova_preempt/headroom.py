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
"""Space that is to stay free of preemptible servers.

nova-preempt-engine ends servers until it is; the scheduler sees to it that no
others come into that very space, which would end in turn.
"""

import dataclasses
import threading
import time

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# The key of an aggregate's metadata with a headroom of its own.
METADATA = 'preemptible:headroom'


def parse(text):
    """{class: (amount, is it a percentage)} of "VCPU:10%,MEMORY_MB:8192".

    :raises ValueError: it says what cannot be understood
    """
    wanted = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        name, colon, amount = item.partition(':')
        percent = amount.endswith('%')
        number = amount.rstrip('%')
        if not (colon and name and number.isdigit()) or (
                percent and int(number) > 100):
            raise ValueError(
                f'{item!r}: headroom is CLASS:AMOUNT or CLASS:PERCENT%, such '
                'as VCPU:10% or MEMORY_MB:65536')
        wanted[name] = (int(number), percent)
    return wanted


@dataclasses.dataclass
class Group:
    """Nodes of which some space shall be free."""

    name: str
    wanted: dict           # see parse()
    nodes: dict            # {name: ProviderState}

    def capacity(self, resource_class):
        return sum(state.inventories[resource_class].capacity
                   for state in self.nodes.values()
                   if resource_class in state.inventories)

    def spare(self):
        """{class: what is free beyond the headroom}, below 0 if it lacks."""
        free = dict.fromkeys(self.wanted, 0)
        for state in self.nodes.values():
            for name, amount in _free(state).items():
                if name in free:
                    free[name] += max(0, amount)
        spare = {}
        for name, (amount, percent) in self.wanted.items():
            capacity = self.capacity(name)
            if percent:
                amount = -(-capacity * amount // 100)
            spare[name] = free[name] - min(amount, capacity)
        return spare


def _free(state):
    used = state.used
    return {name: inventory.capacity - used.get(name, 0)
            for name, inventory in state.inventories.items()}


class Headroom:
    """Tells which hosts have space to spare for preemptible servers.

    By what Placement said a moment ago, less what this process has placed
    since.

    :param options: [preemption] of the configuration
    :param placement: a nova_preempt.placement.Placement
    :param providers: a nova_preempt.scheduler.providers.ProviderCache
    :param monotonic: the clock by which a reading is recent
    :raises ValueError: [preemption]headroom cannot be understood
    """

    def __init__(self, options, placement, providers,
                 monotonic=time.monotonic):
        self._default = parse(options.headroom)
        self._placement = placement
        self._providers = providers
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # One reading at a time; who comes meanwhile waits for it.
        self._reading = threading.Lock()
        self._read_at = None
        self._groups = []
        self._spares = []      # of each group
        self._placed = []      # (when, node, {class: amount})

    def __bool__(self):
        """Whether there is a headroom, as far as is known."""
        return bool(self._default or self._groups)

    # -- reading ---------------------------------------------------------

    def groups(self):
        """The Groups as they are now."""
        context = nova_context.get_admin_context()
        aggregates = list(objects.AggregateList.get_by_metadata_key(
            context, METADATA))
        if not self._default and not aggregates:
            return []
        nodes = {}
        for provider in self._placement.list_providers([]):
            state = self._providers.get(provider)
            if state is not None:
                nodes[provider.name] = state
        groups = []
        if self._default:
            groups.append(Group('the cloud', self._default, nodes))
        for aggregate in aggregates:
            wanted = _wanted(aggregate)
            if wanted:
                names = self._names(aggregate)
                groups.append(Group(aggregate.name, wanted, {
                    name: state for name, state in nodes.items()
                    if name in names}))
        return groups

    def _names(self, aggregate):
        """The nodes of an aggregate's hosts.

        Nova tells Placement who is in it; the name of a host, which is often
        that of its node, helps where it did not.
        """
        return set(aggregate.hosts) | {
            provider.name for provider in self._placement.list_providers(
                [('member_of', aggregate.uuid)])}

    def refresh(self, max_age_s=0):
        """Read what is older; what cannot be read stays as it was known.

        :param max_age_s: how old what is known may be, in seconds
        """
        with self._reading:
            now = self._monotonic()
            if (max_age_s and self._read_at is not None
                    and now - self._read_at <= max_age_s):
                return
            try:
                groups = self.groups()
            except Exception:
                LOG.exception('Cannot read how much space is free; what is '
                              'known of the headroom may be out of date.')
                return
            with self._lock:
                self._read_at = now
                self._groups = groups
                self._spares = [group.spare() for group in groups]
                placed = [item for item in self._placed if item[0] >= now]
                self._placed = []
                for item in placed:
                    self._take(*item)

    # -- asking ----------------------------------------------------------

    def is_closed(self, node, resources):
        """Whether a preemptible server of this size would be in the way."""
        with self._lock:
            return any(
                spare[name] < amount
                for group, spare in zip(self._groups, self._spares,
                                        strict=True) if node in group.nodes
                for name, amount in resources.items()
                if amount and name in spare)

    def has_room(self, resources):
        """Whether there is space to spare on some node; True without any
        headroom.
        """
        nodes = {}
        for group in self._groups:
            nodes.update(group.nodes)
        if not nodes:
            return True
        return any(
            all(free.get(name, 0) >= amount
                for name, amount in resources.items())
            and not self.is_closed(node, resources)
            for node, free in ((node, _free(state))
                               for node, state in nodes.items()))

    def placed(self, node, resources):
        """A server of this size has been placed on the node."""
        if self._groups:
            with self._lock:
                self._take(self._monotonic(), node, resources)

    def _take(self, when, node, resources):
        self._placed.append((when, node, resources))
        for group, spare in zip(self._groups, self._spares, strict=True):
            if node in group.nodes:
                for name in spare.keys() & resources.keys():
                    spare[name] -= resources[name]


def _wanted(aggregate):
    text = aggregate.metadata[METADATA]
    try:
        return parse(text)
    except ValueError as exc:
        LOG.error('Aggregate %(name)s, %(key)s: %(exc)s',
                  {'name': aggregate.name, 'key': METADATA, 'exc': exc})
        return {}
