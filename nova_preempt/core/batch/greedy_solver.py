# SPDX-License-Identifier: Apache-2.0
"""Places units one by one, each on the host with the best score.

A request for ``count`` servers of which ``least`` start together is one unit
of that size, and one of size 1 for each further server. Units come in order.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch.free_capacity import IMPOSSIBLE
from nova_preempt.core.batch.free_capacity import FreeCapacity
from nova_preempt.core.batch.free_capacity import Placed
from nova_preempt.core.batch.request_kinds import Bundle
from nova_preempt.core.batch.request_kinds import RequestKind


@dataclasses.dataclass(frozen=True, slots=True)
class AtomicUnit:
    """Servers that are placed together or not at all.

    :param f: the kind
    :param bundle: the number of its bundle
    :param base: the number of the unit without which this one is not placed,
        -1 if there is none
    """

    f: int
    size: int
    bundle: int
    base: int = -1


@dataclasses.dataclass(frozen=True)
class Solution:
    """A placement of units.

    :param placed: of each unit, whether it is placed
    :param optimal: whether it is proven optimal
    """

    placed: tuple[bool, ...]
    where: Placed
    score: int
    method: str
    optimal: bool = False

    def hosts_of(self, units: Sequence[AtomicUnit],
                 ) -> dict[int, collections.Counter[int]]:
        """Return {bundle: {host: how many}}.

        Units of a kind, in order, get hosts in order of their names.
        """
        left: dict[int, list[tuple[int, int]]] = {}
        for (f, j), count in sorted(self.where.items(), reverse=True):
            left.setdefault(f, []).append((j, count))
        given: dict[int, collections.Counter[int]] = {}
        for unit, placed in zip(units, self.placed, strict=True):
            wanted = unit.size if placed else 0
            while wanted:
                j, count = left[unit.f].pop()
                some = min(wanted, count)
                if count > some:
                    left[unit.f].append((j, count - some))
                given.setdefault(unit.bundle, collections.Counter())[j] += some
                wanted -= some
        return given


def make_units(bundles: Sequence[Bundle], class_of: Mapping[RequestKind,
        int]) -> list[AtomicUnit]:
    """Return the units of some bundles, in order."""
    units: list[AtomicUnit] = []
    for number, bundle in enumerate(bundles):
        f, base = class_of[bundle.kind], len(units)
        units.append(AtomicUnit(f, bundle.least, number))
        units += (bundle.count - bundle.least) * [
            AtomicUnit(f, 1, number, base)]
    return units


def place(table: FreeCapacity, units: Sequence[AtomicUnit], skip: Sequence[
        bool] = ()) -> Solution:
    """Place units in order, and claim their capacity.

    No unit that is placed later could have made an earlier one fit.
    O(servers * hosts).

    :param skip: of each unit, whether it is placed already
    """
    before = FreeCapacity(table.problem, table.free, table.scores.copy())
    where = collections.Counter[tuple[int, int]]()
    placed = list(skip) or [False] * len(units)
    # Of a class, from which size on there is no room any more.
    closed: dict[int, int] = {}
    for number, unit in enumerate(units):
        if placed[number] or (unit.base >= 0 and not placed[unit.base]):
            continue
        if unit.size < closed.get(unit.f, unit.size + 1):
            hosts = _hosts_for(table, unit)
            placed[number] = len(hosts) == unit.size
            if placed[number]:
                where.update((unit.f, j) for j in hosts)
            else:
                closed[unit.f] = unit.size
    return Solution(tuple(placed), where, before.score(where),
        batch_model.GREEDY)


def _hosts_for(table: FreeCapacity, unit: AtomicUnit) -> list[int]:
    """Claim the best hosts for a unit, or none if not all of it fits."""
    taken: list[int] = []
    while len(taken) < unit.size and table.scores.shape[1]:
        # Of equal ones the first by name.
        j = int(table.scores[unit.f].argmax())
        if table.scores[unit.f, j] == IMPOSSIBLE:
            for number in taken:
                table.take(unit.f, number, -1)
            return []
        table.take(unit.f, j)
        taken.append(j)
    return taken
