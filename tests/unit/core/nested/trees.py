# SPDX-License-Identifier: Apache-2.0

"""Random provider trees, and an exhaustive search on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import itertools
import random

from nova_preempt.core.cover.candidate_keys import SHARE
from nova_preempt.core.model import (
    Candidate,
    Host,
    Inventory,
    Provider,
    Request,
    RequestGroup,
    Slot,
)

KINDS = ("CUSTOM_A100", "CUSTOM_L4")
SHARES = "MISC_SHARES_VIA_AGGREGATE"
AGGREGATE = "000000aa-0000-4000-8000-000000000000"


def name_of(number: int) -> str:
    """Return a uuid that is easy to read."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def provider(
    number: int,
    amounts: Mapping[str, int],
    parent: str = "",
    traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (),
) -> Provider:
    """Return an unused provider."""
    return Provider(
        name_of(number),
        0,
        {name: Inventory(total) for name, total in amounts.items()},
        {},
        parent,
        f"rp{number}",
        frozenset(traits),
        frozenset(aggregates),
    )


def fill(
    host: Host, held: Mapping[str, Mapping[Slot, int]], spot: Mapping[str, int]
) -> Host:
    """Return the host with these consumers, and candidates of these costs."""
    providers = []
    for each in host.providers:
        allocations: dict[str, dict[str, int]] = {}
        for consumer, slots in held.items():
            for (uuid, name), amount in slots.items():
                if uuid == each.uuid and amount:
                    allocations.setdefault(consumer, {})[name] = amount
        providers.append(dataclasses.replace(each, allocations=allocations))
    return dataclasses.replace(
        host,
        providers=tuple(providers),
        candidates=tuple(
            Candidate(uuid, held.get(uuid, {}), cost)
            for uuid, cost in sorted(spot.items())
        ),
    )


def draw_host(rng: random.Random) -> Host:
    """Return an empty host: GPUs of two kinds, VFs, bandwidth, a share."""
    numbers = itertools.count(1)
    root = provider(
        next(numbers), {"VCPU": 16, "MEMORY_MB": 64}, aggregates=(AGGREGATE,)
    )
    providers = [root]
    parents = [root.uuid]
    for number in range(rng.choice((0, 0, 2))):
        node = provider(next(numbers), {}, root.uuid, ("HW_NUMA_ROOT",))
        parents.append(node.uuid)
        providers.append(node)
        del number
    homes = parents[1:] or parents
    for _ in range(rng.randint(1, 4)):
        providers.append(
            provider(
                next(numbers),
                {"CUSTOM_GPU": rng.choice((1, 1, 1, 2))},
                rng.choice(homes),
                (rng.choice(KINDS),),
            )
        )
    for _ in range(rng.randint(0, 2)):
        amounts = {"SRIOV_NET_VF": rng.randint(1, 3)}
        if rng.random() < 0.6:
            amounts["NET_BW_EGR_KILOBIT_PER_SEC"] = 10
        providers.append(
            provider(
                next(numbers),
                amounts,
                rng.choice(homes),
                (rng.choice(("CUSTOM_NET_A", "CUSTOM_NET_B")),),
            )
        )
    if rng.random() < 0.3:
        providers.append(
            provider(
                next(numbers), {"DISK_GB": 40}, "", (SHARES,), (AGGREGATE,)
            )
        )
    return Host("host", tuple(providers))


