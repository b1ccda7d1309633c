# SPDX-License-Identifier: Apache-2.0
"""Capacity of hosts that remains during one pass."""

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
from nova_preempt.core.backlog.host_capacity import HeldHosts
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.backlog.host_capacity import capacity_key
from nova_preempt.core.backlog.host_capacity import combined
from nova_preempt.core.backlog.suitable_hosts import SuitableHosts
from nova_preempt.core.backlog.suitable_hosts import fewest_hosts
from nova_preempt.core.backlog.suitable_hosts import spread
from nova_preempt.core.model import Resources
from nova_preempt.core.reservation import leases

#: Of servers that nobody has looked for yet.
_NEVER = (0, sys.maxsize)


class CapacityTracker:
    """What is left of the rooms; each start takes its part.

    Room only shrinks while a pass lasts, so a host that has none for one kind
    of server is not looked at again for that kind.

    :param rooms: those of all hosts
    :param lead_s: see suitable_hosts.SuitableHosts
    :param departures: for how long servers keep their places
    :ivar rooms: what is left of them, by the number of the host
    :ivar group_hosts: where the servers of groups are
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
        # Held for one that is to start there once that is possible: when that
        # is, None if nobody knows, how much, and for which affinity group.
        self._held: dict[int, tuple[int | None, Resources, str]] = {}
        # Hosts in the order in which their room shrank.
        self._shrunk: list[str] = []
        # Which host is the first that may have room, and how many servers find
        # some at most.
        self._searched: dict[tuple[CapacityKey, str], tuple[int, int]] = {}
        # The hosts that had room for so many when so much had been taken.
        self._hosts: dict[
            tuple[CapacityKey, str, int], tuple[int, frozenset[str]]] = {}
        self.group_hosts = group_placement.GroupHosts([room.members
                                            for room in self.rooms])

    def copy(self) -> CapacityTracker:
        """Return another that has the same left."""
        other = copy.copy(self)
        for name in ("rooms", "_held", "_shrunk", "_searched", "_hosts"):
            setattr(other, name, getattr(self, name).copy())
        other.group_hosts = self.group_hosts.copy()
        return other

    def suitable(self,
            alternative: backlog_model.Alternative) -> SuitableHosts:
        """Return the hosts for such servers, whatever is in use of them."""
        key = capacity_key(alternative)
        if key not in self._suited:
            self._suited[key] = SuitableHosts.of(
                alternative, self.rooms, self._lead_s)
        return self._suited[key]

    def left(self, wanted: Iterable[backlog_model.Alternative]) -> list[
            HostCapacity]:
        """Return the rooms, with what is free and not held of each.

        Nothing is of those that some of these may not have, which are there
        only for the groups that have servers in them.
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
        """Return how many such servers find room, no more than ``most``.

        :param group: they are of it
        :param least: fewer are none
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
        """Return the hosts that have room for such a server.

        :param group: it is of it
        :param least: a host of an affinity group needs room for so many
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
        """Whether so many would find room if hosts were empty.

        Its own servers may leave an anti-affinity group; where those of an
        affinity group are is its host. One that is not in use may be large.

        :param group: they are of it
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
        """Give room on these hosts away: {host: for how many servers}.

        :param is_sure: otherwise Nova may choose others
        """
        numbers = {self._number[host]: n for host, n in hosts.items()}
        for number, times in numbers.items():
            self._take(number, alternative, times)
        self.group_hosts.add(group, numbers, is_sure)

    def take(
        self, alternative: backlog_model.Alternative, count: int,
        group: Group | None = None, ) -> dict[str, int]:
        """Give their room away, on the first hosts that have it.

        :returns: {host: for how many servers}; Nova may choose others
        :raises ValueError: there is none
        """
        found = self._find(alternative, count, group)
        left = count - sum(found.values())
        if left:
            msg = f"there is no room for {left} of {alternative.name}"
            raise ValueError(msg)
        taken = {self.rooms[number].host: n for number, n in found.items()}
        self.take_at(alternative, taken, group, is_sure=False)
        return taken

    def expect(
        self, alternative: backlog_model.Alternative, count: int,
        hosts: Mapping[str, int], group: Group | None = None, ) -> None:
        """Give room away to servers that Nova will find some for.

        :param hosts: where they are likely to be, {host: how many}; for the
            others there, or for all, it is the first room that is found, and
            where there is none Nova will find that out
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
            most_hosts: int = sys.maxsize) -> HeldHosts | None:
        """Keep hosts for servers that will start there; others keep off.

        Those that are nearest to having room for one; several servers are on
        a host only where there are fewer hosts. Who is known to have ended by
        then may still start there. None is kept where not all that are open
        to them, and not kept, have room for as many, whoever ends, or as many
        of their group, nor a second one for an affinity group.

        :param most_hosts: no more are kept
        """
        together = group.uuid if group_placement.is_together(group) else ""
        if together:
            if any(together == each[2] for each in self._held.values()):
                return None
            # One host for all of them.
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
        return HeldHosts(
            hosts, max(known) if len(known) == len(times) else None, distance)

    def kept_off(self, alternative: backlog_model.Alternative) -> int:
        """Return how many hosts have room that is kept from such a server."""
        suitable = self.suitable(alternative)
        return sum(not self.rooms[number].lack(alternative)
            and not self._times(number, alternative, 1, suitable)
            for number in suitable.open & self._held.keys())

    # -- hosts -------------------------------------------------------------

    def _times(self, number: int, alternative: backlog_model.Alternative,
            most: int, suitable: SuitableHosts) -> int:
        """Return how many servers find room on a host, of so many."""
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
        """Give the room of so many servers on a host away."""
        self._shrunk.append(self.rooms[number].host)
        self.rooms[number] = self.rooms[number].without(alternative, times)

    def _find(
        self, alternative: backlog_model.Alternative, most: int,
        group: Group | None, ) -> dict[int, int]:
        """Return {number: how many find room there}, on the first hosts.

        Of an affinity group on one, the first that has room for the most.
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
        """The first host that may have room for such a server."""
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
