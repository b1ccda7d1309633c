# SPDX-License-Identifier: Apache-2.0

"""Multipliers that turn a covering problem into a strong lower bound.

For any multipliers ``p >= 0``, one a class, no subset that covers the need
costs less than ``p*need + sum(min(0, key - p*row))``. The best multipliers
solve the dual of the linear relaxation. With a handful of classes a dual
simplex on a dense tableau finds them in 10 to 30 pivots: it starts at the
empty set, whose multipliers (all 0) are already dual feasible, and one
pivot passes over as many items as the broken row can use up (the "bound
flipping" ratio test), which is what keeps the pivots few.

Floats are good enough here: the bound holds for whatever multipliers come
out, and is evaluated in integers by ``reduced``.
"""

from collections.abc import Sequence

_TINY = 1e-9
#: Never reached in practice (28 pivots at most were seen with 4 classes);
#: a guard against cycling. Any intermediate multipliers are valid.
_MAX_PIVOTS = 200


class _Tableau:
    """Basic variables as affine functions of the non-basic ones.

    Variables 0..n-1 are the items, within [0, 1]; variable n+k is the slack
    ``row_k * x - need_k`` of class k, within [0, inf). Every class is
    scaled so that its need is 1. A non-basic variable sits at one of its
    bounds.
    """

    def __init__(
        self, keys: Sequence[float], rows: Sequence[Sequence[int]],
        need: Sequence[int], ) -> None:
        items, classes = len(keys), len(need)
        self.body = [
            [row[k] / need[k] for row in rows] for k in range(classes)]
        self.costs = list(keys)
        self.values = [-1.0] * classes
        self.ceilings = [float("inf")] * classes
        self.basic = [items + k for k in range(classes)]
        self.others = list(range(items))
        self.ranges = [1.0] * items
        self.at_top = [False] * items

    def broken(self) -> tuple[int, float]:
        """Return the basic variable farthest out of bounds, and the excess.

        The excess is negative if the variable is below its floor; 0.0: none is
        out of bounds.
        """
        worst, which = 0.0, -1
        for k, (value, ceiling) in enumerate(
            zip(self.values, self.ceilings, strict=True)):
            excess = value if value < 0.0 else max(0.0, value - ceiling)
            if abs(excess) > max(abs(worst), _TINY):
                worst, which = excess, k
        return which, worst

    def entering(self, leaving: int, excess: float) -> int:
        """Return the entering variable, after moving those passed over.

        -1 if the row cannot be repaired.
        """
        sign = 1.0 if excess < 0.0 else -1.0
        row = self.body[leaving]
        ratios = sorted(
            [
                (abs(self.costs[j] / entry), j)
                for j, entry in enumerate(row) if abs(entry) > _TINY
                and (entry * sign > 0.0) != self.at_top[j]])
        slope = abs(excess)
        for _, j in ratios:
            slope -= abs(row[j]) * self.ranges[j]
            if slope <= _TINY:
                return j
            step = -1.0 if self.at_top[j] else 1.0
            self.at_top[j] = not self.at_top[j]
            self.move(j, step)
        return -1

    def move(self, j: int, step: float) -> None:
        """Move a non-basic variable; the basic ones follow."""
        for k, row in enumerate(self.body):
            self.values[k] += row[j] * step

    def pivot(self, leaving: int, entering: int, *, low: bool) -> None:
        """Exchange two variables; the leaving one goes to its broken bound."""
        row = self.body[leaving]
        inverse = 1.0 / row[entering]
        target = 0.0 if low else self.ceilings[leaving]
        step = (target - self.values[leaving]) * inverse
        start = self.ranges[entering] if self.at_top[entering] else 0.0
        self.move(entering, step)
        self.values[leaving] = start + step
        fresh = [-entry * inverse for entry in row]
        fresh[entering] = inverse

        def eliminate(line: list[float]) -> list[float]:
            factor = line[entering]
            if factor == 0.0:
                return line
            line = [a + factor * b for a, b in zip(line, fresh, strict=True)]
            line[entering] = factor * inverse
            return line

        self.costs = eliminate(self.costs)
        self.body = [
            fresh if k == leaving else eliminate(line)
            for k, line in enumerate(self.body)]
        self.basic[leaving], self.others[entering] = (
            self.others[entering], self.basic[leaving])
        self.ceilings[leaving], self.ranges[entering] = (
            self.ranges[entering], self.ceilings[leaving])
        self.at_top[entering] = not low


def multipliers(
    keys: Sequence[float], rows: Sequence[Sequence[int]], need: Sequence[int],
) -> list[float]:
    """Return the price of one unit of each class, all >= 0.

    Shapes: n keys >= 0, n rows of m amounts, m needs > 0. O(m * n) a pivot.
    """
    tableau = _Tableau(keys, rows, need)
    for _ in range(_MAX_PIVOTS):
        leaving, excess = tableau.broken()
        if leaving < 0:
            break
        entering = tableau.entering(leaving, excess)
        if entering < 0:
            break
        tableau.pivot(leaving, entering, low=excess < 0.0)
    prices = [0.0] * len(need)
    for variable, cost in zip(tableau.others, tableau.costs, strict=True):
        k = variable - len(keys)
        if k >= 0:
            prices[k] = max(0.0, cost) / need[k]
    return prices
