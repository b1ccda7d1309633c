# SPDX-License-Identifier: Apache-2.0

"""Searches hosts for the cheapest victims.

Algorithms 2 to 6 of A. Lopez Garcia et al., FGCS 2019 (doi
10.1016/j.future.2018.12.057): a request for a normal server ignores the
preemptible ones, and the cost of a host is that of its cheapest sufficient set
of victims. (Adding up all preemptible servers of a host, as the text of
Algorithm 4 has it, would contradict the paper's own Tables 5 and 6.)
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import datetime
import functools
from typing import TypeAlias

from nova_preempt.core import capacity
from nova_preempt.core import fit_and_victims
from nova_preempt.core import lazy_ordering
from nova_preempt.core.model import (
    Candidate,
    Host,
    Placement,
    PreemptibleServer,
    Provider,
    Refusal,
    Request,
    VictimSet,
)
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import pending_evictions
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling.cost_bound_cache import CostBoundCache
from nova_preempt.core.scheduling.cost_bounds import CostBounds
from nova_preempt.core.scheduling.eviction_budgets import EvictionBudgets
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.core.times import microseconds

#: Returns whether the host passes without servers, in order of uuid.
Accept: TypeAlias = Callable[[tuple[PreemptibleServer, ...]], bool]


class PlanSearch:
    """Finds plans for one request.

    :param rank: of the request, see preemption_policy.PreemptionRight
    :param excluded: uuids of servers that must not be victims
    :param memo: figures of earlier requests, None for nothing
    :param silent: hosts that did not answer in earlier passes of the request
    :ivar refusals: {name of a host: why no victims suffice there}
    """

    def __init__(
        self, cloud: cloud_view.CloudView, request: Request,
        policy: preemption_policy.Policy, now: datetime.datetime,
        rank: preemption_policy.PreemptionRight = preemption_policy.NORMAL,
        excluded: Collection[str] = (), memo: CostBoundCache | None = None,
        silent: cloud_view.UnansweredHosts | None = None, ) -> None:
        self.refusals: dict[str, str] = {}
        self.silent = silent or cloud_view.UnansweredHosts()
        self._memo = CostBoundCache() if memo is None else memo
        self._cloud = cloud
        self._request = request
        self.policy = policy
        self._now_us = microseconds(now)
        self._rank = rank
        self._excluded = set(excluded)
        self._releasing: Mapping[str, pending_evictions.ReleasingHost] = {}

    def exclude(self, uuids: Collection[str]) -> None:
        """Exclude servers from the candidates."""
        self._excluded |= set(uuids)

    def exclude_ending(self) -> None:
        """Exclude servers that are being evicted, and read what they free."""
        self.exclude(self._cloud.ending())
        self._releasing = self._cloud.releasing()

    def forget_budgets(self) -> None:
        """Read the budgets anew at the next use, after a further eviction."""
        self.__dict__.pop("budgets", None)

    @functools.cached_property
    def budgets(self) -> EvictionBudgets | None:
        """The budgets as of their first use."""
        return self._cloud.budgets()

    def may_end(self, server: PreemptibleServer) -> bool:
        """Return whether a server may be a victim of this request."""
        uptime_us = max(0, self._now_us - microseconds(server.launched_at))
        return self.policy.is_able(server) and self._may_end_at(
            server, uptime_us)

    def _may_end_at(self, server: PreemptibleServer, uptime_us: int) -> bool:
        """Return the same for a server that Policy.is_able() allows."""
        return (
            self.policy.may_preempt(self._rank, server)
            and server.uuid not in self._excluded
            and self.policy.rules.has_run(server, uptime_us)
            and self._cloud.may_wait(self.policy.notice_s(server)))

    def ranked(
        self, skip: Collection[str] = (), max_age_s: float = 0
    ) -> Iterator[Plan]:
        """Yield plans in ascending order of cost, computed on demand.

        A host that has changed since it was last read is read again.

        :param skip: uuids of hosts to leave out
        :param max_age_s: how old the list of hosts may be
        """
        listed = self._cloud.listed(max_age_s)
        self.silent.answered(cloud_view.ALL_HOSTS)
        self._memo.forget_others(listed)
        left_out = {*skip, *self.silent.excluded}
        wanted = (each for each in listed if each.uuid not in left_out)
        floors = self._memo.floors(self._request, self.policy, self._rank)
        bound, closer = self._bound, None
        if floors is not None:
            bound = functools.partial(self._floor, floors)
            closer = functools.partial(self._above_floor, floors)
        found = lazy_ordering.ascending(
            wanted, bound, self._exact, closer, lambda each: (each.floor_us,))
        for _, _, plan in found:
            yield plan

    def _floor(self, floors: CostBounds, listing: cloud_view.ListedHost,
               since_us: int = 0) -> lazy_ordering.Key | None:
        """Return the cost bound that earlier requests have computed.

        :param since_us: the earliest time that it may be from
        """
        if not listing.fresh or listing.uuid in self._releasing:
            return (0, 0, "", listing.uuid)
        servers = self._cloud.servers_on(listing.name)
        floor = floors.find(
            listing.uuid, listing.providers, servers, self._now_us,
            self.policy.classes, )
        if floor is None or floor.since_us < since_us:
            host = Host(listing.name, tuple(listing.providers))
            hosted = self._memo.hosted(host, servers, self.policy)
            floor = floors.work_out(
                host, servers, hosted, self._now_us, self.policy.classes)
        if floor.cost_us is None:
            self.refusals[listing.name] = floor.refusal
            return None
        return (floor.cost_us, 0, "", listing.uuid)

    def _above_floor(
        self, floors: CostBounds, listing: cloud_view.ListedHost
    ) -> lazy_ordering.Key | None:
        """Return the present cost bound; most costs have risen meanwhile."""
        if self._floor(floors, listing, since_us=self._now_us) is None:
            return None
        return self._bound(listing)

    def _bound(self,
               listing: cloud_view.ListedHost) -> lazy_ordering.Key | None:
        if not listing.fresh or listing.uuid in self._releasing:
            # Fresh data may show a lower cost.
            return (0, 0, "", listing.uuid)
        host, _ = self._host(listing.name, listing.providers)
        bound = fit_and_victims.lower_bound(self._request, host)
        if isinstance(bound, Refusal):
            self.refusals[host.name] = bound.text
            return None
        return None if bound is None else (bound, 0, "", listing.uuid)

    def _exact(
        self, listing: cloud_view.ListedHost
    ) -> tuple[lazy_ordering.Key, Plan] | None:
        providers = listing.providers
        if not listing.fresh:
            providers = self.read(listing.uuid, listing.name)
        plan = self.plan(listing.name, providers)
        return None if plan is None else (plan.key, plan)

    def read(self, uuid: str, name: str) -> tuple[Provider, ...]:
        """Return the present providers of a host, () to skip it.

        A host is skipped if it is gone, or does not answer.
        """
        if uuid in self.silent.excluded:
            return ()
        if not self.silent.may_read():
            self.refusals[name] = cloud_view.NOT_ASKED
            return ()
        try:
            providers = self._cloud.read(uuid)
        except cloud_view.Unanswered as exc:
            self.silent.note(uuid, exc)
            self.refusals[name] = str(exc)
            return ()
        self.silent.answered(uuid)
        return providers

    def plan(
        self, name: str, providers: Sequence[Provider],
        accept: Accept | None = None, ) -> Plan | None:
        """Return the cheapest plan on a host, None if no victims suffice.

        :param providers: of the host, () if it is gone
        """
        if not providers:
            return None
        host, servers = self._host(name, providers)
        joined = self._join(host, servers, accept)
        if joined is not None:
            return joined
        found = fit_and_victims.cheapest_victims(
            self._request, host, accept=accept
            and (
                lambda chosen: accept(
                    tuple(servers[each.uuid] for each in chosen))),
            caps=self.budgets.caps(servers.values()) if self.budgets else (), )
        if isinstance(found, Refusal):
            self.refusals[name] = found.text
            return None
        return None if found is None else self._planned(host, found, servers)

    def _planned(
        self, host: Host, found: VictimSet,
        servers: Mapping[str, PreemptibleServer]) -> Plan:
        amounts = fit_and_victims.taken(
            self._request, host,
            capacity.total(each.resources for each in found.victims), )
        lack = fit_and_victims.missing(host, amounts)
        return Plan(host, lack, found, servers)

    def _join(
        self, host: Host, servers: Mapping[str, PreemptibleServer],
        accept: Accept | None,) -> Plan | None:
        """Return the plan to wait for pending evictions, if they suffice."""
        releasing = self._releasing.get(host.uuid)
        if releasing is None:
            return None
        joins = pending_evictions.join(
            self._request, host, releasing,
            # A request that waits needs a slot, however short the wait.
            lambda notice_s: self._cloud.may_wait(max(1, notice_s)), )
        there = self._cloud.servers_on(host.name)
        ending = {
            uuid: there[uuid]
            for each in joins
            for uuid in sorted(each.actions)
            if uuid in there
        }
        if not joins or (
            accept is not None
            and not accept(tuple(ending[uuid] for uuid in sorted(ending)))):
            return None
        return Plan(
            host, {},
            VictimSet(
                tuple(
                    Candidate(uuid, releasing.held(host, uuid), 0)
                    for uuid in sorted(ending)),
                0, optimal=True, steps=0, ),
            {**servers, **ending}, tuple(each.decision_uuid for each in joins),
            releasing.waiting, )

    def count(
        self, name: str, providers: Sequence[Provider]) -> tuple[int, int]:
        """Return how many such servers fit, and how many more by preemption.

        Budgets are ignored unless they are used up.
        """
        host, _ = self._host(name, providers)
        free = fit_and_victims.count(self._request, host, {})
        freed = capacity.total(each.resources for each in host.candidates)
        return free, fit_and_victims.count(self._request, host, freed) - free

    def placements(
        self, name: str, providers: Sequence[Provider],
        servers: Collection[PreemptibleServer], ) -> list[Placement]:
        """Return placements of the request without these servers."""
        host = Host(name, tuple(providers))
        held = self._releasing.get(host.uuid, pending_evictions.NOTHING).held
        return fit_and_victims.placements(
            self._request, host,
            capacity.total(
                self.policy.freed(server, held(host, server.uuid))
                for server in servers))

    def _host(
        self, name: str, providers: Sequence[Provider]
    ) -> tuple[Host, dict[str, PreemptibleServer]]:
        """Return the host with its candidates, and their servers by uuid."""
        bare = Host(name, tuple(providers))
        servers: dict[str, PreemptibleServer] = {}
        candidates = []
        for each in self._memo.hosted(
            bare, self._cloud.servers_on(name), self.policy):
            server = each.server
            uptime_us = max(0, self._now_us - each.launched_us)
            if self._may_end_at(server, uptime_us) and (
                self.budgets is None or self.budgets.allows(server)):
                servers[server.uuid] = server
                candidates.append(
                    Candidate(
                        server.uuid, each.freed,
                        self.policy.cost_at_us(
                            server, each.resources, uptime_us),
                    ))
        return Host(name, bare.providers, tuple(candidates)), servers
