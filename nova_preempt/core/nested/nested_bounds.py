# SPDX-License-Identifier: Apache-2.0

"""Lower bounds of the victims' cost on a provider tree.

The bound of a placement is the larger of two: the cost of the dearest provider
alone, if servers were divisible; and the cost of all providers together, if
each server shared its cost evenly among the providers that it holds.
"""

from collections.abc import Sequence
import dataclasses

from nova_preempt.core import victims
from nova_preempt.core.model import Candidate, Slot
from nova_preempt.core.nested.provider_fit import ProviderTree


class TreeDemand:
    """The amounts that the parts of a request may take, by slot.

    :ivar most: the largest possible shortfall, if positive
    """

    def __init__(self, tree: ProviderTree) -> None:
        wanted: dict[Slot, int] = {}
        for part in tree.parts:
            for number in part.among:
                for slot, amount in tree.slots(part, number):
                    wanted[slot] = wanted.get(slot, 0) + amount
        self.slots = tuple(sorted(wanted))
        self.free = {slot: tree.free(slot) for slot in self.slots}
        self.limit = {slot: tree.most(slot) for slot in self.slots}
        self.most = {
            slot: less
            for slot in self.slots
            if (less := wanted[slot] - self.free[slot]) > 0
        }


@dataclasses.dataclass(frozen=True, slots=True)
class PartialPlacement:
    """The providers of the first parts of a request.

    ``shared`` and ``alone``: the two bounds.
    """

    chosen: tuple[int, ...]
    used: dict[Slot, int]
    shared: int
    alone: int

    @property
    def bound(self) -> int:
        """The lower bound of the cost of its victims."""
        return max(self.shared, self.alone)


class PlacementBounds:
    """Places parts, and computes lower bounds of the victims' cost.

    :param prices: of the candidates
    """

    def __init__(self, tree: ProviderTree, needed: TreeDemand,
                 pool: Sequence[Candidate], prices: Sequence[int]) -> None:
        self._tree = tree
        self._needed = needed
        self._offers: dict[Slot, list[tuple[int, int, int]]] = {
            slot: [] for slot in needed.most
        }
        for price, candidate in zip(prices, pool, strict=True):
            held = [
                (slot, amount)
                for slot, amount in candidate.resources.items()
                if amount and slot in needed.most]
            for slot, amount in held:
                self._offers[slot].append((price, price // len(held), amount))
        self._known: dict[tuple[Slot, int], tuple[int, int] | None] = {}

    def start(self) -> PartialPlacement:
        """Return the empty placement."""
        return PartialPlacement((), {}, 0, 0)

    def put(self, way: PartialPlacement,
            number: int) -> PartialPlacement | None:
        """Place the next part on a provider; None if it does not fit."""
        tree, needed = self._tree, self._needed
        depth = len(way.chosen)
        chosen = (*way.chosen, number)
        if not tree.agrees(chosen):
            return None
        used = dict(way.used)
        shared, alone = way.shared, way.alone
        for slot, amount in tree.slots(tree.parts[depth], number):
            before = used.get(slot, 0)
            used[slot] = before + amount
            if used[slot] > needed.limit[slot]:
                return None
            free = needed.free[slot]
            if used[slot] > free:
                price = self._price(slot, used[slot] - free)
                if price is None:
                    return None
                if before > free:
                    old = self._price(slot, before - free)
                    shared -= old[0] if old else 0
                shared += price[0]
                alone = max(alone, price[1])
        return PartialPlacement(chosen, used, shared, alone)

    def _price(self, slot: Slot, lack: int) -> tuple[int, int] | None:
        """Return both bounds of freeing an amount; None = not possible."""
        key = (slot, lack)
        if key not in self._known:
            offers = self._offers[slot]
            alone = victims.divisible(
                [(price, min(unit, lack)) for price, _, unit in offers], lack)
            shared = victims.divisible(
                [(share, min(unit, lack)) for _, share, unit in offers], lack)
            self._known[key] = (
                None if alone is None or shared is None else (shared, alone))
        return self._known[key]
