# SPDX-License-Identifier: Apache-2.0

"""Availability promises as the Policy of core.scheduling uses them.

Made for one time, and given to the Policy as ``classes``: which server of a
class may be evicted for which request of a class, and at what cost. A normal
request may evict any server, but chooses by promises first.
"""

from collections.abc import Iterable, Mapping

from nova_preempt.core.classes import victim_harm
from nova_preempt.core.classes.availability_margin import QosClasses
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.classes.availability_margin import may_preempt
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.model import PreemptibleServer

#: Other costs are the low bits, below those of promises, and no sum of them
#: overflows: 285 years each, in micro-units.
_OTHER_BITS = 64
_MOST_OTHER = 2**53
_OTHER = (1 << _OTHER_BITS) - 1


class ClassPromiseRules:
    """The promises to all servers of classes at one time.

    :param classes: the table
    :param claimants: {uuid of a server: Claimant}. A server of a class that is
        not there, or whose clocks are empty or have a gap, was promised
        something unknown: no request of a class evicts it, and for others it
        costs the most of its class. Nothing was promised to servers of no
        class: no request of a class evicts them, and they cost the same as
        without classes.
    :param now_us: the time
    """

    def __init__(self, classes: QosClasses, claimants: Mapping[str, Claimant],
                 now_us: int) -> None:
        self.table = classes
        self.source = claimants
        self._now_us = now_us
        self._standings: dict[str, Standing] = {}

    def claim(self, claimant: Claimant) -> Standing:
        """Return the standing of a request as its PreemptionRight has it."""
        return claimant.stand(self.table, self._now_us)

    def known(
            self, servers: Iterable[PreemptibleServer]) -> tuple[Claimant
                                                                 | None, ...]:
        """Return the claimants of servers."""
        return tuple([self.source.get(server.uuid) for server in servers])

    def may_preempt(self, claim: Standing, server: PreemptibleServer) -> bool:
        """Tell whether a request may evict a server."""
        standing = self._standing(server.uuid)
        return standing is not None and may_preempt(claim, standing)

    def cost(self, server: PreemptibleServer, cost_us: int) -> int:
        """Return the cost of a server, given its cost without classes.

        The harm of its eviction to promises comes first, see
        victim_harm.harm_cost(). Sums compare in the same way.
        """
        standing = self._standing(server.uuid)
        cost_us = min(cost_us, _MOST_OTHER)
        if standing is not None:
            folded = victim_harm.harm_cost(self.table, standing)
            return folded << _OTHER_BITS | cost_us
        return self._unknown(server) << _OTHER_BITS | cost_us

    def floor(self, server: PreemptibleServer, until_us: int) -> int | None:
        """Return a lower bound of the cost of a server until then.

        While it runs its margin grows, and its eviction costs less; in any
        other state the margin shrinks. None for a server to which nothing was
        promised.
        """
        claimant = self.source.get(server.uuid)
        if claimant is None or not claimant.is_certain:
            return self._unknown(server) << _OTHER_BITS or None
        if claimant.clocks.kind is not Kind.RUNNING:
            until_us = self._now_us
        standing = claimant.stand(self.table, until_us)
        return victim_harm.harm_cost(self.table, standing) << _OTHER_BITS

    def other_cost_us(self, cost: int) -> int:
        """Return the part of a sum of costs that is not about promises.

        Of at most 1,023 servers, see victim_harm.LEVEL_BITS: the next
        overflows.
        """
        return cost & _OTHER

    def _unknown(self, server: PreemptibleServer) -> int:
        """Return the cost of a server whose standing is unknown."""
        claimant = self.source.get(server.uuid)
        qos = (
            self.table.find(server.class_name) if claimant is None
            else claimant.qos)
        return 0 if qos is None else victim_harm.highest_cost(self.table, qos)

    def _standing(self, uuid: str) -> Standing | None:
        """Return the standing of a server, None if it is not certain."""
        found = self._standings.get(uuid)
        if found is None:
            claimant = self.source.get(uuid)
            if claimant is None or not claimant.is_certain:
                return None
            found = self._standings[uuid] = self.claim(claimant)
        return found
