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
"""How many servers would find room on hosts if these were empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nova_preempt.core.backlog import groups
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.groups import Group
from nova_preempt.core.backlog.room import Kind
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.backlog.room import kind


class Emptied:
    """Counts the servers that hosts could take if they were empty.

    :param rooms: those of all hosts
    :param is_open: tells whether the host with a number is for a server
    """

    def __init__(
        self,
        rooms: Sequence[Room],
        is_open: Callable[[int, model.Alternative], bool],
    ) -> None:
        self._rooms = tuple(rooms)
        self._is_open = is_open
        # How many would find room, by how many on each.
        self._ever: dict[tuple[Kind, int | None], int] = {}
        # For how many a host would have room, descending.
        self._largest: dict[Kind, list[int]] = {}
        self._suited: dict[Kind, frozenset[str]] = {}

    def suited(self, alternative: model.Alternative) -> frozenset[str]:
        """Return the hosts that are for it and open to it, of any size."""
        key = kind(alternative)
        if key not in self._suited:
            self._suited[key] = frozenset(
                room.host for number, room in enumerate(self._rooms)
                if self._is_open(number, alternative)
                and room.has_kind(alternative))
        return self._suited[key]

    def fewest(
        self,
        alternative: model.Alternative,
        count: int,
        group: Group | None = None,
    ) -> int:
        """Return on how many empty hosts so many would find room at least.

        Of those that are open to it; 0 where there are not enough.

        :param group: they are of it
        """
        most, at_once = count, 1
        if groups.is_together(group):
            at_once = count
        elif group is not None:
            most = group.most
        key = kind(alternative)
        if key not in self._largest:
            self._largest[key] = sorted((
                room.times_ever(alternative)
                for number, room in enumerate(self._rooms)
                if self._is_open(number, alternative)), reverse=True)
        for hosts, times in enumerate(self._largest[key], 1):
            if times < at_once:
                return 0
            count -= min(most, times)
            if count <= 0:
                return hosts
        return 0

    def most(
        self, alternative: model.Alternative, most: int | None = None
    ) -> int:
        """Return how many would find room on empty hosts, so many on each.

        :param most: on a host; None: all on one
        """
        key = kind(alternative), most
        if key not in self._ever:
            times = [room.times_ever(alternative) for room in self._rooms]
            self._ever[key] = max(times, default=0) if most is None else sum(
                min(most, some) for some in times)
        return self._ever[key]
