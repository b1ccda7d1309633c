# SPDX-License-Identifier: Apache-2.0

"""Finds the cheapest completion of a label, in a table of combinations.

The entries are in order of key, and for each class and amount a bitmap tells
which of them free at least that amount. The AND of one bitmap per class leaves
the entries that fit, and its lowest bit is the cheapest: thousands of
combinations are searched in about a microsecond.
"""

from typing import TypeAlias

from nova_preempt.core.cover.problem_reduction import LabelLayout
from nova_preempt.core.cover.problem_reduction import ReducedProblem

#: (shift, mask, bitmaps) of one class, see ``_column``
_Column: TypeAlias = tuple[int, int, list[int]]

#: The bitmaps of a class (as a power of two), and the entries of its index,
#: whatever its amounts; entries that they cannot tell apart are checked.
_BITMAP_BITS = 8
_INDEX_BITS = 14
#: The work to complete a label, in checks of one entry.
COMPLETION = 8


class CompletionTable:
    """Combinations of units, searchable for the cheapest that fits."""

    def __init__(self, layout: LabelLayout, labels: list[int]) -> None:
        shift = layout.key_shift
        residual_mask = layout.residual_mask
        key_part = layout.key_mask << shift | residual_mask
        entries = sorted([label & key_part for label in labels])
        self._layout = layout
        self._keys = [(e >> shift) - layout.key_zero for e in entries]
        residuals = [entry & residual_mask for entry in entries]
        # Added to a label's residual, takes away what the entry frees.
        self._frees = [residual - layout.covered for residual in residuals]
        self._columns = [
            _column(shift, mask, [r >> shift & mask for r in residuals])
            for shift, mask in zip(layout.shifts, layout.masks, strict=True)]

    def complete(
        self, problem: ReducedProblem, labels: list[int], best: int, work: int
    ) -> tuple[int, int]:
        """Return (least key of any completion, or ``best``; work done).

        Where that reaches ``work``, labels have been left out.
        """
        layout, keys, frees = self._layout, self._keys, self._frees
        residual_mask, guard = layout.residual_mask, layout.guard
        columns = self._columns
        limit = problem.limit(best)
        done = 0
        for label in labels:
            if label >= limit:
                continue
            if done >= work:
                break
            done += COMPLETION
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
        0, (high - low).bit_length() - _BITMAP_BITS,
        mask.bit_length() - _INDEX_BITS, )
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
        shift + coarse, mask,
        [bitmap] * low + bitmaps + [0] * (mask - high),
    )
