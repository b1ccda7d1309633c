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
"""Resource providers as Placement shows them, remembered for a while.

A listing of all providers is one call and gives each one's generation, which
Placement raises with every change but one: the deletion of a consumer's
allocations, which is how Nova frees the space of a deleted server. So what is
remembered of a provider holds as long as the generation is the same, no
server is known to have left it, and it is not too old.
"""

import threading
import time

# After how long a provider is read again in any case, in seconds.
MAX_AGE_S = 300


class ProviderCache:
    """The core's Providers by uuid.

    :param placement: a nova_preempt.cloud.placement.Placement
    :param monotonic: the clock by which a listing is recent
    """

    def __init__(self, placement, monotonic=time.monotonic):
        self._placement = placement
        self._monotonic = monotonic
        self._listings = {}
        self._lock = threading.Lock()
        self._states = {}
        self._read_at = {}        # uuid: when, unless a server left since
        self._uuids = {}          # by name

    def list(self, params, max_age_s=0):
        """Root providers that satisfy the query.

        :param params: [(name, value)] of GET /resource_providers
        :param max_age_s: how old the listing may be, in seconds
        """
        key = tuple(params)
        now = self._monotonic()
        when, listing = self._listings.get(key, (None, None))
        if not max_age_s or when is None or now - when > max_age_s:
            listing = self._placement.list_providers(params)
            self._listings = {
                other: item for other, item in self._listings.items()
                if now - item[0] <= max_age_s}
            self._listings[key] = (now, listing)
        return listing

    def peek(self, provider):
        """(a core Provider or None, whether it is what Placement has)."""
        with self._lock:
            state = self._states.get(provider.uuid)
            read_at = self._read_at.get(provider.uuid)
        return state, (
            state is not None and state.generation == provider.generation
            and read_at is not None
            and self._monotonic() - read_at <= MAX_AGE_S)

    def known(self, uuid):
        """The core Provider as it was read last, None if it never was."""
        with self._lock:
            return self._states.get(uuid)

    def get(self, provider):
        """The core Provider of a listed one, read only if it changed.

        None if the provider is gone.
        """
        with self._lock:
            self._uuids[provider.name] = provider.uuid
        state, fresh = self.peek(provider)
        return state if fresh else self.read(provider.uuid)

    def read(self, uuid):
        """The core Provider, read now; None if the provider is gone."""
        now = self._monotonic()
        with self._lock:
            known = self._states.get(uuid)
        state = self._placement.get_provider_state(uuid, known)
        with self._lock:
            if state is None:
                self._states.pop(uuid, None)
            else:
                self._states[uuid] = state
                self._read_at[uuid] = now
        return state

    def left(self, names):
        """Servers have left these: what is remembered of them is too much."""
        with self._lock:
            for name in names:
                self._read_at.pop(self._uuids.get(name), None)

    def refresh(self, names):
        """Read the providers of these names that have changed.

        Forgets all others, so that what is remembered stays bounded.

        :param names: None for all there are
        """
        wanted = [provider for provider in self._placement.list_providers([])
                  if names is None or provider.name in names]
        for provider in wanted:
            self.get(provider)
        uuids = {provider.uuid for provider in wanted}
        with self._lock:
            for uuid in set(self._states) - uuids:
                del self._states[uuid]
                self._read_at.pop(uuid, None)
