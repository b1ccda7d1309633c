# SPDX-License-Identifier: Apache-2.0
"""Places requests of the backlog as a batch."""

import collections
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nova_preempt.core import capacity
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.backlog.batch_plans import PlannedHosts
from nova_preempt.core.backlog.group_placement import Group
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch.solver_choice import Placer

# Reasons for which a request is placed one by one.
BOUND = (
    "Only Nova can evaluate its scheduler hints, availability zone or "
    "requested host.")
TIME = "The time limit for placing requests together was reached."
NO_ROOM = "The earlier requests of the plan leave no capacity for it."


class Planner:
    """Plans waiting requests together (``core/backlog/batch_plans.py``).

    All requests are placed by their first alternative, then the rest by the
    second on the remaining capacity, and so on; only free capacity is used.
    Left to placement one by one are: capacity of victims, resources in nested
    providers, and requests that Nova places by more than amounts, traits and
    strict server groups, such as other hints or an availability zone.

    :param next_placer: returns the placer of the next batch, None if there is
        no time left for one
    :param known: the server groups of requests, by group_placement.key()
    """

    def __init__(
        self, next_placer: Callable[[], Placer | None],
        known: Mapping[str, Group] | None = None, ) -> None:
        self._next_placer = next_placer
        self._known = known or {}

    def plan(self, requests: Sequence[backlog_model.Request], rooms: Sequence[
            HostCapacity]) -> Mapping[str, PlannedHosts | str]:
        """Return {uuid: hosts and flavor, or the reason why there are none}.
        """
        parts = frozenset[str]().union(*(room.parts for room in rooms))
        planned: dict[str, PlannedHosts | str] = {
            request.uuid: self._why_alone(request, parts)
            for request in requests}
        left = [item for item in requests if not planned[item.uuid]]
        planned.update(dict.fromkeys((item.uuid for item in left), NO_ROOM))
        batch = _Batch(self._known, rooms)
        number = 0
        while left:
            wanted = batch.wanted(left, number)
            placer = self._next_placer() if wanted else None
            if wanted and placer is None:
                planned.update(
                    dict.fromkeys((item.uuid for item in left), TIME))
                break
            if placer is not None:
                planned.update(batch.place(placer, wanted, number))
            number += 1
            left = [
                request for request in left
                if isinstance(planned[request.uuid], str)
                and len(request.alternatives) > number]
        return planned

    def _why_alone(
        self, request: backlog_model.Request, parts: frozenset[str]) -> str:
        """Return why a request is not placed in a batch, '' if it is."""
        server = request.body.get("server", {})
        hints = set(reservation_rules.hints(request.body))
        if group_placement.group_of(request, self._known) is not None:
            hints.discard("group")
        if hints or any(
            server.get(name)
            for name in ("availability_zone", "host", "hypervisor_hostname")):
            return BOUND
        found = parts.intersection(
            name for item in request.alternatives for name in item.resources)
        if found:
            return (
                f"It requests {', '.join(sorted(found))}, which hosts have in "
                "several providers; Nova checks each provider.")
        return ""


