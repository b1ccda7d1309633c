# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One pass of one request: where its servers go, and who ends for them.

The steps are those of Nova's scheduler, which drives them by its hooks as a
plain loop does elsewhere (loop.place()):

1. offer(): which hosts that need victims are looked at beside those with
   room;
2. order(): for each server of the request, the hosts that pass the filters,
   best first;
3. confirm(): of the host that is about to be claimed, whether it still is
   what it seemed, and with which victims;
4. claimed(): it was; the next server of the request finds it changed.

Nothing is done here but asked for and answered.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
import datetime

from nova_preempt.core import victims
from nova_preempt.core.model import Request, Resources, Server
from nova_preempt.core.refusals import Why
from nova_preempt.core.scheduling import passing
from nova_preempt.core.scheduling import plans
from nova_preempt.core.scheduling import policy as policies
from nova_preempt.core.scheduling.memo import Memo
from nova_preempt.core.scheduling.ordered import Ordered
from nova_preempt.core.scheduling.permission import Permission
from nova_preempt.core.scheduling.plan import Plan
from nova_preempt.core.scheduling.port import Cloud
from nova_preempt.core.scheduling.port import Unanswered
from nova_preempt.core.scheduling.record import Considered
from nova_preempt.core.scheduling.room import Room
from nova_preempt.core.scheduling.shortlist import Shortlist
from nova_preempt.core.scheduling.unanswered import ALL_HOSTS
from nova_preempt.core.scheduling.unanswered import Silent

#: What the cloud has said of servers, and of who has room, is asked anew
#: before a claim if it is older, in seconds.
LATEST_S = 1


