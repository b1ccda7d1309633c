# SPDX-License-Identifier: Apache-2.0

"""Lazy ordering."""

from __future__ import annotations

from collections.abc import Iterator
import random
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.lazy_ordering import ascending
from tests.unit.core import support

#: (lower bound or None, what it is above that or None)
ITEMS = st.lists(
    st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)),
    max_size=12,
)


class TestAscending(unittest.TestCase):
    """Exact keys in order, as few as can be."""

    def test_nothing(self) -> None:
        self.assertEqual(
            [], list(ascending([], lambda _: (0,), lambda _: ((0,), 0)))
        )

    def test_stops_at_the_best(self) -> None:
        """The first item costs only the evaluation of its competitors."""
        asked = []

        def exact(item: int) -> tuple[tuple[int], str]:
            asked.append(item)
            return (item + 5,), f"result of {item}"

        found = next(ascending([9, 5, 0, 4, 6], lambda i: (i,), exact))
        self.assertEqual(((5,), 0, "result of 0"), found)
        self.assertEqual([0, 4, 5], asked)

    def test_shorter_bounds(self) -> None:
        """A bound may leave out the last parts of the key."""
        found = ascending(
            ["b", "a"], lambda _: (1,), lambda item: ((1, item), None)
        )
        self.assertEqual(["a", "b"], [item for _, item, _ in found])

    @support.LAW
    @hypothesis.given(ITEMS, st.randoms(use_true_random=False))
    def test_order(
        self,
        drawn: list[tuple[int | None, int | None]],
        source: random.Random,
    ) -> None:
        items = [(number, *pair) for number, pair in enumerate(drawn)]
        expected = sorted(
            (bound + above, number)
            for number, bound, above in items
            if bound is not None and above is not None
        )
        source.shuffle(items)

        def exact(
            item: tuple[int, int | None, int | None],
        ) -> tuple[tuple[int, int], int] | None:
            number, bound, above = item
            if bound is None or above is None:
                return None
            return (bound + above, number), number

        found = ascending(
            items,
            lambda item: None if item[1] is None else (item[1],),
            exact,
        )
        self.assertEqual(expected, [key for key, _, _ in found])
        # A bound in between changes nothing, and is asked for first.
        found = ascending(
            items,
            lambda item: None if item[1] is None else (item[1] - 5,),
            exact,
            lambda item: (item[1],),  # type: ignore[operator]
        )
        self.assertEqual(expected, [key for key, _, _ in found])
        # So does one that is promised, by which the items come.
        found = ascending(
            sorted(items, key=lambda item: (item[1] or 0) - 7),
            lambda item: None if item[1] is None else (item[1],),
            exact,
            promised=lambda item: ((item[1] or 0) - 7,),
        )
        self.assertEqual(expected, [key for key, _, _ in found])

    def test_later_items_are_not_evaluated(self) -> None:
        asked = []

        def bound(item: int) -> tuple[int]:
            asked.append(item)
            return (item + 1,)

        def taken() -> Iterator[int]:
            # It is known of one more that its turn has not come.
            for item in (0, 0, 2, 3, 4, 100, 1000):
                self.assertLess(item, 1000)
                yield item

        found = ascending(taken(), bound, lambda item: ((item + 2,), item),
                          promised=lambda item: (item,))
        self.assertEqual([0, 0, 2], [next(found)[2] for _ in range(3)])
        self.assertEqual([0, 0, 2, 3, 4], asked)

    def test_the_turn_of_the_others_is_that_of_the_first(self) -> None:
        """An item far above its bound does not cause others to be evaluated.
        """
        asked = []

        def bound(item: int) -> tuple[int]:
            asked.append(item)
            return (item or 1000,)

        found = ascending(iter(range(500)), bound,
                          lambda item: ((item or 1000,), item),
                          promised=lambda item: (item,))
        self.assertEqual([1, 2], [next(found)[2] for _ in range(2)])
        self.assertEqual([0, 1, 2], asked[:3])
        self.assertLess(len(asked), 6)

    def test_dropped_items_do_not_delay_others(self) -> None:
        found = ascending(
            [0, 1, 2, 3], lambda item: (item,) if item % 2 else None,
            lambda item: ((item,), item), promised=lambda item: (item,))
        self.assertEqual([1, 3], [item for _, item, _ in found])
