# SPDX-License-Identifier: Apache-2.0
"""Index of cost bounds of thousands of hosts.

The core keeps a lower bound of the cost of each host between requests of the
same kind (core.scheduling.cost_bounds). This index keeps the bounds in arrays
and lists hosts in ascending order of them, so that the core does not examine
hosts that are too expensive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from nova_preempt.core import costs
from nova_preempt.core.scheduling.cloud_port import ListedHost
from nova_preempt.core.scheduling.cost_bounds import CostBounds
from nova_preempt.core.scheduling.cost_bounds import HostedServer
from nova_preempt.simulator import memory_cloud

Amounts: TypeAlias = npt.NDArray[np.int64]
#: Boolean per host, by the number of the host.
Mask: TypeAlias = npt.NDArray[np.bool_]
#: Bounds are kept for so many kinds of requests, the most recent ones.
_MOST_KINDS = 64
#: So many hosts with the lowest bounds are sorted first.
_FIRST = 64
#: Cost of a host on which no set of victims suffices.
_NEVER = costs.NEVER_US


class _KnownBounds:
    """Cost bounds of one kind of request, with their validity."""

    def __init__(self, count: int) -> None:
        self.cost_us = np.zeros(count, dtype=np.int64)
        self.since_us = np.zeros(count, dtype=np.int64)
        self.until_us = np.zeros(count, dtype=np.int64)
        self.version = np.full(count, -1, dtype=np.int64)
        # Hosts listed last, of which the core may have learned more since.
        self.listed: list[int] = []

    def holds(self, numbers: Amounts, version: Amounts, now_us: int) -> Mask:
        """Return a mask of the numbers whose bound is valid now."""
        held: Mask = (self.version[numbers] == version[numbers]) & (
            self.since_us[numbers] <= now_us) & (
            self.until_us[numbers] > now_us)
        return held


class CostBoundIndex:
    """Cost bounds of all hosts for all recent kinds of requests.

    :param hosts: MemoryHosts
    """

    def __init__(self, hosts: Sequence[memory_cloud.MemoryHost]) -> None:
        self._hosts = hosts
        self._version = np.zeros(len(hosts), dtype=np.int64)
        self._kinds: dict[tuple[object, ...], _KnownBounds] = {}
        # Cost of the cheapest server of each host, for any request.
        self._least = _KnownBounds(len(hosts))
        self._servers = np.zeros(len(hosts), dtype=np.int64)

    def changed(self, number: int, *, preemptible: bool) -> None:
        """Invalidate the bounds of a host.

        :param preemptible: whether its preemptible servers have changed
        """
        self._version[number] += 1
        self._servers[number] += preemptible

    def listed(self, numbers: Amounts, kind: tuple[object, ...],
               floors: CostBounds | None, now_us: int,
               hosted: Callable[[memory_cloud.MemoryHost],
                                Sequence[HostedServer]],
               free: Mask) -> _Listed:
        """Return ListedHosts of these hosts, the lowest cost bound first.

        :param kind: of the request
        :param floors: the bounds that the core keeps, None if it keeps none
        :param now_us: microseconds since the epoch
        :param hosted: returns the preemptible servers of a host
        :param free: mask of hosts that may cost nothing, because capacity is
            free or being released
        """
        if floors is None:
            return _Listed(self._hosts, numbers,
                           np.zeros(len(numbers), dtype=np.int64), [])
        known = self._kinds.pop(kind, None) or _KnownBounds(len(self._hosts))
        self._kinds[kind] = known
        for oldest in list(self._kinds)[:-_MOST_KINDS]:
            del self._kinds[oldest]
        self._learn(known, floors)
        holds = known.holds(numbers, self._version, now_us)
        self._find_least(numbers[~holds], floors, now_us, hosted)
        cost_us = np.where(holds, known.cost_us[numbers],
                           self._least.cost_us[numbers])
        cost_us[free[numbers]] = 0
        helps = cost_us < _NEVER
        return _Listed(self._hosts, numbers[helps], cost_us[helps],
                       known.listed)

    def _find_least(self, numbers: Amounts, floors: CostBounds, now_us: int,
                    hosted: Callable[[memory_cloud.MemoryHost],
                                     Sequence[HostedServer]]) -> None:
        least = self._least
        old = numbers[~least.holds(numbers, self._servers, now_us)]
        found = [floors.cheapest(hosted(self._hosts[number]), now_us)
                 for number in old.tolist()]
        if found:
            least.cost_us[old], least.until_us[old] = zip(*found, strict=True)
            least.since_us[old] = now_us
            least.version[old] = self._servers[old]

    def _learn(self, known: _KnownBounds, floors: CostBounds) -> None:
        """Copy the bounds that the core computed since the last request."""
        for number in known.listed:
            host = self._hosts[number]
            floor = floors.known(host.uuid)
            if (floor is None or floor.servers is not host.servers
                    or floor.providers[0] is not host.providers[0]):
                continue
            known.cost_us[number] = (
                _NEVER if floor.cost_us is None else floor.cost_us)
            known.since_us[number] = floor.since_us
            known.until_us[number] = floor.until_us
            known.version[number] = self._version[number]
        known.listed = []


class _Listed(Sequence[ListedHost]):
    """Sequence that makes ListedHosts as they are iterated over."""

    def __init__(self, hosts: Sequence[memory_cloud.MemoryHost],
                 numbers: Amounts,
                 cost_us: Amounts, listed: list[int]) -> None:
        self._hosts = hosts
        self._numbers = numbers
        self._cost_us = cost_us
        self._listed = listed

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, number: int) -> ListedHost: ...

    @overload
    def __getitem__(self, number: slice) -> list[ListedHost]: ...

    def __getitem__(self, number: Any) -> Any:
        return list(self)[number]

    def __iter__(self) -> Iterator[ListedHost]:
        for number, cost_us in self._ascending():
            self._listed.append(number)
            listing = self._hosts[number].listing
            yield ListedHost(listing.uuid, listing.name, listing.providers,
                             listing.fresh, cost_us)

    def _ascending(self) -> Iterator[tuple[int, int]]:
        """Sort the cheapest first: most often they suffice."""
        left = np.ones(len(self._numbers), dtype=bool)
        if len(left) > 2 * _FIRST:
            first = np.argpartition(self._cost_us, _FIRST)[:_FIRST]
            left[first] = False
            yield from self._in_order(np.sort(first))
        yield from self._in_order(left.nonzero()[0])

    def _in_order(self, which: Amounts) -> Iterator[tuple[int, int]]:
        which = which[np.argsort(self._cost_us[which], kind='stable')]
        return zip(self._numbers[which].tolist(),
                   self._cost_us[which].tolist(), strict=True)
