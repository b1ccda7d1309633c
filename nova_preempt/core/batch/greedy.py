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
"""One by one, each where the score is best."""

from __future__ import annotations

from collections.abc import Sequence

from nova_preempt.core.batch import model
from nova_preempt.core.batch import units as batch_units
from nova_preempt.core.batch.arrays import NO
from nova_preempt.core.batch.table import Table
from nova_preempt.core.batch.units import Found
from nova_preempt.core.batch.units import Unit


def place(
    table: Table, units: Sequence[Unit], skip: Sequence[bool] = ()
) -> Found:
    """Place units in order, each with regard to those before it.

    Takes them from the table. Nobody who is placed later has room that one
    who is not could have had. O(servers * hosts).

    :param skip: of each unit, whether to leave it alone
    """
    before = table.copy()
    where: dict[tuple[int, int], int] = {}
    placed: list[bool] = []
    # Of a class, from which size on there is no room any more.
    closed: dict[int, int] = {}
    for number, unit in enumerate(units):
        placed.append(
            not (skip and skip[number])
            and (unit.base < 0 or placed[unit.base])
            and unit.size < closed.get(unit.f, unit.size + 1)
            and _place(table, unit, where)
        )
        if not placed[-1] and not (skip and skip[number]) and (
            unit.base < 0 or placed[unit.base]
        ):
            closed[unit.f] = min(unit.size, closed.get(unit.f, unit.size))
    return Found(
        tuple(placed), where, batch_units.score(before, where), model.GREEDY
    )


def _place(
    table: Table, unit: Unit, where: dict[tuple[int, int], int]
) -> bool:
    if not table.scores.shape[1]:
        return False
    taken: list[int] = []
    for _ in range(unit.size):
        # Of equal ones the first by name.
        j = int(table.scores[unit.f].argmax())
        if table.scores[unit.f, j] == NO:
            for number in taken:
                table.take(unit.f, number, -1)
            return False
        table.take(unit.f, j)
        taken.append(j)
    for number in taken:
        where[unit.f, number] = where.get((unit.f, number), 0) + 1
    return True
