# SPDX-License-Identifier: Apache-2.0
"""Integer program of a batch: how many of each kind on each host.

.. code-block:: text

   x[f, j]  servers of kind f on host j      s[f]  single ones of kind f
   z[u]     whether unit u of several starts  e[u]  its further servers

   for each f:     sum x[f, j] = s[f] + sum size[u] z[u] + e[u]
   for each u:     e[u] <= further[u] z[u]
   for each j, k:  sum demand[f, k] x[f, j] <= free[j, k]

Several servers share a host, in all resources at once, which no flow can
express. HiGHS solves it by way of scipy.
"""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.sparse

from nova_preempt.core.batch.free_capacity import IMPOSSIBLE
from nova_preempt.core.batch.free_capacity import FreeCapacity
from nova_preempt.core.batch.free_capacity import Placed
from nova_preempt.core.batch.greedy_solver import AtomicUnit

Array: TypeAlias = npt.NDArray[Any]

# Statuses of scipy.
_OPTIMAL, _INFEASIBLE = 0, 2

#: Variables of larger reduced costs are left out at first; growth factor.
_FIRST_CUT = 0.01
_MORE = 4
#: The most rounds of cuts to tighten the bound.
_CUT_ROUNDS = 3
#: Of more servers on a host little is cut off.
_MOST_COUNTED = 12
#: What is exceeded by less may be an error of the solver.
_LEAST = 1e-4
#: Products of whole numbers are not larger.
_LARGEST = 2**62
#: Sums that are closer are equal: they are of floats.
_EXACT = 1e-9
#: HiGHS takes 0 for no limit.
_SHORTEST_S = 1e-3


@dataclasses.dataclass(frozen=True, slots=True)
class SolverResult:
    """Result of the solver.

    :param where: None if no placement was found
    :param placed: of each unit
    :param proven: whether it is optimal up to the gap or, where nothing is
        found, infeasible
    :param value: of the objective, which is minimised
    :param bound: lower bound of the objective
    """

    where: Placed | None = None
    placed: tuple[bool, ...] = ()
    proven: bool = False
    value: float = np.inf
    bound: float = -np.inf


@dataclasses.dataclass(frozen=True, slots=True)
class _Counter:
    """The variable that counts how many of some units are placed."""

    f: int
    size: int
    units: tuple[int, ...]
    #: the number of the counter without which this one is 0, -1: none
    base: int = -1


