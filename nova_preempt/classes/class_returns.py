# SPDX-License-Identifier: Apache-2.0
"""Choose which servers of a class return next, and when others end for them.

Carries out core.classes.class_return_controller for
nova_preempt.engine.victim_returns.
"""

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.core.classes import class_return_controller
from nova_preempt.core.controller import Step
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.handover import eviction_policy

LOG = logging.getLogger(__name__)

#: How they come back.
OPERATION = 'unshelve'


class Returning:
    """Chooses among shelved servers of a class.

    :param parts: a nova_preempt.handover.service_context.Parts
    :param table: a core.classes.class_table.Table
    :ivar period_s: how often others may end for them, in seconds, and after
        how long one that was asked to come is asked again
    """

    def __init__(self, parts, table):
        self.period_s = table.pass_period_s
        self._terms = class_return_controller.Terms(
            table.classes, table.pass_period_s)
        self._process = parts.process
        self._known = parts.known
        self._promised = parts.known.promised
        self._stuck = parts.handover.stuck

    def of_class(self, uuids):
        """Those of these servers that are of a class."""
        return set(uuids).intersection(self._promised.claimants)

    def step(self, waiting, most, room, memory, now_us):
        """See core.eviction.return_controller.Observed.choose().

        :param room: see the same
        """
        step = class_return_controller.step(
            self._terms, class_return_controller.Observed(
                waiting, most, self._promised.claimants, room,
                self._may_preempt, self._evictable), memory, now_us)
        if step.memory != memory:
            self._tell(len(waiting), step.intents)
        return Step(tuple(each.uuid for each in step.intents), step.memory)

    def _tell(self, waiting, placed):
        metrics.CLASS_PASSES.inc()
        LOG.info('A pass over %(waiting)s servers of a class that wait: '
                 '%(room)s have room, for %(ends)s others may end.',
                 {'waiting': waiting,
                  'room': sum(not item.victims for item in placed),
                  'ends': sum(bool(item.victims) for item in placed)})

    def _may_preempt(self):
        return self._promised.is_recent and not (
            self._process.pauses.why(pauses.PREEMPTION)
            or eviction_policy.why_not_allowed(
                self._process.options, lambda: OPERATION))

    def _evictable(self):
        known = self._known
        # They are replaced in the background, never changed.
        by_node = known.servers.by_node()
        return class_return_controller.Evictable(
            ((listed.uuid, provider, by_node.get(listed.name, {}).values())
             for listed, provider, _ in known.providers.look(
                 (), self.period_s) if provider is not None),
            self._promised.current(), known.policy(), known.budgets.read(),
            # Those that end already, or lately did not.
            self._stuck() | {
                victim.server_uuid for decision in
                self._process.decisions.get_decisions(statuses=decisions.OPEN)
                for victim in decision.victims})
