# SPDX-License-Identifier: Apache-2.0
"""Resource providers as Placement shows them, remembered for a while.

A listing of all providers is one call and gives each one's generation, which
Placement raises with every change but one: the deletion of a consumer's
allocations, which is how Nova frees the space of a deleted server. So what is
remembered of a provider holds as long as the generation is the same, no
server is known to have left it, and it is not too old.

That call takes the longer the more providers there are, so listings are
remembered too, and those that requests have asked for lately are read again
in the background. Whoever acts on one of them looks again at the one provider
it is about.
"""

import dataclasses
import threading
import time

from oslo_log import log as logging

from nova_preempt.cloud import placement_api

LOG = logging.getLogger(__name__)

# What was read of a provider so long ago is not trusted, in seconds; in the
# background it is read again before.
MAX_AGE_S = 300
REREAD_S = 200

# Where Placement fails for so many providers it is not the providers.
MOST_FAILURES = 3

# Listings that nobody has asked for so long are forgotten, in seconds, and
# those asked for the longest ago if there are more.
LISTING_S = 600
MOST_LISTINGS = 50


@dataclasses.dataclass
class _Listing:
    read_at: float
    asked_at: float
    providers: list


class ProviderCache:
    """The core's Providers by uuid.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param monotonic: the clock by which a listing is recent
    :ivar left_at: when servers were last known to have left any of them
    :ivar outdated_at: when what was listed last led somebody astray
    """

    def __init__(self, placement, monotonic=time.monotonic):
        self.left_at = self.outdated_at = float('-inf')
        self._placement = placement
        self._monotonic = monotonic
        self._listings = {}       # by query
        self._lock = threading.Lock()
        self._states = {}
        self._read_at = {}        # uuid: when, unless it has changed since
        self._lefts = {}          # uuid: how often servers have left it
        self._uuids = {}          # by name
        self._room_at = {}        # classes: when room was looked for

    # -- listings --------------------------------------------------------

    def list(self, params, max_age_s=0):
        """Root providers that satisfy the query.

        :param params: [(name, value)] of GET /resource_providers
        :param max_age_s: how old the listing may be, in seconds
        """
        return self._listing(tuple(params), max_age_s).providers

    def look(self, params, max_age_s=0):
        """The same: (Provider, core Provider or None, whether that holds)."""
        listing = self._listing(tuple(params), max_age_s)
        oldest = self._monotonic() - MAX_AGE_S
        with self._lock:
            return [(provider, *self._known(provider, listing, oldest))
                    for provider in listing.providers]

    def look_again(self, params, uuid, max_age_s):
        """The same of one of them, None if it does not satisfy the query.

        By the listing if that is no older than max_age_s.
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
        """What was listed has led somebody astray: list anew."""
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
        """(core Provider or None, whether it is what was listed, or newer)."""
        state = self._states.get(provider.uuid)
        read_at = self._read_at.get(provider.uuid)
        return state, (
            state is not None and read_at is not None and read_at >= oldest
            and (state.generation == provider.generation
                 or read_at > listing.read_at))

    # -- providers -------------------------------------------------------

    def known(self, uuid):
        """The core Provider as it was read last, None if it never was."""
        with self._lock:
            return self._states.get(uuid)

    def get(self, provider, max_age_s=MAX_AGE_S):
        """The core Provider of one just listed, read only if it changed.

        None if the provider is gone.
        """
        now = self._monotonic()
        with self._lock:
            self._uuids[provider.name] = provider.uuid
            state, holds = self._known(provider, _Listing(now, now, []),
                                       now - max_age_s)
        return state if holds else self.read(provider.uuid)

    def get_all(self, listed, max_age_s=MAX_AGE_S):
        """{name: core Provider} of those just listed that are still there.

        One that Placement fails for is as it was read last.

        :raises PlacementError: it fails for too many: each question may take
            as long as the time limit of a call
        """
        found, failures = {}, 0
        for provider in listed:
            try:
                state = self.get(provider, max_age_s)
            except placement_api.PlacementError as exc:
                failures += 1
                if failures >= MOST_FAILURES:
                    raise
                LOG.warning('Provider %(name)s counts as it was read last: '
                            '%(exc)s', {'name': provider.name, 'exc': exc})
                state = self.known(provider.uuid)
            if state is not None:
                found[provider.name] = state
        return found

    def read(self, uuid):
        """The core Provider, read now; None if the provider is gone."""
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
                # Else who has left meanwhile may be in it.
                if self._lefts.get(uuid) == lefts:
                    self._read_at[uuid] = now
        return state

    def read_at(self, uuid):
        """When it was read, None if it has changed since."""
        with self._lock:
            return self._read_at.get(uuid)

    def left(self, names):
        """Servers have left these: what is remembered of them is too much."""
        with self._lock:
            if names:
                self.left_at = self._monotonic()
            for uuid in filter(None, map(self._uuids.get, names)):
                self._read_at.pop(uuid, None)
                self._lefts[uuid] = self._lefts.get(uuid, 0) + 1

    def changed(self, uuid):
        """This one is not what it was."""
        with self._lock:
            self._read_at.pop(uuid, None)

    def find_room(self, classes, most, max_age_s=0):
        """Read those anew that have more room than what is known tells.

        Whoever deletes allocations in Placement itself leaves no other trace.
        Placement is asked for the least of each class: a part of a host that
        is free makes room together with victims.

        :param classes: names of resource classes
        :param most: on how many hosts
        :param max_age_s: after how long it is looked again
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
                    self._read_at.pop(uuid, None)
                    found = True
        return found

    def refresh(self, names):
        """Read the providers of these names that have changed, and listings.

        Forgets all others, so that what is remembered stays bounded.

        :param names: None for all there are
        """
        wanted = [provider for provider in self._placement.list_providers([])
                  if names is None or provider.name in names]
        self.get_all(wanted, REREAD_S)
        uuids = {provider.uuid for provider in wanted}
        with self._lock:
            for uuid in set(self._states) - uuids:
                del self._states[uuid]
                self._read_at.pop(uuid, None)
                self._lefts.pop(uuid, None)
        self._refresh_listings()

    def _refresh_listings(self):
        now = self._monotonic()
        with self._lock:
            self._listings = {
                key: listing for key, listing in self._listings.items()
                if now - listing.asked_at <= LISTING_S}
        for key, listing in list(self._listings.items()):
            # That of a single host is not worth it.
            if not any(name == 'in_tree' for name, _ in key):
                self._read_listing(key, listing.asked_at)
