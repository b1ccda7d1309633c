# SPDX-License-Identifier: Apache-2.0
"""Records the outcome of preemptions for the requesting servers.

Evicted victims do not mean that the request was served: the conductor may have
timed out, or the host may have failed to build the server. The outcome is in
the record of a preemption and in a metric.
"""

from collections.abc import Callable
import itertools
import time
from typing import Any

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt import metrics
from nova_preempt.cloud import clients
from nova_preempt.cloud import instances
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core.eviction import closing_rules
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.db import decisions
from nova_preempt.db import pending_outcomes
from nova_preempt.handover import victim_allocations

LOG = logging.getLogger(__name__)


class PreemptorOutcomes:
    """Records outcomes of decisions, and victims that end later.

    :param db: a nova_preempt.db.Database
    :param clients: a nova_preempt.cloud.clients.Clients
    :param look: see nova_preempt.cloud.instances.get_many
    """

    def __init__(self, db: db.Database, clients: clients.Clients,
                 look: Callable[..., Any] = instances.get_many,
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._clients = clients
        self._monotonic = monotonic
        # {(decision, ENDING victim): since when it is seen without a task}
        self._since: dict[tuple[str, str], float] = {}
        self._decisions = decisions.Decisions(db)
        self._look = look

    def note(self) -> None:
        """Record the outcomes that are known by now."""
        unknown = pending_outcomes.get_unresolved(self._db)
        leaving = pending_outcomes.get_ending(self._db)
        servers, unread = self._look(
            {item.server_uuid for item in unknown if item.is_placed}
            | {uuid for _decision, uuid in leaving}, ['flavor'], deleted=True)
        # No server was to be placed by these decisions.
        pending_outcomes.set_no_outcome(self._db, [
            item.uuid for item in unknown
            if not item.is_placed and not item.victims_in_vain])
        for item in unknown:
            if item.is_placed and item.server_uuid not in unread:
                found = closing_rules.preemptor_outcome(
                    servers.get(item.server_uuid), item.host, item.operation,
                    item.flavor)
                if found is not None:
                    self._set(item, found)
            elif item.victims_in_vain and not item.is_placed:
                self._set(item, '')
        now, known, self._since = self._monotonic(), self._since, {}
        for victim in leaving:
            server = servers.get(victim[1])
            if server is not None and server.task_state is None:
                self._since[victim] = known.get(victim, now)
            if victim[1] not in unread:
                self._follow(victim[0], victim[1], server,
                             now - self._since.get(victim, now))

    def _follow(self, decision_uuid: str, uuid: str,
                server: ObservedServer | None, unchanged_s: float) -> None:
        """Record the status of a victim that outlived its decision."""
        victim, *others = (
            victim for each in itertools.dropwhile(
                lambda each: each.uuid != decision_uuid,
                self._decisions.get_decisions(victim_uuid=uuid))
            for victim in each.victims if victim.server_uuid == uuid)
        # How later preemptions of it have ended, unless they kept it. One that
        # is open may still keep it.
        later = {other.status for other in others} - {decisions.KEPT}
        status = closing_rules.last_status(
            None if server is None or server.deleted else server, victim.asked,
            unchanged_s)
        if status is None or not closing_rules.have_left(later):
            return
        nova, placement = self._clients.nova, self._clients.placement
        try:
            if status == decisions.SHELVED:
                victim_allocations.free_offloaded(placement, victim, nova.get)
            if status != decisions.GONE and not later:
                victim_allocations.resume(self._decisions, nova, victim,
                                          nova.get(uuid))
            if status == decisions.KEPT and not later and victim.notice_s and (
                    not nova.clear_notice(uuid)):
                return
        except (nova_api.NovaError, placement_api.PlacementError,
                placement_api.Conflict) as exc:
            LOG.warning('Cannot close victim %s yet, which is %s: %s', uuid,
                        status, exc)
            return
        self._decisions.update_victim(decision_uuid, uuid, status,
                                      ended_at=timeutils.utcnow())

    def _set(self, item: pending_outcomes.PendingOutcome, found: str) -> None:
        if not pending_outcomes.set_outcome(self._db, item.uuid, found):
            return
        if found:
            metrics.OUTCOMES.labels(item.operation, found).inc()
        if item.victims_in_vain and (found == closing_rules.FAILED or (
                item.server_uuid and item.status == decisions.ROLLED_BACK)):
            metrics.IN_VAIN.inc(item.victims_in_vain)
            LOG.warning('%d preemptible servers were evicted, but preemption '
                        '%s for server %s is %s.', item.victims_in_vain,
                        item.uuid, item.server_uuid, found or item.status)
