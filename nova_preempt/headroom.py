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

from nova_preempt.core import capacity
from nova_preempt.core import headroom as core

LOG = logging.getLogger(__name__)

# The key of an aggregate's metadata with a headroom of its own.
METADATA = 'preemptible:headroom'


class Headroom:
    """Tells which hosts have space to spare for preemptible servers.

    By what Placement said a moment ago, less what this process has placed
    since.

    :param options: [preemption] of the configuration
    :param placement: a nova_preempt.cloud.placement.Placement
    :param providers: a nova_preempt.cloud.providers.ProviderCache
    :param monotonic: the clock by which a reading is recent
    :raises ValueError: [preemption]headroom cannot be understood
    """

    def __init__(self, options, placement, providers,
                 monotonic=time.monotonic):
        self._default = core.parse(options.headroom)
        self._placement = placement
        self._providers = providers
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # One reading at a time; who comes meanwhile waits for it.
        self._reading = threading.Lock()
        self._read_at = None
        self._groups = []
        self._spares = core.Spares()
        self._taken = []

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
            groups.append(core.Group('the cloud', self._default, nodes))
        for aggregate in aggregates:
            wanted = _wanted(aggregate)
            if wanted:
                names = self._names(aggregate)
                groups.append(core.Group(aggregate.name, wanted, {
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
                self._spares = core.Spares(groups)
                self._taken = [item for item in self._taken
                               if item.when is None or item.when >= now]
                for item in self._taken:
                    self._spares.take(item.provider_uuid, item.resources)

    # -- asking ----------------------------------------------------------

    def is_closed(self, provider_uuid, resources):
        """Whether a preemptible server of this size would be in the way."""
        with self._lock:
            return self._spares.lacks(provider_uuid, resources)

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
            capacity.fits(resources, free)
            and not self.is_closed(uuid, resources)
            for uuid, free in ((state.uuid, core.free(state))
                               for state in nodes.values()))

    # -- what this process places ----------------------------------------

    def claim(self, allocations, real_claim):
        """Claim for a preemptible server, unless it would be in the way.

        :param allocations: {provider uuid: {'resources': {class: amount}}}
        :param real_claim: returns whether it has claimed
        :returns: the same
        """
        taken = [_Taken(uuid, item['resources'])
                 for uuid, item in allocations.items()]
        with self._lock:
            if any(self._spares.lacks(item.provider_uuid, item.resources)
                   for item in taken):
                return False
            self._take(taken)
        claimed = False
        try:
            claimed = real_claim()
        finally:
            with self._lock:
                if claimed:
                    for item in taken:
                        item.when = self._monotonic()
                else:
                    self._give_back(taken)
        return claimed

    def placed(self, provider_uuid, resources):
        """A normal server of this size has been placed."""
        with self._lock:
            self._take([_Taken(provider_uuid, resources, self._monotonic())])

    def _take(self, taken):
        self._taken += taken
        for item in taken:
            self._spares.take(item.provider_uuid, item.resources)

    def _give_back(self, taken):
        self._taken = [item for item in self._taken if item not in taken]
        for item in taken:
            self._spares.give_back(item.provider_uuid, item.resources)


@dataclasses.dataclass(eq=False)
class _Taken:
    """Space taken since the last reading."""

    provider_uuid: str
    resources: dict
    when: float | None = None      # None while it is being claimed


def _wanted(aggregate):
    text = aggregate.metadata[METADATA]
    try:
        return core.parse(text)
    except ValueError as exc:
        LOG.error('Aggregate %(name)s, %(key)s: %(exc)s',
                  {'name': aggregate.name, 'key': METADATA, 'exc': exc})
        return {}