def draw_tenants(
    rng: random.Random, host: Host, most: int = 8
) -> tuple[dict[str, dict[Slot, int]], dict[str, int]]:
    """Draw allocations of consumers and costs of candidates."""
    free = {
        (each.uuid, name): inventory.capacity
        for each in host.providers
        for name, inventory in each.inventories.items()
    }
    slots = sorted(free)
    held: dict[str, dict[Slot, int]] = {}
    spot: dict[str, int] = {}
    dearest = rng.choice((0, 1, 3, 1000))
    for number in range(rng.randint(1, most)):
        uuid = name_of(0x100 + number)
        has: dict[Slot, int] = {}
        for slot in rng.sample(slots, rng.randint(1, min(4, len(slots)))):
            amount = rng.randint(1, max(1, free[slot] // rng.choice((1, 2))))
            if amount <= free[slot]:
                has[slot] = amount
                free[slot] -= amount
        if has:
            held[uuid] = has
            if rng.random() < 0.85:
                spot[uuid] = rng.randint(0, dearest)
    return held, spot


def draw_request(rng: random.Random) -> Request:
    """Return a request of up to four groups."""
    unsuffixed = {"VCPU": rng.randint(1, 8)}
    if rng.random() < 0.3:
        unsuffixed["DISK_GB"] = rng.randint(1, 20)
    if rng.random() < 0.2:
        unsuffixed["CUSTOM_GPU"] = 1
    required = (
        frozenset((rng.choice(KINDS),))
        if "CUSTOM_GPU" in unsuffixed and rng.random() < 0.4
        else frozenset()
    )
    groups = [RequestGroup(unsuffixed, required=required)]
    for number in range(rng.randint(0, 3)):
        suffix = f"_{number}"
        what = rng.random()
        if what < 0.7:
            traits = rng.choice((frozenset(), frozenset((KINDS[0],))))
            groups.append(
                RequestGroup(
                    {"CUSTOM_GPU": 1},
                    suffix,
                    traits,
                    frozenset((KINDS[1],)) if rng.random() < 0.1
                    else frozenset(),
                )
            )
        else:
            amounts = {"SRIOV_NET_VF": 1}
            if rng.random() < 0.5:
                amounts["NET_BW_EGR_KILOBIT_PER_SEC"] = rng.randint(1, 6)
            groups.append(RequestGroup(amounts, suffix))
    suffixes = [group.suffix for group in groups if group.suffix]
    subtree: tuple[frozenset[str], ...] = ()
    if len(suffixes) > 1 and rng.random() < 0.3:
        groups.append(
            RequestGroup({}, "_n", required=frozenset(("HW_NUMA_ROOT",)))
        )
        subtree = (
            frozenset((*rng.sample(suffixes, 2), "_n")),
        )
    return Request(
        tuple(groups), isolate=rng.random() < 0.4, same_subtree=subtree
    )


# -- everything tried ----------------------------------------------------


def all_ways(
    request: Request, host: Host
) -> Iterator[dict[Slot, int]]:
    """Yield each allocation that Placement allows, by slot."""
    everywhere = {each.uuid: each for each in host.providers}
    choices: list[tuple[RequestGroup, Mapping[str, int], list[Provider]]] = []
    for group in request.groups:
        pieces = (
            [dict(group.resources)]
            if group.suffix
            else [{name: n} for name, n in group.resources.items()]
        )
        choices += [
            (group, piece, list(host.providers)) for piece in pieces
        ]
    for picked in itertools.product(*(each[2] for each in choices)):
        where: dict[str, list[Provider]] = {}
        takes: dict[Slot, int] = {}
        for (group, piece, _), each in zip(choices, picked, strict=True):
            where.setdefault(group.suffix, []).append(each)
            for name, amount in piece.items():
                slot = (each.uuid, name)
                takes[slot] = takes.get(slot, 0) + amount
        if all(
            name in everywhere[uuid].inventories for uuid, name in takes
        ) and _keeps_rules(request, host, where):
            yield takes


def _keeps_rules(
    request: Request, host: Host, where: Mapping[str, list[Provider]]
) -> bool:
    for group in request.groups:
        traits = [each.traits for each in where[group.suffix]]
        if any(group.forbidden & each for each in traits):
            return False
        if not group.required <= frozenset().union(*traits):
            return False
    alone = [each[0].uuid for suffix, each in where.items() if suffix]
    if request.isolate and len(set(alone)) < len(alone):
        return False
    for suffixes in request.same_subtree:
        uuids = {each.uuid for suffix in suffixes for each in where[suffix]}
        if not any(
            all(_is_below(host, uuid, top) for uuid in uuids) for top in uuids
        ):
            return False
    return True


def _is_below(host: Host, uuid: str, top: str) -> bool:
    parents = {each.uuid: each.parent_uuid for each in host.providers}
    while uuid and uuid != top:
        uuid = parents.get(uuid, "")
    return uuid == top


def oracle(
    request: Request, host: Host
) -> tuple[int, int, int, tuple[str, ...]] | None:
    """Return (cost, number, surplus, uuids) of the best set of victims."""
    everywhere = {each.uuid: each for each in host.providers}
    names = {name for group in request.groups for name in group.resources}
    total = {
        name: sum(
            each.inventories[name].capacity
            for each in host.providers
            if name in each.inventories
        )
        for name in names
    }
    lacks = {
        frozenset(
            (slot, amount - everywhere[slot[0]].free(slot[1]))
            for slot, amount in takes.items()
            if amount > everywhere[slot[0]].free(slot[1])
        )
        for takes in all_ways(request, host)
    }
    best = None
    for count in range(len(host.candidates) + 1):
        for chosen in itertools.combinations(host.candidates, count):
            freed: dict[Slot, int] = {}
            for each in chosen:
                for slot, amount in each.resources.items():
                    freed[slot] = freed.get(slot, 0) + amount
            if not any(
                all(freed.get(slot, 0) >= n for slot, n in lack)
                for lack in lacks
            ):
                continue
            key = (
                sum(each.cost for each in chosen),
                count,
                sum(
                    SHARE // total[slot[1]] * amount
                    for slot, amount in freed.items()
                    if slot[1] in names
                ),
                tuple(each.uuid for each in chosen),
            )
            if best is None or key < best:
                best = key
    return best
