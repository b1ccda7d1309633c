# SPDX-License-Identifier: Apache-2.0
"""Hosts as trees of resource providers, remembered for a while.

Read where a request needs them only: each provider is a few calls. What was
read of a tree holds as long as no provider of it has changed, as
nova_preempt.cloud.provider_cache tells.

Storage that hosts share is read once for all of them. Servers of any host
free some of it, so that it holds until somebody has left some host, and no
longer than what is known of a host.
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
    """What Placement has listed, of all trees or of one.

    :ivar trees: {uuid of a root: {uuid: Provider of the listing}}
    :ivar generations: {uuid: generation} of those and of all that share
    """

    read_at: float
    trees: dict
    generations: dict


@dataclasses.dataclass(frozen=True)
class _Known:
    """A tree as it was read.

    :ivar root_read_at: by which it is told whether it has been since
    :ivar generations: {uuid: generation} of its own providers
    :ivar own: the core's Providers
    :ivar sharing: {uuid: for whom, see _for_whom()} of others
    :ivar providers: its own ones and those as they were read last
    """

    read_at: float
    root_read_at: float | None
    generations: dict
    own: tuple
    sharing: dict
    providers: tuple


class TreeCache:
    """The core's Providers of hosts, the root of each first.

    Those that share their inventory with a host come last.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param providers: a nova_preempt.cloud.provider_cache.ProviderCache
    :param monotonic: the clock of those
    """

    def __init__(self, placement, providers, monotonic=time.monotonic):
        self._placement = placement
        self._providers = providers
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._listing = None   # of all trees, the last one
        self._trees = {}       # uuid of the root: _Known
        self._shared = {}      # uuid: (when it was read, core Provider)
        self._states = {}      # uuid: core Provider, of those below roots
        self._details = {}     # uuid: (generation, traits, aggregates)

    # -- whether it still is as it was -----------------------------------

    def look(self, max_age_s=0):
        """{uuid of a root: (tree as known or (), whether that holds)}.

        One listing for all of them, and one call for what is shared and has
        changed.

        :param max_age_s: how old the listing may be, in seconds
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
        """The same of one of them, ((), False) if it is not known.

        By the listing of all if that is no older than max_age_s.
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
        """(the tree as it is known, whether that holds)."""
        read_at = self._providers.read_at(root_uuid)
        holds = (read_at is not None and read_at == known.root_read_at
                 and (known.read_at > listing.read_at
                      or known.generations == _generations(
                          listing, root_uuid)))
        if not known.sharing:
            return known.providers, holds
        sharing = [self._share(uuid, listing) for uuid in known.sharing]
        if None in sharing or any(
                _for_whom(each) != known.sharing[each.uuid]
                for each in sharing):
            return known.providers, False
        return self._with(root_uuid, known, sharing).providers, holds

    def _share(self, uuid, listing):
        """What is shared, read if it may have changed, None if it is gone."""
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
        # Others of its tree serve its own hosts only.
        provider = state and self._provider(state, name)
        with self._lock:
            if provider is None:
                self._shared.pop(uuid, None)
            else:
                self._shared[uuid] = now, provider
        return provider

    def _with(self, root_uuid, known, sharing):
        """The same with what is shared as it was read last."""
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
        """The tree of a host, read only if it has changed."""
        tree, holds = self.look_again(root_uuid)
        return tree if holds else self.read(root_uuid)

    def get_all(self, root_uuids):
        """{uuid: the same} of several, () of one that is gone.

        One listing for all of them, and those that have changed are read.
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
        """{uuid: the providers of a host that a request is about}.

        The root alone where it needs no others, () of one that is gone.

        :param wanted: a core Request
        :param roots: core Providers as they are known
        """
        found = self.get_all([root.uuid for root in roots
                              if provider_fit.needs_tree(wanted, root)])
        return {root.uuid: found.get(root.uuid, (root,)) for root in roots}

    def read(self, root_uuid):
        """The tree of a host as it is now, () if it is gone."""
        now = self._monotonic()
        listed = {item.uuid: item for item in
                  self._placement.list_all_providers([('in_tree', root_uuid)])}
        return self._read_tree(root_uuid, listed, self._list_sharing, now)

    def _read_tree(self, root_uuid, listed, list_sharing, since):
        """The tree of a host as it is now, () if it is gone.

        :param listed: {uuid: Provider of a listing} of it
        :param list_sharing: lists those that share
        :param since: what is shared is not read again if it was since
        """
        now = self._monotonic()
        root = self._providers.read(root_uuid)
        if root is None or root_uuid not in listed:
            return ()
        root_read_at = self._providers.read_at(root_uuid)
        if self._providers.known(root_uuid) is not root:
            root_read_at = None  # that is when another thread read it
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
        known = _Known(now, root_read_at,
                       {each.uuid: each.generation for each in own},
                       tuple(own),
                       {each.uuid: _for_whom(each) for each in sharing},
                       (*own, *sharing))
        with self._lock:
            self._trees[root_uuid] = known
        return known.providers

    def _sharing(self, aggregates, listed, since):
        """Those that share with a host in these aggregates."""
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


def _for_whom(provider):
    """What tells which hosts a provider shares with, if any."""
    return provider.aggregates, SHARES in provider.traits
