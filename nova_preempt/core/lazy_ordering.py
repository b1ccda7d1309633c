# SPDX-License-Identifier: Apache-2.0

"""Lazy ordering by an expensive key, guided by a cheap lower bound."""

from collections.abc import Callable, Iterable, Iterator
import heapq
import itertools
from typing import Any, Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Key: TypeAlias = tuple[Any, ...]

_Entry: TypeAlias = tuple[Key, int, int, Item, Result | None]

# The state of an item: 0 = bounded, 1 = bounded closely, or
_EXACT = 2


def ascending(
    items: Iterable[Item], bound: Callable[[Item], Key | None],
    exact: Callable[[Item], tuple[Key, Result] | None],
    closer: Callable[[Item], Key | None] | None = None,
    promised: Callable[[Item], Key] | None = None,
) -> Iterator[tuple[Key, Item, Result]]:
    """Yield (key, item, result) in ascending order of the exact key.

    ``bound`` is called once for every item and returns a tuple that is not
    above the item's exact key, or None to drop the item. ``exact`` is called
    only when the bound of an item is the lowest, so that a caller who stops
    early pays for few calls; it returns the exact key and a result, or None to
    drop the item. ``closer`` is a tighter and more expensive bound that is
    called before ``exact``. The order does not depend on the order of items as
    long as keys differ: end keys in a unique id.

    ``promised`` is a bound that is known without work: items come in ascending
    order of it, and ``bound`` is not called before it is the lowest.
    """
    serial = itertools.count()
    later = _Later(items, promised)
    first = 0 if closer else 1
    heap: list[_Entry[Item, Result]] = [
        (key, first, next(serial), item, None)
        for key, item in _bounded(later.first(), bound)]
    heapq.heapify(heap)
    while heap or later:
        # Each item may precede all items that were bounded so far.
        while later.is_due(heap[0][0] if heap else None):
            for key, item in _bounded((later.take(),), bound):
                heapq.heappush(heap, (key, first, next(serial), item, None))
        if not heap:
            continue
        key, known, _, item, result = heapq.heappop(heap)
        if known == _EXACT:
            yield key, item, result  # type: ignore[misc]
            continue
        if not known and closer is not None:
            higher = closer(item)
            if higher is not None:
                heapq.heappush(heap, (higher, 1, next(serial), item, None))
            continue
        # A bound sorts before an equal exact key: the exact key behind it may
        # be equal too, and then the last part of the keys decides.
        found = exact(item)
        if found is not None:
            heapq.heappush(heap, (
                found[0], _EXACT, next(serial), item, found[1]))


def _bounded(
    items: Iterable[Item], bound: Callable[[Item], Key | None]
) -> Iterator[tuple[Key, Item]]:
    """Yield the items that are not dropped, each with its bound."""
    for item in items:
        key = bound(item)
        if key is not None:
            yield key, item


class _Later(Generic[Item]):
    """Items that are bounded only when their promised bound is the lowest."""

    def __init__(
        self, items: Iterable[Item], promised: Callable[[Item], Key] | None
    ) -> None:
        self._items = iter(items)
        self._promised = promised
        self._next: list[tuple[Key, Item]] = []

    def __bool__(self) -> bool:
        return bool(self._next)

    def first(self) -> Iterator[Item]:
        """Yield the items whose promised bound equals that of the first."""
        if self._promised is None:
            yield from self._items
            return
        least: Key | None = None
        for item in self._items:
            key = self._promised(item)
            if least is not None and key > least:
                self._next.append((key, item))
                return
            least = key
            yield item

    def is_due(self, key: Key | None) -> bool:
        """Return whether the next item may precede a key, None for any key."""
        return bool(self._next) and (key is None or self._next[0][0] <= key)

    def take(self) -> Item:
        """Return the next item."""
        _, item = self._next.pop()
        following = next(self._items, None)
        if following is not None and self._promised is not None:
            self._next.append((self._promised(following), following))
        return item
