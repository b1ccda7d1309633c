# SPDX-License-Identifier: Apache-2.0
"""Evicts servers at their maximum run time; deletes stopped victims later."""

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import eligibility
from nova_preempt.core import times
from nova_preempt.core.eviction import expiry_controller
from nova_preempt.core.eviction import stopped_victim_controller
from nova_preempt.db import decisions
from nova_preempt.db import pauses
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import victim_allocations

LOG = logging.getLogger(__name__)

MAXIMUM_RUNTIME = 'maximum_runtime'

_TOLD = {
    stopped_victim_controller.NextAction.GIVE_BACK:
        'Server %(uuid)s, which was stopped as a victim, was started, and '
        'host %(host)s lacks capacity for it: it runs without its allocation.',
    stopped_victim_controller.NextAction.NOT_OURS:
        'Server %(uuid)s, which was stopped as a victim, was unlocked, or '
        'locked for another reason: it is not deleted.',
}


class ServerExpiry:
    """Evicts servers and deletes stopped victims whose time is over.

    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param servers: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    :param clients: a nova_preempt.cloud.clients.Clients
    :param ends: a nova_preempt.engine.standalone_evictions.Evictions
    :param leads: returns whether this engine is the leader
    """

    def __init__(self, process, servers, clients, ends, leads=lambda: True):
        self._process = process
        self._servers = servers
        self._clients = clients
        self._ends = ends
        self._leads = leads
        self._told = set()        # (server uuid, Intent)

    def end_old_servers(self):
        """Give notice to servers that have reached their maximum run time."""
        process = self._process
        if process.pauses.why(pauses.PREEMPTION):
            return
        actions = process.options.actions
        step = expiry_controller.step(expiry_controller.Observed(
            self._servers.servers(), process.options.maximum_runtime_s,
            lambda server: eviction_policy.get_action(server, actions)),
            None, times.microseconds(process.clock()))
        placement_api.for_each(step.intents, self._end)

    def _end(self, end):
        try:
            self._ends.begin(end.server, MAXIMUM_RUNTIME,
                             f'it has run for its {end.limit_s} s',
                             restore=False)
        except decisions.AlreadyEnding:
            LOG.debug('Server %s is already being evicted.', end.server.uuid)

    def delete_stopped(self):
        """Delete victims that were stopped stop_retention_s ago.

        A victim that somebody has started gets its allocation back, also
        while preemption is paused.
        """
        paused = self._process.pauses.why(pauses.PREEMPTION)
        retention_s = self._process.options.stop_retention_s
        victims = self._process.decisions.get_victims(decisions.STOPPED)
        uuids = {victim.server_uuid for _decision, victim in victims}
        self._told = {item for item in self._told if item[0] in uuids}
        for decision_uuid, victim in victims:
            kept = paused or stopped_victim_controller.is_kept(
                times.microseconds(victim.ended_at), retention_s, _now_us())
            # NOTE: Nova is not asked about victims that are kept anyway.
            if kept and not self._runs(victim.server_uuid):
                continue
            try:
                self._look_after(decision_uuid, victim, retention_s)
            except (nova_api.NoAnswer, placement_api.NoAnswer):
                raise
            except (nova_api.NovaError, placement_api.PlacementError,
                    placement_api.Conflict) as exc:
                LOG.warning('Server %s, which was stopped as a victim, cannot '
                            'be deleted or get its allocation back: %s',
                            victim.server_uuid, exc)

    def _runs(self, uuid):
        """Return whether a server runs, by the cache of servers."""
        server = self._servers.get(uuid)
        return server is not None and server.vm_state in eligibility.RUNNING

    def _look_after(self, decision_uuid, victim, retention_s):
        # NOTE: before the look, as the database may be slow. It is kept if it
        # is no longer preemptible, too.
        kept = bool(self._servers.get(victim.server_uuid) is None
                    or self._process.pauses.why(pauses.PREEMPTION)
                    or not self._leads())
        server = self._clients.nova.get(victim.server_uuid)
        seen = stopped_victim_controller.Observed(
            server, times.microseconds(victim.ended_at), retention_s,
            server is not None and victim_allocations.is_locked_by_us(server),
            kept)
        for found in stopped_victim_controller.step(
                seen, None, _now_us()).intents:
            self._carry_out(found, decision_uuid, victim, server)

    def _carry_out(self, found, decision_uuid, victim, server):
        nova, uuid = self._clients.nova, victim.server_uuid
        if found is stopped_victim_controller.NextAction.GIVE_BACK:
            self._give_back(decision_uuid, victim, server)
        elif found is stopped_victim_controller.NextAction.DELETE:
            LOG.info('Deleting server %s, which was stopped as a victim.',
                     uuid)
            nova.force_delete(uuid)
        elif found is stopped_victim_controller.NextAction.NOT_OURS:
            self._tell(found, uuid, server.host)
        else:
            if server:                # its owner may unshelve it
                victim_allocations.unlock(nova, server)
            # GONE and SHELVED have the values of the statuses.
            self._process.decisions.update_victim(
                decision_uuid, uuid, found.value)

    def _tell(self, found, uuid, host):
        """Log it once: an administrator may keep it so for long."""
        if (uuid, found) not in self._told:
            self._told.add((uuid, found))
            LOG.warning(_TOLD[found], {'uuid': uuid, 'host': host})

    def _give_back(self, decision_uuid, victim, server):
        uuid = victim.server_uuid
        if not victim_allocations.restore_stopped(
                self._clients.placement, self._clients.nova, victim, server):
            self._tell(stopped_victim_controller.NextAction.GIVE_BACK, uuid,
                       server.host)
            return
        self._process.decisions.update_victim(
            decision_uuid, uuid, decisions.KEPT, ended_at=timeutils.utcnow())
        LOG.info('Server %s, which was stopped as a victim, was started: it '
                 'has its allocation back.', uuid)


def _now_us():
    return times.microseconds(timeutils.utcnow())
