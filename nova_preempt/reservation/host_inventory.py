# SPDX-License-Identifier: Apache-2.0
"""The hosts of the cloud: what they are, and whether something runs there.

Nova's API knows hypervisors, services and aggregates; Placement knows
inventories and traits; the cells know the servers. A reading costs a handful
of calls and one or two for each host that has changed.
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

# A question may use an answer of the cells that is as old as this, in
# seconds: many questions at once share one reading.
OCCUPANCY_MAX_AGE_S = 2
#: How often the engine reads hosts, their properties and what runs on them.
INTERVAL_S = 60


class HostInventory:
    """Answers for the hosts.

    :param options: [reservation] of the configuration
    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param settings: returns {host: (reservable or None, {name: value})}
    :param hidden: returns the names of the properties that users do not see
    :param make_occupancy: given what to call with the names of nodes that
        servers have left, returns a
        nova_preempt.reservation.host_occupancy.HostOccupancy
    :param efficiency: returns {host: flops per watt} of those known
    :param may_end: given the uuid of a preemptible server, returns whether it
        can be given notice now
    :param asleep: returns {host: core.energy.host_candidates.Off} of those
        that are off but can be woken; they count as up and enabled
    :param claimants: returns {uuid of a stand-in: uuid of the server that it
        holds space for}, see nova_preempt.handover.allocation_claim
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
        # One of its own: the other one forgets nodes without preemptible
        # servers.
        self._providers = provider_cache.ProviderCache(placement)
        self.occupancy = make_occupancy(self._providers.left)
        # One reading at a time; who comes meanwhile waits for it.
        self._reading = threading.Lock()
        self._read_at = None
        self._hosts = {}           # name: Host, without what changes at once
        self._traits = {}          # provider uuid: (generation, names)
        self._trees = {}           # uuid of a root: those of its tree
        self._away = ''            # why not all hosts are as of now

    # -- answers ---------------------------------------------------------

    def find_hosts(self, query):
        """Hosts that can be reserved and match; see rpc.EngineClient.

        :raises InvalidReservation: the query cannot be understood
        """
        try:
            matches = host_query.parse(query).matches
        except host_query.InvalidQuery as exc:
            raise exceptions.InvalidReservation(str(exc)) from None
        hosts = [host for host in self.hosts().values() if host.reservable
                 and host.is_usable and matches(host.properties)]
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
        """{name: Host}, in order of their names.

        :param max_age_s: how old what is known of hosts may be, in seconds;
            twice INTERVAL_S if None, so that nobody
            waits as long as it is read in the background
        :raises NovaError, PlacementError: nobody knows
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
        # One that an operator has disabled meanwhile is not woken.
        changed = {'state': 'up', 'status': 'enabled'} if asleep and (
            host.status == 'enabled'
            or host.disabled_reason.startswith(power_steps.REASON)) else {}
        return dataclasses.replace(
            host, properties={**found, **changed}, reservable=reservable,
            flops_per_watt=flops_per_watt, asleep=asleep if changed else None,
            dark=host.service_host in self.occupancy.dark, **changed)

    def rooms(self):
        """[(Host, core Providers of its tree)] of those in use, as of now.

        Its root comes first. Providers that have not changed are not read
        again, unless somebody who is no server has something of them:
        Placement does not count as a change that a deleted server has left.

        :raises NovaError, PlacementError: nobody knows
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
        """A core Provider, None if it is gone."""
        state = self._providers.get(provider)
        if state is not None and not all(
                map(self.occupancy.get, state.allocations)):
            state = self._providers.read(provider.uuid)
        return state

    def is_vacant(self, host, counts):
        """Whether nothing runs there but preemptible servers that can end."""
        if host.dark or (host.asleep and host.asleep.why_late):
            return False           # nobody knows, or wakes it in time
        if counts.get(host.name, (0, 0))[1]:
            return False
        residents = self.occupancy.on_node(host.name)
        preemptible = {item.uuid for item in residents
                       if self.occupancy.is_preemptible(item.uuid)}
        if not all(map(self._may_end, preemptible)):
            return False
        try:
            # What the cells say is newer: it may have become free since.
            return any(
                self._consumers(host, read).union(
                    item.uuid for item in residents) <= preemptible
                for read in (self._known, self._providers.read))
        except placement_api.PlacementError as exc:
            LOG.warning('Whether host %(host)s is free cannot be told: '
                        '%(exc)s', {'host': host.name, 'exc': exc})
            return False

    def occupants(self, host):
        """The uuids of what is on a host, or comes; Placement is asked now.

        Who moves has a consumer of its migration where it comes from, and is
        one itself where it goes; so is a server whose victims still end.

        :raises PlacementError: nobody knows
        """
        # Before Placement: afterwards a server may have its space itself.
        claimants = self._claimants()
        found = {claimants.get(uuid, uuid) for uuid
                 in self._consumers(host, self._providers.read)}
        return found.union(
            item.uuid for item in self.occupancy.on_node(host.name))

    def _known(self, provider_uuid):
        return (self._providers.known(provider_uuid)
                or self._providers.read(provider_uuid))

    def _consumers(self, host, read):
        """The uuids of what has allocations of a host or of parts of it."""
        found = set()
        for uuid in self._trees.get(host.provider_uuid, (host.provider_uuid,)):
            state = read(uuid)
            found |= set() if state is None else state.allocations.keys()
        return found

    # -- reading ---------------------------------------------------------

    def keep(self):
        """Read everything; returns how many seconds later to come again."""
        self.refresh()
        return INTERVAL_S

    def refresh(self, max_age_s=0):
        """Read what is older.

        :param max_age_s: how old what is known may be, in seconds
        :raises NovaError, PlacementError: nobody knows
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
            # It lists none where it cannot list those of one cell.
            self.occupancy.refresh(OCCUPANCY_MAX_AGE_S)
            if not (self.occupancy.dark and self._hosts):
                raise
            self._away = str(exc) or type(exc).__name__
            LOG.warning('Hosts stay as they were known: %s', self._away)
            return {name: host.as_reported(services.get(
                host.service_host, {})) for name, host in self._hosts.items()}
        for hypervisor in hypervisors:
            name = hypervisor['hypervisor_hostname']
            service_host = hypervisor['service']['host']
            if name not in trees:
                continue               # never reported, or could not be read
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
        """{name of the root: (its uuid, {class: total}, traits)}.

        And the uuids of those of which something could not be read: what is
        known of them stays.
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
        LOG.warning('Resource provider %(name)s cannot be read; what was '
                    'known of it stays: %(exc)s',
                    {'name': provider.name, 'exc': exc})

    def _read_traits(self, listed):
        """Read those that may have changed, in as few calls as possible.

        :returns: the uuids of the roots of those that could not be read
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
