# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Hosts as trees of resource providers, remembered for a while.

Read where a request needs them only: each provider is a few calls. What was
read of a tree holds as long as no provider of it has changed, as
nova_preempt.cloud.providers tells.
"""

import dataclasses
import threading

SHARES = 'MISC_SHARES_VIA_AGGREGATE'


@dataclasses.dataclass(frozen=True)
class _Known:
    """A tree as it was read.

    :ivar root_read_at: by which it is told whether it has been since
    :ivar generations: {uuid: generation} of its providers
    :ivar sharing: the same of those that share with it
    """

    root_read_at: float | None
    generations: dict
    sharing: dict
    providers: tuple


class TreeCache:
    """The core's Providers of hosts, the root of each first.

    Those that share their inventory with a host come last.

    :param placement: a nova_preempt.cloud.placement.Placement
    :param providers: a nova_preempt.cloud.providers.ProviderCache
    """

    def __init__(self, placement, providers):
        self._placement = placement
        self._providers = providers
        self._lock = threading.Lock()
        self._trees = {}       # uuid of the root: _Known
        self._states = {}      # uuid: core Provider, of those below roots
        self._details = {}     # uuid: (generation, traits, aggregates)

    def look(self):
        """{uuid of a root: (tree as known or (), whether that holds)}.

        One listing for all of them.
        """
        generations = {}
        everywhere = {}
        for listed in self._placement.list_all_providers([]):
            everywhere[listed.uuid] = listed.generation
            generations.setdefault(listed.root_uuid, {})[
                listed.uuid] = listed.generation
        with self._lock:
            # Other threads read trees meanwhile.
            trees = self._trees = {
                uuid: known for uuid, known in self._trees.items()
                if uuid in generations}
            trees = dict(trees)
        return {uuid: (known.providers, self._holds(
            uuid, known, generations[uuid], everywhere))
            for uuid, known in trees.items()}

    def _holds(self, root_uuid, known, in_tree, sharing):
        read_at = self._providers.read_at(root_uuid)
        return (known.generations == in_tree
                and known.sharing.items() <= sharing.items()
                and read_at is not None
                and read_at == known.root_read_at)

    def get(self, root_uuid):
        """The tree of a host, read only if it has changed."""
        known = self._trees.get(root_uuid)
        if known is not None and self._holds(
                root_uuid, known, self._generations('in_tree', root_uuid),
                self._generations('required', SHARES)
                if known.sharing else {}):
            return known.providers
        return self.read(root_uuid)

    def _generations(self, *param):
        return {item.uuid: item.generation for item in
                self._placement.list_all_providers([param])}

    def read(self, root_uuid):
        """The tree of a host as it is now, () if it is gone."""
        root = self._providers.read(root_uuid)
        if root is None:
            return ()
        root_read_at = self._providers.read_at(root_uuid)
        if self._providers.known(root_uuid) is not root:
            root_read_at = None  # that is when another thread read it
        listed = {item.uuid: item for item in
                  self._placement.list_all_providers(
                      [('in_tree', root_uuid)])}
        if root_uuid not in listed:
            return ()
        own = [self._provider(listed[root_uuid], root)]
        for uuid in sorted(listed.keys() - {root_uuid},
                           key=lambda uuid: (listed[uuid].name, uuid)):
            state = self._read(uuid)
            if state is not None:
                own.append(self._provider(listed[uuid], state))
        around = frozenset().union(*(each.aggregates for each in own))
        sharing = self._sharing(around, listed)
        known = _Known(root_read_at,
                       {each.uuid: each.generation for each in own},
                       {each.uuid: each.generation for each in sharing},
                       (*own, *sharing))
        with self._lock:
            self._trees[root_uuid] = known
        return known.providers

    def _sharing(self, aggregates, own):
        """Those that share with a host in these aggregates."""
        found = []
        if not aggregates:
            return found
        for item in self._placement.list_all_providers(
                [('required', SHARES)]):
            if item.uuid in own:
                continue
            state = self._read(item.uuid)
            if state is None:
                continue
            provider = self._provider(item, state)
            if provider.aggregates & aggregates:
                # Others of its tree serve its own hosts only.
                found.append(dataclasses.replace(provider, parent_uuid=''))
        return found

    def _read(self, uuid):
        state = self._placement.get_provider_state(
            uuid, self._states.get(uuid))
        if state is None:
            self._states.pop(uuid, None)
            self._details.pop(uuid, None)
        else:
            self._states[uuid] = state
        return state

    def _provider(self, listed, state):
        known = self._details.get(listed.uuid)
        if known is None or known[0] != state.generation:
            known = (state.generation,
                     frozenset(self._placement.get_traits(listed.uuid)),
                     frozenset(self._placement.get_aggregates(listed.uuid)))
            self._details[listed.uuid] = known
        _, traits, aggregates = known
        return dataclasses.replace(
            state, parent_uuid=listed.parent_uuid, name=listed.name,
            traits=traits, aggregates=aggregates)