class Cycle:
    """One pass.

    :param cloud: what answers
    :param request: what each server asks for
    :param policy: the operator's
    :param now: aware
    :param rank: see policy.Rank
    :param excluded: uuids of servers that must not end for it
    :param refusal: why no preemption can serve the request, '' if it may
    :param idle_age_s: how old what is known of hosts that need victims may
        be while others have room
    :param list_age_s: how old the list of such hosts may be in any case. What
        is about to be claimed is looked at again, and so are all hosts before
        the request is refused.
    :param memo: what other requests have worked out, None for nothing
    :param silent: hosts that did not answer in earlier passes of the request
    :ivar told_us: see policy.Policy
    :ivar promised: whether there are classes
    """

    def __init__(
        self,
        cloud: Cloud,
        request: Request,
        policy: policies.Policy,
        now: datetime.datetime,
        rank: policies.Rank = policies.NORMAL,
        excluded: Collection[str] = (),
        refusal: str = "",
        idle_age_s: float = 0,
        list_age_s: float = 0,
        memo: Memo | None = None,
        silent: Silent | None = None,
    ) -> None:
        self.cloud = cloud
        self.request = request
        self.search = plans.Search(
            cloud, request, policy, now, rank, excluded, memo, silent
        )
        self.silent = self.search.silent
        self.shortlist = Shortlist(
            cloud, self.search, policy.shortlist, idle_age_s, list_age_s
        )
        self.room = Room(request.resources)
        self._permission = Permission(
            cloud, policy.may_preempt_any(rank), self.silent, refusal
        )
        self.told_us = policy.told_us
        self.promised = policy.classes is not None
        self._ordered = Ordered()
        self._always = policy.always
        self._first: list[str] = []

    @property
    def refusal(self) -> str:
        """Why no preemption can serve the request, '' if it may."""
        return self._permission.refusal

    @property
    def why(self) -> Why:
        """What kind of refusal that is."""
        return self._permission.why

    @property
    def unanswered(self) -> str:
        """Return the first error of a host or service, '' if none."""
        return self.silent.reason

    @property
    def has_begun(self) -> bool:
        """Whether victims have been looked for."""
        return self.shortlist.has_begun

    # -- 1. hosts beside those with room ---------------------------------

    def found_room(
        self,
        room: Mapping[str, Resources],
        asked: Resources | None = None,
    ) -> None:
        """Learn which hosts have room.

        :param room: {uuid of a host: {class: what is free}}
        :param asked: what is asked for there, if it is not what the request
            says: Nova asks for VCPU too, for the sake of hosts without PCPU
        """
        self.room.found(room, asked, self.shortlist.plans)

    def offer(self, *, any_victims: bool) -> list[Plan]:
        """Return plans to look at beside the hosts with room, if any.

        :param any_victims: whether there are preemptible servers, as far as
            is known
        """
        if self.room and not (self._always and any_victims):
            return []
        if self._permission.is_refused():
            return []
        self.shortlist.begin(
            skip=frozenset(self.room), in_earnest=not self.room
        )
        found = self._shortlisted(self.shortlist.next, self.shortlist.afresh)
        self._first = [plan.host.uuid for plan in found]
        return found

    # -- 2. the order of hosts -------------------------------------------

    def order(
        self, hosts: Sequence[tuple[str, str]], index: int = 0
    ) -> list[str]:
        """Return the hosts for the index-th server, the best first.

        :param hosts: (uuid, name) of each: those with room, and those that
            were offered or returned before
        """
        self._ordered.names.update(hosts)
        free = [uuid for uuid, _ in hosts if self.room.has(uuid)]
        self._ordered.begin(free)
        ordered: list[str] = []
        if free and not (self._always and not self.refusal):
            ordered = self._order(free, index)
        if not ordered and not self._permission.is_refused():
            ordered = self._order_with_victims(free, index)
        self._ordered.keep(ordered)
        return ordered

    @property
    def considered(self) -> list[Considered]:
        """The hosts that order() returned last, the best first."""
        return self._ordered.considered

    def plan_of(self, host: str) -> Plan | None:
        """Return the plan of an ordered host that needs victims."""
        return self._ordered.plans.get(host)

    def name_of(self, host: str) -> str:
        """Return the name of a host that was looked at."""
        return self._ordered.names[host]

    def _order(self, hosts: Iterable[str], index: int) -> list[str]:
        trials = [self._ordered.trial(uuid) for uuid in hosts]
        return list(self.cloud.order(trials, index))

    def _order_with_victims(self, free: list[str], index: int) -> list[str]:
        """Look at ever more hosts until none that is left can be better."""
        batch = self._to_plan(free)
        while True:
            planned = [
                self.shortlist.plans[uuid]
                for uuid in batch
                if uuid in self.shortlist.plans
            ]
            for plan in passing.passing(self.cloud, self.search, planned):
                self.shortlist.plans[plan.host.uuid] = plan
                self._ordered.plan(plan)
            ordered = self._order(self._ordered.plans, index)
            if self._can_stop(ordered):
                return ordered
            found = self._shortlisted(self.shortlist.more)
            if (
                self.shortlist.is_exhausted
                and not ordered
                and not self.refusal
            ):
                found = self._shortlisted(self.shortlist.afresh)
            if self.shortlist.is_exhausted:
                return ordered
            batch = self._load(found)

    def _can_stop(self, ordered: Sequence[str]) -> bool:
        """Tell whether no host that is still to come can be better."""
        if not ordered:
            return False
        costs = [
            plan.cost_us
            for plan in map(self._ordered.plans.get, ordered)
            if plan is not None and plan.victims
        ]
        if len(costs) < len(ordered):
            return True
        return self.shortlist.is_beyond(min(costs))

    def _shortlisted(
        self, *asked: Callable[[], list[Plan]]
    ) -> list[Plan]:
        """Return what the first of these finds that finds something.

        Where hosts cannot be listed, those that are known still are.
        """
        try:
            for ask in asked:
                found = ask()
                if found:
                    return found
        except Unanswered as exc:
            self.silent.note(ALL_HOSTS, exc)
            if not self.shortlist.plans:
                self._permission.withdraw(str(exc))
        return []

    def _load(self, found: Sequence[Plan]) -> list[str]:
        there = self.cloud.load([plan.host.uuid for plan in found])
        found = [plan for plan in found if plan.host.uuid in there]
        self._ordered.names |= {
            plan.host.uuid: plan.host.name for plan in found
        }
        return [plan.host.uuid for plan in found]

    def _to_plan(self, free: Collection[str]) -> list[str]:
        """Return the hosts that were looked at and may need victims.

        Those of the first batch, and those that other servers of this very
        request have filled.
        """
        self._first, first = [], self._first
        hosts = []
        for uuid, name in sorted(self._ordered.names.items()):
            if uuid in free:
                continue
            if uuid not in self.shortlist.plans and self.has_begun:
                again = self.cloud.servers_on(name) and self.search.plan(
                    name, self.search.read(uuid, name)
                )
                if again:
                    self.shortlist.plans[uuid] = again
            if uuid in self.shortlist.plans or uuid in first:
                hosts.append(uuid)
        return hosts

    # -- 3. right before the claim ---------------------------------------

    def confirm(self, host: str) -> Plan | None:
        """Return the plan of a host on what is so now, None to leave it.

        It is left where it is gone, or has room, or will have some, for
        nobody to end: better decided anew. So it is where its victims have
        become dearer than those of another host that was considered, and
        where nobody answers for it.
        """
        if not self.silent.may_claim():
            return None
        planned = self.shortlist.plans[host]
        try:
            latest = self._latest(planned)
        except Unanswered as exc:
            self.leave(host, exc)
            return None
        if latest is None or latest.joins or not latest.victims:
            return None
        if latest.cost_us > planned.cost_us and any(
            item.cost_us < latest.cost_us
            for item in self.considered
            if item.host != host
        ):
            return None
        self.shortlist.plans[host] = latest
        self._ordered.plans[host] = latest
        return latest

    def leave(self, host: str, exc: Unanswered) -> None:
        """Leave a host out of the request: nobody answers for it."""
        self.silent.exclude(host, exc)
        self.search.refusals[self.name_of(host)] = str(exc)
        self.lost(host)

    def _latest(self, plan: Plan) -> Plan | None:
        uuid = plan.host.uuid
        self.cloud.refresh(LATEST_S)
        listing = self.cloud.list_again(uuid, LATEST_S)
        if listing is None:
            return None
        if (
            listing.fresh
            and not self._may_have_room(uuid)
            and self._is_least(plan)
        ):
            return plan
        self.search.forget_budgets()
        return passing.latest(self.cloud, self.search, plan)

    def _may_have_room(self, host: str) -> bool:
        """Tell whether the host may have had room when that was asked.

        What was said before others chose is too old to end somebody for.
        """
        return (
            host in self.room or self.cloud.room_age_s() > LATEST_S
        )

    def _is_least(self, plan: Plan) -> bool:
        """Tell whether nothing that is read anew would change the plan.

        Somebody has to end, for there is no room; if others have left
        meanwhile the plan is right all the same, and what has come will be
        refused by Placement. As far as is known its victim is the same.
        """
        return (
            self.search.budgets is None
            and victims.holds_for_less(plan.host.candidates, plan.victim_set)
            and all(
                self.cloud.server(server.uuid) == server
                and self.search.may_end(server)
                for server in plan.victims
            )
        )

    def lost(self, host: str) -> None:
        """Somebody else was faster there: it is planned anew, if at all."""
        self.shortlist.plans.pop(host, None)

    # -- 4. afterwards ---------------------------------------------------

    def claimed(self, host: str) -> tuple[Server, ...]:
        """Note that a server of the request has got a host.

        :returns: who ends for it there
        """
        gone = self._ordered.victims(host)
        self.shortlist.plans.pop(host, None)
        self._ordered.plans[host] = None
        if gone:
            self.search.exclude([server.uuid for server in gone])
            if self.search.budgets is not None:
                # The other hosts' victims may be too many now.
                self.search.forget_budgets()
                self.shortlist.plans.clear()
        else:
            self.room.take(host)
        # It may be looked at again for the next server of the request.
        self.shortlist.restart()
        return gone
