# SPDX-License-Identifier: Apache-2.0
"""Records the outcome of preemptions for the requesting servers.

Evicted victims do not mean that the request was served: the conductor may have
timed out, or the host may have failed to build the server. The outcome is in
the record of a preemption and in a metric.
"""

from collections.abc import Callable, Collection, Mapping

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

    def __init__(
            self, db: db.Database, clients: clients.Clients,
            look: Callable[..., tuple[Mapping[str, ObservedServer],
                                      Collection[str]]] = instances.get_many
    ) -> None:
        self._db = db
        self._clients = clients
        # (decision, server) of victims seen alive
        self._alive: set[tuple[str, str]] = set()
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
        were_alive, self._alive = self._alive, set()
        for decision_uuid, uuid in leaving:
            if uuid not in unread:
                self._follow(decision_uuid, uuid, servers.get(uuid),
                             (decision_uuid, uuid) in were_alive)

    def _follow(self, decision_uuid: str, uuid: str,
                server: ObservedServer | None, was_alive: bool) -> None:
        """Record the status of a victim that outlived its decision."""
        victim = next(each for each in self._decisions.get_decision(
            decision_uuid).victims if each.server_uuid == uuid)
        status = closing_rules.last_status(
            None if server is None or server.deleted else server, victim.asked)
        if status == decisions.KEPT and not was_alive:
            self._alive.add((decision_uuid, uuid))
            return
        if status is None:
            return
        try:
            if status == decisions.SHELVED:
                victim_allocations.free_offloaded(
                    self._clients.placement, victim, self._clients.nova.get)
            elif status == decisions.KEPT and victim.notice_s and not (
                    self._clients.nova.clear_notice(uuid)):
                return
        except (nova_api.NovaError, placement_api.PlacementError,
                placement_api.Conflict) as exc:
            LOG.warning('Cannot close victim %(uuid)s yet, which is '
                        '%(status)s: %(exc)s',
                        {'uuid': uuid, 'status': status, 'exc': exc})
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
            LOG.warning('%(number)d preemptible servers were evicted, but '
                        'preemption %(uuid)s for server %(server)s is '
                        '%(status)s.',
                        {'number': item.victims_in_vain, 'uuid': item.uuid,
                         'server': item.server_uuid,
                         'status': found or item.status})
