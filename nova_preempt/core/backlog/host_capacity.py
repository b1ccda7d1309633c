# SPDX-License-Identifier: Apache-2.0
"""Capacity of each host of a cloud.

Amounts are by resource class, of a host as a whole: a server that fits here
may still be refused by Nova's filters, or by a host that is a tree of
providers. Nova decides, and a refused request is retried later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import math
import sys

from nova_preempt.core import capacity
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog.group_placement import Group
from nova_preempt.core.energy import host_classification
from nova_preempt.core.model import Resources
from nova_preempt.core.reservation import leases


@dataclasses.dataclass(frozen=True, slots=True)
class Departure:
    """Space that a preemptible server frees when it ends.

    :param in_s: in how many seconds, after its notice; None if nobody knows
    :param reclaimable: whether who preempts may have its room before
    """

    in_s: int | None
    resources: Resources
    reclaimable: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class HostCapacity:
    """The capacity of a host.

    :param free: amounts that are not allocated
    :param reclaimable: ``free`` and the allocations of all victims; never less
    :param capacity: amounts of the empty host
    :param ends: the expected departures of its servers
    :param traits: of the host
    :param consumers: the uuids of consumers with allocations of it
    :param free_s: for how long the host is not reserved
    :param parts: the resource classes of its nested providers, where it is a
        tree: whether an amount fits depends on the provider that has it
    :param members: {uuid of a server group: how many of it are there}
    :param off: whether it has to be woken, which no preemptible server does
    """

    host: str
    free: Resources
    reclaimable: Resources
    capacity: Resources
    ends: tuple[Departure, ...] = ()
    traits: frozenset[str] = frozenset()
    consumers: frozenset[str] = frozenset()
    free_s: float = math.inf
    parts: frozenset[str] = frozenset()
    members: Mapping[str, int] = dataclasses.field(default_factory=dict)
    off: bool = False

    def is_for(self, alternative: backlog_model.Alternative) -> bool:
        """Tell whether its traits, and the named reservation, allow a server.

        And is of the reservation that is named, if one is.
        """
        own = alternative.own_hosts
        return (own is None or self.host in own) and self.traits.issuperset(
            alternative.required
        ) and self.traits.isdisjoint(alternative.forbidden)

    def is_open(self, alternative: backlog_model.Alternative,
                lead_s: float) -> bool:
        """Tell whether it is on for a server, and not reserved too soon.

        :param lead_s: see core.reservation.leases.GuardTime
        """
        if self.off and alternative.preemptible:
            return False
        if alternative.hosts is not None:
            return self.host in alternative.hosts
        return leases.is_long_enough(self.free_s, lead_s)

    def has_resources(self, alternative: backlog_model.Alternative) -> bool:
        """Tell whether it allows a server, and has some of each resource."""
        return self.is_for(alternative) and all(
            self.capacity.get(name, 0) > 0
            for name, amount in alternative.resources.items() if amount > 0)

    def times_if_empty(self, alternative: backlog_model.Alternative) -> int:
        """Return how many such servers would fit if it were empty."""
        if not self.is_for(alternative):
            return 0
        return capacity.copies(
            alternative.resources, self.capacity, sys.maxsize)

    def view(self, alternative: backlog_model.Alternative) -> Resources:
        """Return its capacity for a server; victims' if the server preempts.
        """
        return self.free if alternative.preemptible else self.reclaimable

    def lack(self, alternative: backlog_model.Alternative) -> dict[str, int]:
        """Return its shortfall for a server, by resource class."""
        return dict(sorted(capacity.shortfall(
            alternative.resources, self.view(alternative)).items()))

    def distance(self, alternative: backlog_model.Alternative) -> tuple[int,
            str]:
        """Return its largest shortfall, in millionths of capacity; its name.
        """
        return max((
            amount * 10**6 // max(1, self.capacity.get(name, 0))
            for name, amount in self.lack(alternative).items()
        ), default=0), self.host

    def without(self, alternative: backlog_model.Alternative,
                count: int) -> HostCapacity:
        """Return its remaining capacity after so many more servers."""
        taken = combined(alternative, count).resources
        return dataclasses.replace(
            self,
            free={name: max(0, amount) for name, amount
                  in capacity.subtract(self.free, taken).items()},
            reclaimable=self.reclaimable if alternative.preemptible
            else capacity.subtract(self.reclaimable, taken))

    def ready_in_s(self, alternative: backlog_model.Alternative) -> int | None:
        """Return in how many seconds a server fits, None if unknown."""
        left = self.view(alternative)
        if capacity.fits(alternative.resources, left):
            return 0
        for end in sorted(self.ends, key=lambda end: end.in_s or 0):
            if end.reclaimable and not alternative.preemptible:
                continue  # already in the reclaimable capacity
            left = capacity.total((left, end.resources))
            if capacity.fits(alternative.resources, left):
                return end.in_s
        return None


def combined(alternative: backlog_model.Alternative,
            count: int) -> backlog_model.Alternative:
    """Return the alternative with the resources of so many servers."""
    return dataclasses.replace(alternative, resources={
        name: amount * count for name, amount in alternative.resources.items()
    })


def with_departures(room: HostCapacity,
                    off: host_classification.OffHost | None, wakes: bool,
                    ends: Iterable[Departure]) -> HostCapacity | None:
    """Return the capacity of a host with the departures of its servers.

    :param off: None: it is on
    :param wakes: whether normal servers that find no host wake one
    :param ends: the departures of all preemptible servers there
    :returns: None if the host is off, and nothing wakes it
    """
    if off is not None and (off.why_late or not wakes):
        return None
    ends = list(ends)
    return dataclasses.replace(
        room, off=off is not None,
        reclaimable=capacity.total((
            room.free, *(each.resources for each in ends
                         if each.reclaimable))),
        ends=tuple(each for each in ends if each.in_s is not None))


@dataclasses.dataclass(frozen=True, slots=True)
class KeptHosts:
    """Hosts that are kept for a request.

    :param hosts: their names
    :param in_s: in how many seconds all of its servers can start there, None
        if nobody knows
    :param distance: the sum of their shortfalls, in millionths of their
        capacity
    """

    hosts: tuple[str, ...]
    in_s: int | None
    distance: int


def with_members(rooms: Iterable[HostCapacity],
        known: Iterable[Group]) -> list[HostCapacity]:
    """Return the capacity of hosts, each with its members of server groups.

    Members are found by their allocations, so servers in build count too.
    """
    rooms = list(rooms)
    members = group_placement.members_by_host(
        known, {room.host: room.consumers for room in rooms})
    return [
        dataclasses.replace(room, members=members[room.host])
        if room.host in members else room for room in rooms]


CapacityKey = tuple[object, ...]


def capacity_key(alternative: backlog_model.Alternative) -> CapacityKey:
    """Return a key that is equal for alternatives of equal constraints."""
    return (
        alternative.preemptible, alternative.run_s, alternative.required,
        alternative.forbidden, tuple(sorted(alternative.resources.items())),
        alternative.minimum_run_s, alternative.notice_s, alternative.hosts,
        alternative.own_hosts)
