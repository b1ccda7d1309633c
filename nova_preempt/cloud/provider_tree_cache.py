# SPDX-License-Identifier: Apache-2.0
"""Cache of hosts as trees of resource providers.

A tree is read only for requests that need it, for each provider takes a few
calls. A cached tree is valid as long as none of its providers has changed, as
in nova_preempt.cloud.provider_cache.

A sharing provider is read once for all hosts. Servers of any host free some of
it, so it is valid until a server has left any host, and up to the maximum age
of a provider.
"""

import dataclasses
import functools
import threading
import time

from nova_preempt.cloud.provider_cache import MAX_AGE_S
from nova_preempt.core.nested import provider_fit

SHARES = 'MISC_SHARES_VIA_AGGREGATE'


@dataclasses.dataclass(frozen=True)
class _Listing:
    """A listing of all trees, or of one tree.

    :ivar trees: {uuid of a root: {uuid: Provider of the listing}}
    :ivar generations: {uuid: generation}, including sharing providers
    """

    read_at: float
    trees: dict
    generations: dict


@dataclasses.dataclass(frozen=True)
class _Known:
    """A cached tree.

    :ivar root_read_at: when its root was read, to detect changes
    :ivar generations: {uuid: generation} of its own providers
    :ivar own: core Providers
    :ivar sharing: {uuid: see _sharing_key()} of sharing providers
    :ivar providers: its own and the sharing Providers as last read
    """

    read_at: float
    root_read_at: float | None
    generations: dict
    own: tuple
    sharing: dict
    providers: tuple


