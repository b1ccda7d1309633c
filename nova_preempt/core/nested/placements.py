# SPDX-License-Identifier: Apache-2.0

"""Lists the placements of a request on a host with some servers gone."""

from collections.abc import Iterator, Mapping, Sequence
import itertools

from nova_preempt.core import capacity
from nova_preempt.core.model import Host, Placement, Request, Slot, SlotAmounts
from nova_preempt.core.nested.provider_fit import ProviderTree

#: The most parts that a search places before it stops.
MOST_STEPS = 20_000

_NOTHING: Mapping[Slot, int] = {}


def placements(
    request: Request, host: Host, freed: SlotAmounts = _NOTHING, most: int = 1,
) -> list[Placement]:
    """Return placements of a request with some amounts freed.

    As Placement would return them, in order of the host's providers. Equal
    groups are not exchanged.

    :param most: the largest number of placements to return
    """
    tree = ProviderTree(request, host, freed)
    if tree.refusal is not None:
        return []
    return [
        _placement(tree, chosen)
        for chosen in itertools.islice(ways(tree, freed), most)]


def fits(tree: ProviderTree, freed: SlotAmounts = _NOTHING) -> bool:
    """Return whether there is a placement."""
    return tree.refusal is None and any(
        True for _ in ways(tree, freed, alike=False))


def count(request: Request, host: Host, freed: SlotAmounts) -> int:
    """Return how many such servers fit, placed one by one.

    A few more might fit if they were placed together.
    """
    left = dict(freed)
    tree = ProviderTree(request, host, freed)
    number = 0
    if tree.refusal is not None or not any(
        part.resources for part in tree.parts):
        return 0
    while (chosen := next(ways(tree, left), None)) is not None:
        number += 1
        left = capacity.subtract(left, _placement(tree, chosen).amounts)
    return number


def lack(host: Host, wanted: SlotAmounts) -> dict[Slot, int]:
    """Return the amounts that must be freed on the host, by slot."""
    providers = {provider.uuid: provider for provider in host.providers}
    return capacity.shortfall(
        {slot: wanted[slot] for slot in sorted(wanted)},
        {slot: providers[slot[0]].free(slot[1]) for slot in wanted})


def ways(
    tree: ProviderTree, freed: SlotAmounts, *, alike: bool = True
) -> Iterator[tuple[int, ...]]:
    """Yield indexes of providers, one for each part of a request.

    Stops after MOST_STEPS steps.

    :param alike: whether to yield placements that differ only in the choice
        among equal providers
    """
    steps = MOST_STEPS
    used: dict[Slot, int] = {}
    chosen: list[int] = []
    stack = [iter(tree.parts[0].among)] if tree.parts else []
    if not tree.parts:
        yield ()
    while stack:
        depth = len(stack) - 1
        if len(chosen) > depth:
            _take(tree, depth, chosen.pop(), used, -1)
        number = next(stack[-1], None)
        if number is None:
            stack.pop()
            continue
        steps -= 1
        if steps < 0:
            return
        part = tree.parts[depth]
        if is_repeated(tree, chosen, number) or (
            not alike and has_twin(tree, chosen, number)):
            continue
        chosen.append(number)
        _take(tree, depth, number, used, 1)
        if not tree.agrees(chosen) or any(
            used[slot] > tree.free(slot) + freed.get(slot, 0)
            or used[slot] > tree.most(slot)
            for slot, _ in tree.slots(part, number)):
            continue
        if depth + 1 == len(tree.parts):
            yield tuple(chosen)
        else:
            stack.append(iter(tree.parts[depth + 1].among))


def is_repeated(tree: ProviderTree, chosen: Sequence[int],
                number: int) -> bool:
    """Return whether this would only exchange equal parts."""
    depth = len(chosen)
    return (
        depth > 0 and number < chosen[-1]
        and tree.parts[depth].family == tree.parts[depth - 1].family)


def has_twin(tree: ProviderTree, chosen: Sequence[int], number: int) -> bool:
    """Return whether an earlier provider is equivalent.

    It is of the same kind, and serves the same parts.
    """
    kinds = tree.kinds
    twins = [
        other for other in tree.parts[len(chosen)].among
        if other < number and kinds[other] == kinds[number]]
    if not twins:
        return False
    there = _families(tree, chosen, number)
    return any(_families(tree, chosen, twin) == there for twin in twins)


def _families(tree: ProviderTree, chosen: Sequence[int],
              number: int) -> list[int]:
    return sorted([tree.parts[depth].family
                   for depth, other in enumerate(chosen) if other == number])


def _take(tree: ProviderTree, depth: int, number: int, used: dict[Slot, int],
          sign: int) -> None:
    for slot, amount in tree.slots(tree.parts[depth], number):
        used[slot] = used.get(slot, 0) + sign * amount


def _placement(tree: ProviderTree, chosen: tuple[int, ...]) -> Placement:
    mappings: dict[str, set[str]] = {}
    used: dict[Slot, int] = {}
    for depth, number in enumerate(chosen):
        mappings.setdefault(tree.parts[depth].suffix, set()).add(
            tree.providers[number].uuid)
        _take(tree, depth, number, used, 1)
    return Placement(
        tuple(
            (suffix, tuple(sorted(mappings[suffix])))
            for suffix in sorted(mappings)),
        used, )
