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
import itertools
import time

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt import placement as placement_api
from nova_preempt.db import api as db_api
from nova_preempt.scheduler import request
from nova_preempt.scheduler import states as host_states
from nova_preempt.termination import terms

LOG = logging.getLogger(__name__)

# Nova's records of servers are read anew before a claim if they are older.
_LATEST_S = 1

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
    :param waited: uuids of decisions whose surplus was waited for before
    """

    def __init__(self, preemption, host_manager, context, spec_obj,
                 get_operation=str, excluded=(), server_uuids=(), waited=()):
        self.context = context
        self.spec_obj = spec_obj
        self.claims = []          # db.Decisions: claims that took victims
        self.decisions = []       # uuids of all decisions, claimed or not
        self.free_claims = []     # uuids of servers that needed none
        self.conflicts = 0        # claims that somebody else was faster on
        self.considered = []      # dicts, for the record
        self.refusal = ''         # why preemption cannot serve the request
        self.resources = None     # {class: amount} of one server
        self.candidates = None
        self.since = time.monotonic()
        self._preemption = preemption
        self._host_manager = host_manager
        self._get_operation = get_operation
        self._excluded = frozenset(excluded)
        self._server_uuids = list(server_uuids)
        self._waited = frozenset(waited)
        self._now = preemption.clock()
        self._room = {}           # provider uuid: {class: amount} left
        self._states = {}         # provider uuid: host state
        self._options = {}        # provider uuid: Option, planned
        self._ranked = None
        self._exhausted = False
        self._batches = 0         # how many were taken from _ranked
        self._skipping = False    # whether _ranked leaves out hosts with room
        self._last_cost = 0
        self._first_batch = []
        self._choosing = True
        self._locked = False

    def __enter__(self):
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *exc_info):
        self.stop_choosing()
        _CURRENT.reset(self._token)

    def stop_choosing(self):
        """The claims are made, or not: let other threads choose."""
        self._choosing = False
        if self._locked:
            self._locked = False
            self._preemption.choosing.release()

    @functools.cached_property
    def operation(self):
        return self._get_operation()

    # -- where Nova asks Placement for candidates ------------------------

    def offer(self, resources, offered):
        """Add hosts that need victims to what Placement offers.

        :param resources: the nova.scheduler.utils.ResourceRequest
        :param offered: (allocation requests, provider summaries, version)
        :returns: the same, with more in it
        """
        requests, summaries, version = offered
        # A second query is that of pinned servers for VCPU instead of PCPU;
        # on preempting hosts only PCPU is served.
        if requests is None or self.resources is not None:
            return offered
        self.note_room(resources, summaries)
        self._query = request.provider_query(resources)
        self.refusal = request.why_not_served(self.spec_obj, resources)
        if requests and not self._look_beside_room():
            return offered
        self._refuse_hinted()
        if self.refusal:
            return offered
        self._rank(skip=self._room)
        self._first_batch = self._next_options()
        requests = list(requests)
        summaries = dict(summaries)
        for option in self._first_batch:
            if option.provider_uuid not in summaries:
                requests.append(self._allocation_request(option))
                summaries[option.provider_uuid] = _summary(option)
        return requests, summaries, version

    def note_room(self, resources, summaries):
        """Remember what is asked for, and what is free where."""
        self.resources = resources.merged_resources()
        for uuid, summary in summaries.items():
            self._room[uuid] = {
                name: item['capacity'] - item['used']
                for name, item in summary['resources'].items()}

    def _refuse_hinted(self):
        """A server that a hint made preemptible never preempts.

        Not even where hints are not allowed any more.
        """
        if self.refusal or self.operation == 'create':
            return
        if self._preemption.db.get_preemptible(self._server_uuids):
            self.refusal = 'it is preemptible itself, by a scheduler hint'

    def _look_beside_room(self):
        """Whether hosts without room are weighed beside those with room.

        What is known from the background is good enough to tell whether there
        are preemptible servers at all: nobody has to end.
        """
        return self._preemption.always and bool(self._preemption.view)

    def _allocation_request(self, option):
        return {'allocations': {option.provider_uuid: {
                    'resources': dict(self.resources)}},
                'mappings': {'': [option.provider_uuid]}}

    def _next_options(self):
        # Loading host states has a fixed price: ever more at once.
        size = self._preemption.conf.shortlist_size * 2 ** self._batches
        self._batches += 1
        try:
            batch = list(itertools.islice(self._ranked, size))
        except placement_api.PlacementError as exc:
            # Nobody can be preempted, but hosts with room are still there.
            LOG.warning('Cannot look for victims: %s', exc)
            self.refusal = str(exc)
            batch = []
        if batch:
            self._last_cost = batch[-1].victim_set.cost
        self._exhausted = not batch
        new = [option for option in batch
               if option.provider_uuid not in self._options]
        for option in new:
            self._options[option.provider_uuid] = option
        return new

    def _rank(self, skip=()):
        """Start looking for options, on providers not in skip.

        :raises surplus.RoomComing: there will be room without victims of ours
        """
        if not self._locked and not skip:
            self._preemption.choosing.acquire()
            self._locked = True
            self._look_for_surplus()
        max_age_s = 0 if self._locked else self._preemption.conf.max_age_s
        self._preemption.view.refresh(max_age_s)
        if self.candidates is None:
            self.candidates = self._preemption.candidates(
                self.resources, self._may_end, self._now)
        self._ranked = self.candidates.ranked(self._query, skip,
                                              max_age_s)
        self._skipping = bool(skip)
        self._batches = 0
        self._last_cost = 0

    def _look_for_surplus(self):
        """Perhaps those who are ending free enough."""
        decisions = self.leave_out_ending()
        if len(self._server_uuids) == 1:
            self._preemption.surplus.look(decisions, self.resources,
                                          self._waited,
                                          self._preemption.providers)

    def leave_out_ending(self):
        """End nobody twice. Returns the open decisions."""
        decisions = self._preemption.db.get_decisions(statuses=db_api.OPEN)
        self._excluded |= {victim.server_uuid for decision in decisions
                           for victim in decision.victims}
        return decisions

    def _may_end(self, server):
        conf = self._preemption.conf
        return (server.uuid not in self._excluded
                and server.may_end(self._now, conf.minimum_runtime_s)
                and terms.is_possible(server, conf))

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
            self._states.setdefault(state.uuid, state)
        free = [state for state in hosts if self._has_room(state)]
        for state in free:
            _set_victims(state, None)
        chosen = []
        if free and not self._preemption.always:
            chosen = sort(spec_obj, free, index)
        if self.refusal:
            chosen = chosen or sort(spec_obj, free, index)
        if not chosen and self._ranked is None:
            self._refuse_hinted()
        if not chosen and not self.refusal:
            chosen = self._sort_with_victims(sort, spec_obj, free, index)
        self._note_considered(chosen)
        return chosen

    def _has_room(self, state):
        room = self._room.get(state.uuid)
        return room is not None and all(
            room.get(name, amount) >= amount
            for name, amount in self.resources.items())

    @metrics.PHASES.labels('choose').time()
    def _sort_with_victims(self, sort, spec_obj, free, index):
        free_uuids = {state.uuid for state in free}
        batch = self._states_to_plan(free_uuids)
        planned = []
        while True:
            planned += self._plan(batch, spec_obj)
            # A host that has room but does not pass as it is may pass once
            # some victims are gone: then it is planned too.
            again = {state.uuid for state in planned}
            hosts = [state for state in free if state.uuid not in again]
            hosts = sort(spec_obj, hosts + planned, index)
            if self._settled(hosts):
                return hosts
            if self._ranked is None or self._skipping:
                self._rank()
            options = self._next_options()
            if self._exhausted:
                return hosts
            batch = self._load(options)

    def _states_to_plan(self, free_uuids):
        """States that are loaded and may need victims.

        Hosts of the first batch, and hosts that other servers of this very
        request have filled.
        """
        first = {option.provider_uuid for option in self._first_batch}
        self._first_batch = []
        states = []
        for uuid, state in sorted(self._states.items()):
            if uuid in free_uuids:
                continue
            if uuid in self._options or uuid in first:
                states.append(state)
            elif self._preemption.view.on_node(state.nodename):
                self._replan(state)
                if uuid in self._options:
                    states.append(state)
        return states

    def _replan(self, state):
        """Look for victims on a host on which this request has changed."""
        if self.candidates is None:
            return
        option = self.candidates.option(
            state.nodename, self._preemption.providers.read(state.uuid))
        if option is not None:
            self._options[state.uuid] = option

    def _settled(self, hosts):
        """Whether no host that is still to come can be better."""
        if not hosts:
            return False
        if not all(state.victims for state in hosts):
            return True
        return self._ranked is not None and not self._skipping and min(
            state.victims_cost_us for state in hosts) <= self._last_cost

    def _load(self, options):
        """The host states of these options."""
        new = {option.provider_uuid: option for option in options
               if option.provider_uuid not in self._states}
        if new:
            for state in self._host_manager.get_host_states_by_uuids(
                    self.context.elevated(), list(new), self.spec_obj):
                state.allocation_candidates = [
                    self._allocation_request(new[state.uuid])]
                self._states[state.uuid] = state
        return [self._states[option.provider_uuid] for option in options
                if option.provider_uuid in self._states]

    # -- choosing victims ------------------------------------------------

    def _plan(self, states, spec_obj):
        """The states that pass every filter once their victims are gone.

        First as if all servers that may end were gone, which is what a normal
        request is filtered on; then without the victims only, since they are
        all that will end.
        """
        pairs = [(state, self._options[state.uuid]) for state in states]
        passing = self._filter(
            [_view(state, list(option.servers.values()))
             for state, option in pairs], spec_obj)
        pairs = [pair for pair in pairs if pair[0].uuid in passing]
        enough = self._filter([_view(state, option.victims)
                               for state, option in pairs], spec_obj)
        planned = []
        for state, option in pairs:
            if state.uuid not in enough:
                option = self._widen(state, option, spec_obj)
                if option is None:
                    continue
                self._options[state.uuid] = option
            _set_victims(state, option)
            planned.append(state)
        return planned

    def _filter(self, views, spec_obj):
        """The uuids of those that pass, whatever came before (index 0)."""
        if not views:
            return set()
        passed = self._host_manager.get_filtered_hosts(views, spec_obj, 0)
        return {view.uuid for view in passed or ()}

    def _widen(self, state, option, spec_obj):
        """The cheapest victims with which the host passes every filter."""
        return self.candidates.option(
            option.node, self._preemption.providers.read(state.uuid),
            accept=lambda servers: bool(self._filter(
                [_view(state, servers)], spec_obj)))

    # -- where Nova claims -----------------------------------------------

    def state_of(self, alloc_request):
        """The host state that an allocation request is for."""
        return next((self._states[uuid]
                     for uuid in alloc_request['allocations']
                     if uuid in self._states), None)

    def option_of(self, state):
        """The Option of a host that needs victims, else None."""
        return self._options[state.uuid] if getattr(
            state, 'victims', ()) else None

    def claim(self, real_claim, server_uuid, alloc_request, project_id,
              user_id):
        """Claim a host for a server, with victims where it needs them.

        :param real_claim: claims as Nova does
        :returns: False if somebody was faster: the next host is tried
        """
        state = self.state_of(alloc_request)
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
            self._options.pop(state.uuid, None)
            return False
        self.claims.append(claim)
        return True

    def _consume_room(self, alloc_request):
        for uuid, allocation in alloc_request['allocations'].items():
            room = self._room.get(uuid, {})
            for name, amount in allocation['resources'].items():
                if name in room:
                    room[name] -= amount

    def _claim_with_victims(self, state, server_uuid, project_id, user_id):
        """Take the host on the latest data. Returns a db.Decision or None."""
        planned = self._options[state.uuid]
        option = self._latest(state, planned)
        if option is None or not option.victims:
            # Gone, or room without any victim: both are better decided anew.
            return None
        if option.victim_set.cost > planned.victim_set.cost and any(
                item['cost_us'] < option.victim_set.cost
                for item in self.considered if item['host'] != state.host):
            return None
        self._options[state.uuid] = option
        decision = self._preemption.records.decision(
            self, state, option, server_uuid, project_id, user_id)
        self.decisions.append(decision.uuid)
        with metrics.PHASES.labels('claim').time():
            claim = self._preemption.claims.claim(option, decision,
                                                  self.resources)
        _set_victims(state, option)
        self._preemption.records.log(claim)
        self._preemption.events.start(claim)
        return claim

    def _latest(self, state, planned):
        """The option of a host on data read now, from Placement and Nova."""
        self._preemption.view.refresh(_LATEST_S)
        self.candidates.forget_spending()
        provider = self._preemption.providers.read(state.uuid)
        option = self.candidates.option(planned.node, provider)
        if option is None:
            return None
        if not self._filter([_view(state, option.victims)], self.spec_obj):
            option = self.candidates.option(
                planned.node, provider,
                accept=lambda servers: bool(self._filter(
                    [_view(state, servers)], self.spec_obj)))
        return option

    # -- afterwards ------------------------------------------------------

    def consumed(self, state):
        """The host was claimed: take its victims out of its full state."""
        option = self._options.pop(state.uuid, None)
        if option is not None and getattr(state, 'victims', ()):
            host_states.remove(state, option.victims)
            self._excluded |= set(state.victims)
            if self._preemption.budgets:
                # The other hosts' victims may be too many now.
                self.candidates.forget_spending()
                self._options.clear()
        _set_victims(state, None)
        # It may be looked at again for the next server of the request.
        self._ranked = None

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
        entry = {'host': state.host, 'node': state.nodename,
                 'victims': victims, 'cost_us': 0}
        if victims:
            victim_set = self._options[state.uuid].victim_set
            entry.update(cost_us=victim_set.cost, optimal=victim_set.optimal,
                         steps=victim_set.steps)
        return entry


def _view(state, servers):
    view = host_states.without(state, servers)
    view.victims = tuple(server.uuid for server in servers)
    view.filtered_as = None
    return view


def _set_victims(state, option):
    """Note on a host state which victims it needs, for filters, weighers."""
    victims = option.victims if option is not None else []
    state.victims = tuple(server.uuid for server in victims)
    state.victims_cost_us = option.victim_set.cost if victims else 0
    state.filtered_as = _view(state, victims) if victims else None


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