class _Batch:
    """The remaining capacity, and the hosts of servers of groups."""

    def __init__(self, known: Mapping[str, Group], rooms: Sequence[
            HostCapacity]) -> None:
        self._known = known
        self._rooms = {room.host: room for room in rooms}
        # {uuid of a group: {host: how many}}
        self._members: dict[str, dict[str, int]] = {}
        for room in rooms:
            for uuid, count in room.members.items():
                self._members.setdefault(uuid, {})[room.host] = count

    def wanted(
        self, requests: Sequence[backlog_model.Request], number: int
    ) -> dict[str, tuple[backlog_model.Request, int]]:
        """Return the requests that may fit, and how many servers of each.

        A request that no host fits would waste the solver's time, and its
        amounts may be too large to count.

        :param number: of the alternative
        """
        most = _most(self._rooms.values())
        found = {
            request.uuid: (request, backlog_model.missing(request))
            for request in requests
            if capacity.fits(request.alternatives[number].resources, most)}
        near: dict[str, list[backlog_model.Request]] = {}
        for request, _count in found.values():
            group = self._group(request)
            if group is not None and group.policy == group_placement.AFFINITY:
                near.setdefault(group.uuid, []).append(request)
        rooms = HostRooms(list(self._rooms.values()))
        for uuid, some in near.items():
            counts = rooms.fitting([
                GroupRequest(
                    request.alternatives[number],
                    backlog_model.missing(request),
                    backlog_model.least(request), ) for request in some
            ], self._only(self._known[uuid]))
            for request, count in zip(some, counts, strict=True):
                found[request.uuid] = request, count
        return {uuid: item for uuid, item in found.items() if item[1]}

    def place(self, placer: Placer, wanted: Mapping[str, tuple[
            backlog_model.Request, int]], number: int) -> dict[str,
            PlannedHosts]:
        """Place requests by their alternative of this number."""
        totals = collections.Counter[str]()
        for request, count in wanted.values():
            totals[group_placement.key(request)] += count
        found = placer.place(
            [
                self._request(order, request, count, number, totals)
                for order, (request, count) in enumerate(wanted.values())],
            [
                batch_model.HostState(
                    room.host, room.free, room.capacity, traits=room.traits)
                for room in self._rooms.values()],
            self._members, )
        planned = {}
        for uuid, hosts in found.placed.items():
            request, _count = wanted[uuid]
            alternative = request.alternatives[number]
            planned[uuid] = PlannedHosts(alternative, hosts)
            self._take(alternative, hosts)
            group = self._group(request)
            if group is not None:
                there = self._members.setdefault(group.uuid, {})
                for host, some in hosts.items():
                    there[host] = there.get(host, 0) + some
        return planned

    def _group(self, request: backlog_model.Request) -> Group | None:
        return group_placement.group_of(request, self._known)

    def _only(self, group: Group) -> Collection[str] | None:
        """Return the hosts that an affinity group has to be on, if any."""
        there = self._members.get(group.uuid, {})
        return there if there or group.elsewhere else None

    def _take(
        self, alternative: backlog_model.Alternative, hosts: Mapping[str, int]
    ) -> None:
        for host, count in hosts.items():
            room = self._rooms[host]
            self._rooms[host] = dataclasses.replace(
                room, free=capacity.subtract(room.free, {
                    name: amount * count
                    for name, amount in alternative.resources.items()}))

    def _request(
        self, order: int, request: backlog_model.Request, count: int,
        number: int, totals: Mapping[str, int], ) -> batch_model.Request:
        """Return the batch request of a backlog request.

        Few groups are constraints: a group with no more servers than a host
        may have is none, so that its requests are of the same kind as requests
        of no group.

        :param totals: how many servers of each group are wanted
        """
        asked = request.alternatives[number]
        near = ""
        apart: tuple[batch_model.AntiAffinity, ...] = ()
        hosts: frozenset[str] | None = None
        group = self._group(request)
        there = self._members.get(group.uuid, {}) if group is not None else {}
        if group is None:
            pass
        elif group.policy == group_placement.ANTI_AFFINITY:
            if there or totals[group.uuid] > group.most:
                apart = (batch_model.AntiAffinity(group.uuid, group.most),)
        elif there or totals[group.uuid] > 1:
            near = group.uuid
            hosts = frozenset(there) or None
        return batch_model.Request(
            request.uuid, order, asked.resources, count,
            count if near else backlog_model.least(request), hosts=hosts,
            traits=frozenset(asked.required),
            forbidden=frozenset(asked.forbidden), together=near, apart=apart, )


def _most(rooms: Iterable[HostCapacity]) -> dict[str, int]:
    """Return the most that a host has free of each resource class."""
    most: dict[str, int] = {}
    for room in rooms:
        for name, amount in room.free.items():
            most[name] = max(amount, most.get(name, 0))
    return most


Array: TypeAlias = npt.NDArray[Any]

#: More than this is not counted.
_LARGEST = 2**62


@dataclasses.dataclass(frozen=True, slots=True)
class GroupRequest:
    """Servers of an affinity group that one request wants.

    :param count: the most servers
    :param least: the fewest servers
    """

    alternative: backlog_model.Alternative
    count: int
    least: int


class HostRooms:
    """The free capacity of hosts, for many groups one after the other."""

    def __init__(self, rooms: Sequence[HostCapacity]) -> None:
        self._rooms = rooms
        self._number = {room.host: n for n, room in enumerate(rooms)}
        self._free: dict[str, Array] = {}
        self._suited: dict[tuple[tuple[str, ...], tuple[str, ...]], Array] = {}

    def fitting(
        self, wishes: Sequence[GroupRequest],
        hosts: Collection[str] | None = None) -> list[int]:
        """Return how many servers of each request fit together on one host.

        The first gets as many as possible, then the second, and so on: an
        earlier request is not left out for a later one. The batch chooses the
        host.

        :param hosts: the only hosts that may be used, None for all
        """
        left: Array = np.arange(len(self._rooms))
        if hosts is not None:
            left = np.array(sorted(
                self._number[host] for host in hosts if host in self._number
            ), dtype=np.intp)
        taken: dict[str, int] = {}
        found = []
        for wish in wishes:
            counts = self._times(wish, left, taken)
            most = int(counts.max(initial=0))
            if most < wish.least:
                found.append(0)
                continue
            left = left[counts == most]
            for name, amount in wish.alternative.resources.items():
                taken[name] = taken.get(name, 0) + amount * most
            found.append(most)
        return found

    def _times(
        self, wish: GroupRequest, left: Array, taken: dict[str, int]
    ) -> Array:
        counts = np.where(self._suits(wish.alternative)[left], wish.count, 0)
        for name, amount in wish.alternative.resources.items():
            if amount > _LARGEST:
                return np.zeros_like(counts)
            if amount > 0:
                free = self._of(name)[left] - taken.get(name, 0)
                counts = np.minimum(counts, np.maximum(free, 0) // amount)
        return counts

    def _of(self, name: str) -> Array:
        """Return the free amounts of a resource class, by host."""
        if name not in self._free:
            self._free[name] = np.array([
                max(0, min(room.free.get(name, 0), _LARGEST))
                for room in self._rooms], dtype=np.int64)
        return self._free[name]

    def _suits(self, alternative: backlog_model.Alternative) -> Array:
        """Tell which hosts have the traits."""
        key = alternative.required, alternative.forbidden
        if key not in self._suited:
            self._suited[key] = np.array(
                [room.is_for(alternative) for room in self._rooms], dtype=bool)
        return self._suited[key]
