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
"""Who of an affinity group can be on one host, where not all can."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.model import Resources


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """Servers of a group that somebody waits for, those of one request.

    :param count: so many, or fewer, but not fewer than ``least``
    """

    alternative: model.Alternative
    count: int
    least: int


def fitting(wishes: Sequence[Wish], rooms: Iterable[Room]) -> list[int]:
    """Return how many servers of each find room together on one host.

    Of the first as many as possible, of those as many of the second, and so
    on: who comes first is not left out for who comes later. Which host that
    is, is for the batch to say.
    """
    states = {
        (room.traits, tuple(sorted(room.free.items()))): room
        for room in rooms
    }
    left = [(room, room.free) for room in states.values()]
    found = []
    for wish in wishes:
        counts = [_times(wish, room, free) for room, free in left]
        most = max(counts, default=0)
        if most < wish.least:
            found.append(0)
            continue
        left = [
            (room, _less(free, wish, most))
            for (room, free), count in zip(left, counts, strict=True)
            if count == most
        ]
        found.append(most)
    return found


def _times(wish: Wish, room: Room, free: Resources) -> int:
    if not room.is_for(wish.alternative):
        return 0
    return min([wish.count, *(
        max(0, free.get(name, 0)) // amount
        for name, amount in wish.alternative.resources.items() if amount > 0
    )])


def _less(free: Resources, wish: Wish, count: int) -> Resources:
    return capacity.less(free, {
        name: amount * count
        for name, amount in wish.alternative.resources.items()
    })