class IntegerProgram:
    """The integer program of one part of a batch.

    It has only hosts that are among the N best of some kind for N servers, see
    useful_columns().

    :param table: not changed
    """

    def __init__(self, table: FreeCapacity,
                 units: Sequence[AtomicUnit]) -> None:
        self._table = table
        self._units = units
        self._counters = _counters(units)
        wanted = np.zeros(len(table.scores), dtype=np.int64)
        for unit in units:
            wanted[unit.f] += unit.size
        some = np.where(wanted[:, None] > 0, table.scores, IMPOSSIBLE)
        columns = useful_columns(some, int(wanted.sum()))
        # Pairs of the same host one after another.
        j, self._f = np.nonzero(some[:, columns].T > IMPOSSIBLE)
        self._j = columns[j]
        self._pairs = len(self._f)
        most = np.array([
            table.times(f, count) for f, count in enumerate(wanted.tolist())])
        self._most = most[self._f, self._j]
        self._matrix, self._low, self._high = self._constraints()

    def ask(self, must: Sequence[bool], may: Sequence[bool],
            time_limit_s: float) -> SolverResult:
        """Look for any placement.

        :param must: of each unit, whether it has to be placed
        :param may: whether it may
        """
        low, high = self._bounds(must, may)
        return self._milp(np.zeros(len(low)), low, high, time_limit_s, 1.0)

    def best_scores(self, placed: Sequence[bool], left_s: Callable[[], float],
            gap: float) -> SolverResult:
        """Look for the placement of these units with the best scores.

        Few variables matter. The reduced cost of a variable in the relaxed
        program, where servers are divisible, bounds how far any placement with
        it is below the relaxed optimum. At first variables are left out that
        cost more than a hundredth of the largest score. If the result is not
        proven good enough, the bound is tightened (_cut_off()); then variables
        are left out that cannot improve a placement by more than the gap.
        """
        low, high = self._bounds(placed, placed)
        goal = np.zeros(len(low))
        goal[:self._pairs] = -self._table.scores[self._f, self._j]
        # Millions of millionths are hard to tell from errors.
        goal /= max(1.0, np.abs(goal).max(initial=0))
        relaxed = self._relaxed(goal, low, high, left_s())
        if relaxed.status != _OPTIMAL:
            return SolverResult(proven=relaxed.status == _INFEASIBLE)
        best, bound, cut = SolverResult(), -np.inf, _FIRST_CUT
        rounds_left = _CUT_ROUNDS
        while (seconds := left_s()) > 0:
            extra = np.abs(relaxed.lower.marginals)
            extra[self._pairs:] = 0
            is_all = bool(cut >= extra.max(initial=0))
            found = self._milp(
                goal, low, np.where(extra > cut, 0, high), seconds, gap / 2)
            best = min(best, found, key=lambda one: one.value)
            if best.where is None:
                if is_all:
                    return found
                cut *= _MORE
                continue
            bound = max(bound, relaxed.fun, found.bound if is_all
                        else min(relaxed.fun + cut, found.bound))
            most = best.value - max(gap, _EXACT) * abs(best.value)
            while most > bound and not is_all and rounds_left:
                rounds_left -= 1
                if not self._cut_off(relaxed.x):
                    break
                tighter = self._relaxed(goal, low, high, left_s())
                if tighter.status != _OPTIMAL:
                    break
                relaxed, bound = tighter, max(bound, tighter.fun)
            best = dataclasses.replace(best, proven=bool(most <= bound))
            if best.proven or is_all or most <= relaxed.fun + cut:
                return best
            cut = min(_MORE * cut, most - relaxed.fun)
        return best

    def _cut_off(self, x: Array) -> bool:
        """Add cuts that whole servers meet; return whether any is new."""
        rows, right = cuts(
            self._table.problem.demand[self._f], self._table.free, self._j,
            x[:self._pairs])
        if not len(right):
            return False
        rows.resize(len(right), len(x))
        self._matrix = scipy.sparse.vstack([self._matrix, rows], format="csr")
        self._low = np.append(self._low, np.full(len(right), -np.inf))
        self._high = np.append(self._high, right)
        return True

    def _bounds(
        self, must: Sequence[bool], may: Sequence[bool]
    ) -> tuple[Array, Array]:
        """Return lower and upper bounds of the variables."""
        low, high = (
            [sum(flags[u] for u in counter.units)
             for counter in self._counters] for flags in (must, may))
        return (np.append(np.zeros(self._pairs), low),
                np.append(self._most, high))

    def _relaxed(
        self, goal: Array, low: Array, high: Array, seconds: float) -> Any:
        """Solve the relaxed program, in which servers are divisible."""
        equal = self._low == self._high
        return scipy.optimize.linprog(
            goal, self._matrix[~equal], self._high[~equal],
            self._matrix[equal], self._high[equal],
            np.column_stack([low, high]), method="highs",
            options={"time_limit": max(_SHORTEST_S, seconds)}, )

    def _milp(self, goal: Array, low: Array, high: Array, seconds: float,
            gap: float) -> SolverResult:
        found = scipy.optimize.milp(
            goal, integrality=np.ones(len(low)),
            bounds=scipy.optimize.Bounds(low, high),
            constraints=scipy.optimize.LinearConstraint(
                self._matrix, self._low, self._high),
            options={"time_limit": max(_SHORTEST_S, seconds),
                     "mip_rel_gap": gap},
        )
        proven = found.status in (_OPTIMAL, _INFEASIBLE)
        if found.x is None:
            return SolverResult(proven=proven)
        # Check in whole numbers what was found in others.
        x = np.rint(found.x).astype(np.int64)
        where = {(int(self._f[n]), int(self._j[n])): int(x[n])
                 for n in np.flatnonzero(x[:self._pairs])}
        trial = self._table.copy()
        trial.move(where)
        if not trial.is_possible():
            return SolverResult()
        placed = [False] * len(self._units)
        for count, counter in zip(
            x[self._pairs:], self._counters, strict=True):
            # Of those that are alike the first.
            for u in counter.units[:count]:
                placed[u] = True
        return SolverResult(where, tuple(placed), proven, float(found.fun),
                      float(found.mip_dual_bound))

    def _constraints(self) -> tuple[Any, Array, Array]:
        """Return the matrix, and lower and upper bounds of its rows."""
        rows, columns, values, high = self._room()
        low = [-np.inf] * len(high)
        row_of = {
            f: len(low) + number for number, f in enumerate(
                sorted({counter.f for counter in self._counters}))}
        low += [0] * len(row_of)
        more = [(row_of[f], n, 1) for n, f in enumerate(self._f.tolist())]
        for n, counter in enumerate(self._counters, self._pairs):
            more.append((row_of[counter.f], n, -counter.size))
            if counter.base >= 0:
                more += [(len(low), n, 1), (
                    len(low), self._pairs + counter.base, -len(counter.units))]
                low.append(-np.inf)
        high = np.append(high, np.zeros(len(low) - len(high)))
        for array, others in zip(
            (rows, columns, values), zip(*more, strict=True), strict=True):
            array.append(np.array(others))
        matrix = scipy.sparse.csr_array(
            (np.concatenate(values).astype(float),
             (np.concatenate(rows), np.concatenate(columns))),
            shape=(len(low), self._pairs + len(self._counters)))
        return matrix, np.array(low), high

    def _room(self) -> tuple[list[Array], list[Array], list[Array], Array]:
        """Return rows, columns, values and upper bounds of capacity."""
        width = self._table.free.shape[1]
        layers = self._table.problem.layers
        at = np.concatenate([np.zeros(0, np.intp), *(
            self._j * width + k[self._f] for k, _amounts in layers)])
        value = np.concatenate([np.zeros(0), *(
            amounts[self._f].astype(float) for _k, amounts in layers)])
        column = np.tile(np.arange(self._pairs), len(layers))
        places, row = np.unique(at, return_inverse=True)
        high = self._table.free.reshape(-1)[places].astype(float)
        # Where all that may come have room there is no limit.
        limits = high * (1 - _EXACT) < np.bincount(
            row, value * self._most[column], len(places))
        kept = limits[row] & (value > 0)
        row = (np.cumsum(limits) - 1)[row[kept]]
        high, value = high[limits], value[kept]
        # Errors of the solver are to be shares of the largest.
        largest = np.ones(len(high))
        np.maximum.at(largest, row, value)
        return [row], [column[kept]], [value / largest[row]], high / largest


