# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""One pass of a scheduling request that may preempt.

Nova's own scheduling runs; this object stands beside it and is asked at the
points where Nova asks Placement, loads host states, sorts hosts and claims.
It adds the hosts on which victims would make room.
"""

import contextvars
import functools
import time

import nova.conf
from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt import placement as placement_api
from nova_preempt.db import api as db_api
from nova_preempt.db import hints
from nova_preempt.db import pauses
from nova_preempt.scheduler import choice
from nova_preempt.scheduler import deadline
from nova_preempt.scheduler import request
from nova_preempt.scheduler import states as host_states

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_CURRENT = contextvars.ContextVar('nova_preempt_attempt', default=None)


def current():
    """The attempt of the request that this thread works on, or None."""
    return _CURRENT.get()


class Attempt:
    """One pass.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param host_manager: Nova's HostManager
    :param get_operation: returns which operation this is; asked only for the
        record
    :param excluded: uuids of servers that must not be victims
    :param server_uuids: the servers that it is for
    :param patience: the request's nova_preempt.scheduler.patience.Patience;
        None where nobody waits
    :ivar choice: what finds hosts that need victims
    """

    # Whether two of these must not choose at the same time.
    takes_turns = True

    def __init__(self, preemption, host_manager, context, spec_obj,
                 get_operation=str, excluded=(), server_uuids=(),
                 patience=None):
        self.context = context
        self.spec_obj = spec_obj
        self.claims = []          # db.Decisions: claims that took victims
        self.decisions = []       # uuids of all decisions, claimed or not
        self.lost = []            # uuids of those that may be claimed, or not
        self.free_claims = []     # uuids of servers that needed none
        self.conflicts = 0        # claims that somebody else was faster on
        self.considered = []      # dicts, for the record
        self.resources = None     # {class: amount} of one server
        self.since = time.monotonic()
        self.patience = patience or preemption.patience()
        self._preemption = preemption
        self._get_operation = get_operation
        self._server_uuids = list(server_uuids)
        self._room = {}           # provider uuid: {class: amount} left
        self._fallback = {}       # provider uuid: what is asked for there
        self._choosing = True
        self.choice = choice.Choice(
            preemption, host_manager, context, spec_obj, excluded,
            self._server_uuids, self.patience,
            preemption.turns if self.takes_turns else None)

    def __enter__(self):
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *exc_info):
        self.stop_choosing()
        _CURRENT.reset(self._token)

    def stop_choosing(self):
        """The claims are made, or not: let other threads choose."""
        self._choosing = False
        self.choice.stop()

    @functools.cached_property
    def operation(self):
        return self._get_operation()

    @property
    def refusal(self):
        """Why preemption cannot serve the request, '' if it can."""
        return self.choice.refusal

    @refusal.setter
    def refusal(self, reason):
        self.choice.refusal = reason

    @property
    def why(self):
        """What kind of refusal that is, a core.refusals.Why."""
        return self.choice.why

    @property
    def candidates(self):
        """A Candidates, None if nobody has looked for victims."""
        return self.choice.candidates

    # -- where Nova asks Placement for candidates ------------------------

    def offer(self, resources, offered):
        """Add hosts that need victims to what Placement offers.

        :param resources: the nova.scheduler.utils.ResourceRequest
        :param offered: (allocation requests, provider summaries, version)
        :returns: the same, with more in it
        """
        requests, summaries, version = offered
        if requests is None:
            return offered
        if self.resources is not None:
            self._note_fallback(resources, summaries)
            return offered
        self.note_room(resources, summaries)
        self.choice.ask_for(self.resources,
                            request.provider_query(resources))
        self.refusal = (
            self._preemption.pauses.why(pauses.PREEMPTION)
            or request.why_not_served(self.spec_obj, resources))
        if requests and not self._look_beside_room():
            return offered
        self._refuse_hinted()
        if self.refusal:
            return offered
        requests = list(requests)
        summaries = dict(summaries)
        for option in self.choice.first(skip=self._room):
            if option.provider_uuid not in summaries:
                requests.append(self.choice.allocation_request(option))
                summaries[option.provider_uuid] = _summary(option)
        return requests, summaries, version

    def note_room(self, resources, summaries):
        """Remember what is asked for, and what is free where."""
        self.resources = resources.merged_resources()
        for uuid, summary in summaries.items():
            self._room[uuid] = _free(summary)

    def _note_fallback(self, resources, summaries):
        """Remember where a pinned server has room as VCPU.

        Nova asks a second time, for VCPU instead of PCPU, for the sake of
        hosts without inventory of PCPU. On preempting hosts only PCPU is
        served.
        """
        asked = resources.merged_resources()
        for uuid, summary in summaries.items():
            if uuid not in self._room and uuid not in self.choice.options:
                self._room[uuid] = _free(summary)
                self._fallback[uuid] = asked

    def _refuse_hinted(self):
        """A server that a hint made preemptible never preempts.

        Not even where hints are not allowed any more.
        """
        if self.refusal or self.operation == 'create':
            return
        if hints.get(self._preemption.db, self._server_uuids):
            self.refusal = 'it is preemptible itself, by a scheduler hint'

    def _look_beside_room(self):
        """Whether hosts without room are weighed beside those with room.

        What is known from the background is good enough to tell whether there
        are preemptible servers at all: nobody has to end.
        """
        return self._preemption.always and bool(self._preemption.view)

    # -- where Nova sorts hosts ------------------------------------------

    def sorted_hosts(self, sort, spec_obj, hosts, index):
        """Hosts for the index-th server of the request, best first.

        :param sort: Nova's _get_sorted_hosts: filters and weighs
        :param hosts: host states; those that Placement or we have offered
            the first time, what was returned the last time afterwards
        """
        hosts = list(hosts)
        if not self._choosing or self.resources is None:
            return sort(spec_obj, hosts, index)
        for state in hosts:
            self.choice.states.setdefault(state.uuid, state)
        free = [state for state in hosts if self._has_room(state)]
        for state in free:
            host_states.set_victims(state, None)
        chosen = []
        if free and not self._preemption.always:
            chosen = sort(spec_obj, free, index)
        if self.refusal:
            chosen = chosen or sort(spec_obj, free, index)
        if not chosen and not self.choice.has_begun:
            self._refuse_hinted()
        if not chosen and not self.refusal:
            chosen = self._sort_with_victims(sort, spec_obj, free, index)
        self._note_considered(chosen)
        return chosen

    def _has_room(self, state):
        room = self._room.get(state.uuid)
        return room is not None and all(
            room.get(name, amount) >= amount
            for name, amount in self._fallback.get(
                state.uuid, self.resources).items())

    @metrics.PHASES.labels('choose').time()
    def _sort_with_victims(self, sort, spec_obj, free, index):
        free_uuids = {state.uuid for state in free}
        batch = self.choice.states_to_plan(free_uuids)
        planned = []
        while True:
            planned += self.choice.plan(batch, spec_obj)
            # A host that has room but does not pass as it is may pass once
            # some victims are gone: then it is planned too.
            again = {state.uuid for state in planned}
            hosts = [state for state in free if state.uuid not in again]
            hosts = sort(spec_obj, hosts + planned, index)
            if self.choice.is_settled(hosts):
                return hosts
            batch = self.choice.next_states()
            if batch is None:
                return hosts

    # -- where Nova claims -----------------------------------------------

    def state_of(self, alloc_request):
        """The host state that an allocation request is for."""
        return next((self.choice.states[uuid]
                     for uuid in alloc_request['allocations']
                     if uuid in self.choice.states), None)

    def option_of(self, state):
        """The Option of a host that needs victims, else None."""
        return self.choice.options[state.uuid] if getattr(
            state, 'victims', ()) or getattr(state, 'joins', ()) else None

    def claim(self, real_claim, server_uuid, alloc_request, project_id,
              user_id):
        """Claim a host for a server, with victims where it needs them.

        :param real_claim: claims as Nova does
        :returns: False if somebody was faster: the next host is tried
        """
        state = self.state_of(alloc_request)
        if state is not None and getattr(state, 'joins', ()):
            return self._join(state)
        if state is None or not getattr(state, 'victims', ()):
            if not real_claim():
                self.conflicts += 1
                return False
            self.free_claims.append(server_uuid)
            self._consume_room(alloc_request)
            return True
        try:
            claim = self._claim_with_victims(state, server_uuid, project_id,
                                             user_id)
        except placement_api.Conflict as exc:
            LOG.info('Lost host %(host)s to another request: %(exc)s',
                     {'host': state.host, 'exc': exc})
            claim = None
        if claim is None:
            self.conflicts += 1
            metrics.CONFLICTS.inc()
            self.choice.options.pop(state.uuid, None)
            return False
        self.claims.append(claim)
        return True

    def _join(self, state):
        """Wait for room that is coming; see Surplus.join()."""
        if not self._preemption.surplus.join(self.choice.options[state.uuid]):
            self.conflicts += 1
            self.choice.options.pop(state.uuid)
            return False
        return True

    def _consume_room(self, alloc_request):
        for uuid, allocation in alloc_request['allocations'].items():
            room = self._room.get(uuid, {})
            for name, amount in allocation['resources'].items():
                if name in room:
                    room[name] -= amount

    def _claim_with_victims(self, state, server_uuid, project_id, user_id):
        """Take the host on the latest data. Returns a db.Decision or None."""
        planned = self.choice.options[state.uuid]
        option = self.choice.latest(state, self._may_have_room(state))
        if option is None or option.joins or not option.victims:
            # Gone, or room without a victim of ours: better decided anew.
            return None
        if option.victim_set.cost > planned.victim_set.cost and any(
                item['cost_us'] < option.victim_set.cost
                for item in self.considered if item['host'] != state.host):
            return None
        self.choice.options[state.uuid] = option
        decision = self._preemption.records.decision(
            self, state, option, server_uuid, project_id, user_id)
        if self.patience.limit.longest_notice_s() < max(
                victim.notice_s for victim in decision.victims):
            raise deadline.TimeIsUp('end preemptible servers')
        self.decisions.append(decision.uuid)
        try:
            with metrics.PHASES.labels('claim').time():
                claim = self._preemption.claims.claim(option, decision,
                                                      self.resources)
        except (db_api.LostDecision, db_exc.DBError):
            self.lost.append(decision.uuid)
            raise
        host_states.set_victims(state, option)
        self._preemption.records.log(claim)
        self._preemption.events.start(claim)
        return claim

    def _may_have_room(self, state):
        """Whether Placement has offered the host, or as many as it may.

        What it has said before others chose is too old to end somebody for.
        """
        return (state.uuid in self._room
                or len(self._room) >= CONF.scheduler.max_placement_results
                or time.monotonic() - self.since > choice.LATEST_S)

    # -- afterwards ------------------------------------------------------

    def consumed(self, state):
        """The host was claimed: take its victims out of its full state."""
        self.choice.consumed(state)
        host_states.set_victims(state, None)

    def alternates(self, hosts):
        """The hosts that may be alternates: those that need no victims.

        The conductor claims alternates by itself; it cannot preempt.
        """
        self.stop_choosing()
        return [state for state in hosts
                if not getattr(state, 'victims', ())]

    # -- the record ------------------------------------------------------

    def _note_considered(self, hosts):
        if not self._preemption.observers and not any(
                state.victims for state in hosts):
            return
        self.considered = [self._entry(state) for state in hosts]
        self.considered.sort(key=lambda item: (
            bool(item['victims']), item['cost_us'], item['host']))

    def _entry(self, state):
        victims = list(getattr(state, 'victims', ()))
        if getattr(state, 'joins', ()):
            # Whoever waits there ends nobody.
            victims = []
        entry = {'host': state.host, 'node': state.nodename,
                 'victims': victims, 'cost_us': 0}
        if victims:
            victim_set = self.choice.options[state.uuid].victim_set
            entry.update(cost_us=victim_set.cost, optimal=victim_set.optimal,
                         steps=victim_set.steps)
        return entry


def _summary(option):
    host = option.host
    return {
        'resources': {name: {'capacity': inventory.capacity,
                             'used': host.used.get(name, 0)}
                      for name, inventory in host.inventories.items()},
        'traits': [],
        'parent_provider_uuid': None,
        'root_provider_uuid': host.uuid,
    }


def _free(summary):
    """{class: amount} that is free of a provider, by Placement's summary."""
    return {name: item['capacity'] - item['used']
            for name, item in summary['resources'].items()}
