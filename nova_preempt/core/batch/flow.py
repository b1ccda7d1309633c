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
"""Best assignment of classes of requests to columns, one server in each.

A column is a host, or one of several slots of it. As many servers as possible
get one, no server is left out for one that comes later in the order, and of
all such assignments the sum of scores is the largest. The first two are no
contradiction: sets of servers that can have a column each are the independent
sets of a matroid, in which taking whoever is next and still fits ends with a
largest set.

The paper's network (a node for each container and machine, capacity 1 on each
arc) is this assignment problem. Servers of a class are alike, so a network of
classes has the same optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.optimize

from nova_preempt.core.as_list import as_list
from nova_preempt.core.batch import bidding
from nova_preempt.core.batch import model
from nova_preempt.core.batch.arrays import NO

Array: TypeAlias = npt.NDArray[Any]

#: So many classes are few: each step looks at all pairs of them.
_FEW = 48


def assign(
    scores: Array,
    order: Sequence[int],
    solver: str = "auto",
    *,
    unscheduled_free: bool = False,
) -> Array:
    """Return the class of each column, -1 where it stays empty.

    :param scores: [class, column], NO where it is not possible
    :param order: the class of each server, in order
    :param unscheduled_free: leave a server out, whoever it is, rather than
        to add a negative amount to the sum
    """
    columns = worth_it(scores, len(order))
    found = np.full(scores.shape[1], -1)
    if len(columns) and len(order):
        solve = _SOLVERS[solver]
        if solver == "auto" and len(set(order)) > _FEW:
            solve = _assignment
        found[columns] = solve(scores[:, columns], order, unscheduled_free)
    return found


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


class _Paths:
    """Successive shortest paths in the network of classes.

    Each server in turn takes the path of the largest gain: to an empty
    column, or to one of another class, which takes another in its place and
    so on. That keeps the sum the largest for those placed so far.
    """

    def __init__(
        self, scores: Array, most: int, owner: Array | None = None
    ) -> None:
        self.scores = scores
        # A row for each column: what is looked at together is together.
        self._by_column = np.ascontiguousarray(scores.T)
        self.owner = np.full(scores.shape[1], -1)
        # The same as "whether", which is faster to look at one by one.
        self._taken = bytearray(scores.shape[1])
        self._rows = np.arange(len(scores))
        # The best columns of each class first, of equal ones the first.
        self._ranked = [
            as_list(np.argsort(-row, kind="stable")[:most]) for row in scores
        ]
        self._next = [0] * len(scores)
        # The gain of an empty column, and of one taken from another class.
        self._empty = np.full(len(scores), NO)
        self._swap = np.full((len(scores), len(scores)), NO)
        self._which = np.zeros((len(scores), len(scores)), dtype=np.intp)
        if owner is not None:
            for f in range(len(scores)):
                self._own(f, np.flatnonzero(owner == f))
        for f in range(len(scores)):
            self._advance(f)

    def gains(self) -> tuple[Array, Array]:
        """Return the largest gain of each class, and what comes next on it."""
        gain: Array = self._empty.copy()
        then: Array = np.full(len(gain), -1)
        while True:
            other = self._swap + gain
            best = other.argmax(axis=1)
            value = other[self._rows, best]
            better = value > gain
            if not better.any():
                return gain, then
            gain = np.where(better, value, gain)
            then = np.where(better, best, then)

    def run(self, f: int, gain: Array, most: int) -> int:
        """Place some on empty columns at once, as long as that is best.

        A way round by another class gains no more than it does now: empty
        columns only become fewer.
        """
        round_by = int((self._swap[f] + gain).max())
        columns: list[int] = []
        ranked, number = self._ranked[f], self._next[f]
        while len(columns) < most and number < len(ranked):
            column = ranked[number]
            if not self._taken[column]:
                if self.scores[f, column] < max(round_by, NO + 1):
                    break
                columns.append(column)
            number += 1
        self._own(f, np.array(columns))
        self._advance_all()
        return len(columns)

    def _own(self, f: int, columns: Array) -> None:
        """Place servers of a class on empty columns."""
        if len(columns):
            self.owner[columns] = f
            for column in as_list(columns):
                self._taken[column] = True
            self._gain(f, columns)

    def place(self, f: int, then: Array) -> None:
        """Move along the path of a class."""
        changed = []
        while then[f] >= 0:
            other = int(then[f])
            column = int(self._which[f, other])
            changed.append((column, f, other))
            f = other
        column = self._ranked[f][self._next[f]]
        changed.append((column, f, -1))
        for column, new, _old in changed:
            self.owner[column] = new
        self._taken[column] = True
        for column, _new, old in changed:
            if old >= 0:
                self._lose(old, column)
        for column, new, _old in changed:
            self._gain(new, np.array([column]))
        self._advance_all()

    def _advance_all(self) -> None:
        for f in range(len(self._next)):
            if self._empty[f] > NO:
                self._advance(f)

    def _advance(self, f: int) -> None:
        """Go on to the best column that is still empty."""
        ranked, number = self._ranked[f], self._next[f]
        while number < len(ranked) and self._taken[ranked[number]]:
            number += 1
        if number != self._next[f] or not number:
            self._next[f] = number
            self._empty[f] = (
                self.scores[f, ranked[number]] if number < len(ranked) else NO
            )

    def _lose(self, f: int, column: int) -> None:
        """Find anew who gains most by a column of this class."""
        if not (self._which[:, f] == column).any():
            return
        columns = np.flatnonzero(self.owner == f)
        if not len(columns):
            self._swap[:, f] = NO
            return
        gains = self._of(columns, f)
        best = gains.argmax(axis=0)
        self._swap[:, f] = gains[best, self._rows]
        self._which[:, f] = columns[best]

    def _gain(self, f: int, columns: Array) -> None:
        gains = self._of(columns, f)
        best = gains.argmax(axis=0)
        value = gains[best, self._rows]
        better = value > self._swap[:, f]
        self._swap[better, f] = value[better]
        self._which[better, f] = columns[best[better]]

    def _of(self, columns: Array, f: int) -> Array:
        """What each class gains by these columns of a class."""
        taken = self._by_column[columns]
        # What is not possible stays so, and adds up to what can be held.
        gains: Array = np.maximum(taken - taken[:, f, None], NO)
        return gains


def _by_classes(
    scores: Array, order: Sequence[int], unscheduled_free: bool
) -> Array:
    if unscheduled_free:
        return _cheapest(scores, order)
    counts = np.bincount(order, minlength=len(scores))
    found = _all(scores, counts)
    if found is None:
        found = _all(scores, placeable(scores, order))
        assert found is not None
    return found


def _all(scores: Array, counts: Array) -> Array | None:
    """Place so many of each class, or say that it is not possible.

    In whatever order: those with the highest scores first, since they seldom
    have to make place for others.
    """
    owner = bidding.bid(scores, counts)
    left_of = counts - np.bincount(owner[owner >= 0], minlength=len(counts))
    if not left_of.any():
        return owner
    paths = _Paths(scores, int(counts.sum()), owner)
    highest = np.argsort(-scores.max(axis=1), kind="stable")
    for f in as_list(highest):
        left = int(left_of[f])
        while left:
            gain, then = paths.gains()
            if gain[f] <= NO // 2:
                return None
            if then[f] < 0:
                left -= paths.run(f, gain, left)
            else:
                paths.place(f, then)
                left -= 1
    return paths.owner


def _cheapest(scores: Array, order: Sequence[int]) -> Array:
    """Place as many as add something to the sum."""
    paths = _Paths(scores, len(order))
    left = np.bincount(order, minlength=len(scores))
    while left.any():
        gain, then = paths.gains()
        gain[left == 0] = NO
        f = int(gain.argmax())
        if gain[f] < 0:
            break
        paths.place(f, then)
        left[f] -= 1
    return paths.owner


def _assignment(
    scores: Array, order: Sequence[int], unscheduled_free: bool
) -> Array:
    """By scipy, a row for each server."""
    counts = np.bincount(order, minlength=len(scores))
    if not unscheduled_free:
        counts = placeable(scores, order)
    rows = np.repeat(np.arange(len(scores)), counts)
    costs = np.where(scores > NO, -scores, np.inf)[rows]
    if unscheduled_free:
        costs = np.hstack([costs, np.zeros((len(rows), len(rows)))])
    found = np.full(scores.shape[1], -1)
    if len(rows):
        numbers, columns = scipy.optimize.linear_sum_assignment(costs)
        real = columns < scores.shape[1]
        found[columns[real]] = rows[numbers[real]]
    return found


def _ortools(
    scores: Array, order: Sequence[int], unscheduled_free: bool
) -> Array:
    # Only where it is chosen; it is an extra of its own.
    from nova_preempt.core.batch import ortools_flow

    counts = np.bincount(order, minlength=len(scores))
    if not unscheduled_free:
        counts = placeable(scores, order)
    return ortools_flow.assign(scores, counts, unscheduled_free)


_SOLVERS = {
    "auto": _by_classes,
    model.CLASSES: _by_classes,
    model.ASSIGNMENT: _assignment,
    model.ORTOOLS: _ortools,
}


def placeable(scores: Array, order: Sequence[int]) -> Array:
    """Return how many of each class can be placed, nobody for one later.

    By augmenting paths (H. W. Kuhn, 1955), one server after another.
    """
    possible = scores > NO
    owner = np.full(scores.shape[1], -1)
    counts = np.zeros(len(scores), dtype=np.int64)
    closed = np.zeros(len(scores), dtype=bool)
    for f in order:
        if closed[f]:
            continue
        reached = _augment(possible, owner, f, closed)
        if reached is None:
            counts[f] += 1
        else:
            closed[list(reached)] = True
    return counts


def _augment(
    possible: Array, owner: Array, start: int, closed: Array
) -> set[int] | None:
    """Give a class one more column; or return the classes it could ask."""
    came: dict[int, tuple[int, int] | None] = {start: None}
    queue = [start]
    for f in queue:
        columns = np.flatnonzero(possible[f])
        owners = owner[columns]
        empty = np.flatnonzero(owners < 0)
        if len(empty):
            column = int(columns[empty[0]])
            here: int | None = f
            while here is not None:
                owner[column] = here
                link = came[here]
                if link is None:
                    break
                here, column = link
            return None
        for g, first in zip(
            *np.unique(owners, return_index=True), strict=True
        ):
            if int(g) not in came and not closed[g]:
                came[int(g)] = (f, int(columns[first]))
                queue.append(int(g))
    return set(came)
