# SPDX-License-Identifier: Apache-2.0

"""Finds the cheapest victims on a host that is a tree of providers.

Over all placements of the groups of the request (nested.provider_fit), the
best set in the order of core.victims. Groups are placed one by one, the lowest
bound first; a complete placement has a known shortfall on each provider, and
its cheapest victims are a cover. Covers of all placements come in one
ascending order, so that the first is the best, whatever is still to be placed
(nested.nested_bounds).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
import heapq
import itertools

from nova_preempt.core import capacity as amounts
from nova_preempt.core import victims
from nova_preempt.core.cover.candidate_keys import CandidateKeys
from nova_preempt.core.cover.candidate_keys import make_keys
from nova_preempt.core.cover.cheapest_cover import FoundCover
from nova_preempt.core.cover.ranked_covers import ranked
from nova_preempt.core.model import (
    Candidate,
    Host,
    Refusal,
    Request,
    VictimCap,
    VictimSet,
)
from nova_preempt.core.nested import placements
from nova_preempt.core.nested.nested_bounds import PartialPlacement
from nova_preempt.core.nested.nested_bounds import PlacementBounds
from nova_preempt.core.nested.nested_bounds import TreeDemand
from nova_preempt.core.nested.provider_fit import ProviderTree


def cheapest_victims(
    request: Request, host: Host, *, accept: victims.Accept | None = None,
    caps: Iterable[VictimCap] = (),
    limits: victims.SearchLimits = victims.DEFAULT_LIMITS,
) -> VictimSet | Refusal | None:
    """Return the best set of the host's candidates for a request.

    See core.victims.cheapest_victims; surplus is counted in the requested
    classes, as a share of the host's total capacity of each. No victims are
    needed if the request fits.
    """
    tree = ProviderTree(request, host)
    if tree.refusal is not None:
        return tree.refusal
    needed = TreeDemand(tree)
    caps = tuple(caps)
    barred = {uuid for cap in caps if cap.most <= 0 for uuid in cap.uuids}
    pool = [
        each for each in sorted(host.candidates, key=lambda each: each.uuid)
        if each.uuid not in barred
        and (accept is not None or any(map(each.resources.get, needed.most)))]
    search = _TreeSearch(tree, needed, pool, limits, caps)
    if accept is None and not search.caps.caps:
        return search.cheapest()
    return search.accepted(accept)


def lower_bound(request: Request, host: Host) -> int | Refusal:
    """Return a lower bound of the cost of victims on a host."""
    tree = ProviderTree(request, host)
    if tree.refusal is not None:
        return tree.refusal
    bounds = PlacementBounds(
        tree, TreeDemand(tree), host.candidates,
        [each.cost for each in host.candidates], )
    way = bounds.start()
    for part in tree.parts:
        if len(part.among) > 1:
            break
        longer = bounds.put(way, part.among[0])
        if longer is None:
            return tree.no_room()
        way = longer
    return way.bound


class _TreeSearch(victims.CoverSearch):
    """A search for victims on a tree, see CoverSearch."""

    def __init__(self, tree: ProviderTree, needed: TreeDemand,
                 pool: Sequence[Candidate], limits: victims.SearchLimits,
                 caps: Sequence[VictimCap]) -> None:
        super().__init__(
            pool, needed.most, None, limits, caps, _keys(tree, needed, pool))
        self._tree = tree
        self._all_caps = caps
        self._bounds = PlacementBounds(tree, needed, pool, self.keys.keys)

    def cheapest(self) -> VictimSet | None:
        for chosen, exact in self.offers(1):
            if not exact:
                chosen = self.spare(chosen, self.frees_enough)
            return self.victims(chosen, optimal=exact)
        everybody = list(range(len(self.pool)))
        if not self.frees_enough(everybody):
            return None
        return self.victims(
            self.spare(everybody, self.frees_enough), optimal=False)

    def frees_enough(self, chosen: Sequence[int]) -> bool:
        return placements.fits(
            self._tree, amounts.total(self.pool[i].resources for i in chosen))

    def offers(self, checks: int) -> Iterator[tuple[list[int], bool]]:
        splits = self.limits.cap_splits
        for chosen, exact in self._ascending():
            if not checks or not splits:
                return
            if self.caps.excess(chosen, []):
                splits -= 1
            else:
                checks -= 1
                yield chosen, exact

    def _ascending(self) -> Iterator[tuple[list[int], bool]]:
        """Yield the covers of all placements, each once.

        After limits.placements steps further covers are not proven; one more
        placement is completed.
        """
        ticket = itertools.count()
        heap: list[tuple[int, int, int, PartialPlacement | _Covers]] = []
        seen: set[int] = set()
        parts = len(self._tree.parts)
        left = self.limits.placements
        exact = True

        def push(bound: int, depth: int,
                 item: PartialPlacement | _Covers) -> None:
            heapq.heappush(heap, (bound, -depth, next(ticket), item))

        push(0, 0, self._bounds.start())
        while heap:
            _, _, _, item = heapq.heappop(heap)
            covers: _Covers | None = None
            if isinstance(item, _Covers):
                if item.key not in seen:
                    seen.add(item.key)
                    yield item.cover, exact
                covers = item
            elif len(item.chosen) == parts:
                covers = _Covers(self._ranked(item), self.keys)
            elif left:
                left -= 1
                for way in self._next(item):
                    push(way.bound, len(way.chosen), way)
            else:
                exact = False
                heap.clear()
                whole = self._dive(item)
                if whole is not None:
                    covers = _Covers(self._ranked(whole), self.keys)
            if covers is not None and covers.advance():
                exact = exact and covers.exact
                push(covers.key, parts + 1, covers)

    def _next(self, way: PartialPlacement) -> list[PartialPlacement]:
        """Return the placements with the next part placed."""
        tree, chosen = self._tree, way.chosen
        found = []
        for number in tree.parts[len(chosen)].among:
            if placements.is_repeated(tree, chosen, number) or (
                placements.has_twin(tree, chosen, number)):
                continue
            longer = self._bounds.put(way, number)
            if longer is not None:
                found.append(longer)
        return found

    def _dive(self, way: PartialPlacement) -> PartialPlacement | None:
        """Return a complete placement by depth-first search, None if none."""
        left = self.limits.placements
        stack = [way]
        while stack and left >= 0:
            way = stack.pop()
            if len(way.chosen) == len(self._tree.parts):
                return way
            left -= 1
            stack.extend(sorted(self._next(way), key=lambda each: each.bound,
                                reverse=True))
        return None

    def _ranked(self,
                way: PartialPlacement) -> Iterator[tuple[list[int], bool]]:
        """Yield the covers of a complete placement."""
        missing = {
            slot: amount - self._tree.free(slot)
            for slot, amount in sorted(way.used.items())
            if amount > self._tree.free(slot)
        }
        search = victims.CoverSearch(
            self.pool, missing, None, self.limits, self._all_caps, self.keys)

        def solve(forced: list[int], free: list[int]) -> FoundCover | None:
            # All placements share one budget.
            search.steps = self.steps
            answer = search.solve(forced, free)
            self.steps = search.steps
            return answer

        return ranked(self.keys, solve, search.caps)


class _Covers:
    """Iterator over the covers of a placement, with a current cover."""

    def __init__(self, covers: Iterator[tuple[list[int], bool]],
                 keys: CandidateKeys) -> None:
        self._covers = covers
        self._keys = keys.keys
        self.cover: list[int] = []
        self.exact = True
        self.key = 0

    def advance(self) -> bool:
        """Go to the next cover; return whether there is one."""
        found = next(self._covers, None)
        if found is None:
            return False
        self.cover, self.exact = found
        self.key = sum([self._keys[i] for i in self.cover])
        return True


def _keys(tree: ProviderTree, needed: TreeDemand,
          pool: Sequence[Candidate]) -> CandidateKeys:
    """Return keys of candidates, with surplus by class, not by provider."""
    has: dict[str, int] = {}
    names = {slot[1] for slot in needed.slots}
    for provider in tree.providers:
        for name in names & set(provider.inventories):
            has[name] = (
                has.get(name, 0) + provider.inventories[name].capacity)
    return make_keys(
        pool, {},
        {
            (provider.uuid, name): has[name]
            for provider in tree.providers
            for name in provider.inventories
            if name in has
        },
    )
