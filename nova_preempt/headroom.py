# SPDX-License-Identifier: Apache-2.0
"""Headroom: capacity kept free of preemptible servers.

nova-preempt-engine evicts servers until it is free; the scheduler places no
preemptible server into it, which would be evicted in turn.
"""

import threading
import time

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.cloud import host_records
from nova_preempt.core import headroom_account

LOG = logging.getLogger(__name__)

# The key of an aggregate's metadata with its own headroom.
METADATA = 'preemptible:headroom'


def parse(options):
    """Parse [preemption]headroom; see nova_preempt.core.headroom_account.

    :param options: [preemption] of the configuration
    :raises InvalidConfiguration: it is invalid
    """
    try:
        return headroom_account.parse(options.headroom)
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(
            f'[preemption]headroom: {exc}') from None


class Headroom:
    """Tells which hosts have capacity beyond the headroom.

    It takes Placement's data of a moment ago, less what this process has
    placed since.

    :param options: [preemption] of the configuration
    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param providers: a nova_preempt.cloud.provider_cache.ProviderCache
    :param monotonic: the clock that ages the data
    :param trees: a nova_preempt.cloud.provider_tree_cache.ProviderTreeCache,
        None to ignore providers below hosts
    :raises InvalidConfiguration: [preemption]headroom is invalid
    """

    def __init__(self, options, placement, providers,
                 monotonic=time.monotonic, trees=None):
        self._default = parse(options)
        self._placement = placement
        self._providers = providers
        self._trees = trees
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # One thread reads at a time; others wait for it.
        self._reading = threading.Lock()
        self._read_at = None
        self._account = headroom_account.HeadroomAccount()

    def __bool__(self):
        """Return whether any headroom is known."""
        return bool(self._default or self._account.groups)

    # -- reading ---------------------------------------------------------

    def look(self):
        """Read the Groups and answer by them from now on."""
        with self._reading:
            return self._look()

    def _look(self):
        now = self._monotonic()
        groups = self.groups()
        with self._lock:
            self._read_at = now
            self._account.read(groups, now)
        return groups

    def groups(self):
        """Return the Groups of now."""
        aggregates = host_records.list_aggregates(METADATA)
        if not self._default and not aggregates:
            return []
        nodes = self._providers.get_all(self._placement.list_providers([]))
        found = []
        if self._default:
            found.append(('the cloud', self._default, nodes))
        for aggregate in aggregates:
            wanted = _wanted(aggregate)
            if wanted:
                found.append((aggregate.name, wanted, {
                    name: nodes[name] for name in self._names(aggregate)
                    if name in nodes}))
        trees = self._read_trees(found)
        return [self._group(*each, trees) for each in found]

    def _read_trees(self, groups):
        """Return {uuid: the providers of a host} where trees matter."""
        if self._trees is None:
            return {}
        return self._trees.get_all(sorted({
            state.uuid for _, wanted, nodes in groups
            if headroom_account.needs_tree(wanted)
            for state in nodes.values()}))

    def _group(self, name, wanted, nodes, trees):
        """Return a core Group, of trees if it needs providers below hosts."""
        if self._trees is None or not headroom_account.needs_tree(wanted):
            return headroom_account.HostGroup(name, wanted, nodes)
        trees = {node: trees[state.uuid] for node, state in nodes.items()}
        return headroom_account.HostGroup(
            name, wanted,
            {node: headroom_account.merge_tree(tree)
             for node, tree in trees.items() if tree},
            frozenset(provider.uuid for tree in trees.values()
                      for provider in tree[1:] if provider.parent_uuid))

    def _names(self, aggregate):
        """Return the nodes of an aggregate's hosts.

        Nova tells Placement which hosts are members. Host names, often equal
        to node names, help where it did not.
        """
        return set(aggregate.hosts) | {
            provider.name for provider in self._placement.list_providers(
                [('member_of', aggregate.uuid)])}

    def refresh(self, max_age_s=0):
        """Read the Groups if they are too old; keep them on a failure.

        :param max_age_s: how old they may be, in seconds
        """
        with self._reading:
            now = self._monotonic()
            if (max_age_s and self._read_at is not None
                    and now - self._read_at <= max_age_s):
                return
            try:
                self._look()
            except Exception:
                LOG.exception('Cannot read how much capacity is free; the '
                              'headroom may be out of date.')

    # -- asking ----------------------------------------------------------

    def is_closed(self, provider_uuid, resources):
        """Return whether a preemptible server would use the headroom."""
        with self._lock:
            return self._account.lacks({provider_uuid: resources})

    def is_short(self, provider_uuids) -> bool:
        """Return whether headroom around these providers is short."""
        with self._lock:
            return self._account.is_short(provider_uuids)

    def has_room(self, resources):
        """Return whether these resources fit on some node beyond headroom."""
        with self._lock:
            return self._account.has_room(resources)

    def count(self, resources, most):
        """Return {uuid of a host: how many servers fit beyond headroom}.

        See core.headroom_account.HeadroomAccount.
        """
        with self._lock:
            return self._account.count(resources, most)

    # -- what this process places ----------------------------------------

    def claim(self, allocations, real_claim):
        """Claim resources of a preemptible server outside the headroom.

        :param allocations: {provider uuid: {'resources': {class: amount}}}
        :param real_claim: returns whether it has claimed
        :returns: whether the claim was made
        """
        claim = headroom_account.HeadroomClaim({
            uuid: item['resources'] for uuid, item in allocations.items()})
        with self._lock:
            if self._account.lacks(claim.amounts):
                return False
            self._account.take(claim)
        claimed = False
        try:
            claimed = real_claim()
        finally:
            with self._lock:
                if claimed:
                    claim.done_at = self._monotonic()
                else:
                    self._account.give_back(claim)
        return claimed

    def placed(self, provider_uuid, resources):
        """Record a normal server that this process has placed."""
        with self._lock:
            self._account.take(headroom_account.HeadroomClaim(
                {provider_uuid: resources}, self._monotonic()))


def _wanted(aggregate):
    text = aggregate.metadata[METADATA]
    try:
        return headroom_account.parse(text)
    except ValueError as exc:
        LOG.error('Aggregate %s, %s: %s', aggregate.name, METADATA, exc)
        return {}
