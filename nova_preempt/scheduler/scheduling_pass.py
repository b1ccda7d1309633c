# SPDX-License-Identifier: Apache-2.0

"""One pass of Nova's scheduling that may end preemptible servers.

It hooks into Nova's own scheduling where Nova queries Placement, sorts hosts
and claims. The core (nova_preempt.core.scheduling.scheduling_cycle) decides
each step, and nova_preempt.handover.allocation_claim carries out the claims.
"""

import dataclasses

import nova.conf
from nova.scheduler import utils
from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import request_specs
from nova_preempt.core import capacity
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import scheduling_cycle
from nova_preempt.db import decisions
from nova_preempt.handover import allocation_claim
from nova_preempt.scheduler import decision_records
from nova_preempt.scheduler import host_states
from nova_preempt.scheduler import host_trees
from nova_preempt.scheduler import nova_cloud_view
from nova_preempt.scheduler import request_deadline

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


@dataclasses.dataclass
class ClaimsMade:
    """Claims of one pass.

    :ivar claims: claimed db.Decisions with victims
    :ivar decisions: uuids of all decisions, claimed or not
    :ivar lost: uuids of decisions whose claim has an unknown outcome
    :ivar free: uuids of servers placed without victims
    :ivar conflicts: number of failed claims: another request was faster, or
        Placement did not answer
    """

    claims: list = dataclasses.field(default_factory=list)
    decisions: list = dataclasses.field(default_factory=list)
    lost: list = dataclasses.field(default_factory=list)
    free: list = dataclasses.field(default_factory=list)
    conflicts: int = 0


