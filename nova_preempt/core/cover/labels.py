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

"""Label search: what branch and bound leaves open, a round at a time.

Each round splits the units. Those that deviate most cheaply make the
*table*: all their combinations, in order of key, with a bitmap for each
class and amount that tells which of them free at least so much. All others
make the *labels*: every combination whose deviation is below a limit. For
one label the cheapest completion is then the lowest bit of the AND of one
bitmap a class: thousands of combinations in about as many nanoseconds.

Where memory or time would not suffice, the limit is lowered until the
labels do. The labels below it are complete all the same; so the round has
proven the best cover it knows as soon as that is below the limit, and
otherwise has most likely improved it, which makes the next, wider round
cheaper. In both parts, labels with equal residuals are merged where that
happens often enough to pay (many equal flavors, or few classes): the search
is then a dynamic program over the residual need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from nova_preempt.core.cover.reduced import Layout, Reduced

#: (shift, mask, bitmaps) of one class, see ``_column``
_Column: TypeAlias = tuple[int, int, list[int]]

#: (entries of the table, labels) of the stages before the last. Most of
#: what gets here ends in the first.
_STAGES = ((128, 256), (640, 1536))
#: A larger table is only worth its making where there are many labels.
_LARGEST_TABLE = 4096
#: How often a stage may raise its limit; a guard.
_PASSES = 20
#: A class has so many bitmaps (as a power of two), and an index of so many
#: entries, whatever its amounts; what they cannot tell apart is checked.
_BITMAP_BITS = 8
_INDEX_BITS = 14
#: Labels made, and table entries looked at, for each label that may be kept.
_EFFORT = 6


def search(problem: Reduced, best: int, labels: int) -> tuple[int, bool, int]:
    """Return (best key, whether that is proven, labels used).

    ``best``: the key of a known cover. ``labels``: how many may be kept at
    once, in the last stage.
    """
    stages = [stage for stage in _STAGES if stage[1] < labels]
    stages.append((_LARGEST_TABLE, labels))
    used = 0
    limit = problem.limit(best)
    for entries, keep in stages:
        best, done, steps = _stage(problem, best, limit, keep, entries)
        used += steps
        if problem.limit(best) <= done:
            return best, True, used
        limit = done or limit
    return best, False, used


def _stage(
    problem: Reduced, best: int, limit: int, keep: int, entries: int
) -> tuple[int, int, int]:
    """Return (best key, limit below which nothing is left, labels used).

    Starts at the given limit and raises it until the labels below it are
    too many. A pass looks only at labels that the one before did not have.
    """
    shift = problem.layout.deviation
    completions, split = _completions(problem, problem.limit(best), entries)
    table = _Table(problem.layout, completions)
    used = len(completions)
    done = 0
    for _ in range(_PASSES):
        limit = min(limit, problem.limit(best))
        labels, reached, made = _spread(problem, split, limit, keep)
        fresh = [label for label in labels if label >= done]
        best, looks = table.complete(problem, fresh, best, keep * _EFFORT)
        used += made + looks
        if reached <= done or looks >= keep * _EFFORT:
            break
        full = done and reached < limit and len(labels) * 4 > keep
        done = reached
        if full or problem.limit(best) <= done:
            break
        if fresh:
            step = 4 if len(fresh) * 16 > keep else 6
            limit = (done >> shift) * step // 3 << shift
        else:
            # Ties leave a gap of unknown width.
            limit = problem.limit(best)
    return best, done, used


class _Merger:
    """Keeps the cheapest of labels with equal residuals.

    Counting those costs about as much as making the labels, sorting them
    several times that, so the one decides on the other, and is not repeated
    soon where it finds little.
    """

    def __init__(self, layout: Layout) -> None:
        self._mask = layout.residual_mask
        self._next = 64

    def __call__(self, labels: list[int]) -> list[int]:
        if len(labels) < self._next:
            return labels
        mask = self._mask
        if len({label & mask for label in labels}) * 8 > len(labels) * 7:
            self._next = len(labels) * 8
            return labels
        labels = sorted(labels, reverse=True)
        return list({label & mask: label for label in labels}.values())


def _extend(labels: list[int], unit: Sequence[int], limit: int) -> list[int]:
    """Return the new labels below the limit that the unit makes."""
    fresh: list[int] = []
    for deviation in unit:
        room = limit - deviation
        if room <= 0:
            break
        fresh += [label + deviation for label in labels if label < room]
    return fresh


def _completions(
    problem: Reduced, limit: int, entries: int
) -> tuple[list[int], int]:
    """Return the table's labels and how many units they stand for.

    They count from the base set, so that their keys may be negative.
    """
    layout = problem.layout
    merge = _Merger(layout)
    labels = [layout.covered + (layout.key_zero << layout.key_shift)]
    for split, unit in enumerate(problem.units):
        if unit[0] >= limit:
            return labels, len(problem.units)
        fresh = _extend(labels, unit, limit)
        if len(labels) + len(fresh) > entries:
            return labels, split
        labels = merge(labels + fresh)
    return labels, len(problem.units)


def _spread(
    problem: Reduced, split: int, limit: int, keep: int
) -> tuple[list[int], int, int]:
    """Return (labels, the limit below which they are complete, work)."""
    merge = _Merger(problem.layout)
    labels = [problem.base]
    made = 0
    # The dearest deviations first: they leave the fewest labels alive.
    for unit in reversed(problem.units[split:]):
        fresh = _extend(labels, unit, limit)
        if not fresh:
            continue
        made += len(fresh)
        labels = merge(labels + fresh)
        # What a round may make is bounded too, or many units that each
        # double the labels only to see them cut would cost many times the
        # labels kept.
        room = max(1, min(keep, (keep * _EFFORT - made) // 4))
        if len(labels) > room:
            labels, limit = _cut(problem.layout, labels, room)
    return labels, limit, made


def _cut(
    layout: Layout, labels: list[int], room: int
) -> tuple[list[int], int]:
    """Return at most ``room`` labels and the limit they are all below.

    Unless ties forbid it, these are all labels below that limit. A quantile
    of a sample is cheaper than sorting them all.
    """
    shift = layout.deviation
    limit = 0
    while len(labels) > room:
        # An odd stride: labels are made in blocks of powers of two.
        sample = sorted(labels[:: len(labels) // 64 | 1])
        place = len(sample) * room * 3 // (len(labels) * 4)
        limit = sample[place] >> shift << shift
        fewer = [label for label in labels if label < limit]
        if not fewer or len(fewer) == len(labels):
            labels = sorted(labels)[:room]
            return labels, labels[-1] >> shift << shift
        labels = fewer
    return labels, limit


class _Table:
    """All combinations of some units, to be asked for the cheapest fit."""

    def __init__(self, layout: Layout, labels: list[int]) -> None:
        shift = layout.key_shift
        residual_mask = layout.residual_mask
        key_part = layout.key_mask << shift | residual_mask
        entries = sorted([label & key_part for label in labels])
        self._layout = layout
        self._keys = [(e >> shift) - layout.key_zero for e in entries]
        residuals = [entry & residual_mask for entry in entries]
        # Adding one of these to a label's residual takes away what the
        # entry frees.
        self._frees = [residual - layout.covered for residual in residuals]
        self._columns = [
            _column(shift, mask, [r >> shift & mask for r in residuals])
            for shift, mask in zip(layout.shifts, layout.masks, strict=True)
        ]

    def complete(
        self, problem: Reduced, labels: list[int], best: int, looks: int
    ) -> tuple[int, int]:
        """Return (the least key of any completion or ``best``, work done).

        Work is counted in entries looked at, one or more a label. Where it
        reaches ``looks``, labels may have been left out.
        """
        layout, keys, frees = self._layout, self._keys, self._frees
        residual_mask, guard = layout.residual_mask, layout.guard
        columns = self._columns
        limit = problem.limit(best)
        done = 0
        for label in labels:
            if label >= limit:
                continue
            if done >= looks:
                break
            done += 1
            residual = label & residual_mask
            fits = -1
            for shift, mask, bitmaps in columns:
                fits &= bitmaps[residual >> shift & mask]
            if not fits:
                continue
            room = best - layout.key(label)
            while fits:
                lowest = fits & -fits
                entry = lowest.bit_length() - 1
                if keys[entry] >= room:
                    break
                if not (residual + frees[entry]) & guard:
                    best += keys[entry] - room
                    limit = problem.limit(best)
                    break
                fits ^= lowest
                done += 1
        return best, done


def _column(shift: int, mask: int, residuals: list[int]) -> _Column:
    """Return the bitmaps of one class, from the entries' residual fields.

    ``bitmaps[x]`` has all entries that free what a label with x in the high
    bits of its field asks for, and may have some that free a little less.
    """
    # An entry's field is covered - freed, a label's is covered + lacking,
    # and covered is mask // 2: freed >= lacking is mask - 1 - entry >= x.
    freed = [mask - 1 - residual for residual in residuals]
    low, high = min(freed), max(freed)
    coarse = max(
        0,
        (high - low).bit_length() - _BITMAP_BITS,
        mask.bit_length() - _INDEX_BITS,
    )
    low, high = low >> coarse, high >> coarse
    size = len(freed) // 8 + 1
    blocks = [bytearray(size) for _ in range(low, high + 1)]
    for entry, amount in enumerate(freed):
        blocks[(amount >> coarse) - low][entry >> 3] |= 1 << (entry & 7)
    bitmap = 0
    bitmaps = []
    for block in reversed(blocks):
        bitmap |= int.from_bytes(block, "little")
        bitmaps.append(bitmap)
    bitmaps.reverse()
    mask >>= coarse
    return (
        shift + coarse,
        mask,
        [bitmap] * low + bitmaps + [0] * (mask - high),
    )
