# SPDX-License-Identifier: Apache-2.0
"""Tracks the remaining capacity of hosts during a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import copy
import dataclasses
import sys

from nova_preempt.core import capacity
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog.expected_departures import DEFAULT_DEPARTURES
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.backlog.group_placement import Group
from nova_preempt.core.backlog.host_capacity import CapacityKey
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.backlog.host_capacity import KeptHosts
from nova_preempt.core.backlog.host_capacity import capacity_key
from nova_preempt.core.backlog.host_capacity import combined
from nova_preempt.core.backlog.suitable_hosts import SuitableHosts
from nova_preempt.core.backlog.suitable_hosts import fewest_hosts
from nova_preempt.core.backlog.suitable_hosts import spread
from nova_preempt.core.model import Resources
from nova_preempt.core.reservation import leases

#: Initial search state: first host, most servers.
_NEVER = (0, sys.maxsize)


class CapacityTracker:
    """The remaining capacity of all hosts; each start claims a part.

    Capacity only shrinks during a pass, so a host that has none for one kind
    of server is not evaluated again for that kind.

    :param rooms: the capacity of all hosts
    :param lead_s: see suitable_hosts.SuitableHosts
    :param departures: estimates how long servers keep their space
    :ivar rooms: the remaining capacity, by the number of the host
    :ivar group_hosts: the hosts of the servers of groups
    """

    def __init__(self, rooms: Iterable[HostCapacity], lead_s: Callable[[
            backlog_model.Alternative], float] = lambda _: 0,
            departures: ExpectedDepartures = DEFAULT_DEPARTURES) -> None:
        self.rooms = sorted(rooms, key=lambda room: room.host)
        self._lead_s = lead_s
        self._stays = departures
        self._number = {
            room.host: number for number, room in enumerate(self.rooms)}
        self._suited: dict[CapacityKey, SuitableHosts] = {}
        # {host: (start in so many seconds, None if unknown; held amounts;
        # affinity group)}.
        self._held: dict[int, tuple[int | None, Resources, str]] = {}
        # Hosts in the order in which their capacity shrank.
        self._shrunk: list[str] = []
        # The first host that may fit a kind of server, and the most servers
        # that fit in all.
        self._searched: dict[tuple[CapacityKey, str], tuple[int, int]] = {}
        # The hosts that fitted so many at a position in _shrunk.
        self._hosts: dict[
            tuple[CapacityKey, str, int], tuple[int, frozenset[str]]] = {}
        self.group_hosts = group_placement.GroupHosts([room.members
                                            for room in self.rooms])

    def copy(self) -> CapacityTracker:
        """Return an independent copy."""
        other = copy.copy(self)
        for name in ("rooms", "_held", "_shrunk", "_searched", "_hosts"):
            setattr(other, name, getattr(self, name).copy())
        other.group_hosts = self.group_hosts.copy()
        return other

    def suitable(self,
            alternative: backlog_model.Alternative) -> SuitableHosts:
        """Return the hosts for such servers, whatever runs on them now."""
        key = capacity_key(alternative)
        if key not in self._suited:
            self._suited[key] = SuitableHosts.of(
                alternative, self.rooms, self._lead_s)
        return self._suited[key]

    def left(self, wanted: Iterable[backlog_model.Alternative]) -> list[
            HostCapacity]:
        """Return all hosts with the capacity that is free and not held.

        A host that is closed to some of the wanted servers has none; it is
        listed only if it has members of server groups.
        """
        wanted = list(wanted)
        lead_s = max(map(self._lead_s, wanted), default=0)
        wakes = not any(item.preemptible for item in wanted)
        members = self.group_hosts.by_host()
        found = []
        for number, room in enumerate(self.rooms):
            free: Resources = {}
            if leases.is_long_enough(room.free_s, lead_s) and (
                wakes or not room.off):
                _in_s, kept, _group = self._held.get(number, (None, {}, ""))
                free = capacity.subtract(room.free, kept)
            elif number not in members:
                continue
            found.append(dataclasses.replace(
                room, free=free, members=members.get(number, {})))
        return found

    def count(
        self, alternative: backlog_model.Alternative, most: int,
        group: Group | None = None, least: int = 1, ) -> int:
        """Return how many such servers fit, up to ``most``.

        :param group: the server group of these servers
        :param least: the minimum; 0 is returned if fewer fit
        """
        key = _key(alternative, group)
        if self._searched.get(key, _NEVER)[1] < least:
            return 0
        found = sum(self._find(alternative, most, group).values())
        if found < most:
            self._searched[key] = self._searched.get(key, _NEVER)[0], found
        return found if found >= least else 0

    def hosts(
        self, alternative: backlog_model.Alternative,
        group: Group | None = None, least: int = 1, ) -> frozenset[str]:
        """Return the hosts that have capacity for such a server.

        :param group: the server group of the server
        :param least: a host of an affinity group needs capacity for so many
        """
        at_once = least if group_placement.is_together(group) else 1
        key = *_key(alternative, group), at_once
        suitable = self.suitable(alternative)
        looked: Iterable[str] = self._number
        found = frozenset(looked)
        if key in self._hosts:
            known, found = self._hosts[key]
            looked = self._shrunk[known:]
        gone = {host for host in looked if not self.group_hosts.most(group,
            self._number[host], 1) or at_once > self._times(self._number[host],
            alternative, at_once, suitable)}
        found -= gone
        self._hosts[key] = len(self._shrunk), found
        return found

    def fits_if_empty(self, alternative: backlog_model.Alternative, least: int,
            group: Group | None = None) -> bool:
        """Tell whether so many servers would fit if hosts were empty.

        An anti-affinity group may be left by its own servers; an affinity
        group stays on the host of its members. The size of a host that is not
        in use is unknown, so it is taken to be large enough.

        :param group: the server group of these servers
        """
        suitable, hosts = self.suitable(alternative), self.group_hosts.only(
            group)
        if group is not None and group.elsewhere:
            return True
        if hosts is not None:
            return any(suitable.ever[number] >= least for number in hosts)
        return fewest_hosts(suitable.largest, least, group) > 0

    def take_at(
        self, alternative: backlog_model.Alternative, hosts: Mapping[str, int],
        group: Group | None = None, is_sure: bool = True, ) -> None:
        """Claim capacity on these hosts: {host: for how many servers}.

        :param is_sure: whether Nova is told the hosts; else it may choose
            others
        """
        numbers = {self._number[host]: n for host, n in hosts.items()}
        for number, times in numbers.items():
            self._take(number, alternative, times)
        self.group_hosts.add(group, numbers, is_sure)

    def take(
        self, alternative: backlog_model.Alternative, count: int,
        group: Group | None = None, ) -> dict[str, int]:
        """Claim capacity on the first hosts that have it.

        :returns: {host: for how many servers}; Nova may choose others
        :raises ValueError: the capacity is too small
        """
        found = self._find(alternative, count, group)
        left = count - sum(found.values())
        if left:
            raise ValueError(
                f"there is no room for {left} of {alternative.name}")
        taken = {self.rooms[number].host: n for number, n in found.items()}
        self.take_at(alternative, taken, group, is_sure=False)
        return taken

    def expect(
        self, alternative: backlog_model.Alternative, count: int,
        hosts: Mapping[str, int], group: Group | None = None, ) -> None:
        """Claim capacity for servers that Nova is about to place.

        :param hosts: their likely hosts, {host: how many}; servers beyond
            these take the first capacity that is found, or none
        """
        for host, times in sorted(hosts.items()):
            number = self._number.get(host)
            if number is not None:
                some = self._times(number, alternative, min(count, times),
                                   self.suitable(alternative))
                self._take(number, alternative, some)
                count -= some
                self.group_hosts.add(group, {number: times}, is_sure=True)
        self.take(alternative, self.count(alternative, count))
        if count:
            self.group_hosts.add(group, {}, is_sure=False)

    def hold(self, alternative: backlog_model.Alternative, count: int,
            group: Group | None = None,
            most_hosts: int = sys.maxsize) -> KeptHosts | None:
        """Hold hosts for servers that will start there.

        Hosts with the smallest shortfall for one server are held; several
        servers share a host only if there are too few hosts. Servers that are
        known to have ended by then may still start on a held host. Returns
        None if the open hosts that are not held could not take all servers
        even when empty, or all that their group allows, and for a second
        request of an affinity group.

        :param most_hosts: the most hosts to hold
        """
        together = group.uuid if group_placement.is_together(group) else ""
        if together:
            if any(together == each[2] for each in self._held.values()):
                return None
            # All of them need one host.
            alternative, count = combined(alternative, count), 1
        suitable = self.suitable(alternative)
        most = {number: min(self.group_hosts.most(group, number, count),
            suitable.ever[number]) for number in sorted(
            suitable.open) if number not in self._held}
        nearest = sorted((number for number, n in most.items() if n),
            key=lambda number: self.rooms[number].distance(alternative))
        found = spread(count, most, nearest[:most_hosts]) or spread(
            count, most, sorted(
                nearest, key=lambda number: -most[number])[:most_hosts])
        if not found:
            return None
        times, distance = [], 0
        for number, some in found.items():
            wanted, room = combined(alternative, some), self.rooms[number]
            in_s = room.ready_in_s(wanted)
            self._held[number] = in_s, wanted.resources, together
            times.append(in_s)
            distance += room.distance(wanted)[0]
        hosts = tuple(self.rooms[number].host for number in found)
        self._shrunk += hosts
        known = [in_s for in_s in times if in_s is not None]
        return KeptHosts(
            hosts, max(known) if len(known) == len(times) else None, distance)

    def kept_off(self, alternative: backlog_model.Alternative) -> int:
        """Return how many hosts are held, and would fit such a server."""
        suitable = self.suitable(alternative)
        return sum(not self.rooms[number].lack(alternative)
            and not self._times(number, alternative, 1, suitable)
            for number in suitable.open & self._held.keys())

    # -- hosts -------------------------------------------------------------

    def _times(self, number: int, alternative: backlog_model.Alternative,
            most: int, suitable: SuitableHosts) -> int:
        """Return how many servers fit on a host, up to ``most``."""
        if number not in suitable.open:
            return 0
        left = self.rooms[number].view(alternative)
        if number in self._held:
            in_s, kept, _group = self._held[number]
            if in_s is None or self._stays.of(alternative) > in_s:
                left = capacity.subtract(left, kept)
        return capacity.copies(alternative.resources, left, most)

    def _take(
        self, number: int, alternative: backlog_model.Alternative, times: int
    ) -> None:
        """Claim the capacity of so many servers on a host."""
        self._shrunk.append(self.rooms[number].host)
        self.rooms[number] = self.rooms[number].without(alternative, times)

    def _find(
        self, alternative: backlog_model.Alternative, most: int,
        group: Group | None, ) -> dict[int, int]:
        """Return {number: how many fit there}, on the first hosts.

        For an affinity group: the first host that has capacity for the most.
        """
        if group_placement.is_together(group):
            return self._find_one(alternative, most, group)
        found: dict[int, int] = {}
        suitable = self.suitable(alternative)
        for number in range(self._first(alternative, group), len(self.rooms)):
            if not most:
                break
            times = self._times(number, alternative, self.group_hosts.most(
                group, number, most), suitable)
            if times:
                found[number] = times
            most -= times
        return found

    def _find_one(
        self, alternative: backlog_model.Alternative, most: int, group: Group
    ) -> dict[int, int]:
        found: dict[int, int] = {}
        hosts, suitable = self.group_hosts.only(group), self.suitable(
            alternative)
        for number in range(
            self._first(alternative), len(self.rooms)
        ) if hosts is None else sorted(hosts):
            times = self._times(number, alternative, most, suitable)
            if times > sum(found.values()):
                found = {number: times}
            if times == most:
                break
        return found

    def _first(
        self, alternative: backlog_model.Alternative,
        group: Group | None = None) -> int:
        """Return the number of the first host that may fit such a server."""
        key = _key(alternative, group)
        number, most = self._searched.get(key, _NEVER)
        suitable = self.suitable(alternative)
        while number < len(self.rooms) and not (self.group_hosts.most(group,
                number, 1) and self._times(number, alternative, 1, suitable)):
            number += 1
        self._searched[key] = number, most
        return number


def _key(alternative: backlog_model.Alternative, group: Group | None) -> tuple[
        CapacityKey, str]:
    """Return a key, equal for servers that fit on the same hosts."""
    return capacity_key(alternative), "" if group is None else group.uuid
