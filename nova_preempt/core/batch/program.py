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
"""The integer program of a batch: how many of each class on each host.

.. code-block:: text

   x[f, j]  servers of class f on host j      s[f]  single ones of class f
   z[u]     whether unit u of several starts  e[u]  its further servers

   for each f:     sum x[f, j] = s[f] + sum size[u] z[u] + e[u]
   for each u:     e[u] <= further[u] z[u]
   for each j, k:  sum demand[f, k] x[f, j] <= free[j, k]
   for each group: sum members[f] x[f, j] <= most - there[j]

Several servers share a host, in all resource classes at once; that is no flow
any more. HiGHS solves it by way of scipy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.sparse

from nova_preempt.core.batch import cuts
from nova_preempt.core.batch import matrix
from nova_preempt.core.batch.arrays import NO
from nova_preempt.core.batch.table import Table
from nova_preempt.core.batch.units import Unit
from nova_preempt.core.batch.units import Where

Array: TypeAlias = npt.NDArray[Any]

# What scipy says of a search.
_OPTIMAL, _INFEASIBLE = 0, 2

#: Reduced costs above that are looked at later, and how much more then.
_FIRST_CUT = 0.01
#: How often the bound is looked for again with what it violates cut off.
_ROUNDS = 3
_MORE = 4
#: Sums that are closer are equal: they are of floats.
_EXACT = 1e-9
#: HiGHS takes 0 for no limit.
_SHORTEST_S = 1e-3


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What the solver has found.

    :param where: None if it has found nothing
    :param placed: of each unit
    :param proven: whether it is the best up to the gap or, where nothing is
        found, whether there is nothing
    :param value: of what is minimised
    :param bound: nothing is below it
    """

    where: Where | None
    placed: tuple[bool, ...]
    proven: bool
    value: float = np.inf
    bound: float = -np.inf


def _with_bound(answer: Answer, gap: float, *bounds: float) -> Answer:
    """Return it with what is known by now of its bound."""
    bound = max(answer.bound, *bounds)
    return dataclasses.replace(
        answer, bound=bound,
        proven=answer.value - bound <= _tolerance(answer, gap))


def _tolerance(answer: Answer, gap: float) -> float:
    return max(gap, _EXACT) * abs(answer.value)


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """Units that are counted by one variable."""

    f: int
    weight: int
    units: tuple[int, ...]
    #: the variable without which this one is 0, -1: none
    base: int = -1


