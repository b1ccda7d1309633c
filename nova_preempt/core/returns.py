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
"""Which shelved victims come back next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses

#: The longest pause between two tries, in seconds.
LONGEST_S = 3600

Resources = Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Shelved:
    """One that has given way, and what it needs to come back."""

    uuid: str
    resources: Resources


def pause_s(interval_s: int, tries: int) -> int:
    """How long after a try the next one is, with so many tries before it."""
    # Beyond that many doublings the longest is reached whatever it began at.
    return min(LONGEST_S, interval_s << min(tries, 12))


def choose(
    waiting: Iterable[Shelved],
    coming: Iterable[Shelved],
    room: Mapping[str, Resources],
    most: int,
) -> list[str]:
    """Those that may be asked to come now, in this order.

    1. What is on its way, and holds nothing yet, takes its room first.
    2. Then each that waits, the first before all others, takes room on the
       first host that has it. One that finds none lets others pass.
    3. No more than ``most`` are on their way at once.

    Where they come to the scheduler decides: this only keeps more from being
    asked than there is room for.

    :param room: what is free, by host
    """
    free = {host: dict(resources) for host, resources in room.items()}
    on_their_way = 0
    for item in coming:
        _take(free, item.resources)
        on_their_way += 1
    chosen = []
    for item in waiting:
        if on_their_way >= most:
            break
        if _take(free, item.resources):
            chosen.append(item.uuid)
            on_their_way += 1
    return chosen


def _take(free: dict[str, dict[str, int]], resources: Resources) -> bool:
    for host in sorted(free):
        has = free[host]
        if all(has.get(name, 0) >= amount
               for name, amount in resources.items()):
            for name, amount in resources.items():
                has[name] -= amount
            return True
    return False
