# SPDX-License-Identifier: Apache-2.0

"""Requirements of a request on one provider or a provider tree.

Where the host's own provider has all that is asked for it is looked at
alone, as most requests are served (core.capacity, core.victims); else all of
the tree is (core.nested).
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core import victims
from nova_preempt.core.model import (
    Candidate,
    Cap,
    Host,
    Placement,
    Refusal,
    Request,
    Slot,
    SlotAmounts,
    VictimSet,
)
from nova_preempt.core.nested import nested_victims
from nova_preempt.core.nested import placements as nested
from nova_preempt.core.nested.provider_fit import needs_tree

#: How many placements of one request on one host filters are shown.
MOST_PLACEMENTS = 100


def lower_bound(request: Request, host: Host) -> int | Refusal | None:
    """Return a cost that no sufficient set is below; None: there is none."""
    request = request.on(host.root)
    if needs_tree(request, host.root):
        return nested_victims.lower_bound(request, host)
    lack = capacity.missing(request, host)
    if isinstance(lack, Refusal):
        return lack
    return victims.lower_bound(host.candidates, lack)


def cheapest_victims(
    request: Request, host: Host, *, accept: victims.Accept | None = None,
    caps: Iterable[Cap] = (), ) -> VictimSet | Refusal | None:
    """Return who of the host's candidates gives way, the cheapest.

    None = not even all of them are enough, or accepted.
    """
    request = request.on(host.root)
    if needs_tree(request, host.root):
        return nested_victims.cheapest_victims(
            request, host, accept=accept, caps=caps)
    lack = capacity.missing(request, host)
    if isinstance(lack, Refusal):
        return lack
    return victims.cheapest_victims(
        host.candidates, lack, capacity=_capacity(request, host),
        accept=accept, caps=caps, )


def fits(request: Request, host: Host, freed: SlotAmounts) -> bool:
    """Tell whether one fits with so much freed."""
    return bool(placements(request, host, freed, 1))


def count(request: Request, host: Host, freed: SlotAmounts) -> int:
    """Return how many fit with so much freed, in a tree at least."""
    request = request.on(host.root)
    if needs_tree(request, host.root):
        return nested.count(request, host, freed)
    return capacity.count(request, host, freed)


def placements(
    request: Request, host: Host, freed: SlotAmounts,
    most: int = MOST_PLACEMENTS, ) -> list[Placement]:
    """Return ways to place it with so much freed, none if it does not fit."""
    request = request.on(host.root)
    if needs_tree(request, host.root):
        return nested.placements(request, host, freed, most)
    amounts = taken(request, host, freed)
    after = dataclasses.replace(host, candidates=(Candidate("", freed, 0),))
    if isinstance(capacity.missing(request, after), Refusal):
        return []
    return [Placement((("", (host.uuid,)),), amounts)]


def taken(request: Request, host: Host, freed: SlotAmounts) -> SlotAmounts:
    """Return what it takes where it fits, by slot.

    Of a tree the first way; nothing where none was found.
    """
    request = request.on(host.root)
    if needs_tree(request, host.root):
        found = nested.placements(request, host, freed, 1)
        return found[0].amounts if found else {}
    return {
        (host.uuid, name): amount
        for name, amount in request.resources.items()
        if amount
    }


def missing(host: Host, amounts: SlotAmounts) -> dict[Slot, int]:
    """Return what must be freed there for so much, by slot."""
    return nested.lack(host, amounts)


def _capacity(request: Request, host: Host) -> dict[Slot, int]:
    """Return that of the classes asked for: what surplus is a share of."""
    return {
        (host.uuid, name): host.root.inventories[name].capacity
        for group in request.groups
        for name in group.resources
        if name in host.root.inventories
    }
