# SPDX-License-Identifier: Apache-2.0
"""Reservations of a world, as its invariants see them."""

import collections

from nova_preempt.core import invariant_snapshot
from nova_preempt.core.reservation import reservation_model
from tests.exploration import machines

#: For how long after a change of a reservation schedulers may not know it: for
#: so long they use what they have read, and somewhat longer.
_KNOWN_S = 70


def _is_at(times, now):
    return times.start_at <= now < times.end_at


def _is_recent(reservation, when):
    return (when - (reservation.updated_at or reservation.created_at)
            ).total_seconds() < _KNOWN_S


class ReservedHosts:
    """Records who is placed on reserved hosts.

    :param world: a world.World
    """

    def __init__(self, world):
        self._world = world
        #: {uuid of a reservation: other servers that got a host of it}
        self._strangers = collections.defaultdict(set)

    def users(self, reservation):
        """Return the uuids of the servers that name a reservation."""
        return frozenset(
            uuid for uuid, server in self._world.nova.servers.items()
            if server.spec and reservation.uuid in (
                server.spec.scheduler_hints or {}).get('reservation', ()))

    def placed(self, reservations, servers, hosts, began_at):
        """Record the answer of a scheduler.

        :param hosts: their names
        :param began_at: when it was asked, naive and in UTC
        """
        now = self._world.loop.utcnow()
        for each in reservations:
            # It may have ended while the scheduler waited for an answer.
            if each.status not in reservation_model.OPEN or (
                    _is_recent(each, began_at)
                    or not _is_at(each, began_at) or not _is_at(each, now)):
                continue
            users = self.users(each)
            self._strangers[each.uuid].update(
                server.uuid for server, host
                in zip(servers, hosts, strict=True)
                if host in each.held and server.uuid not in users)

    def snapshot(self, reservations):
        """Return an invariant_snapshot.Reservation for each."""
        now = self._world.loop.utcnow()
        held = collections.Counter(
            name for each in reservations
            if each.status in reservation_model.OPEN for name in each.held)
        return tuple(self._one(each, held, now) for each in reservations)

    def _one(self, each, held, now):
        users = self.users(each)
        return invariant_snapshot.Reservation(
            each.uuid, each.project_id, frozenset(
                item.host for item in each.hosts
                if _is_at(item, now)
                and item.status != reservation_model.LOST),
            is_due=each.status == reservation_model.ACTIVE,
            says=bool(each.reason),
            may_use=users | self._reported(each),
            available=self._available(each, held, users)
            if each.status in reservation_model.OPEN and _is_at(each, now)
            else frozenset(), strangers=frozenset(self._strangers[each.uuid]))

    def _reported(self, each):
        """Return the uuids of servers that nobody may end for it.

        Its owner is told of them. Those that are not preemptible are migrated
        as soon as another host has room.
        """
        said = ' '.join(item.reason or '' for item in each.hosts)
        return frozenset(
            uuid for uuid, server in self._world.nova.servers.items()
            if uuid in said and (server.locked or not (
                server.is_preemptible or self._has_room_elsewhere(server))))

    def _has_room_elsewhere(self, server):
        held = {name for each in self._world.watcher.reservations()
                if each.status in reservation_model.OPEN for name in each.held}
        return any(
            self._is_open(provider.name)
            and provider.name not in {server.host, *held}
            and all(provider.free().get(name, 0) >= amount
                    for name, amount in server.amounts.items())
            for provider in self._world.placement.providers.values())

    def _available(self, each, held, users):
        """Return the hosts that a reservation could have, if it lacks some."""
        ready = {item.host for item in each.hosts
                 if item.status == reservation_model.READY}
        if len(ready) >= each.quantity:
            return frozenset()
        return frozenset(
            provider.name for provider
            in self._world.placement.providers.values()
            if provider.name not in ready
            and held[provider.name] == (provider.name in each.held)
            and self._can_be_emptied(provider, users))

    def _can_be_emptied(self, provider, users):
        servers = [self._world.nova.servers.get(uuid)
                   for uuid in provider.allocations]
        return self._is_open(provider.name) and all(
            server is not None and (server.uuid in users or (
                server.is_preemptible and not server.locked
                and server.guest == provider.name
                and (server.vm_state, server.task_state) == ('active', None)))
            for server in servers)

    def _is_open(self, name):
        host = self._world.nova.hosts[name]
        return host.is_up and not host.disabled and (
            self._world.machines.of[name].state == machines.ON)
