# SPDX-License-Identifier: Apache-2.0

"""A covering problem seen from its linear relaxation.

Prices of the classes (``dual``) split the items: those whose key is below
the worth of what they free are *in*, the others *out*. That base set need
not cover, but its priced cost ``floor`` is a lower bound of every cover,
and each deviation from it, dropping an item that is in or adding one that
is out, raises the bound by ``abs(key - worth)``. A cover better than
``best`` therefore deviates by less than ``best - floor`` in all; most items
deviate by more on their own, and keep their side for good (reduced-cost
fixing). What is left is an enumeration of deviations, for which a partial
solution is one integer, a *label*::

    deviation | key | guard, residual | ... | guard, residual
    (high)            (one field a class, low)

Taking one more deviation is one addition; labels compare by deviation; the
guard bit of a class is set as long as the class lacks something; and labels
with equal residuals differ by nothing but their keys.

Items with equal rows are interchangeable, so that of each such group only
the cheapest few can be in the optimum: one group is one choice (how many),
here a *unit*: the list of its deviations, ascending.
"""

from collections.abc import Sequence
import dataclasses
import math
from typing import TypeAlias

from nova_preempt.core.cover import dual_bound

Row: TypeAlias = tuple[int, ...]
Item: TypeAlias = tuple[int, Row]
Unit: TypeAlias = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class LabelLayout:
    """Positions of the fields of a label.

    ``shifts``, ``masks``: the residual field of each class, guard bit
    included; ``guard``: all guard bits; ``covered``: all fields where just
    nothing is missing. ``key_zero`` is the key field's middle, for labels
    that count from the base set and may be below it. ``deviation``: where
    the high part begins.
    """

    shifts: tuple[int, ...]
    masks: tuple[int, ...]
    guard: int
    residual_mask: int
    covered: int
    key_shift: int
    key_mask: int
    key_zero: int
    deviation: int

    def pack(self, row: Sequence[int]) -> int:
        """Return the amounts as a signed sum of residual fields."""
        return sum([a << s for a, s in zip(row, self.shifts, strict=True)])

    def key(self, label: int) -> int:
        """Return the key field of a complete label."""
        return label >> self.key_shift & self.key_mask


def make_layout(items: Sequence[Item], need: Row) -> LabelLayout:
    """Return a layout with room for every subset of the items.

    A residual r is stored as ``guard - 1 + r``: the guard bit is set just
    when r > 0.
    """
    shifts, masks = [], []
    guard = covered = position = 0
    for k, wanted in enumerate(need):
        total = sum([row[k] for _, row in items]) + wanted
        width = total.bit_length()
        shifts.append(position)
        masks.append((2 << width) - 1)
        guard |= 1 << position + width
        covered |= (1 << width) - 1 << position
        position += width + 1
    key_width = sum([key for key, _ in items]).bit_length() + 1
    return LabelLayout(
        tuple(shifts), tuple(masks), guard, (1 << position) - 1, covered,
        position, (1 << key_width) - 1, 1 << key_width - 1,
        position + key_width, )


@dataclasses.dataclass(frozen=True, slots=True)
class ReducedProblem:
    """The problem in units and labels.

    ``floor``: the lower bound of every cover. ``empty``: the residual
    fields of the empty set. ``base``: the label of the base set. ``units``:
    ascending. ``by_value``: (key, packed row) of items, best value first.
    """

    layout: LabelLayout
    floor: int
    empty: int
    base: int
    units: tuple[Unit, ...]
    by_value: tuple[tuple[int, int], ...]

    def limit(self, best: int) -> int:
        """Return what the labels of all covers below ``best`` are below."""
        return max(0, best - self.floor) << self.layout.deviation

    def rounded(self) -> int:
        """Return the key of a cover: the relaxation, rounded up.

        Items are taken by value until all is covered, then given back,
        dearest first, where they are not needed: none can be spared, but
        how far the cover is from the best is anybody's guess. O(n log n).
        """
        guard = self.layout.guard
        residual = self.empty
        taken = []
        for key, row in self.by_value:
            if not residual & guard:
                break
            residual -= row
            taken.append((key, row))
        total = 0
        for key, row in sorted(taken, reverse=True):
            if (residual + row) & guard:
                total += key
            else:
                residual += row
        return total


def reduce(items: Sequence[Item], need: Row, low: int) -> ReducedProblem:
    """Return the problem in reduced form.

    Shapes: rows and need have one amount a class; every need is positive
    and all items together cover it; rows do not exceed the need. ``low``:
    how many low bits of the keys the prices may ignore.
    """
    groups = _groups(items, need)
    kept = [(key, row) for row, keys in groups.items() for key in keys]
    layout = make_layout(kept, need)
    prices = [
        int(price) << low
        for price in dual_bound.multipliers(
            [float(key >> low) for key, _ in kept], [row for _, row in kept],
            need, )]
    floor = sum([p * d for p, d in zip(prices, need, strict=True)])
    empty = base = layout.covered + layout.pack(need)
    units = []
    by_value = []
    for row, keys in groups.items():
        worth = sum([p * a for p, a in zip(prices, row, strict=True)])
        packed = layout.pack(row)
        cost = label = 0
        # (priced cost, label) of the cheapest none, one, two, ...
        choices = [(0, 0)]
        for key in keys:
            cost += key - worth
            label += (key << layout.key_shift) - packed
            choices.append((cost, label))
            value = key / worth if worth else math.inf
            by_value.append((value, key, packed))
        choices.sort()
        floor += choices[0][0]
        base += choices[0][1]
        units.append(_unit(choices, layout))
    units.sort()
    by_value.sort()
    return ReducedProblem(
        layout, floor, empty, base, tuple(units),
        tuple([(key, packed) for _, key, packed in by_value]), )


def _unit(choices: Sequence[tuple[int, int]], layout: LabelLayout) -> Unit:
    """Return the deviations of all choices from the first."""
    least, start = choices[0]
    return tuple(
        [
            (cost - least << layout.deviation) + label - start
            for cost, label in choices[1:]])


def _groups(items: Sequence[Item], need: Row) -> dict[Row, list[int]]:
    """Return the keys of equal rows, ascending, as many as can be of use.

    Once as many have been taken as it needs to cover every class that the
    row frees at all, one more frees nothing that is missing.
    """
    groups: dict[Row, list[int]] = {}
    for key, row in items:
        groups.setdefault(row, []).append(key)
    for row, keys in groups.items():
        keys.sort()
        useful = max([-(-d // a) for d, a in zip(need, row, strict=True) if a])
        del keys[useful:]
    return dict(sorted(groups.items()))
