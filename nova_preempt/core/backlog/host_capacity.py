# SPDX-License-Identifier: Apache-2.0
"""The room of a cloud, host by host.

Amounts are by resource class, of a host as a whole: what fits here may still
be refused by Nova's filters, or by a host that is made of parts. Nova has the
last word, and what it refuses is tried again later.
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
from nova_preempt.core.energy import host_candidates
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
    """What a host has.

    :param free: what nobody uses
    :param reclaimable: what would be free if each preemptible server there
        that may end had ended; never less
    :param capacity: what an empty one has
    :param ends: of its servers, as far as they are known
    :param traits: of the host
    :param consumers: the uuids of who uses something of it
    :param free_s: for how long it is nobody's: until it is reserved
    :param parts: the resource classes of its parts, where it is a tree:
        whether an amount fits depends on which of them has how much
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
        """Whether it has, and lacks, the traits that are asked for.

        And is of the reservation that is named, if one is.
        """
        own = alternative.own_hosts
        return (own is None or self.host in own) and self.traits.issuperset(
            alternative.required
        ) and self.traits.isdisjoint(alternative.forbidden)

    def is_open(self, alternative: backlog_model.Alternative,
                lead_s: float) -> bool:
        """Whether it is on for it, and reservations let it in.

        :param lead_s: see core.reservation.leases.Guard
        """
        if self.off and alternative.preemptible:
            return False
        if alternative.hosts is not None:
            return self.host in alternative.hosts
        return leases.is_long_enough(self.free_s, lead_s)

    def has_resources(self, alternative: backlog_model.Alternative) -> bool:
        """Whether it is for such servers, and has some of each resource."""
        return self.is_for(alternative) and all(
            self.capacity.get(name, 0) > 0
            for name, amount in alternative.resources.items() if amount > 0)

    def times_if_empty(self, alternative: backlog_model.Alternative) -> int:
        """Return how many would find room if it were empty."""
        if not self.is_for(alternative):
            return 0
        return capacity.copies(
            alternative.resources, self.capacity, sys.maxsize)

    def view(self, alternative: backlog_model.Alternative) -> Resources:
        """Return the capacity open to it: with victims' if it preempts."""
        return self.free if alternative.preemptible else self.reclaimable

    def lack(self, alternative: backlog_model.Alternative) -> dict[str, int]:
        """Return what it lacks for a server."""
        return dict(sorted(capacity.shortfall(
            alternative.resources, self.view(alternative)).items()))

    def distance(self, alternative: backlog_model.Alternative) -> tuple[int,
            str]:
        """How far it is from having room: millionths of what it has."""
        return max((
            amount * 10**6 // max(1, self.capacity.get(name, 0))
            for name, amount in self.lack(alternative).items()
        ), default=0), self.host

    def without(self, alternative: backlog_model.Alternative,
                count: int) -> HostCapacity:
        """Return what is left of it beside so many more servers."""
        taken = combined(alternative, count).resources
        return dataclasses.replace(
            self,
            free={name: max(0, amount) for name, amount
                  in capacity.subtract(self.free, taken).items()},
            reclaimable=self.reclaimable if alternative.preemptible
            else capacity.subtract(self.reclaimable, taken))

    def ready_in_s(self, alternative: backlog_model.Alternative) -> int | None:
        """Return in how many seconds enough will have ended, None: unknown."""
        left = self.view(alternative)
        if capacity.fits(alternative.resources, left):
            return 0
        for end in sorted(self.ends, key=lambda end: end.in_s or 0):
            if end.reclaimable and not alternative.preemptible:
                continue  # it was counted
            left = capacity.total((left, end.resources))
            if capacity.fits(alternative.resources, left):
                return end.in_s
        return None


def combined(alternative: backlog_model.Alternative,
            count: int) -> backlog_model.Alternative:
    """So many servers on a host, as if they were one."""
    return dataclasses.replace(alternative, resources={
        name: amount * count for name, amount in alternative.resources.items()
    })


def with_departures(room: HostCapacity, off: host_candidates.OffHost | None,
        wakes: bool, ends: Iterable[Departure]) -> HostCapacity | None:
    """Return the room of a host, with what its preemptible servers leave.

    :param off: None: it is on
    :param wakes: whether normal servers that find no host wake one
    :param ends: of all preemptible servers there
    :returns: None where it is off, and nobody wakes it
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
class HeldHosts:
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
    """Return the rooms, each with how many servers of groups are there.

    By who uses something of them: also those that are being built.
    """
    rooms = list(rooms)
    members = group_placement.members_by_host(
        known, {room.host: room.consumers for room in rooms})
    return [
        dataclasses.replace(room, members=members[room.host])
        if room.host in members else room for room in rooms]


CapacityKey = tuple[object, ...]


def capacity_key(alternative: backlog_model.Alternative) -> CapacityKey:
    """What is the same of alternatives that find room alike."""
    return (
        alternative.preemptible, alternative.run_s, alternative.required,
        alternative.forbidden, tuple(sorted(alternative.resources.items())),
        alternative.minimum_run_s, alternative.notice_s, alternative.hosts,
        alternative.own_hosts)
