# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What is to be placed, one thing at a time, and what was.

A request for ``count`` servers of which ``least`` start together is one unit
of that size, and one of size 1 for each further server. Units come in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from typing import TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core.batch.grouping import Bundle
from nova_preempt.core.batch.table import Table

#: (class, host) -> how many
Where: TypeAlias = Mapping[tuple[int, int], int]


@dataclasses.dataclass(frozen=True, slots=True)
class Unit:
    """What is placed whole or not at all.

    :param f: the class
    :param base: the number of the unit without which this one is not placed,
        -1 if there is none
    """

    f: int
    size: int
    bundle: int
    base: int = -1


@dataclasses.dataclass(frozen=True)
class Found:
    """A placement.

    :param placed: of each unit, whether it is
    :param optimal: whether it is known that nothing better exists
    """

    placed: tuple[bool, ...]
    where: Where
    score: int
    method: str
    optimal: bool = False


def make_units(
    bundles: Sequence[Bundle],
    numbers: Sequence[int],
    class_of: Mapping[int, int],
) -> list[Unit]:
    """Return the units of some bundles.

    :param numbers: which bundles, in order
    :param class_of: each bundle
    """
    units: list[Unit] = []
    for number in numbers:
        bundle, f = bundles[number], class_of[number]
        base = len(units)
        units.append(Unit(f, bundle.least, number))
        units.extend(
            Unit(f, 1, number, base)
            for _ in range(bundle.count - bundle.least)
        )
    return units


def score(table: Table, where: Where) -> int:
    """Return the sum of scores, as they are in a table."""
    return sum(
        int(table.scores[key]) * count for key, count in where.items()
    )


def move(table: Table, where: Where, sign: int = 1) -> None:
    """Take what was found from a table, or give it back."""
    if where:
        classes, hosts = zip(*where, strict=True)
        table.move(
            list(classes), list(hosts),
            [sign * count for count in where.values()],
        )


def add(*parts: Where) -> dict[tuple[int, int], int]:
    """Return where the servers of several placements are."""
    return {
        key: count
        for key, count in capacity.total(parts).items() if count
    }


def hosts_of(
    units: Sequence[Unit], found: Found
) -> dict[int, dict[int, int]]:
    """Return {bundle: {host: how many}}.

    Of a class, units in order get hosts in order of their names.
    """
    left: dict[int, list[tuple[int, int]]] = {}
    for (f, j), count in sorted(found.where.items(), reverse=True):
        left.setdefault(f, []).append((j, count))
    given: dict[int, dict[int, int]] = {}
    for unit, placed in zip(units, found.placed, strict=True):
        wanted = unit.size if placed else 0
        while wanted:
            j, count = left[unit.f].pop()
            some = min(wanted, count)
            if count > some:
                left[unit.f].append((j, count - some))
            hosts = given.setdefault(unit.bundle, {})
            hosts[j] = hosts.get(j, 0) + some
            wanted -= some
    return given
