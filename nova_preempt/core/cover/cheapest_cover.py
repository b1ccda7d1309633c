# SPDX-License-Identifier: Apache-2.0

"""The cheapest cover: all methods in a row, each with its own budget."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

from nova_preempt.core.cover.branch_and_bound import branch
from nova_preempt.core.cover.label_search import search
from nova_preempt.core.cover.linear_relaxation import Item
from nova_preempt.core.cover.linear_relaxation import Row
from nova_preempt.core.cover.linear_relaxation import reduce


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """A cover as the sum of its keys; ``exact``: there is no cheaper one."""

    key: int
    exact: bool
    steps: int


def solve(
    items: Sequence[Item], need: Row, low: int, nodes: int, labels: int
) -> Answer | None:
    """Return the cheapest cover, or None if all items do not cover.

    Shapes: one amount a class in need and rows; keys are positive. ``low``:
    as in ``Keys``. ``nodes``, ``labels``: the budgets of the methods.
    """
    wanted = [(k, amount) for k, amount in enumerate(need) if amount > 0]
    if not wanted:
        return Answer(0, exact=True, steps=0)
    clipped = [
        (key, tuple([min(row[k], d) for k, d in wanted])) for key, row in items
    ]
    useful = [item for item in clipped if any(item[1])]
    target = tuple([amount for _, amount in wanted])
    for k, amount in enumerate(target):
        if sum([row[k] for _, row in useful]) < amount:
            return None
    problem = reduce(useful, target, low)
    best, exact, steps = branch(problem, problem.rounded(), nodes)
    if not exact and labels:
        best, exact, more = search(problem, best, labels)
        steps += more
    return Answer(best, exact, steps)