class ProviderTreeCache:
    """Caches the tuple of core Providers of each host. Thread-safe.

    The root is the first one, sharing providers are the last ones.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param providers: a nova_preempt.cloud.provider_cache.ProviderCache
    :param monotonic: its clock
    """

    def __init__(self, placement, providers, monotonic=time.monotonic):
        self._placement = placement
        self._providers = providers
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._listing = None   # the last one of all trees
        self._trees = {}       # uuid of the root: _Known
        self._shared = {}      # uuid: (when it was read, core Provider)
        self._states = {}      # uuid: core Provider of a child provider
        self._details = {}     # uuid: (generation, traits, aggregates)

    # -- validity --------------------------------------------------------

    def look(self, max_age_s=0):
        """Return {uuid of a root: (cached tree or (), whether it is valid)}.

        Needs one listing, and calls for changed sharing providers.

        :param max_age_s: the maximum age of the listing, in seconds
        """
        listing = self._latest(max_age_s) or self._list()
        with self._lock:
            # Other threads read trees meanwhile.
            trees = self._trees = {
                uuid: known for uuid, known in self._trees.items()
                if uuid in listing.trees}
            trees = dict(trees)
            for states in (self._states, self._details, self._shared):
                for uuid in states.keys() - listing.generations.keys():
                    states.pop(uuid, None)
        return {uuid: self._check(uuid, known, listing)
                for uuid, known in trees.items()}

    def look_again(self, root_uuid, max_age_s=0):
        """Return one value of look(), ((), False) if it is not cached.

        Uses the listing of all trees if it is no older than max_age_s.
        """
        known = self._trees.get(root_uuid)
        if known is None:
            return (), False
        return self._check(
            root_uuid, known, self._latest(max_age_s)
            or self._list_one(root_uuid, known.sharing))

    def _latest(self, max_age_s):
        listing = self._listing
        if listing is None or not max_age_s or (
                self._monotonic() - listing.read_at > max_age_s) or (
                listing.read_at <= self._providers.outdated_at):
            return None
        return listing

    def _list(self):
        now = self._monotonic()
        self._listing = _listing(now, self._placement.list_all_providers([]))
        return self._listing

    def _list_one(self, root_uuid, sharing):
        now = self._monotonic()
        found = self._placement.list_all_providers([('in_tree', root_uuid)])
        if sharing:
            found += self._list_sharing()
        return _listing(now, found)

    def _list_sharing(self):
        return self._placement.list_all_providers([('required', SHARES)])

    def _check(self, root_uuid, known, listing):
        """Return (the cached tree, whether it is valid)."""
        read_at = self._providers.read_at(root_uuid)
        holds = (read_at is not None and read_at == known.root_read_at
                 and (known.read_at > listing.read_at
                      or known.generations == _generations(
                          listing, root_uuid)))
        if not known.sharing:
            return known.providers, holds
        sharing = [self._share(uuid, listing) for uuid in known.sharing]
        if None in sharing or any(
                _sharing_key(each) != known.sharing[each.uuid]
                for each in sharing):
            return known.providers, False
        return self._with(root_uuid, known, sharing).providers, holds

    def _share(self, uuid, listing):
        """Return a sharing provider, read if it may have changed."""
        with self._lock:
            read_at, provider = self._shared.get(uuid, (None, None))
        oldest = max(self._providers.left_at, self._monotonic() - MAX_AGE_S)
        if provider is None or (read_at > oldest and (
                read_at > listing.read_at
                or provider.generation == listing.generations.get(uuid))):
            return provider
        return self._read_share(uuid, provider.name)

    def _read_share(self, uuid, name):
        now = self._monotonic()
        state = self._read(uuid)
        # Other providers of its tree serve its own hosts only.
        provider = state and self._provider(state, name)
        with self._lock:
            if provider is None:
                self._shared.pop(uuid, None)
            else:
                self._shared[uuid] = now, provider
        return provider

    def _with(self, root_uuid, known, sharing):
        """Return a tree with its sharing providers as last read."""
        providers = (*known.own, *sharing)
        if all(one is other for one, other in zip(
                providers, known.providers, strict=True)):
            return known
        latest = dataclasses.replace(known, providers=providers)
        with self._lock:
            if self._trees.get(root_uuid) is known:
                self._trees[root_uuid] = latest
        return latest

    # -- reading ---------------------------------------------------------

    def get(self, root_uuid):
        """Return the tree of a host, read only if it has changed."""
        tree, holds = self.look_again(root_uuid)
        return tree if holds else self.read(root_uuid)

    def get_all(self, root_uuids):
        """Return {root uuid: tree} of hosts, () if a host is gone.

        Needs one listing, and reads the changed trees.
        """
        if not root_uuids:
            return {}
        now = self._monotonic()
        looked = self.look()
        listed = self._listing.trees
        sharing = functools.cache(self._list_sharing)
        found = {}
        for uuid in root_uuids:
            tree, holds = looked.get(uuid, ((), False))
            if not holds and uuid in listed:
                tree = self._read_tree(uuid, listed[uuid], sharing, now)
            found[uuid] = tree if uuid in listed else ()
        return found

    def providers_for(self, wanted, roots):
        """Return {root uuid: the providers that a request needs}.

        That is the root alone if the request needs no tree, () if the host is
        gone.

        :param wanted: a core Request
        :param roots: cached core Providers
        """
        found = self.get_all([root.uuid for root in roots
                              if provider_fit.needs_tree(wanted, root)])
        return {root.uuid: found.get(root.uuid, (root,)) for root in roots}

    def read(self, root_uuid):
        """Read the tree of a host, () if it is gone."""
        now = self._monotonic()
        listed = {item.uuid: item for item in
                  self._placement.list_all_providers([('in_tree', root_uuid)])}
        return self._read_tree(root_uuid, listed, self._list_sharing, now)

    def _read_tree(self, root_uuid, listed, list_sharing, since):
        """Read the tree of a host, () if it is gone.

        :param listed: {uuid: Provider of a listing} of the tree
        :param list_sharing: lists sharing providers
        :param since: sharing providers read since then are not read again
        """
        now = self._monotonic()
        root = self._providers.read(root_uuid)
        if root is None or root_uuid not in listed:
            return ()
        root_read_at = self._providers.read_at(root_uuid)
        if self._providers.known(root_uuid) is not root:
            root_read_at = None  # another thread has read it
        own = [self._provider(root, listed[root_uuid].name)]
        for uuid in sorted(listed.keys() - {root_uuid},
                           key=lambda uuid: (listed[uuid].name, uuid)):
            state = self._read(uuid)
            if state is not None:
                own.append(self._provider(state, listed[uuid].name,
                                          listed[uuid].parent_uuid))
        around = frozenset().union(*(each.aggregates for each in own))
        sharing = [] if not around else self._sharing(
            around, [item for item in list_sharing()
                     if item.uuid not in listed], since)
        known = _Known(
            now, root_read_at, {each.uuid: each.generation for each in own},
            tuple(own), {each.uuid: _sharing_key(each) for each in sharing},
            (*own, *sharing))
        with self._lock:
            self._trees[root_uuid] = known
        return known.providers

    def _sharing(self, aggregates, listed, since):
        """Return the providers that share with a host in these aggregates."""
        found = []
        for item in listed:
            with self._lock:
                read_at, provider = self._shared.get(item.uuid, (None, None))
            if provider is None or read_at < since:
                provider = self._read_share(item.uuid, item.name)
            if provider is not None and provider.aggregates & aggregates:
                found.append(provider)
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

    def _provider(self, state, name, parent_uuid=''):
        known = self._details.get(state.uuid)
        if known is None or known[0] != state.generation:
            known = (state.generation,
                     frozenset(self._placement.get_traits(state.uuid)),
                     frozenset(self._placement.get_aggregates(state.uuid)))
            self._details[state.uuid] = known
        _, traits, aggregates = known
        return dataclasses.replace(
            state, parent_uuid=parent_uuid, name=name, traits=traits,
            aggregates=aggregates)


def _listing(read_at, providers):
    trees, generations = {}, {}
    for each in providers:
        generations[each.uuid] = each.generation
        trees.setdefault(each.root_uuid, {})[each.uuid] = each
    return _Listing(read_at, trees, generations)


def _generations(listing, root_uuid):
    return {uuid: each.generation
            for uuid, each in listing.trees.get(root_uuid, {}).items()}


def _sharing_key(provider):
    """Return the fields that determine the hosts a provider shares with."""
    return provider.aggregates, SHARES in provider.traits
