# SPDX-License-Identifier: Apache-2.0
"""Index of cost bounds of thousands of hosts.

The core keeps what a host costs at least from one request to the next of the
same kind (core.scheduling.cost_bounds). Here it is kept in arrays, so that the
hosts may be listed in ascending order of it, and the core need not look at
those that are too dear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from nova_preempt.core import costs
from nova_preempt.core.scheduling.cloud_view import ListedHost
from nova_preempt.core.scheduling.cost_bounds import CostBounds
from nova_preempt.core.scheduling.cost_bounds import HostedServer
from nova_preempt.simulator import memory_cloud

Amounts: TypeAlias = npt.NDArray[np.int64]
#: True of some hosts, by their numbers.
Mask: TypeAlias = npt.NDArray[np.bool_]
#: Of so many kinds of requests, those that came last, floors are kept.
_MOST_KINDS = 64
#: So many hosts of known floors are put in order at first.
_FIRST = 64
#: What a host costs on which no victims help.
_NEVER = costs.NEVER_US


class _KnownBounds:
    """Known cost bounds of a kind of request, by host and its state."""

    def __init__(self, count: int) -> None:
        self.cost_us = np.zeros(count, dtype=np.int64)
        self.since_us = np.zeros(count, dtype=np.int64)
        self.until_us = np.zeros(count, dtype=np.int64)
        self.version = np.full(count, -1, dtype=np.int64)
        # Those that were listed last: more may be known of them now.
        self.listed: list[int] = []

    def holds(self, numbers: Amounts, version: Amounts, now_us: int) -> Mask:
        """Return the hosts whose known bounds are valid now, as a mask."""
        held: Mask = (self.version[numbers] == version[numbers]) & (
            self.since_us[numbers] <= now_us) & (
            self.until_us[numbers] > now_us)
        return held


class CostBoundIndex:
    """Lower bounds of the costs of hosts, for all kinds of requests.

    :param hosts: MemoryHosts
    """

    def __init__(self, hosts: Sequence[memory_cloud.MemoryHost]) -> None:
        self._hosts = hosts
        self._version = np.zeros(len(hosts), dtype=np.int64)
        self._kinds: dict[tuple[object, ...], _KnownBounds] = {}
        # What the cheapest server of each costs, whatever is asked for.
        self._least = _KnownBounds(len(hosts))
        self._servers = np.zeros(len(hosts), dtype=np.int64)

    def changed(self, number: int, *, preemptible: bool) -> None:
        """Forget the bounds of a host.

        :param preemptible: whether its preemptible servers have changed
        """
        self._version[number] += 1
        self._servers[number] += preemptible

    def listed(self, numbers: Amounts, kind: tuple[object, ...],
               floors: CostBounds | None, now_us: int,
               hosted: Callable[[memory_cloud.MemoryHost],
                                Sequence[HostedServer]],
               free: Mask) -> _Listed:
        """Return the hosts of these numbers, those first that may cost least.

        :param kind: of the request
        :param floors: what the core knows, None if it keeps nothing
        :param now_us: as the core has time in whole numbers
        :param hosted: returns those of a host, as the core has them
        :param free: true of hosts that may cost nothing: there is room, or
            some end already
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
        """Read the bounds that the core has computed since."""
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
    """Listings that are made as they are looked at."""

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
        """Put the cheapest in order first: most often they are enough."""
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
