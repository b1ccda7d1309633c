# SPDX-License-Identifier: Apache-2.0

"""Matches the groups of a request with providers of a host.

The rules are those of Placement: a group with a suffix is served by one
provider, which has all its resources and traits; of the group without one
each resource class is served by any one provider, and those that serve it
have its traits together. Providers that share their inventory with the host
serve like those of its tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools

from nova_preempt.core import capacity
from nova_preempt.core.model import (
    Host,
    Provider,
    Refusal,
    RefusalCode,
    Request,
    RequestGroup,
    Resources,
    Slot,
    SlotAmounts,
)

#: What hosts have on their own provider, or none of them.
COMMON = frozenset(("VCPU", "PCPU", "MEMORY_MB", "DISK_GB"))


def is_nested(request: Request) -> bool:
    """Tell whether the request needs to know all of a host's tree.

    Others do so only where the host's own provider lacks what they ask for.
    """
    if request.only is None:
        return True
    return any(
        bool(group.required or group.forbidden)
        and not COMMON.issuperset(group.resources) for group in request.groups
    )


def needs_tree(request: Request, root: Provider) -> bool:
    """Tell whether it can only be served by several providers there."""
    request = request.on(root)
    return request.only is None or (
        not request.only <= root.inventories.keys() or is_nested(request))


@dataclasses.dataclass(frozen=True, slots=True)
class RequestPart:
    """What is taken from one provider.

    ``among``: the indexes of the providers that may give it, once enough
    servers are gone. Equal parts have the same ``family``.
    """

    suffix: str
    resources: Resources
    among: tuple[int, ...]
    family: int


class ProviderTree:
    """A host, as a request sees it.

    :param freed: what becomes free there at most, by slot; None for what all
        of the host's candidates free
    :ivar parts: what it asks for; those with the least choice first, equal
        ones side by side
    :ivar refusal: why it can never be served there, None if it may
    """

    def __init__(
        self, request: Request, host: Host, freed: SlotAmounts | None = None
    ) -> None:
        self.request = request
        self.host = host
        self.providers: Sequence[Provider] = host.providers
        self.refusal: Refusal | None = None
        self._index = {
            provider.uuid: number
            for number, provider in enumerate(host.providers)
        }
        freeable = (
            capacity.total(each.resources for each in host.candidates)
            if freed is None else freed)
        parts: list[RequestPart] = []
        families: dict[object, int] = {}
        for group in sorted(request.groups, key=lambda each: each.suffix):
            allowed = [
                number for number, provider in enumerate(self.providers)
                if self._allows(group, provider)]
            for resources in _pieces(group):
                among = tuple(
                    number for number in allowed
                    if self._has(self.providers[number], resources, freeable))
                if not among:
                    self.refusal = self._refuse(group, resources, freeable)
                    return
                family = families.setdefault(
                    self._family(group, resources), len(families))
                parts.append(RequestPart(group.suffix, resources, among,
                                         family))
        self.parts = tuple(
            sorted(
                parts,
                key=lambda each: (len(each.among), each.family, each.suffix), )
        )

    def _family(self, group: RequestGroup, resources: Resources) -> object:
        """Return what is the same of parts that may change places."""
        if not group.suffix:
            return ("", tuple(sorted(resources.items())))
        return (
            group.kind[1:],
            tuple(
                number
                for number, suffixes in enumerate(self.request.same_subtree)
                if group.suffix in suffixes),
        )

    # -- which providers may serve what ----------------------------------

    def _allows(self, group: RequestGroup, provider: Provider) -> bool:
        """Tell whether a group may be there but for its resources."""
        if group.forbidden & provider.traits:
            return False
        if group.suffix and not group.required <= provider.traits:
            return False
        aggregates = provider.aggregates
        around = (
            aggregates if group.suffix
            else aggregates | self.host.root.aggregates)
        if group.outside & around:
            return False
        if not all(around & each for each in group.member_of):
            return False
        return not group.in_tree or self._is_in_tree(provider, group.in_tree)

    def _is_in_tree(self, provider: Provider, uuid: str) -> bool:
        number = self._index.get(uuid)
        return number is not None and (
            self.root_of(self._index[provider.uuid]) == self.root_of(number))

    @staticmethod
    def _has(
        provider: Provider, resources: Resources, freeable: Mapping[Slot, int],
    ) -> bool:
        return all(
            capacity.forbidden(name, amount, provider.inventories.get(name))
            is None and amount - provider.free(name)
            <= freeable.get((provider.uuid, name), 0)
            for name, amount in resources.items())

    def _refuse(self, group: RequestGroup, resources: Resources,
                freeable: Mapping[Slot, int]) -> Refusal:
        for name, amount in sorted(resources.items()):
            if not any(name in each.inventories for each in self.providers):
                refusal = capacity.forbidden(name, amount, None)
                assert refusal is not None
                return refusal
        asked = ", ".join(
            f"{amount} {name}" for name, amount in sorted(resources.items()))
        what = f"group {group.suffix}: " if group.suffix else ""
        traits = ", ".join(sorted(group.required))
        traits = f" with {traits}" if traits else ""
        if any(
            self._has(provider, resources, freeable)
            for provider in self.providers):
            return Refusal(
                RefusalCode.NO_PROVIDER,
                f"{what}no provider of the host that may serve it has "
                f"{asked or 'the traits'}{traits}", )
        return Refusal(
            RefusalCode.NO_ROOM,
            f"{what}no provider of the host has {asked or 'the traits'}, "
            "even without the preemptible servers that may end",
        )

    @staticmethod
    def no_room() -> Refusal:
        """Return why it cannot be served where each part of it could."""
        return Refusal(
            RefusalCode.NO_ROOM,
            "the providers of the host do not have all groups together, even "
            "without the preemptible servers that may end",
        )

    # -- the shape of the tree -------------------------------------------

    @functools.cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """Of each provider, by index: itself and those above it."""
        return tuple(
            [frozenset(self._up(n)) for n in range(len(self.providers))])

    def _up(self, number: int | None) -> Iterator[int]:
        seen: set[int] = set()
        while number is not None and number not in seen:
            seen.add(number)
            yield number
            number = self._index.get(self.providers[number].parent_uuid)

    def root_of(self, number: int) -> int:
        """Return the index of the root of the tree that a provider is in."""
        return list(self._up(number))[-1]

    @functools.cached_property
    def kinds(self) -> tuple[int, ...]:
        """Of each provider a number, equal for those that may change places.

        They have the same parent and no children, the same is free of them,
        and the same servers would free the same there.
        """
        names = {name for part in self.parts for name in part.resources}
        parents = {provider.parent_uuid for provider in self.providers}
        numbers: dict[object, int] = {}
        kinds = []
        for number, provider in enumerate(self.providers):
            kind: object = provider.uuid
            if provider.uuid not in parents and provider.parent_uuid:
                kind = (
                    provider.parent_uuid,
                    tuple(number in part.among for part in self.parts),
                    frozenset(
                        (name, provider.free(name), inventory.max_unit)
                        for name, inventory in provider.inventories.items()
                        if name in names),
                    provider.traits & self._unsuffixed_traits,
                    frozenset(
                        (each.uuid, name, amount)
                        for each in self.host.candidates for name in names
                        if (amount := each.resources.get(
                            (provider.uuid, name), 0))),
                )
            kinds.append(numbers.setdefault(kind, len(numbers)))
        return tuple(kinds)

    # -- rules about several parts ---------------------------------------

    @functools.cached_property
    def _unsuffixed_traits(self) -> frozenset[str]:
        return frozenset().union(
            *(each.required for each in self.request.groups
              if not each.suffix))

    @functools.cached_property
    def _checks(self) -> Mapping[int, tuple[tuple[int, ...], ...]]:
        """{number of parts: sets of parts, complete then, to be looked at}.

        Of a set without suffix the traits, of one with suffixes whether all
        are below one of them.
        """
        sets = [
            tuple(
                number for number, part in enumerate(self.parts)
                if part.suffix in suffixes)
            for suffixes in self.request.same_subtree]
        if self._unsuffixed_traits:
            sets.append(
                tuple(
                    number for number, part in enumerate(self.parts)
                    if not part.suffix))
        found: dict[int, tuple[tuple[int, ...], ...]] = {}
        for each in sets:
            if each:
                depth = max(each) + 1
                found[depth] = (*found.get(depth, ()), each)
        return found

    def agrees(self, chosen: Sequence[int]) -> bool:
        """Tell whether the last part chosen keeps the rules on several.

        :param chosen: the indexes of the providers of the first parts
        """
        if self.request.isolate and self.parts[len(chosen) - 1].suffix:
            for number, provider in enumerate(chosen[:-1]):
                if provider == chosen[-1] and self.parts[number].suffix:
                    return False
        for members in self._checks.get(len(chosen), ()):
            numbers = {chosen[member] for member in members}
            if not self.parts[members[0]].suffix:
                traits = frozenset().union(
                    *(self.providers[number].traits for number in numbers))
                if not self._unsuffixed_traits <= traits:
                    return False
            elif not numbers & frozenset.intersection(
                *(self.ancestors[number] for number in numbers)):
                return False
        return True

    def slots(self, part: RequestPart,
              number: int) -> Iterator[tuple[Slot, int]]:
        """Return what a part takes on a provider, by slot."""
        uuid = self.providers[number].uuid
        for name, amount in part.resources.items():
            yield (uuid, name), amount

    def free(self, slot: Slot) -> int:
        return self.providers[self._index[slot[0]]].free(slot[1])

    def most(self, slot: Slot) -> int:
        """Return how much of it one server may have."""
        return self.providers[self._index[slot[0]]].inventories[
            slot[1]].max_unit


def _pieces(group: RequestGroup) -> list[Resources]:
    """Return what of a group has to be on one provider."""
    if min(group.resources.values(), default=0) < 0:
        msg = f"a negative amount is asked for: {group.resources}"
        raise ValueError(msg)
    wanted = {
        name: amount for name, amount in sorted(group.resources.items())
        if amount
    }
    if group.suffix:
        return [wanted]
    return [{name: amount} for name, amount in wanted.items()]
