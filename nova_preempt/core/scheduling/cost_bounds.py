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
from nova_preempt.core import host_requirements
from nova_preempt.core.model import (
    SECOND,
    Candidate,
    Host,
    Provider,
    Refusal,
    Request,
    Resources,
    Server,
    SlotAmounts,
)
from nova_preempt.core.scheduling.preemption_policy import Classes
from nova_preempt.core.scheduling.preemption_policy import Policy
from nova_preempt.core.times import microseconds

#: For how long a floor by promises holds. In that time a server of a class
#: of a half gains as much of a margin.
_HOLDS_US = 900 * SECOND


@dataclasses.dataclass(frozen=True, slots=True)
class HostedServer:
    """A preemptible server on a host that may end once it is old enough.

    ``able_us``: when it is; ``freed``: what its end frees; ``held``: what it
    has, by slot, and ``resources``, by class.
    """

    server: Server
    launched_us: int
    able_us: int
    held: SlotAmounts
    freed: SlotAmounts
    resources: Resources

    @classmethod
    def of(
        cls, server: Server, held: SlotAmounts, policy: Policy
    ) -> HostedServer:
        launched_us = microseconds(server.launched_at)
        promised_s = policy.rules.promised_s(server.minimum_runtime_s)
        return cls(
            server, launched_us, launched_us + promised_s * SECOND, held,
            policy.freed(server, held), capacity.by_class(held), )


@dataclasses.dataclass(frozen=True, slots=True)
class CostBound:
    """What a host costs at least from one time until, but not at, another.

    ``cost_us`` is None where no victims help; ``refusal`` says why.
    ``promised``: what is known of promises to the servers, from ``source``.
    """

    providers: Sequence[Provider]
    servers: Mapping[str, Server]
    since_us: int
    until_us: int
    cost_us: int | None
    refusal: str = ""
    promised: tuple[object, ...] = ()
    source: object = None


class CostBounds:
    """Those of one kind of request, by host. Threads may share it.

    :param request: what each of them asks for
    :param policy: the operator's, of which the terms and the costs count
    :param floor: of the cost function
    :param has_claim: whether each of them is of a class
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
        servers: Mapping[str, Server], now_us: int,
        classes: Classes | None = None, ) -> CostBound | None:
        """Return what is known of a host, if it still holds."""
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
                    classes: Classes) -> CostBound | None:
        """Return it if the same is known of promises there still."""
        if known.promised != classes.known(known.servers.values()):
            return None
        known = dataclasses.replace(known, source=classes.source)
        self._known[host] = known
        return known

    def work_out(
        self, host: Host, servers: Mapping[str, Server],
        hosted: Sequence[HostedServer], now_us: int,
        classes: Classes | None = None, ) -> CostBound:
        """Return, and keep, what a host costs at least from now on.

        :param servers: the preemptible ones there; never changed afterwards
        :param hosted: of the host, see Memo
        """
        found, until_us = self._costs(hosted, now_us, classes)
        bound = host_requirements.lower_bound(self._request, Host(
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
        """Return what the cheapest of a host costs at least, and until when.

        Whoever has to end there: it is less work than work_out(), and the
        same for all kinds of requests.
        """
        found, until_us = self._costs(hosted, now_us, None)
        return min(
            [cost for _, cost in found], default=costs.NEVER_US), until_us

    def _costs(
        self, hosted: Sequence[HostedServer], now_us: int,
        classes: Classes | None,
    ) -> tuple[list[tuple[HostedServer, int]], int]:
        """Return who may end with the least cost, and until when that holds.
        """
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
        self, each: HostedServer, now_us: int, classes: Classes | None
    ) -> tuple[int, int] | None:
        """Return what one costs at least, and until when.

        None of one whom none of these requests ends.
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
        """Return what was worked out of a host last, whether it holds or
        not."""
        return self._known.get(host)

    def __len__(self) -> int:
        """Return of how many hosts something is known."""
        return len(self._known)
