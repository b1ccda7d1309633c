# SPDX-License-Identifier: Apache-2.0
"""Lower cost bounds of hosts, kept between requests.

A full pass computes a lower bound of the victims' cost on each host. For most
hosts that bound is the same for the next request of the same size, except
that costs follow the age of servers. A cost function that is known to rise
for a while (core.costs.LOWER_BOUNDS) gives a bound that holds for that while,
of a server and thus of a host. A host whose bound is above the cost of a plan
elsewhere is never searched.

A bound counts every server that may be a victim of any request: it may be too
low, never too high. With classes of service, requests that may preempt only
servers with a promise have bounds of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import operator

from nova_preempt.core import capacity
from nova_preempt.core import costs
from nova_preempt.core import fit_and_victims
from nova_preempt.core.model import (
    SECOND,
    Candidate,
    Host,
    PreemptibleServer,
    Provider,
    Refusal,
    Request,
    Resources,
    SlotAmounts,
)
from nova_preempt.core.scheduling.preemption_policy import ClassPromises
from nova_preempt.core.scheduling.preemption_policy import Policy
from nova_preempt.core.times import microseconds

#: How long a cost bound by promises holds. In that time a server whose class
#: promises half the time gains as much of a margin.
_HOLDS_US = 900 * SECOND


@dataclasses.dataclass(frozen=True, slots=True)
class HostedServer:
    """A preemptible server on a host that can be evicted.

    ``able_us``: when its minimum run time ends; ``freed``: the amounts that
    its end frees; ``held``: its allocations by slot, and ``resources``, by
    class.
    """

    server: PreemptibleServer
    launched_us: int
    able_us: int
    held: SlotAmounts
    freed: SlotAmounts
    resources: Resources

    @classmethod
    def of(
        cls, server: PreemptibleServer, held: SlotAmounts, policy: Policy
    ) -> HostedServer:
        launched_us = microseconds(server.launched_at)
        promised_s = policy.rules.promised_s(server.minimum_runtime_s)
        return cls(
            server, launched_us, launched_us + promised_s * SECOND, held,
            policy.freed(server, held), capacity.by_class(held), )


@dataclasses.dataclass(frozen=True, slots=True)
class CostBound:
    """A lower bound of a host's cost from one time until before another.

    ``cost_us`` is None where no victims suffice; ``refusal`` says why.
    ``promised``: the promises to the servers, from ``source``.
    """

    providers: Sequence[Provider]
    servers: Mapping[str, PreemptibleServer]
    since_us: int
    until_us: int
    cost_us: int | None
    refusal: str = ""
    promised: tuple[object, ...] = ()
    source: object = None


class CostBounds:
    """Cost bounds of one kind of request, by host. Thread-safe.

    :param request: the resources of each such request
    :param policy: the operator's terms and costs
    :param floor: the lower bound of the cost function
    :param has_claim: whether each of the requests has a class
    """

    def __init__(
        self, request: Request, policy: Policy, floor: costs.LowerBound,
        has_claim: bool = False, ) -> None:
        self._request = request
        self._policy = policy
        self._floor = floor
        self._has_claim = has_claim
        self._known: dict[str, CostBound] = {}

    def find(
        self, host: str, providers: Sequence[Provider],
        servers: Mapping[str, PreemptibleServer], now_us: int,
        classes: ClassPromises | None = None, ) -> CostBound | None:
        """Return the cost bound of a host, if it still holds."""
        known = self._known.get(host)
        if known is not None and (
            classes is not None and known.source is not classes.source):
            known = self._seen_again(host, known, classes)
        if (
            known is not None and known.since_us <= now_us < known.until_us
            and (known.servers is servers or known.servers == servers)
            and len(known.providers) == len(providers)
            and all(map(operator.is_, known.providers, providers))):
            return known
        return None

    def _seen_again(self, host: str, known: CostBound,
                    classes: ClassPromises) -> CostBound | None:
        """Return the bound if the promises to servers are the same still."""
        if known.promised != classes.known(known.servers.values()):
            return None
        known = dataclasses.replace(known, source=classes.source)
        self._known[host] = known
        return known

    def work_out(
        self, host: Host, servers: Mapping[str, PreemptibleServer],
        hosted: Sequence[HostedServer], now_us: int,
        classes: ClassPromises | None = None, ) -> CostBound:
        """Compute, store and return the cost bound of a host from now on.

        :param servers: the preemptible ones there; never changed afterwards
        :param hosted: of the host, see CostBoundCache
        """
        found, until_us = self._costs(hosted, now_us, classes)
        bound = fit_and_victims.lower_bound(self._request, Host(
            host.name, host.providers,
            tuple([Candidate(each.server.uuid, each.freed, cost)
                   for each, cost in found]),
        ))
        floor = CostBound(
            host.providers, servers, now_us, until_us,
            None if isinstance(bound, Refusal) else bound,
            bound.text if isinstance(bound, Refusal) else "",
            () if classes is None else classes.known(servers.values()),
            None if classes is None else classes.source, )
        self._known[host.uuid] = floor
        return floor

    def cheapest(
        self, hosted: Sequence[HostedServer], now_us: int) -> tuple[int, int]:
        """Return the least cost of any server on a host, and until when.

        A bound for any request that needs victims there: cheaper than
        work_out(), and the same for all kinds of requests.
        """
        found, until_us = self._costs(hosted, now_us, None)
        return min(
            [cost for _, cost in found], default=costs.NEVER_US), until_us

    def _costs(
        self, hosted: Sequence[HostedServer], now_us: int,
        classes: ClassPromises | None,
    ) -> tuple[list[tuple[HostedServer, int]], int]:
        """Return eligible servers with least costs, and until when."""
        until_us = costs.NEVER_US
        known = []
        for each in hosted:
            if now_us < each.able_us and each.launched_us < each.able_us:
                holds_until_us = each.able_us
            else:
                found = self._of_server(each, now_us, classes)
                if found is None:
                    continue
                cost, holds_until_us = found
                known.append((each, cost))
            if holds_until_us < until_us:
                until_us = holds_until_us
        return known, until_us

    def _of_server(
        self, each: HostedServer, now_us: int, classes: ClassPromises | None
    ) -> tuple[int, int] | None:
        """Return the least cost of a server, and until when that holds.

        None if none of these requests may preempt it.
        """
        if classes is not None:
            until_us = now_us + _HOLDS_US
            promised = classes.floor(each.server, until_us)
            if promised is not None:
                return promised, until_us
        if self._has_claim:
            return None
        cost, holds_us = self._floor(
            max(0, now_us - each.launched_us), self._policy.cost_options)
        return cost, each.launched_us + holds_us

    def known(self, host: str) -> CostBound | None:
        """Return the last bound of a host, even if it does not hold now."""
        return self._known.get(host)

    def __len__(self) -> int:
        """Return the number of hosts with a bound."""
        return len(self._known)
