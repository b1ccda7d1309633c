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
"""The room of a cloud while a pass gives it away.

Amounts are by resource class, of a host as a whole: what fits here may still
be refused by Nova's filters, or by a host that is made of parts. Nova has the
last word, and what it refuses is tried again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import math

from nova_preempt.core import capacity
from nova_preempt.core.backlog import model
from nova_preempt.core.model import Resources
from nova_preempt.core.reservation import leases


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """A server that is known to end."""

    in_s: int
    resources: Resources


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """What a host has.

    :param free: what nobody uses
    :param reclaimable: what would be free if each preemptible server there
        that may end had ended; never less
    :param capacity: what an empty one has
    :param ends: of its servers, as far as they are known
    :param traits: of the host
    :param consumers: the uuids of who uses something of it
    :param free_s: for how long it is nobody's: until it is reserved
    :param parts: the resource classes of its parts, where it is a tree:
        whether an amount fits depends on which of them has how much
    """

    host: str
    free: Resources
    reclaimable: Resources
    capacity: Resources
    ends: tuple[End, ...] = ()
    traits: frozenset[str] = frozenset()
    consumers: frozenset[str] = frozenset()
    free_s: float = math.inf
    parts: frozenset[str] = frozenset()

    def is_for(self, alternative: model.Alternative) -> bool:
        """Whether it has, and lacks, the traits that are asked for."""
        return self.traits.issuperset(
            alternative.required
        ) and self.traits.isdisjoint(alternative.forbidden)

    def is_open(self, alternative: model.Alternative, lead_s: float) -> bool:
        """Whether reservations let it in.

        :param lead_s: see core.reservation.leases.Guard
        """
        if alternative.hosts is not None:
            return self.host in alternative.hosts
        return leases.is_long_enough(self.free_s, lead_s)

    def is_large_enough(self, alternative: model.Alternative) -> bool:
        """Whether an empty host would do."""
        return self.is_for(alternative) and capacity.fits(
            alternative.resources, self.capacity
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Lack:
    """What keeps a request waiting.

    :param amounts: what the host lacks that is nearest to having room
    :param hosts: how many hosts lack each of the classes
    :param ever: whether an empty host would have room
    :param suited: how many hosts have the traits that are asked for
    :param reserved: how many of them are for others
    """

    amounts: Resources
    hosts: Mapping[str, int]
    ever: bool
    suited: int
    reserved: int = 0


class Ledger:
    """What is left of the rooms; each start takes its part.

    Room only shrinks while a pass lasts, so a host that has none for one kind
    of server is not looked at again for that kind.

    :param rooms: those of all hosts
    :param lead_s: for how long a server of a flavor has to have its host
        before that is reserved for others
    """

    def __init__(
        self,
        rooms: Iterable[Room],
        lead_s: Callable[[model.Alternative], float] = lambda _: 0,
    ) -> None:
        self._lead_s = lead_s
        self._rooms = sorted(rooms, key=lambda room: room.host)
        self._number = {
            room.host: number for number, room in enumerate(self._rooms)
        }
        self._free = [dict(room.free) for room in self._rooms]
        self._reclaimable = [dict(room.reclaimable) for room in self._rooms]
        # Held for one that is to start there once that is possible: when that
        # is, None if nobody knows, and how much.
        self._held: dict[int, tuple[int | None, Resources]] = {}
        self._next: dict[Kind, int] = {}

    def copy(self) -> Ledger:
        """Return another that has the same left."""
        other = Ledger(self._rooms, self._lead_s)
        # Amounts of a host are replaced, and never changed.
        other._free = list(self._free)
        other._reclaimable = list(self._reclaimable)
        other._held = dict(self._held)
        return other

    def left(self, wanted: Iterable[model.Alternative]) -> list[Room]:
        """Return the rooms, with what is free and not held of each.

        Without those that some of these may not have.
        """
        lead_s = max(map(self._lead_s, wanted), default=0)
        return [
            dataclasses.replace(
                room,
                free=capacity.less(
                    self._free[number], self._held.get(number, (None, {}))[1]
                ),
            )
            for number, room in enumerate(self._rooms)
            if leases.is_long_enough(room.free_s, lead_s)
        ]

    def count(
        self, alternative: model.Alternative, most: int, apart: bool = False
    ) -> int:
        """Return how many such servers find room, no more than ``most``.

        :param apart: no two on the same host
        """
        found, number = 0, self._first(alternative)
        while found < most and number < len(self._rooms):
            left = 1 if apart else most - found
            found += self._times(number, alternative, left)
            number += 1
        return found

    def take_at(
        self, alternative: model.Alternative, hosts: Mapping[str, int]
    ) -> None:
        """Give room on these hosts away: {host: for how many servers}."""
        for host, times in hosts.items():
            self._take(self._number[host], alternative, times)

    def take(
        self, alternative: model.Alternative, count: int, apart: bool = False
    ) -> dict[str, int]:
        """Give their room away, on the first hosts that have it.

        :returns: {host: for how many servers}
        :raises ValueError: there is none
        """
        taken: dict[str, int] = {}
        number = self._first(alternative)
        while count and number < len(self._rooms):
            left = 1 if apart else count
            times = self._times(number, alternative, left)
            if times:
                self._take(number, alternative, times)
                taken[self._rooms[number].host] = times
            count -= times
            number += 1
        if count:
            msg = f"there is no room for {count} of {alternative.name}"
            raise ValueError(msg)
        return taken

    def expect(
        self,
        alternative: model.Alternative,
        count: int,
        hosts: Mapping[str, int],
    ) -> None:
        """Give room away to servers that Nova will find some for.

        :param hosts: where they are likely to be, {host: how many}; for the
            others there, or for all, it is the first room that is found, and
            where there is none Nova will find that out
        """
        for host, times in sorted(hosts.items()):
            number = self._number.get(host)
            if number is not None:
                some = self._times(number, alternative, min(count, times))
                self._take(number, alternative, some)
                count -= some
        self.take(alternative, self.count(alternative, count))

    def hold(self, alternative: model.Alternative, count: int) -> int | None:
        """Keep hosts for servers that will start there; others keep off.

        Those that are nearest to having room for one. Who is known to have
        ended by then may still start there.

        :returns: in how many seconds all can start, None if nobody knows
        """
        wanted = alternative.resources
        large = [
            number
            for number, room in enumerate(self._rooms)
            if room.is_large_enough(alternative)
            and number not in self._held
            and self._is_open(number, alternative)
        ]
        large.sort(key=lambda number: self._far(number, alternative))
        times = []
        for number in large[:count]:
            in_s = self._settled_s(number, alternative)
            self._held[number] = in_s, wanted
            times.append(in_s)
        # What was found to have room may be what is held now.
        self._next.clear()
        known = [in_s for in_s in times if in_s is not None]
        return max(known, default=0) if len(known) == count else None

    def lack(self, alternative: model.Alternative) -> Lack:
        """Say why no host has room for a server."""
        hosts = dict.fromkeys(sorted(alternative.resources), 0)
        nearest: tuple[tuple[int, str], Resources] | None = None
        ever, suited, reserved = False, 0, 0
        for number, room in enumerate(self._rooms):
            if not room.is_for(alternative):
                continue
            suited += 1
            if room.is_large_enough(alternative):
                ever = True
            if not self._is_open(number, alternative):
                reserved += 1
                continue
            lack = self._lack(number, alternative)
            for name in lack:
                hosts[name] += 1
            if lack and room.is_large_enough(alternative):
                here = self._far(number, alternative), lack
                nearest = min(nearest or here, here, key=lambda item: item[0])
        return Lack(
            nearest[1] if nearest else {}, hosts, ever, suited, reserved
        )

    # -- one host ----------------------------------------------------------

    def _is_open(self, number: int, alternative: model.Alternative) -> bool:
        room = self._rooms[number]
        # Most hosts are never reserved.
        return (
            room.free_s == math.inf and alternative.hosts is None
        ) or room.is_open(alternative, self._lead_s(alternative))

    def _view(
        self, number: int, alternative: model.Alternative
    ) -> dict[str, int]:
        """What it may have there: who preempts takes what may be freed."""
        free = self._free if alternative.preemptible else self._reclaimable
        return free[number]

    def _times(
        self, number: int, alternative: model.Alternative, most: int
    ) -> int:
        if not self._rooms[number].is_for(
            alternative
        ) or not self._is_open(number, alternative):
            return 0
        left = self._view(number, alternative)
        if number in self._held:
            in_s, kept = self._held[number]
            run_s = alternative.run_s
            if run_s is None or in_s is None or run_s > in_s:
                left = capacity.less(left, kept)
        times = min(
            (
                max(0, left.get(name, 0)) // amount
                for name, amount in alternative.resources.items()
                if amount > 0
            ),
            default=most,
        )
        return min(times, most)

    def _take(
        self, number: int, alternative: model.Alternative, times: int
    ) -> None:
        taken = {
            name: amount * times
            for name, amount in alternative.resources.items()
        }
        free = capacity.less(self._free[number], taken)
        self._free[number] = {name: max(0, n) for name, n in free.items()}
        if not alternative.preemptible:
            self._reclaimable[number] = capacity.less(
                self._reclaimable[number], taken
            )

    def _lack(
        self, number: int, alternative: model.Alternative
    ) -> dict[str, int]:
        left = self._view(number, alternative)
        return {
            name: amount - left.get(name, 0)
            for name, amount in sorted(alternative.resources.items())
            if amount > left.get(name, 0)
        }

    def _far(
        self, number: int, alternative: model.Alternative
    ) -> tuple[int, str]:
        """How far it is from having room: millionths of what it has."""
        room = self._rooms[number]
        return max(
            (
                amount * 10**6 // max(1, room.capacity.get(name, 0))
                for name, amount in self._lack(number, alternative).items()
            ),
            default=0,
        ), room.host

    def _settled_s(
        self, number: int, alternative: model.Alternative
    ) -> int | None:
        """In how many seconds enough will have ended, if that is known."""
        left = dict(self._view(number, alternative))
        if capacity.fits(alternative.resources, left):
            return 0
        for end in sorted(self._rooms[number].ends, key=lambda e: e.in_s):
            left = capacity.total((left, end.resources))
            if capacity.fits(alternative.resources, left):
                return end.in_s
        return None

    def _first(self, alternative: model.Alternative) -> int:
        """The first host that may have room for such a server."""
        key = kind(alternative)
        number = self._next.get(key, 0)
        while number < len(self._rooms) and not self._times(
            number, alternative, 1
        ):
            number += 1
        self._next[key] = number
        return number


Kind = tuple[
    bool,
    int | None,
    tuple[str, ...],
    tuple[str, ...],
    tuple[tuple[str, int], ...],
    int,
    int | None,
    frozenset[str] | None,
]


def kind(alternative: model.Alternative) -> Kind:
    """What is the same of alternatives that find room alike."""
    return (
        alternative.preemptible,
        alternative.run_s,
        alternative.required,
        alternative.forbidden,
        tuple(sorted(alternative.resources.items())),
        alternative.minimum_run_s,
        alternative.notice_s,
        alternative.hosts,
    )
