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
"""Which sleeping hosts wake for requests that find no room.

All requests that wait count together: what is promised to one is not promised
to another, and how many wake at once does not matter for what is promised.
"""

from collections.abc import Iterable
import dataclasses
import fractions
import math


@dataclasses.dataclass(frozen=True)
class Promise:
    """Room of a host for a request.

    :param servers: so many of the request's
    :param room: of as many as would fit on the whole host
    """

    request: str
    host: str
    servers: int
    room: int


@dataclasses.dataclass(frozen=True)
class Sleeper:
    """A host that will be on if it is wanted.

    :param room: how many servers of the request fit on it
    :param waking: whether it is on its way already
    """

    name: str
    room: int
    waking: bool = False
    efficiency: float | None = None


def promise(request: str, servers: int, sleepers: Iterable[Sleeper],
            others: Iterable[Promise]) -> list[Promise]:
    """The hosts that a request is to wait for, in the order to wake them.

    1. those on their way, 2. those that others wait for and that have room
    left, 3. the most efficient, the unknown last. Servers of another size
    take the part of a host that they take of an empty one.

    :param others: what is promised; what is promised to this request is not
        looked at
    :returns: for fewer servers than asked if there is no more room
    """
    taken: dict[str, fractions.Fraction] = {}
    for item in others:
        if item.request != request:
            taken[item.host] = taken.get(item.host, fractions.Fraction(
            )) + fractions.Fraction(item.servers, max(1, item.room))
    ordered = sorted(sleepers, key=lambda sleeper: (
        not sleeper.waking, sleeper.name not in taken,
        math.inf if sleeper.efficiency is None else -sleeper.efficiency,
        sleeper.name))
    found = []
    for sleeper in ordered:
        free = math.floor(sleeper.room * (1 - taken.get(
            sleeper.name, fractions.Fraction())))
        given = min(free, servers)
        if given > 0:
            found.append(Promise(request, sleeper.name, given, sleeper.room))
            servers -= given
    return found
