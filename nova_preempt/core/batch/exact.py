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
"""The best placement of one part of a batch, several servers on a host.

#. Place one by one, in order: what is found later is compared with that.
#. If somebody was left out, look for a placement of more: whoever comes first
   of those left out is added to those that are placed, and the program asked
   whether that is possible; if it is, the next ones are tried with it, twice
   as many each time; if it is not, nobody else who asks for that much or more
   will be.
#. With that settled the program maximises the sum of scores.

Of all placements the best is taken, so none is worse than the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses

import numpy as np

from nova_preempt.core.batch import greedy
from nova_preempt.core.batch import model
from nova_preempt.core.batch import units as batch_units
from nova_preempt.core.batch.arrays import NO
from nova_preempt.core.batch.program import Program
from nova_preempt.core.batch.table import Table
from nova_preempt.core.batch.units import Found
from nova_preempt.core.batch.units import Unit

#: What part of the time who is placed may take, and one question of it.
_COUNTS_SHARE = 0.5
_QUESTION_SHARE = 0.25


def place(
    table: Table,
    units: Sequence[Unit],
    options: model.Options,
    left_s: Callable[[], float],
) -> Found:
    """Place units, and take them from the table.

    :param left_s: how long the solver may still take
    """
    found = _Search(table, units, options, left_s).run()
    batch_units.move(table, found.where)
    return found


class _Search:
    """What is known so far of one part."""

    def __init__(
        self,
        table: Table,
        units: Sequence[Unit],
        options: model.Options,
        left_s: Callable[[], float],
    ) -> None:
        self._table = table
        self._units = units
        self._options = options
        self._left_s = left_s
        self._limit_s = left_s()
        self._best = greedy.place(table.copy(), units)

    def run(self) -> Found:
        """Return the best placement that there is time for."""
        if self._is_plain():
            return dataclasses.replace(self._best, optimal=True)
        if self._left_s() <= 0:
            return self._best
        program = Program(self._table, self._units)
        proven = all(self._best.placed)
        if not proven:
            proven = self._add_in_order(program)
        proven = self._improve(program) and proven
        return dataclasses.replace(self._best, optimal=proven)

    def _is_plain(self) -> bool:
        """Say whether there is nothing to choose: one server at most."""
        possible = np.flatnonzero((self._table.scores > NO).any(axis=1))
        return sum(
            unit.size for unit in self._units if unit.f in possible) <= 1

    def _keep(self, found: Found) -> None:
        """Keep the better one: by who is placed in order, then by score."""
        self._best = max(
            self._best, found, key=lambda one: (one.placed, one.score))

    def _seconds(self) -> float:
        """How long the next question about who is placed may take."""
        over_s = self._limit_s * (1 - _COUNTS_SHARE)
        return min(
            self._limit_s * _QUESTION_SHARE, self._left_s() - over_s)

    # -- who is placed -----------------------------------------------------

    def _add_in_order(self, program: Program) -> bool:
        """Place who comes first; say whether nobody was left out too early.

        Each question settles whether one more can be placed, or adds some.
        """
        # None: not settled yet.
        settled: list[bool | None] = [None] * len(self._units)
        proven = True
        step = len(self._units)
        while None in settled:
            for number, placed in enumerate(self._best.placed):
                if settled[number] is None:
                    if not placed:
                        break
                    settled[number] = True
            else:
                break
            seconds = self._seconds()
            if seconds <= 0:
                return False
            first = settled.index(None)
            tried = [
                number for number in range(first, len(self._units))
                if settled[number] is None
            ][:step]
            must = [item is True for item in settled]
            for number in tried:
                must[number] = True
            may = [item is not False for item in settled]
            answer = program.ask(must, may, seconds)
            if answer.where is not None:
                self._grow(answer.where, answer.placed)
                step *= 2
            elif len(tried) == len(settled) - first > 1:
                step = 1
            elif len(tried) > 1:
                step = len(tried) // 2
            else:
                proven = proven and answer.proven
                self._close(first, settled)
        return proven

    def _grow(
        self, where: batch_units.Where, placed: tuple[bool, ...]
    ) -> None:
        """Keep this, with whoever else has room then."""
        trial = self._table.copy()
        batch_units.move(trial, where)
        more = greedy.place(trial, self._units, placed)
        self._keep(self._found(
            batch_units.add(where, more.where),
            tuple(
                one or other
                for one, other in zip(placed, more.placed, strict=True)
            ),
        ))

    def _close(self, first: int, settled: list[bool | None]) -> None:
        """Nobody else who asks for as much is placed any more."""
        f, size = self._units[first].f, self._units[first].size
        harder = self._asks_for_more(f)
        for number in range(first, len(settled)):
            unit = self._units[number]
            if settled[number] is None and (
                (harder[unit.f] and unit.size >= size)
                or (unit.base >= 0 and settled[unit.base] is False)
            ):
                settled[number] = False

    def _asks_for_more(self, f: int) -> list[bool]:
        """Say of each class whether its servers fit only where f's do."""
        problem = self._table.problem
        harder = (problem.demand >= problem.demand[f]).all(axis=1)
        harder &= (problem.allowed <= problem.allowed[f]).all(axis=1)
        for limit in problem.limits:
            if limit.members[f]:
                harder &= limit.members >= limit.members[f]
        return [bool(item) for item in harder]

    # -- where -------------------------------------------------------------

    def _improve(self, program: Program) -> bool:
        """Look for better hosts; say whether there are none."""
        placed = list(self._best.placed)
        answer = program.best_scores(
            placed, self._left_s, self._options.gap)
        if answer.where is not None:
            self._keep(self._found(answer.where, answer.placed))
        return answer.proven

    def _found(
        self, where: batch_units.Where, placed: tuple[bool, ...]
    ) -> Found:
        return Found(
            placed, where, batch_units.score(self._table, where),
            model.PROGRAM,
        )
