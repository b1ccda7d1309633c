# SPDX-License-Identifier: Apache-2.0

"""Matches the groups of a request with providers of a host.

The rules are those of Placement: a suffixed group is served by one provider,
which has all its resources and traits; of the unsuffixed group each resource
class is served by one provider, and those providers have its traits together.
Sharing providers serve like those of the tree.
"""

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

#: Classes that are on the root provider, if the host has them.
COMMON = frozenset(("VCPU", "PCPU", "MEMORY_MB", "DISK_GB"))


def is_nested(request: Request) -> bool:
    """Return whether a request needs the whole tree of a host.

    Other requests need it only if the root provider lacks a requested class.
    """
    if request.only is None:
        return True
    return any(
        bool(group.required or group.forbidden)
        and not COMMON.issuperset(group.resources) for group in request.groups)


def needs_tree(request: Request, root: Provider) -> bool:
    """Return whether the root provider cannot serve a request alone."""
    request = request.on(root)
    return request.only is None or (
        not request.only <= root.inventories.keys() or is_nested(request))


@dataclasses.dataclass(frozen=True, slots=True)
class RequestPart:
    """The resources that a request takes from one provider.

    ``among``: the indexes of the providers that may serve it once enough
    servers are gone. Equal parts have the same ``family``.
    """

    suffix: str
    resources: Resources
    among: tuple[int, ...]
    family: int


class ProviderTree:
    """The providers of a host, matched with the parts of a request.

    :param freed: the amounts that may be freed there, by slot; None for those
        of all candidates
    :ivar parts: the parts with the fewest providers first, equal parts side by
        side
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
            for number, provider in enumerate(host.providers)}
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
        """Return a value that is equal for parts that may be exchanged."""
        if not group.suffix:
            return ("", tuple(sorted(resources.items())))
        return (
            group.kind[1:],
            tuple(
                number
                for number, suffixes in enumerate(self.request.same_subtree)
                if group.suffix in suffixes),
        )

    # -- which providers may serve a part --------------------------------

    def _allows(self, group: RequestGroup, provider: Provider) -> bool:
        """Return whether a provider may serve a group but for resources."""
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
                f"{what}no allowed provider of the host has "
                f"{asked or 'the traits'}{traits}", )
        return Refusal(
            RefusalCode.NO_ROOM,
            f"{what}no provider of the host has {asked or 'the traits'} free, "
            "even without the preemptible servers that may be evicted",
        )

    @staticmethod
    def no_room() -> Refusal:
        """Return the refusal if each part fits alone, but not together."""
        return Refusal(
            RefusalCode.NO_ROOM,
            "the providers of the host cannot serve all groups together, even "
            "without the preemptible servers that may be evicted",
        )

    # -- the shape of the tree -------------------------------------------

    @functools.cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """Return the provider and its ancestors, by index."""
        return tuple(
            [frozenset(self._up(n)) for n in range(len(self.providers))])

    def _up(self, number: int | None) -> Iterator[int]:
        seen: set[int] = set()
        while number is not None and number not in seen:
            seen.add(number)
            yield number
            number = self._index.get(self.providers[number].parent_uuid)

    def root_of(self, number: int) -> int:
        """Return the index of the root of a provider's tree."""
        return list(self._up(number))[-1]

    @functools.cached_property
    def kinds(self) -> tuple[int, ...]:
        """Return a number per provider, equal if exchangeable.

        Exchangeable providers have the same parent, no children and equal free
        amounts, and the same servers would free equal amounts there.
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
        """{number of placed parts: sets of parts to check then}.

        The parts of the unsuffixed group are checked for its traits, those of
        a same_subtree set for a common ancestor among them.
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
        """Return whether the last placed part keeps the joint rules.

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
        """Yield the amounts that a part takes on a provider, by slot."""
        uuid = self.providers[number].uuid
        for name, amount in part.resources.items():
            yield (uuid, name), amount

    def free(self, slot: Slot) -> int:
        return self.providers[self._index[slot[0]]].free(slot[1])

    def most(self, slot: Slot) -> int:
        """Return the max_unit of a slot."""
        return self.providers[self._index[slot[0]]].inventories[
            slot[1]].max_unit


def _pieces(group: RequestGroup) -> list[Resources]:
    """Return the resources of a group that one provider each must serve."""
    if min(group.resources.values(), default=0) < 0:
        raise ValueError(f"a negative amount is asked for: {group.resources}")
    wanted = {
        name: amount for name, amount in sorted(group.resources.items())
        if amount}
    if group.suffix:
        return [wanted]
    return [{name: amount} for name, amount in wanted.items()]
