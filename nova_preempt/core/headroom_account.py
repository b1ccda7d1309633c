# SPDX-License-Identifier: Apache-2.0
"""Tracks spare capacity of host groups above their headroom."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from nova_preempt.core import capacity
from nova_preempt.core.model import Inventory, Provider, Resources
from nova_preempt.core.nested.provider_fit import COMMON


def parse(text: str) -> dict[str, tuple[int, bool]]:
    """Parse headroom such as "VCPU:10%,MEMORY_MB:8192".

    :returns: {class: (amount, whether it is a percentage)}
    :raises ValueError: the text is not valid
    """
    wanted = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        name, colon, amount = item.partition(':')
        percent = amount.endswith('%')
        number = amount.removesuffix('%')
        if not (colon and name and number.isdecimal()) or (
                percent and int(number) > 100):
            raise ValueError(
                f'{item!r} must be CLASS:AMOUNT or CLASS:PERCENT%, such as '
                'VCPU:10% or MEMORY_MB:65536')
        wanted[name] = (int(number), percent)
    return wanted


def free(provider: Provider) -> dict[str, int]:
    """Return {class: free amount}, below 0 if overcommitted."""
    return {name: provider.free(name) for name in provider.inventories}


def needs_tree(wanted: Iterable[str]) -> bool:
    """Return whether hosts have such classes on nested providers."""
    return not COMMON.issuperset(wanted)


def merge_tree(providers: Sequence[Provider]) -> Provider:
    """Return the root provider with the inventories of its whole tree.

    Providers that are shared with other hosts are left out.
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
    """Hosts that shall keep some capacity free, by name.

    For ``wanted`` see parse(). A host with nested providers is one provider
    here, see merge_tree(); ``below`` are the uuids of its nested providers.
    """

    name: str
    wanted: Mapping[str, tuple[int, bool]]
    nodes: Mapping[str, Provider]
    below: frozenset[str] = frozenset()

    def scaled(self, factor: int) -> "HostGroup":
        """Return the group with a multiple of its headroom."""
        return dataclasses.replace(self, wanted={
            name: (amount * factor, percent)
            for name, (amount, percent) in self.wanted.items()})

    def uuids(self) -> set[str]:
        """Return the uuids of all providers."""
        return {*self.below, *(
            provider.uuid for provider in self.nodes.values())}

    def capacity(self, resource_class: str) -> int:
        return sum(provider.inventories[resource_class].capacity
                   for provider in self.nodes.values()
                   if resource_class in provider.inventories)

    def spare(self) -> dict[str, int]:
        """Return {class: free beyond the headroom}, below 0 if short."""
        found = self.free()
        return {name: found[name] - self._headroom(name)
                for name in self.wanted}

    def free(self) -> dict[str, int]:
        """Return {class: amount free on all hosts} of wanted classes."""
        found = dict.fromkeys(self.wanted, 0)
        for provider in self.nodes.values():
            for name, amount in free(provider).items():
                if name in found:
                    # An overcommitted host does not reduce the sum.
                    found[name] += max(0, amount)
        return found

    def _headroom(self, resource_class: str) -> int:
        amount, percent = self.wanted[resource_class]
        capacity = self.capacity(resource_class)
        if percent:
            amount = -(-capacity * amount // 100)
        return min(amount, capacity)

    def missing(self, freeing: Resources) -> dict[str, int]:
        """Return {class: shortfall} beyond what is free or being freed."""
        lacks = {name: -left - freeing.get(name, 0)
                 for name, left in self.spare().items()}
        return {name: lack for name, lack in lacks.items() if lack > 0}


@dataclasses.dataclass(eq=False)
class HeadroomClaim:
    """Capacity that was claimed since the groups were read.

    :ivar amounts: {class: amount}, by the uuid of a provider
    :ivar done_at: None while it is being claimed
    """

    amounts: Mapping[str, Resources]
    done_at: float | None = None


class HeadroomAccount:
    """Spare capacity of groups: as read, less the claims since then.

    A host may be in several groups. Without groups nothing is limited.
    """

    def __init__(self, groups: Iterable[HostGroup] = ()) -> None:
        self.groups: tuple[HostGroup, ...] = ()
        self._spares: list[tuple[set[str], dict[str, int]]] = []
        self._claims: list[HeadroomClaim] = []
        self.read(groups, 0)

    def read(self, groups: Iterable[HostGroup], began_at: float) -> None:
        """Replace the groups by a new reading.

        Claims that were not done before it began are subtracted again, since
        it may have missed them.
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
        """Return whether amounts exceed the spare capacity of a group.

        :param amounts: {class: amount}, by the uuid of a provider
        """
        return any(spare[name] < amount for uuid, resources in amounts.items()
                   for uuids, spare in self._spares if uuid in uuids
                   for name, amount in resources.items()
                   if amount and name in spare)

    def is_short(self, uuids: Iterable[str]) -> bool:
        """Return whether a group of these providers is short of headroom."""
        return any(
            amount < 0 for uuid in uuids for members, spare in self._spares
            if uuid in members for amount in spare.values())

    def has_room(self, resources: Resources) -> bool:
        """Return whether a host of a group has spare capacity for a server.

        True if no host is in a group.
        """
        hosts = {name: host for group in self.groups
                 for name, host in group.nodes.items()}
        return not hosts or self.has_room_on(resources, hosts.values())

    def has_room_on(self, resources: Resources,
                    hosts: Iterable[Provider]) -> bool:
        """Return whether a host has spare capacity for a server."""
        return any(
            capacity.fits(resources, free(host))
            and not self.lacks({host.uuid: resources}) for host in hosts)

    def count(self, resources: Resources,
              most: Mapping[str, int]) -> dict[str, int]:
        """Return {uuid of a host: how many servers of a size it has spare}.

        All of them together keep the headroom; the first hosts are counted
        first.

        :param most: {uuid: how many would fit there without headroom}
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

    def take(self, claim: HeadroomClaim) -> None:
        self._claims.append(claim)
        self._change(claim, -1)

    def give_back(self, claim: HeadroomClaim) -> None:
        self._claims.remove(claim)
        self._change(claim, 1)

    def _change(self, claim: HeadroomClaim, sign: int) -> None:
        for uuid, resources in claim.amounts.items():
            for uuids, spare in self._spares:
                if uuid in uuids:
                    for name in spare.keys() & resources.keys():
                        spare[name] += sign * resources[name]
