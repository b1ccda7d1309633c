# SPDX-License-Identifier: Apache-2.0

"""Inputs and outputs of the decision core.

Amounts are whole numbers in the unit of their resource class (``VCPU``
pieces, ``MEMORY_MB`` mebibytes, ...). Costs are whole micro-units, so that
every method gives the same answer: 1_000_000 stands for one second.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime
import enum
import functools
from typing import Any, TypeAlias

from nova_preempt.core import times

#: resource class -> amount
Resources: TypeAlias = Mapping[str, int]

#: Where an amount is: (uuid of the provider, resource class).
Slot: TypeAlias = tuple[str, str]

#: slot -> amount
SlotAmounts: TypeAlias = Mapping[Slot, int]

#: Amounts that a search for victims adds up: by slot on a host, by class on a
#: group of hosts. The search only compares the keys.
Amounts: TypeAlias = Mapping[Any, int]

#: micro-units in one second
SECOND = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """Inventory of one resource class, as in Placement."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """Return the allocatable amount, at least 0.

        The float expression is Placement's own, so that both round the same
        way where a ratio such as 0.9 has no exact value.
        """
        exact = (self.total - self.reserved) * self.allocation_ratio
        return max(0, int(exact))

    def grants(self, amount: int) -> bool:
        """Return whether Placement grants an amount while all is free."""
        return (
            self.min_unit <= amount <= self.max_unit
            and amount % self.step_size == 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A preemptible server that may become a victim.

    ``resources``: the amounts that its end frees, by slot on a host.

    :raises ValueError: if the cost or an amount is negative: the search relies
        on no further victim reducing cost or freed amounts
    """

    uuid: str
    resources: Amounts
    cost: int

    def __post_init__(self) -> None:
        if self.cost < 0:
            raise ValueError(f"cost of {self.uuid} is negative: {self.cost}")
        if min(self.resources.values(), default=0) < 0:
            raise ValueError(
                f"{self.uuid} uses a negative amount: {self.resources}")


@dataclasses.dataclass(frozen=True, slots=True)
class VictimCap:
    """A limit on the number of victims among the servers with these uuids."""

    uuids: frozenset[str]
    most: int


@dataclasses.dataclass(frozen=True)
class Provider:
    """A resource provider with its inventories and allocations.

    ``allocations``: {uuid of the consumer: {resource class: amount}};
    ``generation`` is Placement's, ``parent_uuid`` '' for the root of a tree.
    Traits and aggregates are read if a request needs the tree.
    """

    uuid: str
    generation: int
    inventories: Mapping[str, Inventory]
    allocations: Mapping[str, Resources]
    parent_uuid: str = ""
    name: str = ""
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @functools.cached_property
    def used(self) -> dict[str, int]:
        """{resource class: amount} of all consumers."""
        used: dict[str, int] = {}
        for resources in self.allocations.values():
            for name, amount in resources.items():
                used[name] = used.get(name, 0) + amount
        return used

    @functools.cached_property
    def all_free(self) -> dict[str, int]:
        """{resource class: amount that may still be allocated}, see free()."""
        used = self.used
        return {
            name: inventory.capacity - used.get(name, 0)
            for name, inventory in self.inventories.items()}

    def free(self, resource_class: str) -> int:
        """Return what may still be allocated, below 0 if overcommitted."""
        found = self.all_free.get(resource_class)
        if found is None:
            return -self.used.get(resource_class, 0)
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A compute node: a tree of providers, and the candidates on it.

    ``providers``: the root, whose uuid is that of the host, comes first; then,
    as far as a request needs them, its nested providers and sharing providers,
    which are the roots of other trees. ``candidates`` hold allocations there.
    """

    name: str
    providers: tuple[Provider, ...]
    candidates: tuple[Candidate, ...] = ()

    @property
    def root(self) -> Provider:
        """The compute node's own provider."""
        return self.providers[0]

    @property
    def uuid(self) -> str:
        """The uuid of the root provider."""
        return self.providers[0].uuid

    @property
    def shared(self) -> set[str]:
        """The uuids of the sharing providers, which are of other trees."""
        return {
            provider.uuid
            for provider in self.providers[1:]
            if not provider.parent_uuid}

    def free(self, resource_class: str) -> int:
        """Return what may still be allocated of a class on all providers."""
        if len(self.providers) == 1:
            return self.providers[0].free(resource_class)
        return sum(
            provider.free(resource_class) for provider in self.providers
            if resource_class in provider.inventories)

    def held(self, consumer: str) -> dict[Slot, int]:
        """Return the allocations of a consumer on the host, by slot."""
        return {
            (provider.uuid, name): amount
            for provider in self.providers
            for name, amount in provider.allocations.get(consumer, {}).items()}


