# SPDX-License-Identifier: Apache-2.0
"""A cloud in memory with an index of free capacity.

What is free on hosts is kept in arrays beside what the hosts themselves say.
By them alone nothing is decided: they tell which hosts are worth a look, and
leave out none that is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import heapq
import math

import numpy as np

from nova_preempt.core import capacity
from nova_preempt.core.model import Host, PreemptibleServer, Provider, Request
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling import scheduling_cycle
from nova_preempt.core.scheduling.cloud_view import ListedHost
from nova_preempt.simulator import cost_bound_index
from nova_preempt.simulator import memory_cloud

_LEAST = np.iinfo(np.int64).min
#: So many hosts are looked at one by one before all of them are at once.
_FIRST = 16


class IndexedCloud(memory_cloud.MemoryCloud):
    """A cloud of thousands of hosts with their servers.

    Servers come and go by put() and take_away(), so that it knows.

    :param hosts: MemoryHosts without servers
    :param spread: whether the host with the most free memory comes first, or
        that with the least
    :ivar watch: called with a MemoryHost after each change of it, None for
        nobody
    :ivar changes: grows with each server that comes, goes or changes
    """

    def __init__(self, hosts: Iterable[memory_cloud.MemoryHost],
                 spread: bool = True) -> None:
        self._in_order = sorted(hosts, key=lambda host: (host.name, host.uuid))
        super().__init__(self._in_order)
        self._names = super().by_name()
        self._number = {host.uuid: number for number, host
                        in enumerate(self._in_order)}
        self.changes = 0
        # By uuid of a preemptible server.
        self._where: dict[str, memory_cloud.MemoryHost] = {}
        classes = sorted({name for host in self._in_order
                          for name in host.inventories})
        self._row = {name: row for row, name in enumerate(classes)}
        self._capacity = np.array(
            [[host.providers[0].free(name) for host in self._in_order]
             for name in classes], dtype=np.int64)
        self._free = self._capacity.copy()
        # With all preemptible servers gone.
        self._at_best = self._capacity.copy()
        self._weight_row = self._row.get('MEMORY_MB', 0)
        self._sign = 1 if spread else -1
        # To which servers may come: none is powered off.
        self._is_open = np.ones(len(self._in_order), dtype=bool)
        # A heap of (weight, number), the host with the most free first. Where
        # the weight is no longer that of the host, another entry has it.
        self._emptiest: list[tuple[int, int]] = []
        # {kind of a request: hosts of such sizes}
        self._takes: dict[tuple[object, ...], cost_bound_index.Mask] = {}
        self.watch: Callable[[memory_cloud.MemoryHost], None] | None = None
        # Preemptible servers by host.
        self._spots = np.zeros(len(self._in_order), dtype=np.int64)
        self._cost_bounds = cost_bound_index.CostBoundIndex(self._in_order)

    def by_name(self) -> Mapping[str, memory_cloud.MemoryHost]:
        return self._names

    def find(self, uuid: str) -> memory_cloud.MemoryHost | None:
        return self._where.get(uuid)

    def mask(self, names: Iterable[str]) -> cost_bound_index.Mask:
        """An array that is true of the hosts of these names alone."""
        found = np.zeros(len(self._in_order), dtype=bool)
        for name in names:
            host = self._names.get(name)
            if host is not None:
                found[self._number[host.uuid]] = True
        return found

    def is_among(self, uuid: str, where: cost_bound_index.Mask | None) -> bool:
        """Return whether a host is in a mask; None is all hosts."""
        return where is None or bool(where[self._number[uuid]])

    def candidates(self, request: Request, policy: preemption_policy.Policy,
                   now_us: int,
                   releasing: Iterable[memory_cloud.MemoryHost] = (),
                   where: cost_bound_index.Mask
                   | None = None) -> Sequence[ListedHost]:
        """Return the hosts whose victims may help, for the core.

        :param policy: the core's
        :param now_us: as the core has time in whole numbers
        :param releasing: MemoryHosts where some end already
        :param where: a mask() of the hosts that come into question
        """
        fitting = self._fitting(self._at_best, request, where)
        fitting &= self._spots > 0
        # Costs with classes are too long for arrays.
        known = None if policy.classes is not None else (
            self.memo.floors(request, policy, preemption_policy.NORMAL))
        free = self._fitting(self._free, request)
        free[[self._number[host.uuid] for host in releasing]] = True
        return self._cost_bounds.listed(
            fitting.nonzero()[0], request.kind, known, now_us,
            lambda host: self.memo.hosted(
                Host(host.name, host.providers), host.servers, policy), free)

    def free(self) -> dict[str, int]:
        """Return {class: free amount of all hosts}."""
        # An overfull host takes nothing from others.
        return {name: int(np.maximum(self._free[row], 0).sum())
                for name, row in self._row.items()}

    def providers_with(self, resources: Mapping[str, int]
                       ) -> Iterator[Provider]:
        """Yield the providers of hosts with so much free, on or off."""
        enough = np.ones(len(self._in_order), dtype=bool)
        for name, amount in resources.items():
            if amount and name not in self._row:
                return
            if amount:
                enough &= self._free[self._row[name]] >= amount
        for number in enough.nonzero()[0]:
            yield self._in_order[number].providers[0]

    def total(self) -> dict[str, int]:
        """Return {class: capacity of all hosts}."""
        return {name: int(self._capacity[row].sum())
                for name, row in self._row.items()}

    def begin(self, cycle: scheduling_cycle.SchedulingCycle,
              where: cost_bound_index.Mask | None = None) -> None:
        host = self.best(cycle.request, where)
        if host is not None:
            cycle.found_room({host.uuid: self._amounts(
                self._free, self._number[host.uuid])})

    def _amounts(self, table: cost_bound_index.Amounts,
                 number: int) -> dict[str, int]:
        """Return {class: amount of a host in a table}."""
        return {name: int(table[self._row[name], number])
                for name in self._in_order[number].inventories}

    def best(self, request: Request, where: cost_bound_index.Mask | None = None
             ) -> memory_cloud.MemoryHost | None:
        """The first host that has room for a request, None if none has.

        :param where: a mask() of the hosts that come into question
        """
        takes = self._taking(request)
        if where is not None:
            takes = takes & where
        if self._sign > 0:
            number = self._first_of_emptiest(request, takes)
            if number is not None:
                return None if number < 0 else self._in_order[number]
        fitting = self._fitting(self._free, request, takes)
        weight = self._sign * self._free[self._weight_row]
        number = int(np.where(fitting, weight, _LEAST).argmax())
        return self._in_order[number] if fitting[number] else None

    def _first_of_emptiest(self, request: Request, takes: cost_bound_index.Mask
                           ) -> int | None:
        """The number of the host that is best() where the emptiest is first.

        -1 where there is none, None where all have to be looked at.
        """
        free = self._free
        if not 0 < len(self._emptiest) <= 4 * len(self._in_order):
            self._emptiest = [(-weight, number) for number, weight
                              in enumerate(free[self._weight_row].tolist())]
            heapq.heapify(self._emptiest)
        heap = self._emptiest
        seen: list[tuple[int, int]] = []
        wanted = [(self._row[name], amount) for group in request.groups
                  for name, amount in group.wanted if name in self._row]
        least = dict(wanted).get(self._weight_row, -math.inf)
        found: int | None = -1
        while heap and -heap[0][0] >= least:
            entry = heap[0]
            number = entry[1]
            if (entry in seen or -entry[0] != free[self._weight_row, number]
                    or not self._is_open[number]):
                heapq.heappop(heap)
            elif takes[number] and all(
                    free[row, number] >= amount for row, amount in wanted):
                found = number
                break
            elif len(seen) == _FIRST:
                found = None
                break
            else:
                seen.append(heapq.heappop(heap))
        for entry in seen:
            heapq.heappush(heap, entry)
        return found

    def _taking(self, request: Request) -> cost_bound_index.Mask:
        """A mask of the hosts that take servers of such a size when empty."""
        kind = request.kind
        takes = self._takes.get(kind)
        if takes is None:
            takes = self._takes[kind] = np.array([
                not any(group.suffix or any(
                    capacity.forbidden(name, amount,
                                       host.inventories.get(name))
                    for name, amount in group.wanted)
                    for group in request.groups)
                for host in self._in_order], dtype=bool)
        return takes

    def room(self, request: Request, most: int) -> dict[str, dict[str, int]]:
        """The first hosts by name that have room, with what is free there.

        :returns: {name: {class: amount}}
        """
        found = {}
        for number in self._fitting(self._free, request).nonzero()[0]:
            host = self._in_order[number]
            if host.has_room(request):
                provider = host.providers[0]
                found[host.name] = {name: provider.free(name)
                                    for name in host.inventories}
                if len(found) == most:
                    break
        return found

    def amounts(self) -> Iterator[
            tuple[memory_cloud.MemoryHost, dict[str, int], dict[str, int]]]:
        """Yield each host with its free amounts and its capacity."""
        for number, host in enumerate(self._in_order):
            yield (host, self._amounts(self._free, number),
                   self._amounts(self._capacity, number))

    def put(self, host: memory_cloud.MemoryHost, uuid: str,
            resources: Mapping[str, int],
            server: PreemptibleServer | None = None) -> None:
        """Put a server on a host, or change what it holds and its record.

        :param server: the record of a preemptible one
        """
        number = self._number[host.uuid]
        changes = host.allocations.get(uuid) != resources or (
            (uuid in host.servers) != (server is not None))
        if changes and uuid in host.allocations:
            self._count(host, number, uuid, -1)
        host.add(uuid, resources, server)
        if server is not None:
            self._where[uuid] = host
        if changes:
            self._count(host, number, uuid, 1)
        self._changed(number, server is not None)
        if self.watch is not None:
            self.watch(host)

    def close(self, host: memory_cloud.MemoryHost) -> None:
        """Have no more servers come to a host."""
        self._is_open[self._number[host.uuid]] = False

    def open(self, host: memory_cloud.MemoryHost) -> None:
        """Have servers come to it again."""
        number = self._number[host.uuid]
        self._is_open[number] = True
        self._weigh(number)

    def is_open(self, host: memory_cloud.MemoryHost) -> bool:
        """Return whether a host accepts servers."""
        return bool(self._is_open[self._number[host.uuid]])

    def take_away(self, host: memory_cloud.MemoryHost, uuid: str) -> None:
        """Take a server away."""
        number = self._number[host.uuid]
        self._count(host, number, uuid, -1)
        preemptible = uuid in host.servers
        host.remove(uuid)
        self._changed(number, preemptible)
        self._where.pop(uuid, None)
        if self.watch is not None:
            self.watch(host)

    def _changed(self, number: int, preemptible: bool) -> None:
        self._cost_bounds.changed(number, preemptible=preemptible)
        self.changes += 1
        self._weigh(number)

    def _count(self, host: memory_cloud.MemoryHost, number: int, uuid: str,
               sign: int) -> None:
        """Count what a server holds as taken (1), or as free again (-1)."""
        preemptible = uuid in host.servers
        if preemptible:
            self._spots[number] += sign
        for name, amount in host.allocations[uuid].items():
            row = self._row[name]
            self._free[row, number] -= sign * amount
            if not preemptible:
                self._at_best[row, number] -= sign * amount

    def _weigh(self, number: int) -> None:
        """Update the key by which a host is ordered."""
        if self._emptiest:
            heapq.heappush(self._emptiest, (
                -int(self._free[self._weight_row, number]), number))

    def _fitting(self, free: cost_bound_index.Amounts, request: Request,
                 where: cost_bound_index.Mask
                 | None = None) -> cost_bound_index.Mask:
        """Return the open hosts with enough capacity, as a mask."""
        fitting = self._is_open if where is None else self._is_open & where
        for group in request.groups:
            for name, amount in group.resources.items():
                if not amount:
                    continue
                if name not in self._row:
                    return np.zeros(len(self._in_order), dtype=bool)
                enough = free[self._row[name]] >= amount
                enough &= fitting
                fitting = enough
        return fitting.copy() if fitting is self._is_open else fitting
