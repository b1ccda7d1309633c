# SPDX-License-Identifier: Apache-2.0
"""Places one part of a batch optimally, several servers on a host.

#. Place units one by one, in order, as the baseline.
#. If units were left out, look for a placement of more: the first unit left
   out is added to the placed ones, and the program is asked whether that is
   feasible; if it is, the next units are tried with it, twice as many each
   time; if it is not, neither is any unit that asks for as much or more.
#. With that settled the program maximises the sum of scores.

The best of all placements is returned, so none is worse than the baseline.
"""

from collections.abc import Callable, Sequence
import dataclasses

import numpy as np

from nova_preempt.core import capacity
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import greedy_solver
from nova_preempt.core.batch.free_capacity import IMPOSSIBLE
from nova_preempt.core.batch.free_capacity import FreeCapacity
from nova_preempt.core.batch.free_capacity import Placed
from nova_preempt.core.batch.greedy_solver import AtomicUnit
from nova_preempt.core.batch.greedy_solver import Solution
from nova_preempt.core.batch.integer_program import IntegerProgram

#: What part of the time who is placed may take, and one question of it.
_COUNTS_SHARE = 0.5
_QUESTION_SHARE = 0.25


def place(table: FreeCapacity, units: Sequence[AtomicUnit],
        options: batch_model.Options, left_s: Callable[[], float]) -> Solution:
    """Place units, and claim their capacity.

    :param left_s: how long the solver may still take
    """
    found = _Search(table, units, left_s).run(options.gap)
    table.move(found.where)
    return found


class _Search:
    """State of the search for one part."""

    def __init__(self, table: FreeCapacity, units: Sequence[AtomicUnit],
            left_s: Callable[[], float]) -> None:
        self._table = table
        self._units = units
        self._left_s = left_s
        self._limit_s = left_s()
        self._best = greedy_solver.place(table.copy(), units)

    def run(self, gap: float) -> Solution:
        """Return the best placement that there is time for."""
        can = np.flatnonzero((self._table.scores > IMPOSSIBLE).any(axis=1))
        # Of one server at most there is nothing to choose.
        is_proven = sum(
            unit.size for unit in self._units if unit.f in can) <= 1
        if not is_proven and self._left_s() > 0:
            program = IntegerProgram(self._table, self._units)
            is_proven = (all(self._best.placed) or self._add_in_order(program))
            answer = program.best_scores(self._best.placed, self._left_s, gap)
            if answer.where is not None:
                self._keep(answer.placed, answer.where)
            is_proven = is_proven and answer.proven
        return dataclasses.replace(self._best, optimal=is_proven)

    def _keep(self, placed: tuple[bool, ...], where: Placed) -> None:
        """Keep the better placement: by placed units in order, then by score.
        """
        found = Solution(
            placed, where, self._table.score(where), batch_model.PROGRAM)
        self._best = max(
            self._best, found, key=lambda one: (one.placed, one.score))

    def _add_in_order(self, program: IntegerProgram) -> bool:
        """Add units in order; return whether each omission is proven.

        Each question settles whether one more can be placed, or adds some.
        """
        # None: not settled yet.
        settled: list[bool | None] = [None] * len(self._units)
        proven, step = True, len(self._units)
        while (first := self._first_left_out(settled)) is not None:
            seconds = min(
                self._limit_s * _QUESTION_SHARE,
                self._left_s() - self._limit_s * (1 - _COUNTS_SHARE))
            if seconds <= 0:
                return False
            tried = [number for number in range(first, len(settled))
                     if settled[number] is None][:step]
            added = {*tried}
            answer = program.ask(
                [item is True or number in added
                 for number, item in enumerate(settled)],
                [item is not False for item in settled], seconds)
            if answer.where is not None:
                self._grow(answer.where, answer.placed)
                step *= 2
            elif len(tried) > 1:
                # Not even all of them: one, then twice as many each time.
                is_all = len(tried) == len(settled) - first
                step = 1 if is_all else len(tried) // 2
            else:
                proven = proven and answer.proven
                self._close(first, settled)
        return proven

    def _first_left_out(self, settled: list[bool | None]) -> int | None:
        """Settle placed units; return the first unit that is not settled."""
        for number, placed in enumerate(self._best.placed):
            if settled[number] is None:
                if not placed:
                    return number
                settled[number] = True
        return None

    def _grow(self, where: Placed, placed: tuple[bool, ...]) -> None:
        """Keep this placement, with all further units that fit."""
        trial = self._table.copy()
        trial.move(where)
        more = greedy_solver.place(trial, self._units, placed)
        self._keep(more.placed, capacity.total((where, more.where)))

    def _close(self, first: int, settled: list[bool | None]) -> None:
        """Settle as left out all units that ask for as much."""
        f, size = self._units[first].f, self._units[first].size
        # Classes whose servers fit only where those of f do.
        problem = self._table.problem
        harder = (problem.demand >= problem.demand[f]).all(axis=1)
        harder &= (problem.allowed <= problem.allowed[f]).all(axis=1)
        for number in range(first, len(settled)):
            unit = self._units[number]
            if settled[number] is None and (
                (harder[unit.f] and unit.size >= size)
                or (unit.base >= 0 and settled[unit.base] is False)):
                settled[number] = False
