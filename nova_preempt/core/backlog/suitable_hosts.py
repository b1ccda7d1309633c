# SPDX-License-Identifier: Apache-2.0
"""Finds the hosts that suit servers of a kind, whatever runs there now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog.group_placement import Group
from nova_preempt.core.backlog.host_capacity import HostCapacity


@dataclasses.dataclass(frozen=True, slots=True)
class SuitableHosts:
    """The suitable hosts for servers of a kind, by number.

    :ivar ever: how many servers each host would take if it were empty
    :ivar open: the suitable hosts that power and reservations allow
    :ivar names: the names of open hosts that have some of each resource
    :ivar largest: how many servers each would take, descending
    :ivar largest_open: the same of open hosts
    """

    ever: tuple[int, ...]
    open: frozenset[int]
    names: frozenset[str]
    largest: tuple[int, ...]
    largest_open: tuple[int, ...]

    @classmethod
    def of(cls, alternative: backlog_model.Alternative, rooms: Sequence[
            HostCapacity], lead_s: Callable[[backlog_model.Alternative],
            float]) -> SuitableHosts:
        """Return the suitable hosts among all hosts.

        :param lead_s: for how long a server of a flavor must have its host
            before that is reserved for another project
        """
        needs_s = lead_s(alternative)
        is_open = frozenset(
            number for number, room in enumerate(rooms)
            if room.is_for(alternative) and room.is_open(alternative, needs_s))
        ever = [room.times_if_empty(alternative) for room in rooms]
        return cls(tuple(ever), is_open, frozenset(rooms[
            number].host for number in is_open if rooms[number].has_resources(
            alternative)), tuple(sorted(ever, reverse=True)), tuple(sorted((
            ever[number] for number in is_open), reverse=True)))


def fewest_hosts(
    largest: Sequence[int], count: int, group: Group | None = None) -> int:
    """Return the minimum number of hosts for so many servers.

    :param largest: how many each host takes, the largest first
    :param group: the group of the servers
    :returns: 0 where there are not enough hosts
    """
    most, at_once = count, 1
    if group_placement.is_together(group):
        at_once = count
    elif group is not None:
        most = group.most
    for hosts, times in enumerate(largest, 1):
        if times < at_once:
            return 0
        count -= min(most, times)
        if count <= 0:
            return hosts
    return 0


def spread(
    count: int, most: Mapping[int, int], hosts: Sequence[int]
) -> dict[int, int]:
    """Distribute servers over hosts round-robin: {host: how many}.

    :param most: how many each may have
    :param hosts: the first to get one first
    :returns: {} if not all fit
    """
    found: dict[int, int] = {}
    if count > sum(most[number] for number in hosts):
        return found
    some = list(hosts)[:count]
    while some:
        for number in some:
            found[number] = found.get(number, 0) + 1
        count -= len(some)
        some = [number for number in some
                if found[number] < most[number]][:count]
    return found
