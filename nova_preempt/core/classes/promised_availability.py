# SPDX-License-Identifier: Apache-2.0

"""Availability promises as core.scheduling ranks claims by them.

Made for one time, and given to its Policy as ``classes``: which server of a
class may end for which request of one, and how dear that is. A normal request
ends whom it likes, as ever, but chooses by promises first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nova_preempt.core.classes import victim_harm
from nova_preempt.core.classes.availability_margin import Classes
from nova_preempt.core.classes.availability_margin import Standing
from nova_preempt.core.classes.availability_margin import may_preempt
from nova_preempt.core.classes.class_dispatch import Claimant
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.model import Server

#: Other costs come below those of promises, and never add up to one: 285
#: years each, in micro-units.
_OTHER_BITS = 64
_MOST_OTHER = 2**53
_OTHER = (1 << _OTHER_BITS) - 1


class Promises:
    """Those to all servers of a class, as they stand at a time.

    :param classes: the table
    :param claimants: {uuid of a server: Claimant}. Of a server that has a
        class but is not there, or whose clocks are empty or have a gap, it is
        known that something was promised, but not what is left of it: no
        request of a class ends it, and for others it is the dearest of its
        class. To others nothing was promised: no request of a class ends
        them, and they cost what they cost without classes.
    :param now_us: the time
    """

    def __init__(
        self, classes: Classes, claimants: Mapping[str, Claimant], now_us: int
    ) -> None:
        self.table = classes
        self.source = claimants
        self._now_us = now_us
        self._standings: dict[str, Standing] = {}

    def claim(self, claimant: Claimant) -> Standing:
        """Return the claim of a request; see preemption_policy.Rank."""
        return claimant.stand(self.table, self._now_us)

    def known(self, servers: Iterable[Server]) -> tuple[Claimant | None, ...]:
        """Return what is known of servers."""
        return tuple([self.source.get(server.uuid) for server in servers])

    def may_preempt(self, claim: Standing, server: Server) -> bool:
        """Tell whether a request may end a server."""
        standing = self._standing(server.uuid)
        return standing is not None and may_preempt(claim, standing)

    def cost(self, server: Server, cost_us: int) -> int:
        """Return the cost of a server that costs so much otherwise.

        What its end does to promises comes first, see victim_harm.harm_cost().
        Sums compare like that too.
        """
        standing = self._standing(server.uuid)
        cost_us = min(cost_us, _MOST_OTHER)
        if standing is not None:
            folded = victim_harm.harm_cost(self.table, standing)
            return folded << _OTHER_BITS | cost_us
        return self._unknown(server) << _OTHER_BITS | cost_us

    def floor(self, server: Server, until_us: int) -> int | None:
        """Return a cost that a server is not below until then.

        While it runs there is ever more time left to it, and its end costs
        less; whatever else it does, there is less. None of one to which
        nothing was promised.
        """
        claimant = self.source.get(server.uuid)
        if claimant is None or not claimant.is_certain:
            return self._unknown(server) << _OTHER_BITS or None
        if claimant.clocks.kind is not Kind.RUNNING:
            until_us = self._now_us
        standing = claimant.stand(self.table, until_us)
        return victim_harm.harm_cost(self.table, standing) << _OTHER_BITS

    def other_cost_us(self, cost: int) -> int:
        """Return what a sum of costs is without promises.

        Of at most 1,023 servers, see victim_harm.LEVEL_BITS: the next does not
        fit.
        """
        return cost & _OTHER

    def _unknown(self, server: Server) -> int:
        """Return what one costs of whom it is not known how it stands."""
        claimant = self.source.get(server.uuid)
        qos = (
            self.table.find(server.class_name) if claimant is None
            else claimant.qos)
        return 0 if qos is None else victim_harm.highest_cost(self.table, qos)

    def _standing(self, uuid: str) -> Standing | None:
        """Return where one stands, None if nothing certain is known."""
        found = self._standings.get(uuid)
        if found is None:
            claimant = self.source.get(uuid)
            if claimant is None or not claimant.is_certain:
                return None
            found = self._standings[uuid] = self.claim(claimant)
        return found
