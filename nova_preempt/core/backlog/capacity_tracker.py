# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What is left of the rooms of hosts while a pass gives them away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import sys

from nova_preempt.core import capacity
from nova_preempt.core.backlog import groups
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.emptied import Emptied
from nova_preempt.core.backlog.expected_departures import AS_FLAVORS_SAY
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.backlog.groups import Group
from nova_preempt.core.backlog.remaining import Remaining
from nova_preempt.core.backlog.remaining import spread
from nova_preempt.core.backlog.room import Held
from nova_preempt.core.backlog.room import Kind
from nova_preempt.core.backlog.room import Lack
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.backlog.room import kind
from nova_preempt.core.backlog.room import several
from nova_preempt.core.model import Resources
from nova_preempt.core.reservation import leases


class CapacityTracker:
    """What is left of the rooms; each start takes its part.

    Room only shrinks while a pass lasts, so a host that has none for one kind
    of server is not looked at again for that kind.

    :param rooms: those of all hosts
    :param lead_s: for how long a server of a flavor has to have its host
        before that is reserved for others
    :param stays: for how long servers keep their places
    :ivar emptied: an Emptied of the same hosts
    """

    def __init__(
        self,
        rooms: Iterable[Room],
        lead_s: Callable[[model.Alternative], float] = lambda _: 0,
        stays: ExpectedDepartures = AS_FLAVORS_SAY,
    ) -> None:
        rooms = sorted(rooms, key=lambda room: room.host)
        self._number = {room.host: number for number, room in enumerate(rooms)}
        self._left = Remaining(rooms, lead_s, stays)
        # The affinity groups that a host is held for.
        self._kept: set[str] = set()
        self._next: dict[tuple[Kind, str], int] = {}
        # How many find room at most, where fewer than were asked for did.
        self._bounds: dict[tuple[Kind, str], int] = {}
        # The hosts that had room for so many when so much had been taken.
        self._hosts: dict[
            tuple[Kind, str, int], tuple[int, frozenset[str]]] = {}
        self._seats = groups.Seats([room.members for room in rooms])
        self.emptied = Emptied(rooms, self._left.is_open)

    def copy(self) -> CapacityTracker:
        """Return another that has the same left."""
        other = CapacityTracker(self._left.rooms)
        other._left = self._left.copy()
        other._kept = set(self._kept)
        other._bounds = dict(self._bounds)
        other._seats = self._seats.copy()
        other.emptied = self.emptied
        return other

    def left(self, wanted: Iterable[model.Alternative]) -> list[Room]:
        """Return the rooms, with what is free and not held of each.

        Nothing is of those that some of these may not have, which are there
        only for the groups that have servers in them.
        """
        wanted = list(wanted)
        lead_s = max(map(self._left.lead_s, wanted), default=0)
        wakes = not any(item.preemptible for item in wanted)
        members = self._seats.by_host()
        found = []
        for number, room in enumerate(self._left.rooms):
            free: Resources = {}
            if leases.is_long_enough(room.free_s, lead_s) and (
                wakes or not room.off):
                free = capacity.less(
                    room.free, self._left.held.get(number, (None, {}))[1])
            elif number not in members:
                continue
            found.append(dataclasses.replace(
                room, free=free, members=members.get(number, {})))
        return found

    def count(
        self,
        alternative: model.Alternative,
        most: int,
        group: Group | None = None,
        least: int = 1,
    ) -> int:
        """Return how many such servers find room, no more than ``most``.

        :param group: they are of it
        :param least: fewer are none
        """
        key = _key(alternative, group)
        if self._bounds.get(key, least) < least:
            return 0
        found = sum(self._find(alternative, most, group).values())
        if found < most:
            self._bounds[key] = found
        return found if found >= least else 0

    def hosts(
        self,
        alternative: model.Alternative,
        group: Group | None = None,
        least: int = 1,
    ) -> frozenset[str]:
        """Return the hosts that have room for such a server.

        :param group: it is of it
        :param least: a host of an affinity group needs room for so many
        """
        at_once = least if groups.is_together(group) else 1
        key = *_key(alternative, group), at_once
        looked: Iterable[str] = self._number
        found = frozenset(looked)
        if key in self._hosts:
            known, found = self._hosts[key]
            looked = self._left.shrunk[known:]
        gone = {
            host for host in looked
            if not self._seats.most(group, self._number[host], 1)
            or at_once > self._left.times(
                self._number[host], alternative, at_once)}
        if gone:
            found -= gone
        self._hosts[key] = len(self._left.shrunk), found
        return found

    def is_ever(
        self,
        alternative: model.Alternative,
        least: int,
        group: Group | None = None,
    ) -> bool:
        """Whether so many would find room if hosts were empty.

        Its own servers may leave an anti-affinity group; where those of an
        affinity group are is its host. One that is not in use may be large.

        :param group: they are of it
        """
        if group is None or group.policy == groups.ANTI_AFFINITY:
            most = sys.maxsize if group is None else group.most
            return self.emptied.most(alternative, most) >= least
        hosts = self._seats.only(group)
        if group.elsewhere or hosts is None:
            return group.elsewhere or (self.emptied.most(alternative) >= least)
        return any(
            self._left.rooms[number].times_ever(alternative) >= least
            for number in hosts
        )

    def is_settled(self, group: Group | None) -> bool:
        """Whether the group has servers on a host that is in use."""
        return self._seats.is_settled(group)

    def is_astray(self, group: Group | None) -> bool:
        """Whether its host is being chosen, and nobody knows it yet."""
        return self._seats.is_astray(group)

    def take_at(
        self,
        alternative: model.Alternative,
        hosts: Mapping[str, int],
        group: Group | None = None,
        is_sure: bool = True,
    ) -> None:
        """Give room on these hosts away: {host: for how many servers}.

        :param is_sure: otherwise Nova may choose others
        """
        numbers = {self._number[host]: n for host, n in hosts.items()}
        for number, times in numbers.items():
            self._left.take(number, alternative, times)
        self._seats.add(group, numbers, is_sure)

    def take(
        self,
        alternative: model.Alternative,
        count: int,
        group: Group | None = None,
    ) -> dict[str, int]:
        """Give their room away, on the first hosts that have it.

        :returns: {host: for how many servers}; Nova may choose others
        :raises ValueError: there is none
        """
        found = self._find(alternative, count, group)
        left = count - sum(found.values())
        if left:
            msg = f"there is no room for {left} of {alternative.name}"
            raise ValueError(msg)
        taken = {
            self._left.rooms[number].host: n for number, n in found.items()
        }
        self.take_at(alternative, taken, group, is_sure=False)
        return taken

    def expect(
        self,
        alternative: model.Alternative,
        count: int,
        hosts: Mapping[str, int],
        group: Group | None = None,
    ) -> None:
        """Give room away to servers that Nova will find some for.

        :param hosts: where they are likely to be, {host: how many}; for the
            others there, or for all, it is the first room that is found, and
            where there is none Nova will find that out
        """
        for host, times in sorted(hosts.items()):
            number = self._number.get(host)
            if number is not None:
                some = self._left.times(number, alternative, min(count, times))
                self._left.take(number, alternative, some)
                count -= some
                self._seats.add(group, {number: times}, is_sure=True)
        self.take(alternative, self.count(alternative, count))
        if count:
            self._seats.add(group, {}, is_sure=False)

    def hold(
        self,
        alternative: model.Alternative,
        count: int,
        group: Group | None = None,
        most_hosts: int = sys.maxsize,
    ) -> Held | None:
        """Keep hosts for servers that will start there; others keep off.

        Those that are nearest to having room for one; several servers are on
        a host only where there are fewer hosts. Who is known to have ended by
        then may still start there. None is kept where not all that are open
        to them, and not kept, have room for as many, whoever ends, or as many
        of their group, nor a second one for an affinity group.

        :param most_hosts: no more are kept
        """
        if groups.is_together(group):
            if group.uuid in self._kept:
                return None
            # One host for all of them.
            alternative, count = several(alternative, count), 1
        most = {
            number: min(self._seats.most(group, number, count),
                        room.times_ever(alternative))
            for number, room in enumerate(self._left.rooms)
            if number not in self._left.held
            and self._left.is_open(number, alternative)
        }
        nearest = sorted(
            (number for number, n in most.items() if n),
            key=lambda number: self._left.rooms[number].far(alternative))
        found = spread(count, most, nearest[:most_hosts]) or spread(
            count, most, sorted(
                nearest, key=lambda number: -most[number])[:most_hosts])
        if not found:
            return None
        times, far = [], 0
        for number, some in found.items():
            wanted, room = several(alternative, some), self._left.rooms[number]
            in_s = room.settled_s(wanted)
            self._left.held[number] = in_s, wanted.resources
            times.append(in_s)
            far += room.far(wanted)[0]
        if groups.is_together(group):
            self._kept.add(group.uuid)
        # What was found to have room may be what is held now.
        self._next.clear()
        hosts = tuple(self._left.rooms[number].host for number in found)
        self._left.shrunk += hosts
        known = [in_s for in_s in times if in_s is not None]
        is_known = len(known) == len(times)
        return Held(hosts, max(known) if is_known else None, far)

    def kept_off(self, alternative: model.Alternative) -> int:
        """Return how many hosts have room that is kept from such a server."""
        return sum(
            self._left.rooms[number].is_for(alternative)
            and self._left.is_open(number, alternative)
            and not self._left.rooms[number].lack(alternative)
            and not self._left.times(number, alternative, 1)
            for number in self._left.held
        )

    def lack(self, alternative: model.Alternative) -> Lack:
        """Say why no host has room for a server."""
        hosts = dict.fromkeys(sorted(alternative.resources), 0)
        nearest: tuple[tuple[int, str], Resources] | None = None
        ever, suited, reserved = False, 0, 0
        for number, room in enumerate(self._left.rooms):
            if not room.is_for(alternative):
                continue
            suited += 1
            is_large_enough = room.times_ever(alternative) > 0
            ever = ever or is_large_enough
            if not self._left.is_open(number, alternative):
                # Of its own reservation those are none that others leave.
                reserved += alternative.hosts is None and not (
                    room.off and alternative.preemptible)
                continue
            lack = room.lack(alternative)
            for name in lack:
                hosts[name] += 1
            if lack and is_large_enough:
                here = room.far(alternative), lack
                nearest = min(nearest or here, here, key=lambda item: item[0])
        return Lack(
            nearest[1] if nearest else {}, hosts, ever, suited, reserved
        )

    # -- one host ----------------------------------------------------------

    def _find(
        self,
        alternative: model.Alternative,
        most: int,
        group: Group | None,
    ) -> dict[int, int]:
        """Return {number: how many find room there}, on the first hosts.

        Of an affinity group on one, the first that has room for the most.
        """
        if groups.is_together(group):
            return self._find_one(alternative, most, group)
        found: dict[int, int] = {}
        for number in range(
            self._first(alternative, group), len(self._left.rooms)
        ):
            if not most:
                break
            times = self._left.times(
                number, alternative, self._seats.most(group, number, most))
            if times:
                found[number] = times
            most -= times
        return found

    def _find_one(
        self, alternative: model.Alternative, most: int, group: Group
    ) -> dict[int, int]:
        found: dict[int, int] = {}
        hosts = self._seats.only(group)
        for number in range(
            self._first(alternative), len(self._left.rooms)
        ) if hosts is None else sorted(hosts):
            times = self._left.times(number, alternative, most)
            if times > sum(found.values()):
                found = {number: times}
            if times == most:
                break
        return found

    def _first(
        self, alternative: model.Alternative, group: Group | None = None
    ) -> int:
        """The first host that may have room for such a server."""
        key = _key(alternative, group)
        number = self._next.get(key, 0)
        while number < len(self._left.rooms) and not (
            self._seats.most(group, number, 1)
            and self._left.times(number, alternative, 1)
        ):
            number += 1
        self._next[key] = number
        return number


def _key(
    alternative: model.Alternative, group: Group | None
) -> tuple[Kind, str]:
    """Return a key, equal for servers that fit on the same hosts."""
    return kind(alternative), "" if group is None else group.uuid
