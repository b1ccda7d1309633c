# SPDX-License-Identifier: Apache-2.0

"""Label search: solves what branch and bound leaves open, in stages.

A stage splits the units. All combinations of the units that deviate most
cheaply make a *table* (see completion_table), which gives the cheapest
completion of every combination of the other units. Of these only those are
made, as *labels*, whose deviation is below a limit.

The limit is raised pass by pass. Labels below it are complete, so that the
best known cover is proven once the limit exceeds its possible deviation;
meanwhile better covers are found and lower that goal. If there are too many
labels the limit is lowered until they are few enough, and the next stage
continues with a larger table.

In both parts, labels with equal residuals are merged where that happens often
enough to pay (few flavors, or few classes): the search is then a dynamic
program over the residual need.
"""

from nova_preempt.core.cover.completion_table import COMPLETION
from nova_preempt.core.cover.completion_table import CompletionTable
from nova_preempt.core.cover.problem_reduction import LabelLayout
from nova_preempt.core.cover.problem_reduction import ReducedProblem

#: (entries of the table, work) of the stages before the last. Most of what
#: gets here ends in the first.
_STAGES = ((128, 4_000), (640, 20_000))
#: A larger table is only worth its making where there are many labels.
_LARGEST_TABLE = 4096
#: Work is counted in labels made, about 0.15 microseconds each; these are
#: the prices, as measured, of an entry of a table and of merging a label.
_ENTRY, _MERGED = 12, 2


class _Work:
    """The remaining work."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class _Merger:
    """Keeps the cheapest of labels with equal residuals.

    Counting distinct residuals costs about as much as making the labels,
    sorting several times that. So the count decides on sorting, and is not
    repeated soon if it finds few duplicates.
    """

    def __init__(self, layout: LabelLayout, work: _Work) -> None:
        self._mask = layout.residual_mask
        self._work = work
        self._next = 64

    def __call__(self, labels: list[int]) -> list[int]:
        if len(labels) < self._next:
            return labels
        mask = self._mask
        self._work.left -= len(labels)
        if len({label & mask for label in labels}) * 8 > len(labels) * 7:
            self._next = len(labels) * 8
            return labels
        self._work.left -= len(labels) * (_MERGED - 1)
        labels = sorted(labels, reverse=True)
        return list({label & mask: label for label in labels}.values())


def search(problem: ReducedProblem, best: int,
           labels: int) -> tuple[int, bool, int]:
    """Return (best key, whether that is proven, labels used).

    ``best``: the key of a known cover. ``labels``: how many may be made, or
    what takes as long.
    """
    stages = [stage for stage in _STAGES if 2 * stage[1] < labels]
    used = 0
    limit = problem.limit(best)
    for entries, share in [*stages, (_LARGEST_TABLE, labels)]:
        most = min(share, labels - used)
        work = _Work(most)
        entries = min(entries, most // (3 * _ENTRY))
        best, done = _stage(problem, best, limit, entries, work)
        used += most - work.left
        if problem.limit(best) <= done:
            return best, True, used
        limit = done or limit
    return best, False, used


def _stage(
    problem: ReducedProblem, best: int, limit: int, entries: int, work: _Work
) -> tuple[int, int]:
    """Return (best key, limit below which nothing is left).

    Starts at the given limit and raises it until the labels below it are
    too many.
    """
    shift = problem.layout.deviation
    completions, split = _completions(
        problem, problem.limit(best), entries, work)
    table = CompletionTable(problem.layout, completions)
    done = 0
    while True:
        limit = min(limit, problem.limit(best))
        keep = max(1, work.left // COMPLETION)
        labels, reached = _spread(problem, split, limit, work)
        fresh = [label for label in labels if label >= done]
        best, looked = table.complete(problem, fresh, best, work.left)
        work.left -= looked
        if work.left <= 0 or reached <= done:
            return best, done
        full = done and reached < limit and len(labels) * 4 > keep
        done = reached
        if full or problem.limit(best) <= done:
            return best, done
        if fresh:
            # The number of labels grows with about the limit's 4th power.
            step = 4 if len(fresh) * 16 > keep else 6
            limit = (done >> shift) * step // 3 << shift
        else:
            # Ties leave a gap of unknown width.
            limit = problem.limit(best)


def _completions(
    problem: ReducedProblem, limit: int, entries: int, work: _Work
) -> tuple[list[int], int]:
    """Return the table's labels and how many units they stand for.

    They count from the base set, so that their keys may be negative.
    """
    layout = problem.layout
    merge = _Merger(layout, work)
    labels = [layout.covered + (layout.key_zero << layout.key_shift)]
    split = 0
    for unit in problem.units:
        more = labels.copy()
        for deviation in unit:
            space = limit - deviation
            if space <= 0:
                break
            more += [label + deviation for label in labels if label < space]
            if len(more) > entries:
                work.left -= len(labels) * _ENTRY
                return labels, split
        labels = merge(more) if len(more) > len(labels) else labels
        split += 1
    work.left -= len(labels) * _ENTRY
    return labels, split


def _spread(
    problem: ReducedProblem, split: int, limit: int, work: _Work
) -> tuple[list[int], int]:
    """Return labels, and the limit below which they are all there is."""
    layout = problem.layout
    merge = _Merger(layout, work)
    labels = [problem.base]
    # The dearest deviations first: they leave the fewest labels alive.
    for unit in reversed(problem.units[split:]):
        if unit[0] >= limit:
            continue
        more = labels.copy()
        for deviation in unit:
            space = limit - deviation
            if space <= 0:
                break
            known = len(more)
            more += [label + deviation for label in labels if label < space]
            work.left -= len(more) - known
            # What is kept must also be completed.
            room = max(1, work.left // COMPLETION)
            if len(more) > 2 * room:
                more, limit = _cut(layout, merge(more), room, limit)
                labels = [label for label in labels if label < limit]
        labels = merge(more)
    room = max(1, work.left // COMPLETION)
    return _cut(layout, labels, room, limit)


def _cut(
    layout: LabelLayout, labels: list[int], room: int, limit: int
) -> tuple[list[int], int]:
    """Return at most ``room`` labels, and their limit, lowered if need be.

    Unless ties forbid it, these are all labels below that limit. A quantile
    of a sample is cheaper to have than their order.
    """
    shift = layout.deviation
    while len(labels) > room:
        # An odd stride: labels are made in blocks of powers of two.
        sample = sorted(labels[:: len(labels) // 64 | 1])
        place = len(sample) * room * 3 // (len(labels) * 4)
        limit = min(limit, sample[place] >> shift << shift)
        fewer = [label for label in labels if label < limit]
        if not fewer or len(fewer) == len(labels):
            labels = sorted(labels)[:room]
            return labels, min(limit, labels[-1] >> shift << shift)
        labels = fewer
    return labels, limit
