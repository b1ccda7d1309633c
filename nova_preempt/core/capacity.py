# SPDX-License-Identifier: Apache-2.0

"""Compares requests with the capacity of a host.

The rule is Placement's: an amount of a class is granted if it lies between
``min_unit`` and ``max_unit``, is a multiple of ``step_size``, and ``used +
amount <= (total - reserved) * allocation_ratio``.

This is the only module that compares amounts with capacity.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from nova_preempt.core.model import (
    Host,
    Inventory,
    Provider,
    Refusal,
    RefusalCode,
    Request,
    Slot,
    SlotAmounts,
)

Key = TypeVar("Key")


def total(amounts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Return the sum of amounts, by slot or by class."""
    found: dict[Key, int] = {}
    for each in amounts:
        for key, amount in each.items():
            found[key] = found.get(key, 0) + amount
    return found


def subtract(
    amounts: Mapping[Key, int], taken: Mapping[Key, int]) -> dict[Key, int]:
    """Return amounts less others, below 0 where more is subtracted."""
    return total((amounts, {key: -each for key, each in taken.items()}))


def most_used(inventory: Inventory) -> int:
    """Return how much of an inventory may be in use.

    Units that were reserved while in use, such as a device that can be used
    only once, are not allocated a second time.
    """
    if inventory.reserved >= inventory.total:
        return inventory.total
    return inventory.capacity


def minimum(one: Mapping[Key, int], other: Mapping[Key,
            int]) -> dict[Key, int]:
    """Return the smaller of two amounts by key; a missing amount is 0."""
    return {
        key: min(one.get(key, 0), other.get(key, 0))
        for key in one.keys() | other.keys()}


def fits(wanted: Mapping[Key, int], free: Mapping[Key, int]) -> bool:
    """Return whether the wanted amounts are free."""
    return all(free.get(key, 0) >= amount for key, amount in wanted.items())


def shortfall(
    wanted: Mapping[Key, int], free: Mapping[Key, int]) -> dict[Key, int]:
    """Return the amounts that are wanted but not free."""
    return {
        key: amount - free.get(key, 0) for key, amount in wanted.items()
        if amount > free.get(key, 0)}


def copies(
    wanted: Mapping[Key, int], free: Mapping[Key, int], most: int) -> int:
    """Return how many times the wanted amounts are free, at most ``most``."""
    return min((most, *(
        max(0, free.get(key, 0)) // amount
        for key, amount in wanted.items() if amount > 0)))


def by_class(amounts: SlotAmounts) -> dict[str, int]:
    """Return amounts by resource class, summed over providers."""
    return total({name: amount} for (_, name), amount in amounts.items())


def by_slot(amounts: Mapping[str, Mapping[str, int]]) -> dict[Slot, int]:
    """Return amounts by slot.

    :param amounts: {uuid of a provider: {class: amount}}
    """
    return {
        (uuid, name): amount
        for uuid, resources in amounts.items()
        for name, amount in resources.items()}


def free(amounts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the free amounts of a provider, below 0 if overcommitted.

    :param amounts: {class: {"capacity": amount, "used": amount}}
    """
    return {
        name: each["capacity"] - each["used"]
        for name, each in amounts.items()}


def free_by_root(summaries: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return {uuid of a root provider: free amounts of its whole tree}.

    :param summaries: Placement's provider summaries, by uuid
    """
    found: dict[str, dict[str, int]] = {}
    for uuid, summary in summaries.items():
        root = summary.get("root_provider_uuid") or uuid
        found[root] = total((found.get(root, {}), free(summary["resources"])))
    return found


def missing(request: Request, host: Host) -> dict[Slot, int] | Refusal:
    """Return the amounts that must be freed on a host, by slot; {} = it fits.

    The unsuffixed group is served by the root provider; other groups are
    handled by core.nested. Only slots with a shortfall are named; that of an
    overcommitted provider includes the excess. A class with amount 0 is
    ignored. Refusals are checked in order of class name, first those that no
    eviction can change.

    :raises ValueError: if a requested amount is negative
    """
    lack: dict[Slot, int] = {}
    for group in request.groups:
        if group.suffix:
            return Refusal(
                RefusalCode.GRANULAR,
                f"group {group.suffix}: a granular request group, of a host "
                "of which one provider is known",
            )
        found = _lack(group.wanted, host.root, host)
        if isinstance(found, Refusal):
            return found
        lack.update(found)
    return lack


def _lack(
    wanted: Iterable[tuple[str, int]], provider: Provider, host: Host
) -> dict[Slot, int] | Refusal:
    inventories, free = provider.inventories, provider.all_free
    for name, amount in wanted:
        refusal = forbidden(name, amount, inventories.get(name))
        if refusal is not None:
            return refusal
    lack: dict[Slot, int] = {}
    for name, amount in wanted:
        if amount <= free[name]:
            continue
        slot = (provider.uuid, name)
        missing = amount - free[name]
        freeable = sum([c.resources.get(slot, 0) for c in host.candidates])
        if missing > freeable:
            return Refusal(
                RefusalCode.NO_ROOM,
                f"{name}: {amount} requested, {free[name]} of "
                f"{inventories[name].capacity} free and {freeable} "
                "held by preemptible servers",
            )
        lack[slot] = missing
    return lack


def count(request: Request, host: Host, freed: SlotAmounts) -> int:
    """Return how many such servers fit on a host with these amounts freed.

    0 if the request asks for nothing.
    """
    counts = []
    for group in request.groups:
        if group.suffix:
            return 0
        for name, amount in group.resources.items():
            inventory = host.root.inventories.get(name)
            if not amount:
                continue
            if forbidden(name, amount, inventory) is not None:
                return 0
            room = host.root.free(name) + freed.get((host.uuid, name), 0)
            counts.append(max(0, room) // amount)
    return min(counts, default=0)


def forbidden(
    name: str, amount: int, inventory: Inventory | None) -> Refusal | None:
    """Return why Placement would refuse it on an empty host, or None."""
    if inventory is None:
        return Refusal(
            RefusalCode.NO_INVENTORY,
            f"{name}: {amount} requested, the host has no inventory of it", )
    if inventory.grants(amount):
        return None
    if amount < inventory.min_unit:
        return Refusal(
            RefusalCode.BELOW_MIN_UNIT,
            f"{name}: {amount} requested, min_unit is {inventory.min_unit}", )
    if amount > inventory.max_unit:
        return Refusal(
            RefusalCode.ABOVE_MAX_UNIT,
            f"{name}: {amount} requested, max_unit is {inventory.max_unit}", )
    return Refusal(
        RefusalCode.STEP_SIZE,
        f"{name}: {amount} requested, not a multiple of step_size "
        f"{inventory.step_size}", )