class Program:
    """The program of one part of a batch.

    Only hosts that are among the N best of some class for N servers are in
    it: an optimum needs no others, since those that a server could move to
    are never all taken by the N - 1 others.

    :param table: left as it is
    """

    def __init__(self, table: Table, units: Sequence[Unit]) -> None:
        self._table = table
        self._units = units
        self._rows = _rows(units)
        wanted = np.zeros(len(table.scores), dtype=np.int64)
        for unit in units:
            wanted[unit.f] += unit.size
        some = np.full_like(table.scores, NO)
        some[wanted > 0] = table.scores[wanted > 0]
        columns = worth_it(some, int(wanted.sum()))
        # Pairs of the same host one after another.
        j, f = np.nonzero(some[:, columns].T > NO)
        self._f, self._j = f, columns[j]
        most = np.array([
            table.times(number, int(wanted[number]))
            for number in range(len(wanted))
        ])
        self._most = most[self._f, self._j]
        self._matrix, self._low, self._high = self._constraints(wanted)
        self._rounds = 0

    def ask(
        self,
        must: Sequence[bool],
        may: Sequence[bool],
        time_limit_s: float,
    ) -> Answer:
        """Look for any placement.

        :param must: of each unit, whether it has to be placed
        :param may: whether it may
        """
        low, high = self._bounds(must, may)
        return self._milp(np.zeros(len(low)), low, high, time_limit_s, 1.0)

    def best_scores(
        self,
        placed: Sequence[bool],
        left_s: Callable[[], float],
        gap: float,
    ) -> Answer:
        """Look for a placement of these units of the largest sum of scores.

        Few of the variables matter. What one would cost beyond what it adds
        is known from the program in which servers are divisible (its reduced
        cost), so that any placement with it is at least so much below the
        bound which that gives. At first those are left out that cost more
        than a hundredth of the largest score. If what is found is not known
        to be good enough, the bound is made tighter (``cuts.py``); then those
        are left out with which a placement cannot be better by more than the
        gap.
        """
        low, high = self._bounds(placed, placed)
        goal = np.zeros(len(low))
        goal[: len(self._f)] = -self._table.scores[self._f, self._j]
        # Millions of millionths are hard to tell from errors.
        goal /= max(1.0, np.abs(goal).max(initial=0))
        relaxed = self._relaxed(goal, low, high, left_s())
        if relaxed.status != _OPTIMAL:
            return Answer(None, (), relaxed.status == _INFEASIBLE)
        best, cut = Answer(None, (), proven=False), _FIRST_CUT
        while (seconds := left_s()) > 0:
            extra = np.abs(relaxed.lower.marginals)
            bound = float(relaxed.fun)
            some = np.where((extra > cut) & (low == 0), 0, high)
            some[len(self._f):] = high[len(self._f):]
            found = self._milp(goal, low, some, seconds, gap / 2)
            if found.where is not None and found.value < best.value:
                best = dataclasses.replace(found, bound=best.bound)
            everything = cut > extra.max(initial=0)
            if best.where is None:
                if everything:
                    return dataclasses.replace(best, proven=found.proven)
                cut *= _MORE
                continue
            best = _with_bound(best, gap, bound, found.bound if everything
                               else min(bound + cut, found.bound))
            while not (best.proven or everything) and self._tighten(
                relaxed.x
            ):
                tighter = self._relaxed(goal, low, high, left_s())
                if tighter.status != _OPTIMAL:
                    break
                relaxed, bound = tighter, float(tighter.fun)
                best = _with_bound(best, gap, bound)
            needed = best.value - bound - _tolerance(best, gap)
            if best.proven or everything or needed <= cut:
                return best
            cut = min(_MORE * cut, needed)
        return best

    def _tighten(self, x: Array) -> bool:
        """Cut off what whole servers cannot be; say whether that is new."""
        if self._rounds == _ROUNDS:
            return False
        self._rounds += 1
        found = cuts.cuts(
            self._table.problem.demand[self._f], self._table.free, self._j,
            x[: len(self._f)])
        if found is None:
            return False
        rows, right = found
        units = scipy.sparse.csr_array((len(right), len(self._rows)))
        self._matrix = scipy.sparse.vstack(
            [self._matrix, scipy.sparse.hstack([rows, units])], format="csr")
        self._low = np.append(self._low, np.full(len(right), -np.inf))
        self._high = np.append(self._high, right)
        return True

    def _bounds(
        self, must: Sequence[bool], may: Sequence[bool]
    ) -> tuple[Array, Array]:
        """Return between what the variables have to be."""
        pairs = len(self._f)
        low = np.zeros(pairs + len(self._rows))
        high = np.concatenate([self._most, np.zeros(len(self._rows))])
        for number, row in enumerate(self._rows, pairs):
            low[number] = sum(must[u] for u in row.units)
            high[number] = sum(may[u] for u in row.units)
        return low, high

    def _relaxed(
        self, goal: Array, low: Array, high: Array, seconds: float
    ) -> Any:
        """Solve the program in which servers are divisible."""
        equal = self._low == self._high
        return scipy.optimize.linprog(
            goal, self._matrix[~equal], self._high[~equal],
            self._matrix[equal], self._high[equal],
            np.column_stack([low, high]), method="highs",
            options={"time_limit": max(_SHORTEST_S, seconds)},
        )

    def _milp(
        self,
        goal: Array,
        low: Array,
        high: Array,
        time_limit_s: float,
        gap: float,
    ) -> Answer:
        found = scipy.optimize.milp(
            goal,
            integrality=np.ones(len(low)),
            bounds=scipy.optimize.Bounds(low, high),
            constraints=scipy.optimize.LinearConstraint(
                self._matrix, self._low, self._high),
            options={
                "time_limit": max(_SHORTEST_S, time_limit_s),
                "mip_rel_gap": gap,
            },
        )
        proven = found.status in (_OPTIMAL, _INFEASIBLE)
        if found.x is None:
            bound = np.inf if found.status == _INFEASIBLE else -np.inf
            return Answer(None, (), proven, bound=bound)
        answer = self._answer(np.rint(found.x).astype(np.int64), proven)
        return dataclasses.replace(
            answer, value=float(found.fun),
            bound=float(found.mip_dual_bound),
        )

    def _answer(self, x: Array, proven: bool) -> Answer:
        """Check in whole numbers what was found in others."""
        pairs = len(self._f)
        taken = np.flatnonzero(x[:pairs])
        where = {
            (int(self._f[n]), int(self._j[n])): int(x[n]) for n in taken
        }
        trial = self._table.copy()
        trial.move(self._f[taken], self._j[taken], x[taken])
        if not trial.is_possible():
            return Answer(None, (), proven=False)
        placed = [False] * len(self._units)
        for number, row in enumerate(self._rows, pairs):
            # Of those that are alike the first.
            for u in row.units[: x[number]]:
                placed[u] = True
        return Answer(where, tuple(placed), proven)

    def _constraints(self, wanted: Array) -> tuple[Any, Array, Array]:
        """Return the matrix, and between what its rows have to be."""
        rows = matrix.Matrix(len(self._f) + len(self._rows))
        table = self._table
        hosts, begins = np.unique(self._j, return_index=True)
        for j, here in zip(
            hosts, np.split(np.arange(len(self._j)), begins)[1:], strict=True
        ):
            most = self._most[here]
            for k in range(table.free.shape[1]):
                amounts = table.problem.demand[self._f[here], k]
                free = int(table.free[j, k])
                # In Python's numbers: these sums may be large.
                if sum(a * m for a, m in zip(
                    amounts.tolist(), most.tolist(), strict=True
                )) > free:
                    rows.add(here, amounts, -np.inf, free)
            for number in sorted({
                int(layer.group[f])
                for layer in table.problem.layers for f in self._f[here]
                if layer.count[f]
            }):
                limit = table.problem.limits[number]
                rows.add(
                    here, limit.members[self._f[here]], -np.inf,
                    limit.most - table.members[number, j])
        for f in np.flatnonzero(wanted):
            here = np.flatnonzero(self._f == f)
            counted = [
                (len(self._f) + number, -row.weight)
                for number, row in enumerate(self._rows) if row.f == f
            ]
            more, weights = zip(*counted, strict=True)
            rows.add(
                np.concatenate([here, more]),
                np.concatenate([np.ones(len(here)), weights]), 0, 0,
            )
        for number, row in enumerate(self._rows, len(self._f)):
            if row.base >= 0:
                rows.add(
                    np.array([number, len(self._f) + row.base]),
                    np.array([1, -len(row.units)]), -np.inf, 0,
                )
        return rows.done()


