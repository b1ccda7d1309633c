# SPDX-License-Identifier: Apache-2.0

"""Depth-first branch and bound over deviations from the base set.

A node is a set of deviations, at most one a unit, and its children add one
of a later unit. Units and deviations ascend, so that the first one that
exceeds the limit ends the loop, and the node needs no bound but its own
label. This settles the everyday cases, where few deviations fit below the
incumbent, in some tens of nodes.
"""

from __future__ import annotations

from nova_preempt.core.cover.linear_relaxation import Reduced


def branch(problem: Reduced, best: int, nodes: int) -> tuple[int, bool, int]:
    """Return (best key, whether that is proven, nodes made).

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
