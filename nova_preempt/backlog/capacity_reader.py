# SPDX-License-Identifier: Apache-2.0
"""Reads the capacity of hosts for waiting requests."""

import math

from nova_preempt.cloud import server_groups
from nova_preempt.core import capacity
from nova_preempt.core import eviction_actions
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.db import pauses
from nova_preempt.handover import eviction_policy
from nova_preempt.reservation import lease_cache

# A higher limit is no limit; and solvers count in 64 bits.
_MOST = 2**31 - 1


class CapacityReader:
    """Reads capacity, and the ends of preemptible servers that free more.

    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param options: [preemption] of the configuration
    :param known: a nova_preempt.handover.service_context.CloudCaches
    :param clock: returns now, timezone-aware
    :param pauses: a nova_preempt.pause_reader.PauseReader
    :param wakes: returns whether servers that fit nowhere wake hosts
    """

    def __init__(self, options, inventory, known, clock, pauses,
                 wakes=lambda: False):
        self._options = options
        self._wakes = wakes
        self._pauses = pauses
        self._inventory = inventory
        self._known = known
        self._clock = clock

    def all(self, places=None):
        """Return [core Room] of hosts where Nova may place servers.

        :param places: a core Places, None where no hosts are reserved
        :raises NovaError, PlacementError: capacity cannot be read
        """
        rooms = self._inventory.rooms()
        policy, now = self._known.policy(), self._clock()
        may_preempt = self._may_preempt()
        departures = self.departures()
        wakes = self._wakes()
        by_node = self._known.servers.by_node()
        found = []
        for host, providers in rooms:
            found.append(host_capacity.with_departures(_room(host, providers,
                places.free_s(host.name) if places else math.inf), host.asleep,
                wakes, (host_capacity.Departure(departures.left_s(server,
                policy.action, lambda it: it.uptime_us(now)), _freed(providers,
                uuid, policy.action(server)),
                may_preempt and policy.may_be_victim(server, now)) for uuid,
                server in sorted(by_node.get(host.name, {}).items()))))
        return [room for room in found if room is not None]

    def departures(self):
        """Return the core's ExpectedDepartures of now."""
        return ExpectedDepartures(
            self._options.maximum_runtime_s,
            eviction_policy.notice_rule(self._options),
            not self._pauses.why(pauses.PREEMPTION))

    def _may_preempt(self):
        """Return whether servers that start now may preempt."""
        return not (
            self._pauses.why(pauses.PREEMPTION)
            or eviction_policy.why_not_allowed(
                self._options, lambda: 'create'))


def load_places(conf):
    """Return a function for the core Places of now, None if none is reserved.

    It takes the leases that nova-scheduler uses, by the same options.

    :param conf: nova.conf.CONF
    """
    if not lease_cache.is_used(conf):
        return lambda: None
    known = lease_cache.current(conf)
    return lambda: reservation_rules.ReservationRules(known.view(),
        eviction_policy.get_guard(conf.preemption, conf.reservation.guard_s))


def known_groups(requests, rooms, resident, find=server_groups.find):
    """Return {core group_placement.key(): core Group} of strict groups.

    They are read at once, and only if a request has one. Deleted groups,
    groups of other projects and soft policies are omitted.


    :param requests: core Requests that wait
    :param rooms: core Rooms of usable hosts
    :param resident: given the uuid of a server, returns the
        core.observed_server.ObservedServer, None if it is on no node
    """
    found = {item.uuid: group_placement.own_group(item) for item in requests
             if item.apart and item.servers}
    names = {group_placement.group_hint(item) for item in requests
             if not item.apart} - {''}
    if not names:
        return found
    hosts = {room.host for room in rooms}
    for uuid, group in find(names, group_placement.STRICT).items():
        found[uuid] = group_placement.Group(
            uuid, group.policy, min(group.max_server_per_host, _MOST),
            group.members,
            group.policy == group_placement.AFFINITY and any(
                there.node not in hosts
                for there in map(resident, group.members) if there),
            group.project_id)
    return found


def _freed(providers, uuid, action):
    """Return what evicting a server by an action frees in a tree."""
    return eviction_actions.freed(capacity.total(
        provider.allocations[uuid] for provider in providers
        if uuid in provider.allocations), action)


def _room(host, providers, free_s):
    """Return a core Room with the sums of a tree, without departures.

    :param host: a nova_preempt.core.reservation.observed_hosts.Host
    :param providers: core Providers, the root first
    :param free_s: seconds until it is reserved
    """
    free = capacity.total(
        {name: provider.free(name) for name in provider.inventories}
        for provider in providers)
    return host_capacity.HostCapacity(host.name, free, free, capacity.total({
        name: inventory.capacity for name,
        inventory in provider.inventories.items()} for provider in providers),
        traits=frozenset(host.properties['traits']),
        consumers=frozenset().union(*(
        provider.allocations for provider in providers)), free_s=free_s,
        parts=frozenset().union(*(
        provider.inventories for provider in providers[1:])))
