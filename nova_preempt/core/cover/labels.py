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

import bisect
from collections.abc import Sequence
from typing import TypeAlias

from nova_preempt.core.cover.reduced import Layout, Reduced

#: (shift, mask, marks, bitmaps) of one class, see ``_column``
_Column: TypeAlias = tuple[int, int, list[int], list[int]]

#: The first round; most of what gets here ends in it.
_FIRST_LABELS = 256
_FIRST_TABLE = 128
#: A round may keep so many times the labels of the one before.
_GROWTH = 6
#: A table costs more to build for every entry than a label, and repays it
#: only in wide rounds.
_TABLE_GROWTH = 5
_LARGEST_TABLE = 4096
#: Entries that share a bitmap; what lies in between is checked one by one.
_BLOCK = 64
#: Labels made, and table entries looked at, in a round for each one kept.
_EFFORT = 6


def search(problem: Reduced, best: int, labels: int) -> tuple[int, bool, int]:
    """Return (best key, whether that is proven, labels used).

    ``best``: the key of a known cover. ``labels``: how many may be kept at
    once, in the last round; 0 = no round at all.
    """
    used = 0
    keep, entries = min(labels, _FIRST_LABELS), _FIRST_TABLE
    while keep:
        best, proven, steps = _round(problem, best, keep, entries)
        used += steps
        if proven or keep >= labels:
            return best, proven, used
        keep = min(labels, keep * _GROWTH)
        entries = min(entries * _TABLE_GROWTH, _LARGEST_TABLE)
    return best, False, used


def _round(
    problem: Reduced, best: int, keep: int, entries: int
) -> tuple[int, bool, int]:
    """Return (best key, whether that is proven, labels used)."""
    layout = problem.layout
    limit = problem.limit(best)
    completions, split = _completions(problem, limit, entries)
    table = _Table(layout, completions)
    labels, limit, made = _spread(problem, split, limit, keep)
    best, looks = table.complete(problem, labels, best, keep * _EFFORT)
    proven = looks < keep * _EFFORT and problem.limit(best) <= limit
    return best, proven, made + len(completions) + looks


class _Merger:
    """Keeps the cheapest of labels with equal residuals.

    It sorts and hashes, several times the price of making a label, so it
    looks only when there are some, and less often when it finds nothing.
    """

    def __init__(self, layout: Layout) -> None:
        self._mask = layout.residual_mask
        self._next = 64

    def __call__(self, labels: list[int]) -> list[int]:
        if len(labels) < self._next:
            return labels
        mask = self._mask
        merged = list(
            {label & mask: label for label in sorted(labels, reverse=True)}
            .values()
        )
        pays = len(merged) * 8 < len(labels) * 7
        self._next = len(merged) if pays else len(labels) * 4
        return merged


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
            for shift, mask, marks, bitmaps in columns:
                asked = residual >> shift & mask
                fits &= bitmaps[bisect.bisect_left(marks, asked)]
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

    What label field ``x`` asks for is freed by all entries in ``bitmaps[i]``
    but for some of one block, where i is the number of marks below x.
    """
    # An entry's field is covered - freed, a label's is covered + lacking,
    # and covered is mask // 2: freed >= lacking is mask - 1 - entry >= x.
    freed = [mask - 1 - residual for residual in residuals]
    order = sorted(range(len(freed)), key=freed.__getitem__)
    marks = [freed[order[-1]]]
    bitmaps = [0]
    bitmap = 0
    for start in range((len(order) - 1) // _BLOCK * _BLOCK, -1, -_BLOCK):
        block = bytearray(len(freed) // 8 + 1)
        for entry in order[start : start + _BLOCK]:
            block[entry >> 3] |= 1 << (entry & 7)
        bitmap |= int.from_bytes(block, "little")
        marks.append(freed[order[start]])
        bitmaps.append(bitmap)
    bitmaps.append(bitmap)
    return shift, mask, marks[::-1], bitmaps[::-1]