@dataclasses.dataclass(frozen=True)
class RequestGroup:
    """A request group of Placement: resources from one provider.

    ``suffix`` is that of a granular group; '' for the unsuffixed group, which
    several providers may serve. ``required`` and ``forbidden`` are traits;
    ``member_of``: the provider is in an aggregate of each of these sets,
    ``outside``: in none of these. ``in_tree``: uuid of a provider of the same
    tree.
    """

    resources: Resources
    suffix: str = ""
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    outside: frozenset[str] = frozenset()
    in_tree: str = ""

    @functools.cached_property
    def wanted(self) -> tuple[tuple[str, int], ...]:
        """(resource class, amount) in order of class, without amounts of 0.

        :raises ValueError: if an amount is negative
        """
        wanted = tuple(sorted(self.resources.items()))
        if any(amount < 0 for _, amount in wanted):
            raise ValueError(f"a negative amount is asked for: {dict(wanted)}")
        return tuple((name, amount) for name, amount in wanted if amount)

    @functools.cached_property
    def kind(self) -> tuple[Any, ...]:
        """A sortable key that is equal for equal groups."""
        return (
            self.suffix, tuple(sorted(self.resources.items())),
            tuple(sorted(self.required)), tuple(sorted(self.forbidden)),
            tuple(sorted(tuple(sorted(each)) for each in self.member_of)),
            tuple(sorted(self.outside)), self.in_tree)


@dataclasses.dataclass(frozen=True)
class Request:
    """The resources of one server, in request groups.

    ``isolate``: each suffixed group needs a provider of its own.
    ``same_subtree``: for each of these sets of suffixes, the provider of one
    group is an ancestor of those of the others, or the same. ``unpinned``: the
    request to hosts without PCPU, None if it is the same.
    """

    groups: tuple[RequestGroup, ...]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    unpinned: Request | None = None

    @classmethod
    def of(cls, resources: Resources) -> Request:
        """Return a request with only an unsuffixed group."""
        return cls((RequestGroup(resources),))

    def on(self, root: Provider) -> Request:
        """Return the request to a host with this root provider."""
        if self.unpinned is None or "PCPU" in root.inventories:
            return self
        return self.unpinned

    @functools.cached_property
    def only(self) -> frozenset[str] | None:
        """The classes if there is only an unsuffixed group, else None."""
        if len(self.groups) > 1 or any(each.suffix for each in self.groups):
            return None
        wanted = self.resources
        return frozenset(name for name in wanted if wanted[name])

    @property
    def resources(self) -> Resources:
        """{resource class: amount} of all groups."""
        if len(self.groups) == 1:
            return self.groups[0].resources
        found: dict[str, int] = {}
        for group in self.groups:
            for name, amount in group.resources.items():
                found[name] = found.get(name, 0) + amount
        return found

    @functools.cached_property
    def kind(self) -> tuple[Any, ...]:
        """A hashable key that is equal for equal requests."""
        return (
            self.isolate, self.same_subtree,
            self.unpinned and self.unpinned.kind,
            *(group.kind for group in self.groups))


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """An assignment of request groups to providers of a host.

    ``mappings``: (suffix, uuids of the providers) of each group, sorted.
    ``amounts``: the allocations.
    """

    mappings: tuple[tuple[str, tuple[str, ...]], ...]
    amounts: SlotAmounts


@dataclasses.dataclass(frozen=True, slots=True)
class VictimSet:
    """The victims on a host.

    ``victims`` are in order of uuid and ``cost`` is their sum. ``optimal``
    says that no better set exists; otherwise the search budget was used up,
    and the set is merely minimal: no victim can be spared. ``steps`` is the
    work done, a count and not a time.
    """

    victims: tuple[Candidate, ...]
    cost: int
    optimal: bool
    steps: int


class RefusalCode(enum.Enum):
    """Why a host can never serve a request."""

    NO_INVENTORY = "no_inventory"
    BELOW_MIN_UNIT = "below_min_unit"
    ABOVE_MAX_UNIT = "above_max_unit"
    STEP_SIZE = "step_size"
    NO_ROOM = "no_room"
    NO_PROVIDER = "no_provider"
    GRANULAR = "granular"


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a host cannot serve a request, whatever is evicted."""

    code: RefusalCode
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class PreemptibleServer:
    """A preemptible server as read from Nova.

    ``launched_at`` is aware; the creation time if Nova has not recorded a
    launch. ``notice_s``, ``action`` and ``restore`` are extra specs of its
    flavor: None, '' and False without one.
    """

    uuid: str
    host: str
    node: str
    cell_uuid: str
    project_id: str
    user_id: str
    flavor: str
    launched_at: datetime.datetime
    vm_state: str
    task_state: str | None
    minimum_runtime_s: int
    vcpus: int
    memory_mb: int
    disk_mb: int
    maximum_runtime_s: int | None = None
    notice_s: int | None = None
    action: str = ""
    restore: bool = False
    #: '' if it is not locked, else "owner" or "admin", as Nova has it
    locked_by: str = ""
    #: whether it holds resources of its host that a stopped server keeps
    pinned: bool = False
    #: whether it has a device that can be used only once
    one_time: bool = False
    #: its class of service, '' for none
    class_name: str = ""

    def uptime_us(self, now: datetime.datetime) -> int:
        """Return the microseconds since its launch, never negative."""
        return max(0, times.elapsed_us(self.launched_at, now))
