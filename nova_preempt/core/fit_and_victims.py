# SPDX-License-Identifier: Apache-2.0

"""Tests whether a request fits on a host, and finds victims for it.

If the root provider has all requested classes it is searched alone, which
serves most requests (core.capacity, core.victims); else the whole tree is
(core.nested).
"""

from collections.abc import Iterable
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core import victims
from nova_preempt.core.model import (
    Candidate,
    Host,
    Placement,
    Refusal,
    Request,
    Slot,
    SlotAmounts,
    VictimCap,
    VictimSet,
)
from nova_preempt.core.nested import nested_victims
from nova_preempt.core.nested import placements as nested
from nova_preempt.core.nested.provider_fit import needs_tree

#: The most placements of a request on a host that filters are shown.
MOST_PLACEMENTS = 100


def lower_bound(request: Request, host: Host) -> int | Refusal | None:
    """Return a lower bound of the cost of victims; None: no set suffices."""
    request = request.on(host.root)
    if needs_tree(request, host.root):
        return nested_victims.lower_bound(request, host)
    lack = capacity.missing(request, host)
    if isinstance(lack, Refusal):
        return lack
    return victims.lower_bound(host.candidates, lack)


def cheapest_victims(
    request: Request, host: Host, *, accept: victims.Accept | None = None,
    caps: Iterable[VictimCap] = (), ) -> VictimSet | Refusal | None:
    """Return the cheapest victims among the candidates of a host.

    None: not even all of them suffice, or are accepted.
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
    """Return whether the request fits with these amounts freed."""
    return bool(placements(request, host, freed, 1))


def count(request: Request, host: Host, freed: SlotAmounts) -> int:
    """Return how many such servers fit with these amounts freed, at least."""
    request = request.on(host.root)
    if needs_tree(request, host.root):
        return nested.count(request, host, freed)
    return capacity.count(request, host, freed)


def placements(
    request: Request, host: Host, freed: SlotAmounts,
    most: int = MOST_PLACEMENTS, ) -> list[Placement]:
    """Return placements of the request with these amounts freed."""
    request = request.on(host.root)
    if needs_tree(request, host.root):
        return nested.placements(request, host, freed, most)
    amounts = taken(request, host, freed)
    after = dataclasses.replace(host, candidates=(Candidate("", freed, 0),))
    if isinstance(capacity.missing(request, after), Refusal):
        return []
    return [Placement((("", (host.uuid,)),), amounts)]


def taken(request: Request, host: Host, freed: SlotAmounts) -> SlotAmounts:
    """Return the amounts that the request allocates where it fits, by slot.

    Those of its first placement on a tree; {} if there is none.
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
    """Return the amounts that must be freed on a host, by slot."""
    return nested.lack(host, amounts)


def _capacity(request: Request, host: Host) -> dict[Slot, int]:
    """Return the capacity of the requested classes, the unit of surplus."""
    return {
        (host.uuid, name): host.root.inventories[name].capacity
        for group in request.groups
        for name in group.resources
        if name in host.root.inventories
    }
