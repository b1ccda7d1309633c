# SPDX-License-Identifier: Apache-2.0

"""Scheduling cycle of a request: hosts for its servers, and victims.

The steps are those of Nova's scheduler, which calls them from its hooks;
SchedulingCycle.place() is a plain loop that calls them elsewhere:

1. offer(): the hosts that need victims and are filtered beside those with
   capacity;
2. order(): for each server of the request, the hosts that pass the filters,
   best first;
3. confirm(): for the host that is about to be claimed, its plan on fresh data;
4. claimed(): notes the claim, which the next server of the request must see.

The cycle only decides; it changes nothing in the cloud.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import datetime
import functools

from nova_preempt.core.model import PreemptibleServer, Request, Resources
from nova_preempt.core.refusal_texts import Reason
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import plan_filtering
from nova_preempt.core.scheduling import plan_search
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling.cost_bound_cache import CostBoundCache
from nova_preempt.core.scheduling.host_batches import HostBatches
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.core.scheduling.ranked_hosts import RankedHosts


class SchedulingCycle:
    """Decides a request in one pass over the hosts.

    :param cloud: the CloudView
    :param request: the resources of each server
    :param policy: the operator's
    :param now: aware
    :param rank: see preemption_policy.PreemptionRight
    :param excluded: uuids of servers that must not be victims
    :param refusal: why no preemption can serve the request, '' if it may
    :param idle_age_s: how old data on hosts that need victims may be while
        other hosts have capacity
    :param list_age_s: how old the list of such hosts may be in any case. A
        host that is about to be claimed is read again, and so are all hosts
        before the request is refused.
    :param memo: figures of earlier requests, None for nothing
    :param silent: hosts that did not answer in earlier passes of the request
    :ivar why: the kind of that refusal
    :ivar room: {uuid of a host: (what each server asks for there, what is
        free)} of hosts that had
        capacity when last read
    """

    def __init__(
        self, cloud: cloud_view.CloudView, request: Request,
        policy: preemption_policy.Policy, now: datetime.datetime,
        rank: preemption_policy.PreemptionRight = preemption_policy.NORMAL,
        excluded: Collection[str] = (), refusal: str = "",
        idle_age_s: float = 0, list_age_s: float = 0,
        memo: CostBoundCache | None = None,
        silent: cloud_view.UnansweredHosts | None = None, ) -> None:
        self.cloud = cloud
        self.request = request
        self.search = plan_search.PlanSearch(
            cloud, request, policy, now, rank, excluded, memo, silent)
        self.batches = HostBatches(cloud, self.search, idle_age_s, list_age_s)
        self.refusal = (
            refusal if policy.may_preempt_any(rank)
            else "a preemptible server never preempts")
        self.why = Reason.REQUEST
        self.room: dict[str, tuple[Resources, dict[str, int]]] = {}
        self.hosts = RankedHosts()
        self._first: list[str] = []

    @property
    def silent(self) -> cloud_view.UnansweredHosts:
        """The hosts that did not answer."""
        return self.search.silent

    # -- 1. hosts beside those with capacity -----------------------------

    def found_room(
        self, room: Mapping[str, Resources], asked: Resources | None = None,
    ) -> None:
        """Add the hosts with free capacity.

        :param room: {uuid of a host: {class: free amount}}
        :param asked: the resources asked for there, if they differ from the
            request: Nova asks for VCPU too, for hosts without PCPU
        """
        for uuid, free in room.items():
            if asked is None or (
                uuid not in self.room and uuid not in self.batches.plans):
                self.room[uuid] = (
                    self.request.resources if asked is None else asked,
                    dict(free))

    def _has_room(self, host: str) -> bool:
        """Return whether the next server fits on a host without victims."""
        if host not in self.room:
            return False
        asked, free = self.room[host]
        return all(
            free.get(name, amount) >= amount for name, amount in asked.items()
        )

    def _is_refused(self) -> bool:
        """Return whether victims are refused; may query the cloud."""
        if not self.refusal and not self.silent.may_claim():
            self._withdraw(self.silent.reason or cloud_view.NOT_ASKED)
        if not self.refusal:
            self.refusal = self._objection
        return bool(self.refusal)

    @functools.cached_property
    def _objection(self) -> str:
        return self.cloud.objection()

    def _withdraw(self, reason: str) -> None:
        """Refuse victims, since the cloud does not answer."""
        self.refusal = reason
        self.why = Reason.SERVICE

    def offer(self, *, any_victims: bool) -> list[Plan]:
        """Return plans to filter beside the hosts with capacity.

        :param any_victims: whether preemptible servers are known
        """
        if self.room and not (self.search.policy.always and any_victims):
            return []
        if self._is_refused():
            return []
        self.batches.begin(
            skip=frozenset(self.room), must_evict=not self.room)
        found = self._from_batches(self.batches.next, self.batches.afresh)
        self._first = [plan.host.uuid for plan in found]
        return found

    # -- 2. the order of hosts -------------------------------------------

    def order(
        self, hosts: Sequence[tuple[str, str]], index: int = 0) -> list[str]:
        """Return the hosts for the index-th server, the best first.

        :param hosts: (uuid, name) of each host with capacity, and of those
            that were offered or returned before
        """
        self.hosts.names.update(hosts)
        free = [uuid for uuid, _ in hosts if self._has_room(uuid)]
        self.hosts.plans = dict.fromkeys(free)
        ordered: list[str] = []
        if free and not (self.search.policy.always and not self.refusal):
            ordered = self._order(free, index)
        if not ordered and not self._is_refused():
            ordered = self._order_with_victims(free, index)
        self.hosts.rank(ordered)
        return ordered

    def plan_of(self, host: str) -> Plan | None:
        """Return the plan of an ordered host that needs victims."""
        return self.hosts.plans.get(host)

    def _order(self, hosts: Iterable[str], index: int) -> list[str]:
        trials = [self.hosts.trial(uuid) for uuid in hosts]
        return list(self.cloud.order(trials, index))

    def _order_with_victims(self, free: list[str], index: int) -> list[str]:
        """Plan growing batches of hosts until no other can be better."""
        batch = self._to_plan(free)
        while True:
            planned = [
                plan for uuid in batch if (plan := self._planned(uuid))]
            for plan in plan_filtering.passing_plans(
                self.cloud, self.search, planned):
                self.batches.plans[plan.host.uuid] = plan
                self.hosts.add(plan)
            ordered = self._order(self.hosts.plans, index)
            if self._can_stop(ordered):
                return ordered
            found = self._from_batches(self.batches.more)
            if (
                self.batches.is_exhausted and not ordered
                and not self.refusal):
                found = self._from_batches(self.batches.afresh)
            if self.batches.is_exhausted:
                return ordered
            batch = self._load(found)

    def _planned(self, host: str) -> Plan | None:
        """Return the plan of a host.

        One that needs no victims, on a host without capacity by the latest
        reading of all hosts, is outdated: the host is read again. Not if that
        reading may lack hosts: see CloudView.room_age_s().
        """
        plan = self.batches.plans.get(host)
        if plan is None or plan.victims or plan.joins or host in self.room or (
            self.cloud.room_age_s() > cloud_view.LIST_MAX_AGE_S):
            return plan
        return self._plan_again(host, plan.host.name)

    def _plan_again(self, host: str, name: str) -> Plan | None:
        return self.search.plan(name, self.search.read(host, name))

    def _can_stop(self, ordered: Sequence[str]) -> bool:
        """Return whether no remaining host can be better."""
        if not ordered:
            return False
        costs = [
            plan.cost_us for plan in map(self.hosts.plans.get, ordered)
            if plan is not None and plan.victims]
        if len(costs) < len(ordered):
            return True
        return self.batches.is_beyond(min(costs))

    def _from_batches(self, *asked: Callable[[], list[Plan]]) -> list[Plan]:
        """Return the first non-empty result of these calls.

        If hosts cannot be listed, the known hosts remain.
        """
        try:
            for ask in asked:
                found = ask()
                if found:
                    return found
        except cloud_view.Unanswered as exc:
            self.silent.note(cloud_view.ALL_HOSTS, exc)
            if not self.batches.plans:
                self._withdraw(str(exc))
        return []

    def _load(self, found: Sequence[Plan]) -> list[str]:
        there = self.cloud.load([plan.host.uuid for plan in found])
        found = [plan for plan in found if plan.host.uuid in there]
        self.hosts.names |= {plan.host.uuid: plan.host.name for plan in found}
        return [plan.host.uuid for plan in found]

    def _to_plan(self, free: Collection[str]) -> list[str]:
        """Return the hosts that were loaded and may need victims.

        The hosts of the first batch, and those that other servers of this
        request have filled.
        """
        self._first, first = [], self._first
        hosts = []
        for uuid, name in sorted(self.hosts.names.items()):
            if uuid in free:
                continue
            if uuid not in self.batches.plans and self.batches.has_begun:
                again = self.cloud.servers_on(name) and self._plan_again(
                    uuid, name)
                if again:
                    self.batches.plans[uuid] = again
            if uuid in self.batches.plans or uuid in first:
                hosts.append(uuid)
        return hosts

    # -- 3. right before the claim ---------------------------------------

    def confirm(self, host: str) -> Plan | None:
        """Return the plan of a host on fresh data, None to skip the host.

        A host is skipped if it is gone, or has capacity, or will have some
        without victims: better decided anew. So is a host whose victims now
        cost more than those of another considered host, or that does not
        answer.
        """
        if not self.silent.may_claim():
            return None
        planned = self.batches.plans[host]
        try:
            latest = plan_filtering.latest(
                self.cloud, self.search, planned, had_room=host in self.room)
        except cloud_view.Unanswered as exc:
            self.leave(host, exc)
            return None
        if latest is None or latest.joins or not latest.victims:
            return None
        if latest.cost_us > planned.cost_us and any(
            item.cost_us < latest.cost_us for item in self.hosts.considered
            if item.host != host):
            return None
        self.batches.plans[host] = latest
        self.hosts.plans[host] = latest
        return latest

    def leave(self, host: str, exc: cloud_view.Unanswered) -> None:
        """Exclude a host from the request, since it does not answer."""
        self.silent.exclude(host, exc)
        self.search.refusals[self.hosts.names[host]] = str(exc)
        self.lost(host)

    def lost(self, host: str) -> None:
        """Drop the plan of a host whose claim failed, to plan it anew."""
        self.batches.plans.pop(host, None)

    # -- 4. afterwards ---------------------------------------------------

    def claimed(self, host: str) -> tuple[PreemptibleServer, ...]:
        """Note that a host was claimed for a server of the request.

        :returns: its victims there
        """
        gone = self.hosts.victims(host)
        self.batches.plans.pop(host, None)
        self.hosts.plans[host] = None
        if gone:
            self.search.exclude([server.uuid for server in gone])
            if self.search.budgets is not None:
                # The victims of other plans may exceed the budgets now.
                self.search.forget_budgets()
                self.batches.plans.clear()
        else:
            self._take_room(host)
        # The host may be planned again for the next server of the request.
        self.batches.restart()
        return gone

    def _take_room(self, host: str) -> None:
        asked, free = self.room.get(host, ({}, {}))
        for name in free.keys() & asked.keys():
            free[name] -= asked[name]

    # -- a plain loop, where Nova's scheduler does not drive the steps -----

    def place(
        self, hosts: Sequence[tuple[str, str]],
        claim: Callable[[str, Plan | None], bool], count: int = 1,
    ) -> list[tuple[str, Plan | None]] | None:
        """Place the servers of a request, as Nova's scheduler does.

        :param hosts: (uuid, name) of the hosts with capacity, and of those
            offered
        :param claim: claims a host, with the victims of a plan or without;
            returns whether it succeeded
        :returns: the host of each server and the plan for it; None if not all
            of them found a host, whose claims the caller rolls back
        """
        placed: list[tuple[str, Plan | None]] = []
        for index in range(count):
            ordered = self.order(hosts, index)
            for uuid in ordered:
                plan = self.plan_of(uuid)
                if plan is not None and plan.victims:
                    if not plan.joins:
                        plan = self.confirm(uuid)
                    if plan is None or not claim(uuid, plan):
                        self.lost(uuid)
                        continue
                elif not claim(uuid, None):
                    continue
                placed.append((uuid, plan))
                self.claimed(uuid)
                hosts = [(uuid, self.hosts.names[uuid]) for uuid in ordered]
                break
            else:
                return None
        return placed
