# SPDX-License-Identifier: Apache-2.0
"""Cache of Placement's resource providers.

A listing of all providers is one call and has their generations. Placement
raises a generation with every change but one: the deletion of a consumer's
allocations, by which Nova frees those of a deleted server. So a cached
provider is valid as long as its generation is the same, no server is known to
have left it, and it is not too old.

That call takes longer the more providers there are. So listings are cached,
too, and the recently used ones are refreshed in the background. A caller that
acts on a provider reads that provider again.
"""

import dataclasses
import threading
import time

from oslo_log import log as logging

from nova_preempt.cloud import placement_api

LOG = logging.getLogger(__name__)

# The maximum age of a cached provider, and the age at which the background
# refresh reads it again, in seconds.
MAX_AGE_S = 300
REREAD_S = 200

# After this many failures Placement itself is taken to fail.
MOST_FAILURES = 3

# Listings unused for LISTING_S seconds are forgotten, and the least recently
# used ones above MOST_LISTINGS.
LISTING_S = 600
MOST_LISTINGS = 50


@dataclasses.dataclass
class _Listing:
    read_at: float
    asked_at: float
    providers: list


class ProviderCache:
    """Caches core Providers and listings of providers. Thread-safe.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param monotonic: the clock by which a listing is recent
    :ivar left_at: when servers were last known to have left a provider
    :ivar outdated_at: when listings were last found to be outdated
    """

    def __init__(self, placement, monotonic=time.monotonic):
        self.left_at = self.outdated_at = float('-inf')
        self._placement = placement
        self._monotonic = monotonic
        self._listings = {}       # by query
        self._lock = threading.Lock()
        self._states = {}
        self._read_at = {}        # uuid: when read, unless it has changed
        self._lefts = {}          # uuid: number of departures of servers
        self._uuids = {}          # by name
        self._room_at = {}        # classes: when find_room() asked for them

    # -- listings --------------------------------------------------------

    def list(self, params, max_age_s=0):
        """Return root providers that satisfy a query.

        :param params: [(name, value)] of GET /resource_providers
        :param max_age_s: the maximum age of the listing, in seconds
        """
        return self._listing(tuple(params), max_age_s).providers

    def look(self, params, max_age_s=0):
        """Return [(Provider, core Provider or None, whether it is valid)]."""
        listing = self._listing(tuple(params), max_age_s)
        oldest = self._monotonic() - MAX_AGE_S
        with self._lock:
            return [(provider, *self._known(provider, listing, oldest))
                    for provider in listing.providers]

    def look_again(self, params, uuid, max_age_s):
        """Return one item of look(), None if it does not satisfy the query.

        Uses the listing if it is no older than max_age_s.
        """
        now = self._monotonic()
        listing = self._listings.get(tuple(params))
        if listing is None or now - listing.read_at > max_age_s:
            listing = _Listing(now, now, self._placement.list_providers(
                [*params, ('uuid', uuid)]))
        for provider in listing.providers:
            if provider.uuid == uuid:
                with self._lock:
                    return (provider, *self._known(provider, listing,
                                                   now - MAX_AGE_S))
        return None

    def outdated(self):
        """Drop all listings, because one was found to be outdated."""
        self.outdated_at = self._monotonic()
        self._listings = {}

    def _listing(self, key, max_age_s):
        now = self._monotonic()
        listing = self._listings.get(key)
        if (listing is None or not max_age_s
                or now - listing.read_at > max_age_s):
            listing = self._read_listing(key, now)
        listing.asked_at = now
        return listing

    def _read_listing(self, key, asked_at):
        listing = _Listing(self._monotonic(), asked_at,
                           self._placement.list_providers(list(key)))
        with self._lock:
            self._uuids.update((provider.name, provider.uuid)
                               for provider in listing.providers)
            listings = {**self._listings, key: listing}
            latest = sorted(listings, key=lambda key: (
                listings[key].asked_at))[-MOST_LISTINGS:]
            self._listings = {key: listings[key] for key in latest}
        return listing

    def _known(self, provider, listing, oldest):
        """Return (core Provider or None, whether the listing confirms it)."""
        state = self._states.get(provider.uuid)
        read_at = self._read_at.get(provider.uuid)
        return state, (
            state is not None and read_at is not None and read_at >= oldest
            and (state.generation == provider.generation
                 or read_at > listing.read_at))

    # -- providers -------------------------------------------------------

    def known(self, uuid):
        """Return the cached core Provider, valid or not, or None."""
        with self._lock:
            return self._states.get(uuid)

    def get(self, provider, max_age_s=MAX_AGE_S):
        """Return the core Provider of a Provider that was just listed.

        Read only if it has changed; None if it is gone.
        """
        now = self._monotonic()
        with self._lock:
            self._uuids[provider.name] = provider.uuid
            state, holds = self._known(provider, _Listing(now, now, []),
                                       now - max_age_s)
        return state if holds else self.read(provider.uuid)

    def get_all(self, listed, max_age_s=MAX_AGE_S):
        """Return {name: core Provider} of Providers that were just listed.

        Falls back to the cached provider if Placement fails for it.

        :raises PlacementError: it fails for too many of them, for each call
            may take until its time limit
        """
        found, failures = {}, 0
        for provider in listed:
            try:
                state = self.get(provider, max_age_s)
            except placement_api.PlacementError as exc:
                failures += 1
                if failures >= MOST_FAILURES:
                    raise
                LOG.warning('Provider %(name)s cannot be read; its last data '
                            'is used: %(exc)s',
                            {'name': provider.name, 'exc': exc})
                state = self.known(provider.uuid)
            if state is not None:
                found[provider.name] = state
        return found

    def read(self, uuid):
        """Read a core Provider, None if it is gone."""
        now = self._monotonic()
        with self._lock:
            known = self._states.get(uuid)
            lefts = self._lefts.get(uuid)
        state = self._placement.get_provider_state(uuid, known)
        with self._lock:
            if state is None:
                self._states.pop(uuid, None)
            else:
                self._states[uuid] = state
                # Otherwise it may contain a server that has left.
                if self._lefts.get(uuid) == lefts:
                    self._read_at[uuid] = now
        return state

    def read_at(self, uuid):
        """Return when a provider was read, None if it has changed since."""
        with self._lock:
            return self._read_at.get(uuid)

    def left(self, names):
        """Invalidate providers, given by name, that servers have left."""
        with self._lock:
            if names:
                self.left_at = self._monotonic()
            for uuid in filter(None, map(self._uuids.get, names)):
                self._read_at.pop(uuid, None)
                self._lefts[uuid] = self._lefts.get(uuid, 0) + 1

    def changed(self, uuid):
        """Invalidate a provider that has changed."""
        with self._lock:
            self._read_at.pop(uuid, None)

    def find_room(self, classes, most, max_age_s=0):
        """Invalidate cached providers that have more free capacity by now.

        This detects allocations that an operator deletes in Placement. It
        queries 1 of each class, for a host with some free capacity can serve
        a request together with victims.

        :param classes: names of resource classes
        :param most: the maximum number of hosts
        :param max_age_s: the minimum time between two queries
        :returns: whether there are such providers
        """
        key, now = frozenset(classes), self._monotonic()
        with self._lock:
            if now - self._room_at.get(key, float('-inf')) < max_age_s:
                return False
            self._room_at = {
                key: now, **{other: at for other, at in self._room_at.items()
                             if other != key and now - at < MAX_AGE_S}}
        return self._note_room(self._placement.get_room(
            dict.fromkeys(key, 1), most))

    def _note_room(self, rooms):
        found = False
        with self._lock:
            for uuid, free in rooms.items():
                state = self._states.get(uuid)
                if state is not None and any(
                        free.get(name, 0) > inventory.capacity
                        - state.used.get(name, 0)
                        for name, inventory in state.inventories.items()):
                    # Otherwise it would be found again.
                    for known in (self._states, self._read_at):
                        known.pop(uuid, None)
                    found = True
        return found

    def refresh(self, names):
        """Read changed providers with these names, and refresh listings.

        Forgets providers that are gone, so that the cache is bounded.

        :param names: None for all providers
        """
        listed = self._placement.list_providers([])
        self.get_all([provider for provider in listed
                      if names is None or provider.name in names], REREAD_S)
        uuids = {provider.uuid for provider in listed}
        with self._lock:
            for uuid in set(self._states) - uuids:
                for known in (self._states, self._read_at, self._lefts):
                    known.pop(uuid, None)
        self._refresh_listings()

    def _refresh_listings(self):
        now = self._monotonic()
        with self._lock:
            self._listings = {
                key: listing for key, listing in self._listings.items()
                if now - listing.asked_at <= LISTING_S}
        for key, listing in list(self._listings.items()):
            # The listing of a single host is not worth a refresh.
            if not any(name == 'in_tree' for name, _ in key):
                self._read_listing(key, listing.asked_at)
