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
"""The hosts on which victims would make room for a request, and who they are.

The cheapest first, in batches: each is loaded, filtered with its victims gone,
and given to Nova to be weighed.
"""

import itertools

from oslo_log import log as logging

from nova_preempt import placement as placement_api
from nova_preempt.core import refusals
from nova_preempt.core import victims as core_victims
from nova_preempt.db import api as db_api
from nova_preempt.scheduler import candidates
from nova_preempt.scheduler import states as host_states
from nova_preempt.termination import terms

LOG = logging.getLogger(__name__)

# What Nova and Placement have said is read anew before a claim if it is older.
LATEST_S = 1


class Choice:
    """What one pass of a request knows of hosts that need victims.

    For the parameters see nova_preempt.scheduler.attempt.Attempt.

    :param turns: a nova_preempt.scheduler.turns.Turns, None for one that only
        looks
    """

    def __init__(self, preemption, host_manager, context, spec_obj, excluded,
                 server_uuids, patience, turns=None):
        self.refusal = ''         # why preemption cannot serve the request
        self.why = refusals.Why.REQUEST
        self.candidates = None
        self.states = {}          # provider uuid: host state
        self.options = {}         # provider uuid: Option, planned
        self._preemption = preemption
        self._host_manager = host_manager
        self._context = context
        self._spec_obj = spec_obj
        self._excluded = frozenset(excluded)
        self._server_uuids = server_uuids
        self._patience = patience
        self._notice = terms.notice_rule(preemption.conf,
                                         preemption.notice_limit_s)
        self._longest_notice_s = patience.limit.longest_notice_s()
        self._now = preemption.clock()
        self._rules = terms.get_rules(preemption.conf)
        self._actions = preemption.conf.actions
        self._resources = None
        self._query = None
        self._ranked = None
        self._exhausted = False
        self._batches = 0         # how many were taken from _ranked
        self._skipping = False    # whether _ranked leaves out hosts with room
        self._last_cost = 0
        self._first_batch = []
        self._turns = turns
        self._turn = None
        self._decisions = []      # the open ones, of all schedulers

    def ask_for(self, resources, query):
        """Say what is asked for.

        :param resources: {class: amount} of one server
        :param query: of GET /resource_providers
        """
        self._resources = resources
        self._query = query

    def stop(self):
        """Let other threads choose."""
        if self._turn is not None:
            self._turns.end(self._turn)
            self._turn = None

    @property
    def has_begun(self):
        """Whether it has looked for hosts since the last claim."""
        return self._ranked is not None

    # -- hosts, in batches -----------------------------------------------

    def first(self, skip):
        """The Options of the first batch, on providers not in skip."""
        self._rank(skip)
        self._first_batch = self._next_options()
        return self._first_batch

    def next_states(self):
        """The host states of the next batch, None if there is none."""
        if self._ranked is None or self._skipping:
            self._rank()
        options = self._next_options()
        return None if self._exhausted else self._load(options)

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
            self.why = refusals.Why.SERVICE
            batch = []
        if batch:
            self._last_cost = batch[-1].victim_set.cost
        self._exhausted = not batch
        new = [option for option in batch
               if option.provider_uuid not in self.options]
        for option in new:
            self.options[option.provider_uuid] = option
        return new

    def _rank(self, skip=()):
        """Start looking for options, on providers not in skip."""
        if not skip:
            if self._turn is None and self._turns is not None:
                self._turn = self._turns.begin()
            self._decisions = self._leave_out_ending()
        # Once a look, and not once a server.
        self._longest_notice_s = self._patience.limit.longest_notice_s()
        max_age_s = self._preemption.conf.max_age_s if skip else 0
        self._preemption.view.refresh(max_age_s)
        if self.candidates is None:
            self.candidates = self._preemption.candidates(
                self._resources, self._may_end, self._now)
        self.candidates.releasing = self._releasing()
        self._ranked = self.candidates.ranked(self._query, skip,
                                              max_age_s)
        self._skipping = bool(skip)
        self._batches = 0
        self._last_cost = 0

    def _releasing(self):
        """What those who are ending free, None where it does not matter.

        Several servers of one request would have to be claimed while one
        waits; they do not.
        """
        if not self._decisions or len(self._server_uuids) != 1:
            return None
        leaving = self._preemption.surplus.leaving(self._decisions,
                                                   self._patience.waited)
        if (not leaving or self._longest_notice_s < 0
                or not self._patience.may_wait()):
            return None
        return candidates.Releasing(leaving, self._preemption.surplus.waiting,
                                    self._longest_notice_s)

    def _leave_out_ending(self):
        """End nobody twice. Returns the open decisions."""
        decisions = self._preemption.db.get_decisions(statuses=db_api.OPEN)
        self._excluded |= {victim.server_uuid for decision in decisions
                           for victim in decision.victims}
        return decisions

    def _may_end(self, server):
        return (server.uuid not in self._excluded
                and terms.may_give_way(server, self._rules, self._actions,
                                       self._now)
                and self._is_notice_possible(
                    self._notice.length_s(server.notice_s)))

    def _is_notice_possible(self, notice_s):
        """Whether the request can, and may, wait for such a notice."""
        return notice_s <= self._longest_notice_s and (
            not notice_s or self._patience.may_wait())

    def _load(self, options):
        """The host states of these options."""
        new = {option.provider_uuid: option for option in options
               if option.provider_uuid not in self.states}
        if new:
            for state in self._host_manager.get_host_states_by_uuids(
                    self._context.elevated(), list(new), self._spec_obj):
                state.allocation_candidates = [
                    self.allocation_request(new[state.uuid])]
                self.states[state.uuid] = state
        return [self.states[option.provider_uuid] for option in options
                if option.provider_uuid in self.states]

    def allocation_request(self, option):
        """What claims this host, as Placement would offer it."""
        return {'allocations': {option.provider_uuid: {
                    'resources': dict(self._resources)}},
                'mappings': {'': [option.provider_uuid]}}

    # -- victims ---------------------------------------------------------

    def states_to_plan(self, free_uuids):
        """States that are loaded and may need victims.

        Hosts of the first batch, and hosts that other servers of this very
        request have filled.
        """
        first = {option.provider_uuid for option in self._first_batch}
        self._first_batch = []
        states = []
        for uuid, state in sorted(self.states.items()):
            if uuid in free_uuids:
                continue
            if uuid in self.options or uuid in first:
                states.append(state)
            elif self._preemption.view.on_node(state.nodename):
                self._replan(state)
                if uuid in self.options:
                    states.append(state)
        return states

    def _replan(self, state):
        """Look for victims on a host on which this request has changed."""
        if self.candidates is None:
            return
        option = self.candidates.option(
            state.nodename, self._preemption.providers.read(state.uuid))
        if option is not None:
            self.options[state.uuid] = option

    def is_settled(self, hosts):
        """Whether no host that is still to come can be better."""
        if not hosts:
            return False
        if not all(state.victims for state in hosts):
            return True
        return self._ranked is not None and not self._skipping and min(
            state.victims_cost_us for state in hosts) <= self._last_cost

    def plan(self, states, spec_obj):
        """The states that pass every filter once their victims are gone.

        First as if all servers that may end were gone, which is what a normal
        request is filtered on; then without the victims only, since they are
        all that will end.
        """
        pairs = [(state, self.options[state.uuid]) for state in states]
        passing = self._filter(
            [host_states.as_planned(state, list(option.servers.values()))
             for state, option in pairs], spec_obj)
        pairs = [pair for pair in pairs if pair[0].uuid in passing]
        enough = self._filter([host_states.as_planned(state, option.victims)
                               for state, option in pairs], spec_obj)
        planned = []
        for state, option in pairs:
            if state.uuid not in enough:
                option = self._widen(state, option, spec_obj)
                if option is None:
                    continue
                self.options[state.uuid] = option
            host_states.set_victims(state, option)
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
                [host_states.as_planned(state, servers)], spec_obj)))

    def latest(self, state, had_room):
        """The option of a host on data read now, from Placement and Nova.

        :param had_room: whether the host may have had room for the request
            when Placement was asked for candidates
        """
        option = self.options[state.uuid]
        node = option.node
        self._longest_notice_s = self._patience.limit.longest_notice_s()
        self._preemption.view.refresh(LATEST_S)
        if not had_room and self._is_least(option):
            return option
        self.candidates.forget_spending()
        provider = self._preemption.providers.read(state.uuid)
        option = self.candidates.option(node, provider)
        if option is None:
            return None

        def passes(servers):
            return bool(self._filter(
                [host_states.as_planned(state, servers)], self._spec_obj))

        if not passes(option.victims):
            option = self.candidates.option(node, provider, accept=passes)
        return option

    def _is_least(self, option):
        """Whether nothing that Placement could say would change the option.

        Somebody has to end, for it has said that there is no room; if others
        have left meanwhile the option is right all the same, and what has
        come Placement will refuse. As far as Nova knows its victim is still
        the same.
        """
        seen = self._preemption.view.on_node(option.node)
        return (not self._preemption.budgets
                and core_victims.holds_for_less(option.host.candidates,
                                                option.victim_set)
                and all(seen.get(victim.uuid) == victim
                        and self._may_end(victim)
                        for victim in option.victims))

    def consumed(self, state):
        """The host was claimed: take its victims out of its full state."""
        option = self.options.pop(state.uuid, None)
        if option is not None and getattr(state, 'victims', ()):
            host_states.remove(state, option.victims)
            self._excluded |= set(state.victims)
            if self._preemption.budgets:
                # The other hosts' victims may be too many now.
                self.candidates.forget_spending()
                self.options.clear()
        # It may be looked at again for the next server of the request.
        self._ranked = None
