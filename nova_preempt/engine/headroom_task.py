# SPDX-License-Identifier: Apache-2.0
"""Keeps headroom free by evicting preemptible servers ahead of demand.

A normal server then fits at once, and victims for the next one have their
notice meanwhile.
"""

import contextlib

from oslo_log import log as logging

from nova_preempt.cloud import placement_api
from nova_preempt.core import requester_liveness
from nova_preempt.core import times
from nova_preempt.core.eviction import headroom_controller
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.handover import victim_allocations

LOG = logging.getLogger(__name__)

HEADROOM = requester_liveness.HEADROOM


class HeadroomKeeper:
    """Evicts preemptible servers until enough capacity is free.

    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param known: a nova_preempt.handover.service_context.CloudCaches
    :param stuck: returns the uuids of victims whose eviction failed lately
    :param ends: a nova_preempt.engine.standalone_evictions.Evictions
    """

    def __init__(self, process, known, stuck, ends):
        self._process = process
        self._known = known
        self._stuck = stuck
        self._ends = ends

    def keep(self):
        """Give notice to the cheapest servers that restore the headroom."""
        if self._process.pauses.why(pauses.PREEMPTION):
            return
        # NOTE: read before the groups: a server that has ended since may
        # still be in them.
        before = self._ends.ending()
        placement_api.for_each(
            ((group, end) for group in self._known.headroom.look()
             for end in self.choose(group, before)), self._end)

    def choose(self, group, before=()):
        """Return the core's evictions for a group of hosts.

        :param before: the db.Victims being evicted before it was read
        """
        held = {uuid for provider in group.nodes.values()
                for uuid in provider.allocations}
        # And again: more evictions may have begun.
        ending = {
            # Without an allocation its capacity counts as free already.
            victim.server_uuid: victim_allocations.resources(
                victim.allocations) if victim.server_uuid in held else {}
            for victim in (*before, *self._ends.ending())}
        return headroom_controller.step(
            headroom_controller.Observed(group, ending, self._candidates),
            None, times.microseconds(self._process.clock())).intents

    def _end(self, chosen):
        group, end = chosen
        LOG.info('%s lacks %s of its headroom.', group.name, end.missing)
        with contextlib.suppress(decisions.AlreadyEnding,
                                 decisions.OverBudget):
            self._ends.begin(end.server, HEADROOM,
                             f'{group.name} has too little capacity free',
                             cost_us=end.cost_us, within_budgets=True)

    def _candidates(self):
        known = self._known
        return headroom_controller.Candidates(
            known.servers.servers(), known.policy(), known.budgets.read(),
            self._stuck() | self._process.decisions.get_ending().keys())