def useful_columns(scores: Array, count: int) -> Array:
    """Return the columns that are among the ``count`` best of some kind.

    An optimum uses no others: of its best columns a kind finds one empty, for
    the other servers take ``count - 1`` at most.
    """
    if count >= scores.shape[1]:
        return np.flatnonzero((scores > IMPOSSIBLE).any(axis=0))
    used = np.zeros(scores.shape[1], dtype=bool)
    for row in scores:
        # All that are better than the last, and of equal ones the first.
        last = np.partition(row, -count)[-count]
        used |= row > last
        equal = np.flatnonzero(row == last)
        used[equal[: count - np.count_nonzero(row > last)]] = True
    return np.flatnonzero(used & (scores > IMPOSSIBLE).any(axis=0))


def cuts(
    demand: Array, free: Array, hosts: Array, x: Array) -> tuple[Any, Array]:
    """Return cuts that whole servers meet, and the relaxed solution violates.

    A host of V takes whole servers of d: with any number q, a server counts
    ``c(d) = ceil(d (q + 1) / V) - 1``, and no host takes more than q in all.
    (If it took some of q + 1 or more, these would need more than V: c(d) is
    less than d (q + 1) / V.) Of three cores, say, two servers of two cores
    count q = 1 each, so that there is one at most, and not one and a half.
    These are the cuts of Chvatal (1973, doi 10.1016/0012-365X(73)90167-2)
    with a multiplier just above (q + 1) / V, the largest of them for each q.

    :param demand: [n, k] of the variables, in whole numbers
    :param free: [j, k] of hosts
    :param hosts: [n], of the variables
    :param x: [n], their values
    :returns: (sparse matrix [rows, n], right side [rows]) that x violates:
        the product with whole numbers of servers that fit is no more than
        the right side
    """
    # Whole numbers violate nothing.
    split = np.abs(x - np.rint(x)) > _LEAST
    concerned = np.zeros(len(free), dtype=bool)
    concerned[hosts[split]] = True
    n = np.flatnonzero(concerned[hosts])
    j, some = hosts[n], x[n]
    rows, columns, values = [n[:0]], [n[:0]], [n[:0]]
    right: list[int] = []
    for k in range(free.shape[1]):
        wanted = demand[n, k]
        if int(wanted.max(initial=0)) > _LARGEST // (_MOST_COUNTED + 1):
            continue
        room = np.maximum(free[j, k], 1)
        for q in range(1, _MOST_COUNTED + 1):
            counts = np.maximum((wanted * (q + 1) - 1) // room, 0)
            taken = np.bincount(j, counts * some, len(free))
            broken = np.flatnonzero(taken > q + _LEAST)
            number = np.full(len(free), -1)
            number[broken] = len(right) + np.arange(len(broken))
            here = np.flatnonzero((number[j] >= 0) & (counts > 0))
            rows.append(number[j[here]])
            columns.append(n[here])
            values.append(counts[here])
            right += [q] * len(broken)
    return scipy.sparse.csr_array(
        (np.concatenate(values).astype(float),
         (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(right), len(x)), ), np.array(right, dtype=float)


def _counters(units: Sequence[AtomicUnit]) -> list[_Counter]:
    """Return the variables that count placed units."""
    singles: dict[int, list[int]] = {}
    further: dict[int, list[int]] = {}
    found: list[_Counter] = []
    number_of: dict[int, int] = {}
    for number, unit in enumerate(units):
        if unit.base in number_of:
            further.setdefault(unit.base, []).append(number)
        elif unit.size > 1:
            number_of[number] = len(found)
            found.append(_Counter(unit.f, unit.size, (number,)))
        else:
            # Further servers of one that may start alone are like others.
            singles.setdefault(unit.f, []).append(number)
    found += [
        _Counter(units[base].f, 1, tuple(numbers), number_of[base])
        for base, numbers in further.items()]
    return found + [
        _Counter(f, 1, tuple(numbers)) for f, numbers in singles.items()]
