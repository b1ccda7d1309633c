# SPDX-License-Identifier: Apache-2.0

"""Implements the core's CloudView with Nova and Placement.

See nova_preempt.core.scheduling.cloud_view. It takes no decisions.
"""

import dataclasses
import functools

import nova.conf
from oslo_log import log as logging

from nova_preempt.cloud import host_records
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import request_specs
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.db import preemptible_hints
from nova_preempt.handover import eviction_policy
from nova_preempt.scheduler import host_states
from nova_preempt.scheduler.filters import preemptible_filter
from nova_preempt.scheduler.host_trees import HostTrees

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_NOBODY = {}


def answers(function):
    """Decorate a method to raise Unanswered, with the time, on failure."""
    @functools.wraps(function)
    def answered(self, *args):
        monotonic = self._preemption.monotonic
        began = monotonic()
        try:
            return function(self, *args)
        except placement_api.PlacementError as exc:
            LOG.warning('Cannot search for victims: %s', exc)
            raise cloud_view.Unanswered(str(exc), monotonic() - began) from exc
    return answered


@dataclasses.dataclass(frozen=True)
class _Look:
    """Values that are constant while all hosts are examined.

    :ivar longest_notice_s: that the request can wait for
    :ivar servers: {name of a node: {uuid: the core's Server}}
    """

    longest_notice_s: float
    servers: dict


class NovaCloudView:
    """A core.scheduling.cloud_view.CloudView, for one pass of one request.

    :param preemption: a scheduler_context.SchedulerContext
    :param asked: a nova_preempt.scheduler.request_context.RequestContext
    :param resources: what Placement was asked for, a
        nova.scheduler.utils.ResourceRequest
    :param wanted: the same as a core Request
    :param room_at: when Placement returned all hosts with free capacity, None
        if there may be more hosts
    :param begin_choosing: called before victims are selected
    :ivar states: {uuid of a root provider: Nova's HostState}
    :ivar sort: Nova's _get_sorted_hosts, which filters and weighs
    :ivar trees: a HostTrees
    """

    def __init__(self, preemption, asked, resources, wanted, room_at=None,
                 begin_choosing=lambda: None):
        self._preemption = preemption
        self.states = {}
        self.sort = None
        self.trees = HostTrees(preemption, asked, wanted)
        self._asked = asked
        self._resources = resources
        self._room_at = room_at
        self._begin_choosing = begin_choosing
        self._decisions = []      # open ones of all schedulers
        self._take_a_look()

    # -- the view --------------------------------------------------------

    def objection(self):
        """Return why the request may not preempt, '' if it may.

        A server that a hint made preemptible never preempts, even if hints
        are not allowed any more, unless it has a class of service.
        """
        reason = (self._preemption.process.pauses.why(pauses.PREEMPTION)
                  or eviction_policy.why_not_allowed(
                      self._preemption.process.options,
                      self._asked.get_operation)
                  or request_specs.why_not_served(
                      self._asked.spec_obj,
                      CONF.filter_scheduler.pci_in_placement,
                      CONF.filter_scheduler.enabled_filters))
        if (not reason and not self._asked.rank.is_preemptible
                and self._asked.operation != 'create'
                and preemptible_hints.get(
                    self._preemption.process.db, self._asked.server_uuids)):
            reason = 'it is preemptible itself, by a scheduler hint'
        return reason

    def refresh(self, max_age_s):
        self._preemption.known.servers.refresh(max_age_s)
        self._take_a_look()

    def may_wait(self, notice_s):
        return notice_s <= self._look.longest_notice_s and (
            not notice_s or self._asked.deadline.may_wait())

    @answers
    def listed(self, max_age_s):
        nodes = self._look.servers
        released = self.releasing()
        return self.trees.listed([
            found for found in self._preemption.known.providers.look(
                self._query, max_age_s)
            if found[0].name in nodes or found[0].uuid in released],
            max_age_s)

    @answers
    def list_again(self, host, max_age_s):
        found = self._preemption.known.providers.look_again(
            self._query, host, max_age_s)
        return None if found is None else self.trees.listed_again(
            found, max_age_s)

    @answers
    def read(self, host):
        return self.trees.read(host)

    def servers_on(self, name):
        return self._look.servers.get(name, _NOBODY)

    def server(self, uuid):
        return self._preemption.known.servers.get(uuid)

    def ending(self):
        self._begin_choosing()
        self._decisions = self._preemption.process.decisions.get_decisions(
            statuses=decisions.OPEN)
        return {victim.server_uuid for decision in self._decisions
                for victim in decision.victims}

    def releasing(self):
        # Requests for several servers do not wait for releasing capacity.
        if len(self._asked.server_uuids) != 1:
            return {}
        return self._preemption.releasing.releasing(
            self._decisions, self._asked.deadline.waited)

    def budgets(self):
        return self._preemption.known.budgets.read()

    def load(self, hosts):
        new = [uuid for uuid in hosts if uuid not in self.states]
        if new:
            for state in host_states.get_few(
                    self._preemption.host_manager,
                    self._asked.context.elevated(), new, self._asked.spec_obj):
                # Those of its victims come when it is looked at.
                state.allocation_candidates = []
                self.states[state.uuid] = state
        return [uuid for uuid in hosts if uuid in self.states]

    def passing(self, trials):
        # Other servers on these hosts may be victims in a later trial.
        self.trees.devices(
            [server for trial in trials for server in trial.without],
            [server for trial in trials for server in self.servers_on(
                self.states[trial.host].nodename).values()])
        passed = self._preemption.host_manager.get_filtered_hosts(
            [self._on_trial(trial) for trial in trials],
            self._asked.spec_obj, 0)
        return {state.uuid for state in passed or ()
                if not host_states.mark_of(state).victims
                or self._may_end_on(state)}

    def _may_end_on(self, state):
        """Return whether victims may be evicted on a host.

        Nova runs no filters for a forced host (az:host), so its service and
        the operator's aggregate metadata are checked here.
        """
        return host_records.is_up(state.service) and (
            self._asked.rank.is_preemptible
            or 'PreemptibleFilter' not in (
                CONF.filter_scheduler.enabled_filters)
            or preemptible_filter.may_preempt(state))

    def order(self, trials, index):
        states = []
        for trial in trials:
            state = self.states[trial.host]
            host_states.set_mark(
                state, trial, self._on_trial(trial) if trial.without else None)
            states.append(state)
        return [state.uuid for state in self.sort(
            self._asked.spec_obj, states, index)]

    def room_age_s(self):
        return (float('inf') if self._room_at is None
                else self._preemption.monotonic() - self._room_at)

    @functools.cached_property
    def _query(self):
        return request_specs.provider_query(self._resources)

    def _take_a_look(self):
        self._look = _Look(self._asked.deadline.longest_notice_s(),
                           self._preemption.known.servers.by_node())

    def _on_trial(self, trial):
        state = self.states[trial.host]
        return host_states.on_trial(
            state, trial,
            self.trees.allocation_requests(
                trial.host, state.nodename, trial.without)
            if trial.without else state.allocation_candidates,
            self.trees.devices(trial.without))
