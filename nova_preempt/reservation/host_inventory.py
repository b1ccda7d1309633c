# SPDX-License-Identifier: Apache-2.0
"""The hosts of the cloud, their properties, and whether they are vacant.

Nova's API has hypervisors, services and aggregates; Placement inventories and
traits; the cells servers. A reading takes a handful of calls, and up to two
for each host that has changed.
"""

import collections
import dataclasses
import threading
import time

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import provider_cache
from nova_preempt.core.energy import power_steps
from nova_preempt.core.reservation import host_properties
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.handover import allocation_claim

LOG = logging.getLogger(__name__)

# How old the servers of hosts may be when a query is answered, in seconds:
# simultaneous queries share a reading.
OCCUPANCY_MAX_AGE_S = 2
#: How often the engine reads hosts, their properties and their servers.
INTERVAL_S = 60


class HostInventory:
    """Lists hosts that can be reserved, and reads what is on them.

    :param options: [reservation] of the configuration
    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param settings: returns {host: (reservable or None, {name: value})}
    :param hidden: returns the names of the properties that users do not see
    :param make_occupancy: takes a callable for the names of nodes that
        servers have left; returns a
        nova_preempt.reservation.host_occupancy.HostOccupancy
    :param efficiency: returns {host: FLOPS per watt} where known
    :param may_end: returns whether the preemptible server of a uuid may be
        given notice now
    :param asleep: returns {host: core.energy.host_classification.OffHost} of
        hosts that are off but can be woken; they count as up and enabled
    :param claimants: returns {uuid of a stand-in: uuid of the server for which
        it claims}, see nova_preempt.handover.allocation_claim
    """

    def __init__(self, options, nova, placement, settings, hidden,
                 make_occupancy, efficiency=dict, asleep=dict,
                 monotonic=time.monotonic, may_end=lambda uuid: True,
                 claimants=dict):
        self._options = options
        self._nova = nova
        self._placement = placement
        self._settings = settings
        self._hidden = hidden
        self._efficiency = efficiency
        self._asleep = asleep
        self._monotonic = monotonic
        self._may_end = may_end
        self._claimants = claimants
        # NOTE: a cache of its own: nobody keeps nodes without preemptible
        # servers fresh in the shared one.
        self._providers = provider_cache.ProviderCache(placement)
        self.occupancy = make_occupancy(self._providers.left)
        # One thread reads at a time; others wait for it.
        self._reading = threading.Lock()
        self._read_at = None
        self._hosts = {}           # name: Host, without its current state
        self._traits = {}          # provider uuid: (generation, names)
        self._trees = {}           # uuid of a root: uuids of its tree
        self._away = ''            # why hosts are out of date

    # -- answers ---------------------------------------------------------

    def find_hosts(self, query):
        """Return matching hosts that can be reserved; see rpc.EngineClient.

        :raises InvalidReservation: the query is invalid
        """
        try:
            matches = host_query.parse(query).matches
            hosts = [host for host in self.hosts().values() if host.reservable
                     and host.is_usable and matches(host.properties)]
        except host_query.InvalidQuery as exc:
            raise exceptions.InvalidReservation(str(exc)) from None
        counts = self.occupancy.counts()
        return [{'name': host.name, 'flops_per_watt': host.flops_per_watt,
                 'vacant': self.is_vacant(host, counts)} for host in hosts]

    def list_properties(self):
        hidden = self._hidden()
        return [{**item, 'hidden': item['name'] in hidden}
                for item in host_properties.describe(
                    host.properties for host in self.hosts().values()
                    if host.reservable)]

    def list_hosts(self):
        hosts = self.hosts()
        counts = self.occupancy.counts()
        return [{
            'name': host.name, 'service_host': host.service_host,
            'state': host.state, 'status': host.status,
            'reservable': host.reservable,
            'vacant': self.is_vacant(host, counts),
            'running_servers': counts.get(host.name, (0, 0))[0],
            'flops_per_watt': host.flops_per_watt,
            'properties': host.properties} for host in hosts.values()]

    def hosts(self, max_age_s=None):
        """Return {name: Host}, in order of names.

        :param max_age_s: how old hosts may be, in seconds; if None twice
            INTERVAL_S, so that nobody waits while they are read in the
            background
        :raises NovaError, PlacementError: they cannot be read
        """
        if max_age_s is None:
            max_age_s = 2 * INTERVAL_S
        self.refresh(max_age_s)
        self.occupancy.refresh(OCCUPANCY_MAX_AGE_S)
        settings = self._settings()
        efficiency = self._efficiency()
        asleep = self._asleep()
        return {name: self._complete(
                    host, *settings.get(name, (None, {})),
                    efficiency.get(name), asleep.get(name))
                for name, host in self._hosts.items()}

    def _complete(self, host, reservable, extra, flops_per_watt, asleep):
        if reservable is None:
            reservable = self._options.reservable_default
        found = {**host.properties, **host_properties.extra(extra)}
        if flops_per_watt is not None:
            found[host_properties.FLOPS_PER_WATT] = flops_per_watt
        # A host that an operator has disabled meanwhile is not woken.
        changed = {'state': 'up', 'status': 'enabled'} if asleep and (
            host.status == 'enabled'
            or host.disabled_reason.startswith(power_steps.REASON)) else {}
        return dataclasses.replace(
            host, properties={**found, **changed}, reservable=reservable,
            flops_per_watt=flops_per_watt, asleep=asleep if changed else None,
            dark=host.service_host in self.occupancy.dark, **changed)

    def rooms(self):
        """Return [(Host, core Providers of its tree)] of usable hosts, now.

        The root comes first. Unchanged providers are not read again, unless
        a consumer that is no known server has allocations: deleting a server
        does not change the generation in Placement.

        :raises NovaError, PlacementError: they cannot be read
        """
        hosts = self.hosts()
        if self._away:
            raise nova_api.NovaError(self._away)
        self.occupancy.refresh()
        claimants = self._claimants()
        trees = collections.defaultdict(list)
        for item in self._placement.list_all_providers([]):
            trees[item.root_uuid].append(item)
        found = []
        for host in hosts.values():
            tree = sorted(trees.get(host.provider_uuid, ()), key=lambda item: (
                item.uuid != item.root_uuid, item.uuid))
            states = [self._as_of_now(item)
                      for item in tree] if host.is_usable else []
            if states and states[0] is not None:
                found.append((host,
                              [allocation_claim.on_behalf(state, claimants)
                               for state in states if state is not None]))
        return found

    def _as_of_now(self, provider):
        """Return a core Provider, None if it no longer exists."""
        state = self._providers.get(provider)
        if state is not None and not all(
                map(self.occupancy.get, state.allocations)):
            state = self._providers.read(provider.uuid)
        return state

    def is_vacant(self, host, counts):
        """Return whether only preemptible servers that may end are on it."""
        if host.dark or (host.asleep and host.asleep.why_late):
            return False           # not known, or not woken in time
        if counts.get(host.name, (0, 0))[1]:
            return False
        residents = self.occupancy.on_node(host.name)
        preemptible = {item.uuid for item in residents
                       if self.occupancy.is_preemptible(item.uuid)}
        if not all(map(self._may_end, preemptible)):
            return False
        try:
            # NOTE: the cells' data is newer: a host may be free since.
            return any(
                self._consumers(host, read).union(
                    item.uuid for item in residents) <= preemptible
                for read in (self._known, self._providers.read))
        except placement_api.PlacementError as exc:
            LOG.warning('The servers on host %(host)s cannot be read: %(exc)s',
                        {'host': host.name, 'exc': exc})
            return False

    def occupants(self, host):
        """Return uuids of all consumers on a host or on the way, read now.

        During a move the migration is the consumer at the source, and the
        server at the target. A server whose victims still end is included.

        :raises PlacementError: it cannot be read
        """
        # NOTE: before Placement, as a claimant may replace its stand-in.
        claimants = self._claimants()
        found = {claimants.get(uuid, uuid) for uuid
                 in self._consumers(host, self._providers.read)}
        return found.union(
            item.uuid for item in self.occupancy.on_node(host.name))

    def _known(self, provider_uuid):
        return (self._providers.known(provider_uuid)
                or self._providers.read(provider_uuid))

    def _consumers(self, host, read):
        """Return uuids of consumers in the tree of a host."""
        found = set()
        for uuid in self._trees.get(host.provider_uuid, (host.provider_uuid,)):
            state = read(uuid)
            found |= set() if state is None else state.allocations.keys()
        return found

    # -- reading ---------------------------------------------------------

    def keep(self):
        """Read everything; return after how many seconds to repeat it."""
        self.refresh()
        return INTERVAL_S

    def refresh(self, max_age_s=0):
        """Read hosts if they are too old.

        :param max_age_s: how old they may be, in seconds
        :raises NovaError, PlacementError: they cannot be read
        """
        if self._is_recent(max_age_s):
            return
        with self._reading:
            if self._is_recent(max_age_s):
                return
            now = self._monotonic()
            self._hosts = self._read()
            self._read_at = self._monotonic()
            LOG.debug('Read %(count)s hosts in %(time).1f s.',
                      {'count': len(self._hosts), 'time': self._read_at - now})

    def _is_recent(self, max_age_s):
        return (self._read_at is not None
                and self._monotonic() - self._read_at < max_age_s)

    def _read(self):
        services = {item['host']: item
                    for item in self._nova.list_compute_services()}
        aggregates = collections.defaultdict(list)
        for aggregate in self._nova.list_aggregates():
            for name in aggregate['hosts']:
                aggregates[name].append(aggregate['name'])
        trees, failed = self._read_trees()
        hosts = {name: host for name, host in self._hosts.items()
                 if host.provider_uuid in failed}
        self._away = ''
        try:
            hypervisors = self._nova.list_hypervisors()
        except nova_api.NovaError as exc:
            # NOTE: Nova lists none where it cannot list those of a cell.
            self.occupancy.refresh(OCCUPANCY_MAX_AGE_S)
            if not (self.occupancy.dark and self._hosts):
                raise
            self._away = str(exc) or type(exc).__name__
            LOG.warning('The hosts cannot be updated: %s', self._away)
            return {name: host.as_reported(services.get(
                host.service_host, {})) for name, host in self._hosts.items()}
        for hypervisor in hypervisors:
            name = hypervisor['hypervisor_hostname']
            service_host = hypervisor['service']['host']
            if name not in trees:
                continue               # not in Placement, or not readable
            root, inventories, traits = trees[name]
            service = services.get(service_host, {})
            hosts[name] = observed_hosts.Host(
                name, service_host, root,
                'down' if service.get('forced_down') else
                hypervisor['state'], hypervisor['status'],
                host_properties.of_host(hypervisor, service.get('zone'),
                                        aggregates[service_host], inventories,
                                        traits),
                disabled_reason=service.get('disabled_reason') or '')
        return dict(sorted(hosts.items()))

    def _read_trees(self):
        """Read {name of the root: (uuid, {class: total}, traits)}.

        :returns: that, and uuids of roots that could not be read, whose hosts
            are kept as they were
        """
        listed = self._placement.list_all_providers([])
        failed = self._read_traits(listed)
        names = {provider.uuid: provider.name for provider in listed}
        of_root = collections.defaultdict(list)
        for provider in listed:
            of_root[provider.root_uuid].append(provider.uuid)
        self._trees = dict(of_root)
        trees = {}
        for provider in listed:
            try:
                state = self._providers.get(provider)
            except placement_api.PlacementError as exc:
                self._complain(provider, exc)
                failed.add(provider.root_uuid)
                continue
            root = names.get(provider.root_uuid)
            if state is None or root is None:
                continue
            _, inventories, traits = trees.setdefault(
                root, (provider.root_uuid, collections.Counter(), set()))
            inventories.update({
                resource_class: item.total
                for resource_class, item in state.inventories.items()})
            traits.update(self._traits.get(provider.uuid, (0, ()))[1])
        if listed and failed >= {item.root_uuid for item in listed}:
            raise placement_api.PlacementError(
                'No resource provider can be read.')
        return {name: tree for name, tree in trees.items()
                if tree[0] not in failed}, failed

    @staticmethod
    def _complain(provider, exc):
        LOG.warning('Resource provider %(name)s cannot be read; its data '
                    'is kept: %(exc)s',
                    {'name': provider.name, 'exc': exc})

    def _read_traits(self, listed):
        """Read traits that may have changed, in as few calls as possible.

        :returns: uuids of roots of providers that could not be read
        """
        failed = set()
        changed = [provider for provider in listed
                   if self._traits.get(provider.uuid, (None,))[0]
                   != provider.generation]
        names = self._placement.list_traits() if changed else []
        if len(changed) <= len(names):
            found = {}
            for provider in changed:
                try:
                    found[provider.uuid] = self._placement.get_traits(
                        provider.uuid)
                except placement_api.PlacementError as exc:
                    self._complain(provider, exc)
                    failed.add(provider.root_uuid)
        else:
            found = {provider.uuid: [] for provider in changed}
            for name in names:
                for provider in self._placement.list_all_providers(
                        [('required', name)]):
                    if provider.uuid in found:
                        found[provider.uuid].append(name)
        known = {provider.uuid for provider in listed}
        self._traits = {uuid: item for uuid, item in self._traits.items()
                        if uuid in known}
        for provider in changed:
            if provider.uuid in found:
                self._traits[provider.uuid] = (
                    provider.generation, frozenset(found[provider.uuid]))
        return failed
