# SPDX-License-Identifier: Apache-2.0
"""Repairs inconsistencies of allocations, and warns of eviction loops."""

import datetime

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.cloud import placement_api
from nova_preempt.core import eviction_loops
from nova_preempt.db import decisions
from nova_preempt.db import preemption_queries
from nova_preempt.handover import allocation_audit

LOG = logging.getLogger(__name__)

_TEXTS = {
    eviction_loops.SERVER:
        'Server %s was evicted %s times within %s s.',
    eviction_loops.PROJECTS:
        'Projects %s evict each other\'s servers in turns, %s within %s s.'}


class AllocationRepair:
    """Repairs each problem that two audits in a row have found.

    :param clients: a nova_preempt.cloud.clients.Clients
    :param servers: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    :param decisions: a nova_preempt.db.Decisions
    :param ends: a nova_preempt.engine.standalone_evictions.Evictions
    :param audits: a nova_preempt.handover.allocation_audit.Audit
    """

    def __init__(self, clients, servers, decisions, ends, audits):
        self._clients = clients
        self._servers = servers
        self._decisions = decisions
        self._ends = ends
        self._audit = audits
        self._suspects = set()
        self._told = set()        # problems that cannot be repaired

    def clean(self):
        """Audit allocations; repair problems that two audits found."""
        problems = set(self._audit.look())
        found, self._suspects = self._suspects & problems, problems
        self._told &= self._suspects
        placement_api.for_each(sorted(found), self._repair)

    def _repair(self, problem):
        repaired = False
        if problem.kind in (allocation_audit.NO_ALLOCATION,
                            allocation_audit.PART_OF_ALLOCATION):
            repaired = self._allocate(problem.uuid)
        elif problem.kind == allocation_audit.NO_SERVER:
            repaired = self._free(problem.uuid)
        elif problem.kind == allocation_audit.ENDED_MIGRATION:
            # Its server is gone: nothing can confirm or revert it.
            self._clients.placement.delete_allocations(problem.uuid)
            repaired = True
        if repaired:
            LOG.warning('Repaired an inconsistency: %s.', problem.text)
            metrics.REPAIRED.labels(problem.kind).inc()
        elif problem not in self._told:
            self._told.add(problem)
            LOG.warning('Cannot repair an inconsistency: %s.', problem.text)

    def _allocate(self, uuid):
        """Allocate a server's resources; evict it if its host is full.

        A server with allocations of other providers too is not repaired, as
        those providers are not known.
        """
        server = self._servers.get(uuid)
        if server is None:
            return False
        try:
            resources, node_uuid, _ = instances.expected_allocation(
                self._clients.get_cells()[server.cell_uuid], server)
        except (instances.ServerNotOnHost, cell_calls.CellDown):
            return False          # deleted, moved, or its cell is down
        placement = self._clients.placement
        state = placement.get_provider_state(node_uuid)
        if state is None or not resources.keys() <= state.inventories.keys():
            return False
        consumer = placement.get_consumer(uuid)
        # A claim that Placement received late may have left a part there.
        left = {each.provider_uuid for each
                in self._decisions.get_decisions(victim_uuid=uuid)}
        has = {provider: item for provider, item
               in consumer.allocations.items() if provider not in left}
        try:
            placement.post_allocations([placement_api.Consumer(
                uuid, {**has, node_uuid: {'resources': resources}},
                consumer.generation, consumer.project_id or server.project_id,
                consumer.user_id or server.user_id)])
        except placement_api.Conflict as exc:
            # NOTE: on a generation conflict the next audit tries again.
            if (not exc.is_capacity_conflict or self._was_started(uuid)
                    or self._ends.why_not(server)):
                return False
            try:
                self._ends.begin(server, 'repair',
                                 'it ran without an allocation, and its '
                                 'space was taken')
            except (decisions.AlreadyEnding, exceptions.Paused):
                return False
        return True

    def _was_started(self, uuid):
        """Return whether an administrator has started a stopped victim."""
        return any(victim.server_uuid == uuid for _decision, victim
                   in self._decisions.get_victims(decisions.STOPPED))

    def _free(self, uuid):
        """Delete an allocation that a decision made or took.

        The audit reports no stand-in of an open decision.
        """
        if not any(self._decisions.get_decisions(**{name: uuid}) for name in (
                'server_uuid', 'victim_uuid', 'stand_in')):
            return False
        self._clients.placement.delete_allocations(uuid)
        return True


class EvictionLoopCheck:
    """Warns of servers and projects that evict each other in turns.

    :param database: a nova_preempt.db.Database
    :param clock: returns now, naive and UTC
    """

    def __init__(self, database, clock=timeutils.utcnow):
        self._db = database
        self._clock = clock
        self._known = ()          # as of the last look

    def look(self):
        found = eviction_loops.find(preemption_queries.get_turns(
            self._db, self._clock() - datetime.timedelta(
                seconds=eviction_loops.WINDOW_S)))
        for kind in _TEXTS:
            metrics.CYCLES.labels(kind).set(
                sum(cycle.kind == kind for cycle in found))
        for cycle in eviction_loops.grown(found, self._known):
            LOG.warning(_TEXTS[cycle.kind], ' and '.join(cycle.ids),
                        cycle.turns, eviction_loops.WINDOW_S)
        self._known = found
