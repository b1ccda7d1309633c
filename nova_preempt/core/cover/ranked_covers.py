# SPDX-License-Identifier: Apache-2.0

"""Enumerates covers in ascending order of key.

The best cover S of a space of sets (some items forced in, some out) leaves
the rest of the space in parts that do not overlap (Lawler, Management
Science 18, 1972): the sets that lack the first free member of S; those that
have it and lack the second; and so on; and the sets above S. The first are
spaces of the same kind. The last need no search, since every set above a
cover is one: they ascend as the sums of subsets of the other free items,
each of which comes from exactly one before it, by adding the next item or
by taking it in the last one's stead.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import heapq
from typing import TypeAlias

from nova_preempt.core.cover.candidate_keys import CandidateKeys
from nova_preempt.core.cover.cheapest_cover import FoundCover

#: (forced items, free items) -> the best cover, its key without the forced
Solver: TypeAlias = Callable[[list[int], list[int]], FoundCover | None]


@dataclasses.dataclass(frozen=True, slots=True)
class CoverCaps:
    """Caps on the members of a cover: (items, the most that it may have).

    A cover that breaks a cap divides the search: at least one of the members
    in excess must be missing. So the space is split by which one that is, and
    all sets with all of them are left out.
    """

    caps: Sequence[tuple[frozenset[int], int]] = ()

    def open(self, forced: list[int], free: list[int]) -> list[int] | None:
        """Return the free items that may join the forced items.

        None = the forced items alone break a cap.
        """
        for members, most in self.caps:
            held = len(members.intersection(forced))
            if held > most:
                return None
            if held == most:
                free = [i for i in free if i not in members]
        return free

    def excess(self, cover: list[int], forced: list[int]) -> list[int]:
        """Return members of which one must be missing; [] = no cap broken.

        The forced items, which do not break a cap themselves, are left out.
        """
        for members, most in self.caps:
            over = [i for i in cover if i in members]
            if len(over) > most:
                held = members.intersection(forced)
                others = [i for i in over if i not in held]
                return others[: most - len(held) + 1]
        return []


@dataclasses.dataclass(frozen=True, slots=True)
class _Space:
    """Covers that have all forced items, and otherwise free ones."""

    forced: list[int]
    free: list[int]


@dataclasses.dataclass(frozen=True, slots=True)
class _Above:
    """Supersets of a cover, up to the one that ends with ``others[last]``."""

    others: list[int]
    last: int


def ranked(
    keys: CandidateKeys, solver: Solver, caps: CoverCaps
) -> Iterator[tuple[list[int], bool]]:
    """Yield (indexes of a cover, whether its rank is proven).

    One call of the solver for every member of a cover, and only when the
    next cover is asked for. Covers that break a cap are yielded on the way
    to those that do not, but not all of them.
    """
    heap: list[tuple[int, _Space | _Above]] = []
    exact = True
    spaces = [_Space([], list(range(len(keys.keys))))]
    while True:
        for space in spaces:
            answer = solver(space.forced, space.free)
            if answer is not None:
                exact = exact and answer.exact
                forced = sum([keys.keys[i] for i in space.forced])
                heapq.heappush(heap, (answer.key + forced, space))
        if not heap:
            return
        key, origin = heapq.heappop(heap)
        cover = keys.decode(key)
        yield cover, exact
        spaces = []
        if isinstance(origin, _Space):
            over = caps.excess(cover, origin.forced)
            spaces = _lacking_one(origin, over or cover)
            if over:
                continue
            others = sorted(
                [keys.keys[i] for i in set(origin.free).difference(cover)])
            if others:
                heapq.heappush(heap, (key + others[0], _Above(others, 0)))
        elif origin.last + 1 < len(origin.others):
            above = _Above(origin.others, origin.last + 1)
            added = key + above.others[above.last]
            heapq.heappush(heap, (added, above))
            swapped = added - origin.others[origin.last]
            heapq.heappush(heap, (swapped, above))


def _lacking_one(space: _Space, cover: list[int]) -> list[_Space]:
    """Return the parts of the space that lack one of these members."""
    spaces = []
    forced, free = space.forced, space.free
    for member in [i for i in cover if i not in space.forced]:
        free = [i for i in free if i != member]
        spaces.append(_Space(forced, free))
        forced = [*forced, member]
    return spaces
