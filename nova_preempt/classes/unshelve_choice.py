# SPDX-License-Identifier: Apache-2.0
"""Chooses which shelved servers of a class are unshelved.

Steps core.classes.class_unshelve_controller, and tells
nova_preempt.engine.victim_unshelving the uuids. Victims are chosen again when
the scheduler places a server.
"""

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.core.classes import class_unshelve_controller
from nova_preempt.core.controller_step import Step
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.handover import eviction_policy

LOG = logging.getLogger(__name__)

#: The operation by which such a server preempts.
OPERATION = 'unshelve'


class UnshelveChooser:
    """Chooses among shelved servers of a class.

    :param parts: a nova_preempt.handover.service_context.ServiceContext
    :param table: a core.classes.class_table.ClassTable
    :ivar period_s: the time between two passes that may preempt for them, and
        after which an unshelve is retried, in seconds
    """

    def __init__(self, parts, table):
        self.period_s = table.pass_period_s
        self._terms = class_unshelve_controller.Options(
            table.classes, table.pass_period_s)
        self._process = parts.process
        self._known = parts.known
        self._promised = parts.known.promised
        self._stuck = parts.handover.stuck

    def of_class(self, uuids):
        """Return which of these servers have a class."""
        return set(uuids).intersection(self._promised.claimants)

    def step(self, waiting, most, room, memory, now_us):
        """See core.eviction.return_controller.Observed.choose().

        :param room: as there
        """
        step = class_unshelve_controller.step(
            self._terms, class_unshelve_controller.Observed(
                waiting, most, self._promised.claimants, room,
                self._may_preempt, self._evictable), memory, now_us)
        if step.memory != memory:
            self._tell(len(waiting), step.intents)
        return Step(tuple(each.uuid for each in step.intents), step.memory)

    def _tell(self, waiting, placed):
        metrics.CLASS_PASSES.inc()
        LOG.info('A pass over %(waiting)s waiting servers of a class: '
                 '%(room)s fit, for %(ends)s victims may be evicted.',
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
        # The cache replaces its dictionaries, and never changes them.
        by_node = known.servers.by_node()
        return class_unshelve_controller.EvictableServers(
            ((listed.uuid, provider, by_node.get(listed.name, {}).values())
             for listed, provider, _ in known.providers.look(
                 (), self.period_s) if provider is not None),
            self._promised.current(), known.policy(), known.budgets.read(),
            # Victims that are being evicted, or whose eviction failed lately.
            self._stuck() | {
                victim.server_uuid for decision in
                self._process.decisions.get_decisions(statuses=decisions.OPEN)
                for victim in decision.victims})
