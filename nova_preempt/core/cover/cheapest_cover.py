# SPDX-License-Identifier: Apache-2.0

"""Finds the cheapest cover: several methods in turn, each with a budget."""

from collections.abc import Sequence
import dataclasses

from nova_preempt.core.cover.label_search import search
from nova_preempt.core.cover.problem_reduction import Item
from nova_preempt.core.cover.problem_reduction import ReducedProblem
from nova_preempt.core.cover.problem_reduction import Row
from nova_preempt.core.cover.problem_reduction import reduce


@dataclasses.dataclass(frozen=True, slots=True)
class FoundCover:
    """A cover as the sum of its keys; ``exact``: there is no cheaper one."""

    key: int
    exact: bool
    steps: int


def solve(
    items: Sequence[Item], need: Row, low: int, nodes: int, labels: int
) -> FoundCover | None:
    """Return the cheapest cover, or None if all items do not cover.

    Shapes: one amount a class in need and rows; keys are positive. ``low``:
    as in ``Keys``. ``nodes``, ``labels``: the budgets of the methods.
    """
    wanted = [(k, amount) for k, amount in enumerate(need) if amount > 0]
    if not wanted:
        return FoundCover(0, exact=True, steps=0)
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
    return FoundCover(best, exact, steps)


def branch(problem: ReducedProblem, best: int,
           nodes: int) -> tuple[int, bool, int]:
    """Return (best key, whether that is proven, nodes made).

    Depth-first branch and bound over deviations from the base set.

    A node is a set of deviations, at most one a unit, and its children add one
    of a later unit. Units and deviations ascend, so that the first one that
    exceeds the limit ends the loop, and the node needs no bound but its own
    label. This settles the everyday cases, where few deviations fit below the
    incumbent, in some tens of nodes.

    ``best``: the key of a known cover. ``nodes``: when about so many have
    been made the search ends.
    """
    layout, units = problem.layout, problem.units
    guard = layout.guard
    limit = problem.limit(best)
    stack = [(problem.base, 0)]
    used = 0
    while stack:
        label, start = stack.pop()
        if label >= limit:
            continue
        if used >= nodes:
            return best, False, used
        if not label & guard:
            key = layout.key(label)
            if key < best:
                best = key
                limit = problem.limit(best)
        children = []
        for unit in range(start, len(units)):
            room = limit - label
            if units[unit][0] >= room:
                break
            for deviation in units[unit]:
                if deviation >= room:
                    break
                children.append((label + deviation, unit + 1))
        # The smallest deviation is to be popped first.
        children.reverse()
        stack += children
        used += len(children)
    return best, True, used
