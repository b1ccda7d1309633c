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
"""Tracks the free capacity of hosts while a pass assigns it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import math

from nova_preempt.core import capacity
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.model import Resources


class Remaining:
    """Free amounts of each host, by the number of the host.

    :param rooms: those of all hosts
    :param lead_s: see capacity_tracker.CapacityTracker
    :param stays: for how long servers keep their places
    """

    def __init__(
        self,
        rooms: Iterable[Room],
        lead_s: Callable[[model.Alternative], float],
        stays: ExpectedDepartures,
    ) -> None:
        self.lead_s = lead_s
        self.rooms = list(rooms)
        self._stays = stays
        # Held for one that is to start there once that is possible: when that
        # is, None if nobody knows, and how much.
        self.held: dict[int, tuple[int | None, Resources]] = {}
        # Hosts in the order in which their room shrank.
        self.shrunk: list[str] = []

    def copy(self) -> Remaining:
        """Return another in which the same remains."""
        other = Remaining(self.rooms, self.lead_s, self._stays)
        other.held = dict(self.held)
        return other

    def is_open(self, number: int, alternative: model.Alternative) -> bool:
        """Tell whether power and reservations let a server on a host."""
        room = self.rooms[number]
        # Most hosts are never reserved.
        return (
            room.free_s == math.inf and alternative.hosts is None
            and not room.off
        ) or room.is_open(alternative, self.lead_s(alternative))

    def times(
        self, number: int, alternative: model.Alternative, most: int
    ) -> int:
        """Return how many servers find room on a host, of so many."""
        room = self.rooms[number]
        if not (room.is_for(alternative) and self.is_open(
                number, alternative)):
            return 0
        left = room.view(alternative)
        if number in self.held:
            in_s, kept = self.held[number]
            if in_s is None or self._stays.of(alternative) > in_s:
                left = capacity.less(left, kept)
        return capacity.times(alternative.resources, left, most)

    def take(
        self, number: int, alternative: model.Alternative, times: int
    ) -> None:
        """Give the room of so many servers on a host away."""
        self.shrunk.append(self.rooms[number].host)
        self.rooms[number] = self.rooms[number].without(alternative, times)


def spread(
    count: int, most: Mapping[int, int], hosts: Sequence[int]
) -> dict[int, int]:
    """Return how many servers each host gets, one more in each round.

    :param most: how many each may have
    :param hosts: the first to get one first
    :returns: of none where there is not room for all
    """
    found: dict[int, int] = {}
    if count > sum(most[number] for number in hosts):
        return found
    some = list(hosts)[:count]
    while some:
        for number in some:
            found[number] = found.get(number, 0) + 1
        count -= len(some)
        some = [number for number in some
                if found[number] < most[number]][:count]
    return found