def worth_it(scores: Array, count: int) -> Array:
    """Return the columns that are among the ``count`` best of some class.

    An optimum uses no others: of its best columns a class finds one empty,
    for the other servers take ``count - 1`` at most.
    """
    if count >= scores.shape[1]:
        return np.flatnonzero((scores > NO).any(axis=0))
    used = np.zeros(scores.shape[1], dtype=bool)
    for row in scores:
        # All that are better than the last, and of equal ones the first.
        last = np.partition(row, -count)[-count]
        used |= row > last
        equal = np.flatnonzero(row == last)
        used[equal[: count - np.count_nonzero(row > last)]] = True
    return np.flatnonzero(used & (scores > NO).any(axis=0))


def _rows(units: Sequence[Unit]) -> list[_Row]:
    """Return the variables that count units, and which each counts."""
    singles: dict[int, list[int]] = {}
    several: list[_Row] = []
    further: dict[int, list[int]] = {}
    for number, unit in enumerate(units):
        if unit.base >= 0 and units[unit.base].size > 1:
            further.setdefault(unit.base, []).append(number)
        elif unit.size > 1:
            several.append(_Row(unit.f, unit.size, (number,)))
        else:
            # Further servers of one that may start alone are like others.
            singles.setdefault(unit.f, []).append(number)
    rows = [
        _Row(f, 1, tuple(numbers)) for f, numbers in sorted(singles.items())
    ]
    rows += several
    at = {row.units[0]: number for number, row in enumerate(rows)
          if row.weight > 1}
    rows += [
        _Row(units[base].f, 1, tuple(numbers), at[base])
        for base, numbers in sorted(further.items())
    ]
    return rows