class SchedulingPass:
    """One scheduling pass of a request that may preempt.

    :param preemption: a scheduler_context.SchedulerContext
    :param asked: a nova_preempt.scheduler.request_context.RequestContext
    :ivar cloud: what the core asks, a nova_cloud_view.NovaCloudView
    :ivar decision: the core's SchedulingCycle, None until Placement has been
        asked, as the cloud is
    :ivar made: its ClaimsMade
    :ivar resources: {class: amount} that each server asks for
    """

    def __init__(self, preemption, asked):
        self.preemption = preemption
        self.asked = asked
        self.cloud = self.decision = None
        self.made = ClaimsMade()
        self.resources = {}
        self._began = preemption.monotonic()
        self._unanswered = ''
        self._turn = None
        self._is_choosing = True

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.stop_choosing()

    def _begin_choosing(self):
        """Let no other thread of this process choose the same victims."""
        if self._turn is None:
            self._turn = self.preemption.selection_lock.acquire()

    def stop_choosing(self):
        """Release the lock, for the victims are claimed or the pass failed."""
        self._is_choosing = False
        if self._turn is not None:
            self.preemption.selection_lock.release(self._turn)
            self._turn = None

    @property
    def refusal(self):
        """Why preemption cannot serve the request, '' if it can."""
        return self.decision.refusal if self.decision else ''

    @property
    def unanswered(self):
        """The failure of Placement, '' if there was none."""
        return self._unanswered or (
            self.decision.silent.reason if self.decision else '')

    @property
    def has_begun(self):
        """Return whether the search for victims has begun."""
        return self.decision is not None and self.decision.batches.has_begun

    # -- where Nova asks Placement for candidates ------------------------

    def offer(self, resources, offered):
        """Add hosts that need victims to what Placement offers.

        :param resources: the nova.scheduler.utils.ResourceRequest
        :param offered: (allocation requests, provider summaries, version),
            None where Placement cannot be reached
        :returns: the same, with more in it
        """
        if offered is None:
            self._unanswered = 'Placement cannot be reached'
            return None
        requests, summaries, version = offered
        if requests is None:
            return offered
        room = capacity.free_by_root(summaries)
        if self.decision is None:
            self._begin(resources, room)
            self.decision.found_room(room)
            if self.decision.request.unpinned is not None:
                return offered
            plans = self._offered()
        else:
            # Nova asks a second time, for VCPU instead of PCPU, for the sake
            # of hosts without inventory of PCPU. Others have room in that
            # form only if they are not to make it by preemption.
            asked = resources.merged_resources()
            pinning = _with_pcpu(summaries)
            self.decision.found_room(
                {uuid: free for uuid, free in room.items()
                 if uuid not in pinning}, asked)
            plans = self._offered()
            self.decision.found_room(
                {uuid: free for uuid, free in room.items()
                 if uuid in pinning}, asked)
        requests = list(requests)
        summaries = dict(summaries)
        for plan in plans:
            if plan.host.uuid not in summaries:
                requests.extend(self.cloud.trees.allocation_requests(
                    plan.host.uuid, plan.host.name, plan.victims))
                summaries[plan.host.uuid] = host_trees.summary(plan.host)
        return requests, summaries, version

    def _begin(self, resources, room):
        self.resources = resources.merged_resources()
        preemption = self.preemption
        wanted = self._wanted(resources)
        self.cloud = nova_cloud_view.NovaCloudView(
            preemption, self.asked, resources, wanted,
            self._began if len(room) < CONF.scheduler.max_placement_results
            else None, self._begin_choosing)
        self.decision = scheduling_cycle.SchedulingCycle(
            self.cloud, wanted, preemption.known.policy(),
            preemption.process.clock(), self.asked.rank,
            request_specs.protected_servers(self.asked.spec_obj)
            | preemption.handover.stuck(), idle_age_s=cloud_view.MAX_AGE_S,
            list_age_s=cloud_view.LIST_MAX_AGE_S,
            memo=preemption.memo, silent=self.asked.deadline.silent)
        self.cloud.trees.search = self.decision.search

    def _wanted(self, resources):
        """The core's Request, with what Nova will ask for afterwards."""
        wanted = request_specs.groups(resources)
        if not resources.cpu_pinning_requested or (
                CONF.workarounds.disable_fallback_pcpu_query):
            return wanted
        return dataclasses.replace(wanted, unpinned=request_specs.groups(
            utils.resources_from_request_spec(
                self.asked.context, self.asked.spec_obj,
                self.preemption.host_manager, enable_pinning_translate=False)))

    def _offered(self):
        return self.decision.offer(
            any_victims=bool(self.preemption.known.servers))

    # -- where Nova sorts hosts ------------------------------------------

    def sorted_hosts(self, sort, spec_obj, hosts, index):
        """Hosts for the index-th server of the request, best first.

        :param sort: Nova's _get_sorted_hosts: filters and weighs
        :param hosts: host states; those that Placement or we have offered
            the first time, what was returned the last time afterwards
        """
        hosts = list(hosts)
        if not self._is_choosing or self.decision is None:
            return sort(spec_obj, hosts, index)
        states = self.cloud.states
        for state in hosts:
            states.setdefault(state.uuid, state)
        self.cloud.sort = sort
        with metrics.PHASES.labels('choose').time():
            ordered = self.decision.order(
                [(state.uuid, state.nodename) for state in hosts], index)
        return [states[uuid] for uuid in ordered]

    def takes(self, state):
        """Return {class: free amount of a host that the request uses}.

        The rest is what its victims give up there.
        """
        claimed = host_states.claimed(state)
        plan = self.decision.plan_of(state.uuid) if self.decision else None
        if plan is None:
            return claimed
        missing = capacity.by_class(plan.missing)
        return {name: max(0, amount - missing.get(name, 0))
                for name, amount in claimed.items()}

    # -- where Nova claims -----------------------------------------------

    def claim(self, real_claim, server_uuid, alloc_request, project_id,
              user_id):
        """Claim a host for a server, with victims if needed.

        :param real_claim: claims as Nova does
        :returns: False if another request was faster, or Placement fails for
            the host; Nova then tries the next host
        """
        states = self.cloud.states if self.cloud else {}
        state = next((states[uuid] for uuid in alloc_request['allocations']
                      if uuid in states), None)
        if state is None or not host_states.mark_of(state).victims:
            done = self._claim_room(state, real_claim, server_uuid)
        elif self.decision.plan_of(state.uuid).joins:
            done = self._join(state)
        else:
            done = self._preempt(state, server_uuid, project_id, user_id,
                                 alloc_request)
        self.made.conflicts += not done
        return done

    def _preempt(self, state, server_uuid, project_id, user_id, alloc_request):
        claim = self._confirm(state, server_uuid, project_id, user_id,
                              alloc_request)
        if claim is None:
            self._lost(state)
            return False
        self.preemption.known.providers.changed(state.uuid)
        self.made.claims.append(claim)
        return True

    def _confirm(self, state, server_uuid, project_id, user_id, alloc_request):
        """Claim a host with victims, if its plan still holds.

        :returns: the db.Decision, None if nothing was claimed
        """
        began = self.preemption.monotonic()
        try:
            plan = self.decision.confirm(state.uuid)
            # What Nova will go by is what it has asked for here.
            plan = plan and plan.taking(_amounts(alloc_request))
            if plan is not None:
                host_states.set_mark(state, cloud_view.HostTrial(
                    state.uuid, plan.victims, plan.cost_us),
                    host_states.mark_of(state).filtered_as)
                return self._take(state, plan, server_uuid, project_id,
                                  user_id, alloc_request)
        except placement_api.Conflict as exc:
            LOG.info('Another request was faster on host %(host)s: %(exc)s',
                     {'host': state.host, 'exc': exc})
        except allocation_claim.OutcomeUnknown:
            raise
        except placement_api.PlacementError as exc:
            LOG.warning('Host %(host)s is skipped for a request: %(exc)s',
                        {'host': state.host, 'exc': exc})
            self.decision.leave(state.uuid, cloud_view.Unanswered(
                str(exc), self.preemption.monotonic() - began))
        return None

    def _lost(self, state):
        """Note that the host was not claimed; a new decision may use it."""
        self.decision.lost(state.uuid)
        if state.uuid not in self.asked.deadline.silent.excluded:
            metrics.CONFLICTS.inc()
            self.preemption.known.providers.outdated()

    def _take(self, state, plan, server_uuid, project_id, user_id,
              alloc_request):
        """Claim a host for a server, with the victims of a core Plan.

        :param alloc_request: what the server gets, as Placement offers it
        :returns: the db.Decision, CLAIMED
        :raises Conflict: another request was faster
        :raises PlacementError: it failed; nothing is claimed
        :raises OutcomeUnknown: it failed; something may be claimed
        :raises TimeIsUp: their notice exceeds the request's deadline
        """
        handover = self.preemption.handover
        decision = decision_records.decision(self, state, plan, server_uuid,
                                             project_id, user_id)
        if self.asked.deadline.longest_notice_s() < max(
                victim.notice_s for victim in decision.victims):
            raise request_deadline.TimeIsUp('evict preemptible servers')
        self.made.decisions.append(decision.uuid)
        try:
            with metrics.PHASES.labels('claim').time():
                claimed = handover.claims.claim(
                    plan, decision, alloc_request['allocations'])
        except allocation_claim.OutcomeUnknown as exc:
            self.made.lost.append(decision.uuid)
            if not handover.recovery.reopen_and_roll_back(
                    decision.uuid, str(exc)):
                raise
            self.made.lost.remove(decision.uuid)
            raise placement_api.PlacementError(str(exc)) from exc
        except (decisions.LostDecision, db_exc.DBError):
            self.made.lost.append(decision.uuid)
            raise
        decision_records.log(claimed)
        handover.events.start(claimed)
        return claimed

    def _join(self, state):
        """Wait for capacity being released; see ReleaseWaiter.join()."""
        self.preemption.releasing.join(
            self.decision.plan_of(state.uuid), self.resources)
        self.decision.lost(state.uuid)
        return False

    def _claim_room(self, state, real_claim, server_uuid):
        done = real_claim()
        if done:
            self.made.free.append(server_uuid)
        elif state is not None and self.decision.plan_of(state.uuid):
            # It had room when it was read, which was before others took it.
            self._lost(state)
        return done

    # -- afterwards ------------------------------------------------------

    def consumed(self, state):
        """Remove the victims of a claimed host from its full state."""
        if self.decision is not None:
            gone = self.decision.claimed(state.uuid)
            if gone:
                host_states.remove(state, gone, self.cloud.trees.devices(gone))
        host_states.set_mark(state, cloud_view.HostTrial(state.uuid))

    def alternates(self, hosts):
        """The hosts that may be alternates: those that need no victims.

        The conductor claims alternates by itself; it cannot preempt.
        """
        self.stop_choosing()
        return [state for state in hosts
                if not host_states.mark_of(state).victims]


def _with_pcpu(summaries):
    """Return uuids of the roots of trees with PCPU inventory, as a set."""
    return {summary.get('root_provider_uuid') or uuid
            for uuid, summary in summaries.items()
            if 'PCPU' in summary['resources']}


def _amounts(alloc_request):
    """Return {slot: amount} of an allocation request of Placement."""
    return {(uuid, name): amount
            for uuid, item in alloc_request['allocations'].items()
            for name, amount in item['resources'].items()}
