# SPDX-License-Identifier: Apache-2.0
"""The scheduler of ECSched: rounds of a minimum-cost flow.

In each round a machine takes one container at most, so the flow of the paper
(a node for each container and machine, capacity 1 on each arc) is an
assignment problem, which scipy solves. After each round the scores are
computed anew. Grouping, scores and the amounts that are left are those of
``core.batch``; the rounds are the paper's alone, since they place fewer
servers than one by one where there is little room.
"""

import collections
from collections.abc import Collection, Sequence
import functools

import numpy as np
import numpy.typing as npt
import scipy.optimize

from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import batch_placement
from nova_preempt.core.batch.free_capacity import IMPOSSIBLE
from nova_preempt.core.batch.free_capacity import FreeCapacity
from nova_preempt.core.batch.greedy_solver import AtomicUnit
from nova_preempt.core.batch.greedy_solver import Solution
from nova_preempt.core.batch.integer_program import useful_columns

ROUNDS = 5
FLOW = 'flow'


def placer(score: str, rounds: int = ROUNDS) -> batch_placement.BatchPlacer:
    """Return a BatchPlacer that places containers in rounds."""
    return batch_placement.BatchPlacer(
        batch_model.Options(score=score),
        search=functools.partial(_place_in_rounds, rounds))


def _place_in_rounds(
        rounds: int, table: FreeCapacity, units: Sequence[AtomicUnit],
        _options: batch_model.Options, _left_s: float | None) -> Solution:
    """Place units of one container each, and take them from the table."""
    at: dict[int, int] = {}
    score = 0
    for _ in range(rounds):
        waiting = [n for n in range(len(units)) if n not in at]
        found = assign(table.scores, [units[n].f for n in waiting])
        placed = {waiting[i]: j for i, j in found.items()}
        if not placed:
            break
        # The scores of a round are those at its begin.
        score += sum(int(table.scores[units[n].f, placed[n]]) for n in placed)
        for n, j in placed.items():
            table.take(units[n].f, j)
        at.update(placed)
    return Solution(tuple(n in at for n in range(len(units))),
        collections.Counter((units[n].f, j) for n, j in at.items()), score,
        FLOW)


def assign(scores: npt.NDArray[np.int64], order: Sequence[int]
           ) -> dict[int, int]:
    """Return {number in the order: machine} with the largest sum of scores.

    As many containers as possible get a machine, and none is left out for one
    that comes later: sets of containers that can have a machine each are the
    independent sets of a matroid, in which taking the next one that still
    fits ends with a largest set.

    :param scores: [class, machine], NO where it is not possible
    :param order: the class of each container, in order
    """
    chosen = _placeable(scores > IMPOSSIBLE, order)
    if not chosen:
        return {}
    columns = useful_columns(scores[sorted({*order})], len(order))
    rows = np.array([order[n] for n in chosen])
    costs = -scores[np.ix_(rows, columns)].astype(float)
    costs[costs == -IMPOSSIBLE] = np.inf
    _rows, found = scipy.optimize.linear_sum_assignment(costs)
    # Containers of a class are alike: in order of the machines' names.
    machines_of: dict[int, list[int]] = {}
    for n, machine in zip(chosen, columns[found].tolist(), strict=True):
        machines_of.setdefault(order[n], []).append(machine)
    for some in machines_of.values():
        some.sort(reverse=True)
    return {n: machines_of[order[n]].pop() for n in chosen}


def _placeable(possible: npt.NDArray[np.bool_], order: Sequence[int]
               ) -> list[int]:
    """Return the numbers of those that get a machine.

    By augmenting paths (H. W. Kuhn, 1955), one container after another.
    """
    owner = np.full(possible.shape[1], -1)
    chosen: list[int] = []
    closed: set[int] = set()
    for number, f in enumerate(order):
        if f not in closed:
            reached = _augment(possible, owner, f, closed)
            closed |= reached
            if not reached:
                chosen.append(number)
    return chosen


def _augment(possible: npt.NDArray[np.bool_], owner: npt.NDArray[np.int64],
             start: int, closed: Collection[int]) -> set[int]:
    """Give a class one more machine, or return the classes it could ask."""
    came: dict[int, tuple[int, int] | None] = {start: None}
    queue = [start]
    for f in queue:
        machines = np.flatnonzero(possible[f])
        owners = owner[machines]
        empty = np.flatnonzero(owners < 0)
        if len(empty):
            moves: tuple[int, int] | None = (f, int(machines[empty[0]]))
            while moves is not None:
                asking, machine = moves
                owner[machine] = asking
                moves = came[asking]
            return set()
        for g, first in zip(
                *np.unique(owners, return_index=True), strict=True):
            if int(g) not in came and int(g) not in closed:
                came[int(g)] = (f, int(machines[first]))
                queue.append(int(g))
    return set(came)
