# SPDX-License-Identifier: Apache-2.0
"""Space that is kept free ahead of demand.

A normal server then finds room at once, and what gives way for the next one
has its notice meanwhile.
"""

import contextlib

from oslo_log import log as logging

from nova_preempt.cloud import placement_api
from nova_preempt.core import requester_liveness
from nova_preempt.core import times
from nova_preempt.core.eviction import headroom_controller
from nova_preempt.db import decisions
from nova_preempt.db import pauses

LOG = logging.getLogger(__name__)

HEADROOM = requester_liveness.HEADROOM


class HeadroomKeeper:
    """Ends preemptible servers until there is enough free.

    :param process: a nova_preempt.handover.service_context.Process
    :param known: a nova_preempt.handover.service_context.Knowledge
    :param stuck: returns the uuids of victims that lately did not end
    :param ends: a nova_preempt.engine.evictions.Evictions
    """

    def __init__(self, process, known, stuck, ends):
        self._process = process
        self._known = known
        self._stuck = stuck
        self._ends = ends

    def keep(self):
        """Give notice to as few and cheap servers as headroom needs."""
        if self._process.pauses.why(pauses.PREEMPTION):
            return
        # Before the groups: who has gone since may be in them.
        before = self._ends.ending()
        placement_api.for_each(
            ((group, end) for group in self._known.headroom.look()
             for end in self._choose(group, before)), self._end)

    def _choose(self, group, before):
        """Return whom to end in a group of hosts, now.

        :param before: the db.Victims that were ending before it was read
        """
        held = {uuid for provider in group.nodes.values()
                for uuid in provider.allocations}
        # Now, too: more may have begun to.
        ending = {victim.server_uuid: {
            uuid: item['resources']
            for uuid, item in victim.allocations.items()}
            # Else what it had is free already.
            if victim.server_uuid in held else {}
            for victim in (*before, *self._ends.ending())}
        return headroom_controller.step(
            headroom_controller.Observed(group, ending, self._candidates),
            None, times.microseconds(self._process.clock())).intents

    def _end(self, chosen):
        group, end = chosen
        LOG.info('%(group)s lacks %(missing)s of its headroom.',
                 {'group': group.name, 'missing': end.missing})
        with contextlib.suppress(decisions.AlreadyEnding,
                                 decisions.OverBudget):
            self._ends.begin(end.server, HEADROOM,
                             f'{group.name} has too little space free',
                             cost_us=end.cost_us, within_budgets=True)

    def _candidates(self):
        known = self._known
        return headroom_controller.Candidates(
            known.servers.servers(), known.policy(), known.budgets.read(),
            self._stuck() | {
                victim.server_uuid for decision in
                self._process.decisions.get_decisions(statuses=decisions.OPEN)
                for victim in decision.victims})
