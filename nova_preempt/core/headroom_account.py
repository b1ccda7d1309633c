# SPDX-License-Identifier: Apache-2.0
"""Tracks spare capacity of host groups above their headroom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.model import Inventory, Provider, Resources
from nova_preempt.core.nested.provider_fit import COMMON


def parse(text: str) -> dict[str, tuple[int, bool]]:
    """{class: (amount, is it a percentage)} of "VCPU:10%,MEMORY_MB:8192".

    :raises ValueError: it says what cannot be understood
    """
    wanted = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        name, colon, amount = item.partition(':')
        percent = amount.endswith('%')
        number = amount.removesuffix('%')
        if not (colon and name and number.isdecimal()) or (
                percent and int(number) > 100):
            raise ValueError(
                f'{item!r}: headroom is CLASS:AMOUNT or CLASS:PERCENT%, such '
                'as VCPU:10% or MEMORY_MB:65536')
        wanted[name] = (int(number), percent)
    return wanted


def free(provider: Provider) -> dict[str, int]:
    """{class: what is not used}, below 0 where more is used than there is."""
    return {name: provider.free(name) for name in provider.inventories}


def needs_tree(wanted: Iterable[str]) -> bool:
    """Whether hosts have such classes on other providers than their own."""
    return not COMMON.issuperset(wanted)


def merge_tree(providers: Sequence[Provider]) -> Provider:
    """A host's own provider with all that those below it have, by class.

    What is shared with other hosts is left out.
    """
    own = [provider for number, provider in enumerate(providers)
           if not number or provider.parent_uuid]
    inventories = {}
    for name in {name: None for each in own for name in each.inventories}:
        found = [each.inventories[name] for each in own
                 if name in each.inventories]
        inventories[name] = found[0] if len(found) == 1 else Inventory(
            sum(each.capacity for each in found))
    allocations: dict[str, Resources] = {}
    for provider in own:
        for consumer, resources in provider.allocations.items():
            allocations[consumer] = capacity.total(
                (allocations.get(consumer, {}), resources))
    return dataclasses.replace(providers[0], inventories=inventories,
                               allocations=allocations)


@dataclasses.dataclass(frozen=True)
class HostGroup:
    """Hosts of which some space shall be free, by name.

    For wanted see parse(). A host that is a tree is one provider here, see
    whole(); ``below`` are the uuids of those that are part of it.
    """

    name: str
    wanted: Mapping[str, tuple[int, bool]]
    nodes: Mapping[str, Provider]
    below: frozenset[str] = frozenset()

    def uuids(self) -> set[str]:
        """Of the providers."""
        return {*self.below, *(
            provider.uuid for provider in self.nodes.values())}

    def capacity(self, resource_class: str) -> int:
        return sum(provider.inventories[resource_class].capacity
                   for provider in self.nodes.values()
                   if resource_class in provider.inventories)

    def spare(self) -> dict[str, int]:
        """{class: what is free beyond the headroom}, below 0 if it lacks."""
        found = self.free()
        return {name: found[name] - self._headroom(name)
                for name in self.wanted}

    def free(self) -> dict[str, int]:
        """{class: what is free on all of them}, of the wanted ones."""
        found = dict.fromkeys(self.wanted, 0)
        for provider in self.nodes.values():
            for name, amount in free(provider).items():
                if name in found:
                    # An overfull host takes nothing from others.
                    found[name] += max(0, amount)
        return found

    def _headroom(self, resource_class: str) -> int:
        amount, percent = self.wanted[resource_class]
        capacity = self.capacity(resource_class)
        if percent:
            amount = -(-capacity * amount // 100)
        return min(amount, capacity)

    def missing(self, freeing: Resources) -> dict[str, int]:
        """{class: amount} that is neither free nor being freed."""
        lacks = {name: -left - freeing.get(name, 0)
                 for name, left in self.spare().items()}
        return {name: lack for name, lack in lacks.items() if lack > 0}


@dataclasses.dataclass(eq=False)
class Claim:
    """Space that was taken since the groups were read.

    :ivar amounts: {class: amount}, by the uuid of a provider
    :ivar done_at: None for as long as it is being claimed
    """

    amounts: Mapping[str, Resources]
    done_at: float | None = None


class HeadroomAccount:
    """What groups have to spare: as they were read, less what was taken since.

    A host may be in several groups. Without any there is room for all.
    """

    def __init__(self, groups: Iterable[HostGroup] = ()) -> None:
        self.groups: tuple[HostGroup, ...] = ()
        self._spares: list[tuple[set[str], dict[str, int]]] = []
        self._claims: list[Claim] = []
        self.read(groups, 0)

    def read(self, groups: Iterable[HostGroup], began_at: float) -> None:
        """Go on from these.

        What was taken since this reading began it may have missed.
        """
        self.groups = tuple(groups)
        self._spares = [(group.uuids(), group.spare())
                        for group in self.groups]
        self._claims = [
            claim for claim in self._claims
            if claim.done_at is None or claim.done_at >= began_at]
        for claim in self._claims:
            self._change(claim, -1)

    def lacks(self, amounts: Mapping[str, Resources]) -> bool:
        """Whether there is less to spare around one of the hosts than this.

        :param amounts: {class: amount}, by the uuid of a provider
        """
        return any(spare[name] < amount for uuid, resources in amounts.items()
                   for uuids, spare in self._spares if uuid in uuids
                   for name, amount in resources.items()
                   if amount and name in spare)

    def is_short(self, uuids: Iterable[str]) -> bool:
        """Whether less is free around one of these providers than wanted."""
        return any(
            amount < 0 for uuid in uuids for members, spare in self._spares
            if uuid in members for amount in spare.values())

    def has_room(self, resources: Resources) -> bool:
        """Whether there is space to spare on some host of a group.

        Without any host in a group there is no headroom to keep.
        """
        hosts = {name: host for group in self.groups
                 for name, host in group.nodes.items()}
        return not hosts or self.has_room_on(resources, hosts.values())

    def has_room_on(self, resources: Resources,
                    hosts: Iterable[Provider]) -> bool:
        """Whether there is space to spare for it on one of these hosts."""
        return any(
            capacity.fits(resources, free(host))
            and not self.lacks({host.uuid: resources}) for host in hosts)

    def count(self, resources: Resources,
              most: Mapping[str, int]) -> dict[str, int]:
        """{uuid of a host: for how many servers of a size there is space}.

        To spare, for all of these together, those on the first hosts first.

        :param most: {uuid: how many would fit there without any headroom}
        """
        spares = [(uuids, dict(spare)) for uuids, spare in self._spares]
        found = {}
        for uuid, number in sorted(most.items()):
            around = [spare for uuids, spare in spares if uuid in uuids]
            found[uuid] = min((number, *(
                max(0, spare[name] // amount) for spare in around
                for name, amount in resources.items()
                if amount and name in spare)))
            for spare in around:
                for name in spare.keys() & resources.keys():
                    spare[name] -= found[uuid] * resources[name]
        return found

    def take(self, claim: Claim) -> None:
        self._claims.append(claim)
        self._change(claim, -1)

    def give_back(self, claim: Claim) -> None:
        self._claims.remove(claim)
        self._change(claim, 1)

    def _change(self, claim: Claim, sign: int) -> None:
        for uuid, resources in claim.amounts.items():
            for uuids, spare in self._spares:
                if uuid in uuids:
                    for name in spare.keys() & resources.keys():
                        spare[name] += sign * resources[name]
