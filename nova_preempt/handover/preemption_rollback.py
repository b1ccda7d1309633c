# SPDX-License-Identifier: Apache-2.0
"""Rolls preemptions back, at once or after a crash.

A decision whose scheduler died was never answered: Nova's conductor has no
host for the server and will not build it. So the server's claim is removed,
and the victims that still exist get their allocations back. Victims that are
already being deleted or shelved are evicted; stopped ones are started. The
state of a victim is read again before each step.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
import contextlib
from typing import Any

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import eviction_actions as core_actions
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import closing_rules
from nova_preempt.db import connection
from nova_preempt.db import decisions
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import process_lease
from nova_preempt.handover import rollback_allocations
from nova_preempt.handover import victim_allocations

LOG = logging.getLogger(__name__)

# Calls after which a server leaves its host.
_LAST_CALLS = ('force_delete', 'shelve', 'shelve_offload')

# What is logged, by whether the server stays.
_OUTCOMES = {False: 'ending it', True: 'it stays without its allocation'}

# Separates the reason of a roll-back from that of its delay.
_NOT_YET = '; not yet: '

# Attempts if allocations change between reading and writing.
_TRIES = 5


class VictimBusy(nova_api.NovaError):
    """A task of Nova on a victim must finish first."""


class PreemptionRollback:
    """Rolls decisions back.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param nova: a NovaAPI
    :param decisions: a nova_preempt.db.Decisions
    :param owner: the nova_preempt.handover.process_lease.Lease of this process
    :param options: [preemption] of the configuration
    :param active: the uuids of decisions that a thread of this process works
        on
    :param why_paused: given an operation, returns why preemption for it is
        paused, '' if it is not
    """

    def __init__(self, placement: placement_api.Placement,
                 nova: nova_api.NovaAPI, decisions: decisions.Decisions,
                 owner: process_lease.Lease, options: cfg.ConfigOpts.GroupAttr,
                 active: Collection[str],
                 why_paused: Callable[[str], str] = lambda operation: ''
                 ) -> None:
        self._placement = placement
        self._nova = nova
        self._decisions = decisions
        self._owner = owner
        self._options = options
        self._active = active
        self._why_paused = why_paused
        self._allocations = rollback_allocations.RollbackAllocations(
            placement, nova, decisions)

    def repair(self) -> int:
        """Roll back orphaned decisions; return their number."""
        repaired = 0
        found = self._decisions.get_open_decisions()
        leases = self._owner.get_leases() if found else {}
        me = self._owner.name
        for decision, age_s in found:
            if not requester_liveness.is_orphan(
                    decision.uuid, decision.owner, age_s, me=me,
                    working_on=self._active, leases=leases,
                    timeout_s=process_lease.INTENT_TIMEOUT_S):
                continue
            if not self._move(decision, decision.status,
                              new_owner=self._owner.acquire(),
                              from_status=decision.status):
                continue  # another process has taken it over
            if self._repair(decision, me):
                repaired += 1
                metrics.REPAIRED.labels('decision').inc()
        return repaired

    def give_up(self) -> None:
        """Give up decisions of this process that no thread of it works on.

        For an engine that is not the leader: it has failed to roll them back,
        and does not repair() them. Other processes take them over once the
        calls of this one have arrived, see requester_liveness.is_orphan().
        The election of the leader reports a database that is away.
        """
        with contextlib.suppress(*connection.ERRORS):
            for decision, _ in self._decisions.get_open_decisions():
                if decision.owner == self._owner.name and (
                        decision.uuid not in self._active):
                    self._move(decision, decision.status, new_owner='',
                               from_status=decision.status)

    def _repair(self, decision: decisions.Decision, me: str) -> bool:
        """Roll back one decision; return whether it is closed."""
        if _NOT_YET in decision.reason or (
                decision.status == decisions.ROLLING_BACK):
            # An earlier roll-back has failed.
            LOG.info('Retrying the rollback of preemption %s.', decision.uuid)
            reason = decision.reason.partition(_NOT_YET)[0]
        else:
            LOG.warning('Preemption %s for server %s on host %s is still %s; '
                        'rolling it back.', decision.uuid,
                        decision.server_uuid, decision.host, decision.status)
            reason = ('it was not completed' if decision.owner in ('', me)
                      else 'its scheduler stopped')
        try:
            return self.roll_back(decision.uuid, reason)
        except db_exc.DBError:
            raise
        except Exception:
            # Go on with younger decisions.
            LOG.exception('Cannot roll back preemption %s yet.', decision.uuid)
            return False

    def roll_back(self, decision_uuid: str, reason: str) -> bool:
        """Roll back a decision of this process.

        :returns: True once it is closed. It remains open for the next repair
            of this process if Nova has a task on a victim, and without an
            owner if a service cannot be reached
        """
        decision = self._decisions.get_decision(decision_uuid)
        if not self._owner.keeps([decision]):
            return False
        if decision.status != decisions.INTENT and not self._move(
                decision, decisions.ROLLING_BACK, reason=reason):
            return False
        return self._roll_back(decision, reason)

    def reopen_and_roll_back(self, decision_uuid: str, reason: str) -> bool:
        """Roll back a decision that others may have rolled back as orphaned.

        They may have done so just before its claim was applied, so that the
        victims that they kept have lost their allocations again.

        :returns: as roll_back(); also False if there is no such decision
        """
        if not self._decisions.reopen(decision_uuid, self._owner.name):
            return False
        return self._roll_back(
            self._decisions.get_decision(decision_uuid), reason)

    def _roll_back(self, decision: decisions.Decision, reason: str) -> bool:
        try:
            status = self._undo(decision)
        except (placement_api.PlacementError, placement_api.Conflict,
                nova_api.NovaError, decisions.LostDecision) as exc:
            LOG.warning('Cannot roll back preemption %(uuid)s yet: %(exc)s',
                        {'uuid': decision.uuid, 'exc': exc})
            current = self._decisions.get_decision(decision.uuid)
            self._move(decision, current.status,
                       new_owner=None if isinstance(exc, VictimBusy) else '',
                       reason=f'{reason}{_NOT_YET}{exc}')
            return False
        metrics.ROLLED_BACK.inc()
        return self._move(decision, status, new_owner='', reason=reason)

    def _move(self, decision: decisions.Decision, status: str, **values: Any
              ) -> bool:
        return self._decisions.update_decision(decision.uuid, decision.owner,
                                               status, **values)

    def _undo(self, decision: decisions.Decision) -> str:
        """Restore the allocations; return the decision's final status.

        Idempotent.

        :raises Conflict: the same allocations keep changing. Nothing was
            written: a partial write could lose capacity that victims need
        """
        forced: dict[str, str] = {}
        for _ in range(_TRIES):
            consumers, there = self._read(decision)
            restored = self._allocations.restored(decision, there, consumers)
            released = self._allocations.released(decision)
            try:
                self._post([*released, *restored, *self._allocations.fence(
                    there, consumers, restored)])
                break
            except placement_api.Conflict as exc:
                conflict = exc
        else:
            if not conflict.is_capacity_conflict:
                raise conflict
            LOG.warning('Preemption %s cannot be rolled back in one '
                        'transaction: %s', decision.uuid, conflict)
            forced = self._undo_in_parts(decision)
        self._close_victims(decision, there, forced)
        if decision.status == decisions.INTENT and not restored + released:
            return decisions.ABORTED
        return decisions.ROLLED_BACK

    def _read(self, decision: decisions.Decision) -> tuple[
            dict[str, placement_api.Consumer], list[decisions.Victim]]:
        """Return ({victim uuid: its Consumer}, the victims on their host).

        Placement is read before Nova: a later move changes the generation.
        Servers that are being deleted or shelved count as on the host, for
        they need their allocations until that is done.

        :raises VictimBusy: Nova is moving a victim, which will need other
            allocations afterwards
        """
        victims = [victim for victim in decision.victims
                   if victim.status not in decisions.ENDED]
        consumers = {victim.server_uuid: self._placement.get_consumer(
            victim.server_uuid) for victim in victims}
        there = []
        for victim in victims:
            seen = self._nova.get(victim.server_uuid)
            if closing_rules.is_there(seen, decision.host):
                if closing_rules.is_moving(seen):
                    raise VictimBusy(f'server {victim.server_uuid} is still '
                                     f'being moved ({seen.task_state})')
                there.append(victim)
        return consumers, there

    def _close_victims(self, decision: decisions.Decision,
                       there: Collection[decisions.Victim],
                       forced: Mapping[str, str]) -> None:
        for victim in decision.victims:
            if victim.status not in decisions.ENDED:
                status = forced.get(victim.server_uuid) or self._close(
                    decision, victim, victim in there)
                self._decisions.update_victim(
                    decision.uuid, victim.server_uuid, status, decision.owner,
                    ended_at=None if status == decisions.ENDING
                    else timeutils.utcnow())

    def _close(self, decision: decisions.Decision, victim: decisions.Victim,
               was_there: bool) -> str:
        """Bring a victim into its final state; return its status."""
        seen = self._nova.get(victim.server_uuid)
        if seen is None and was_there:
            # It was deleted while its allocations were restored, and Nova may
            # have freed them before that.
            self._placement.delete_allocations(victim.server_uuid)
        status = closing_rules.closing_status(seen, decision.host,
                                              victim.asked)
        if status == decisions.SHELVED:
            # The same may have happened during its offload.
            victim_allocations.free_offloaded(self._placement, victim,
                                              self._nova.get)
        stays = status in (decisions.KEPT, decisions.MIGRATED) or (
            closing_rules.may_stay(seen, status))
        # An administrator may shelve it after our lock.
        if stays or status == decisions.SHELVED:
            victim_allocations.resume(self._decisions, self._nova, victim,
                                      seen)
        if victim.notice_s and stays and not self._nova.clear_notice(
                victim.server_uuid):
            # It is resized, for example. PreemptorOutcomes withdraws it later.
            return decisions.ENDING
        return status

    def _undo_in_parts(self, decision: decisions.Decision) -> dict[str, str]:
        """Restore victims one by one; evict those without capacity.

        :returns: {uuid: status} of the victims evicted here
        :raises NovaError, Conflict: it has to be retried; until then stand-ins
            hold the rest
        """
        forced: dict[str, str] = {}
        failure: Exception | None = None
        consumers, there = self._read(decision)
        for victim in there:
            try:
                try:
                    self._post(self._allocations.part(
                        decision, victim, consumers[victim.server_uuid]))
                except placement_api.Conflict as exc:
                    if not exc.is_capacity_conflict:
                        raise
                    status = self._end(decision, victim)
                    if status:
                        forced[victim.server_uuid] = status
            except (placement_api.Conflict, nova_api.NovaError) as exc:
                failure = exc
        if failure is not None:
            raise failure
        self._post(self._allocations.released(decision))
        return forced

    def _post(self, consumers: Sequence[placement_api.Consumer]) -> None:
        if consumers:
            self._placement.post_allocations(consumers)

    def _end(self, decision: decisions.Decision, victim: decisions.Victim
             ) -> str | None:
        """Evict a victim whose capacity is lost, unless it leaves by itself.

        One with an honored lock is kept, and one that was not asked to end
        yet, or while preemption is paused, as the call may not have been
        sent: the engine's repair evicts it, with notice, after the pause.

        :returns: its new status, None if it is unchanged
        :raises NovaError: it has to be retried
        """
        seen = self._nova.get(victim.server_uuid)
        if not closing_rules.is_there(seen, decision.host) or (
                closing_rules.is_leaving(seen)):
            return None
        uuid = victim.server_uuid
        locked = (not victim_allocations.is_locked_by_us(seen)
                  and eviction_policy.get_rules(self._options).counts(
                      seen.locked_by))
        stays = locked or not victim.asked or bool(
            self._why_paused(decision.operation))
        # These readings may have taken long.
        self._check_owner(decision)
        LOG.error('The space of preemptible server %s was taken before '
                  'preemption %s could be taken back; %s.', uuid,
                  decision.uuid, _OUTCOMES[stays])
        if victim.asked == core_actions.STOP and seen.vm_state == 'stopped':
            if not locked:
                self._nova.lock(uuid, victim_allocations.LOCKED)
            victim_allocations.leave_stopped(
                self._placement, uuid, lambda: self._check_owner(decision))
            return decisions.STOPPED
        if stays:
            return None
        action = victim.last_resort or core_actions.last_resort(
            victim.action, self._options.actions)
        call = core_actions.call(
            core_actions.leaving(action, seen.vm_state), seen.vm_state)
        # Whatever its state, a server can be shelved or deleted.
        assert call is not None
        # Its owner could not unshelve it with our lock.
        victim_allocations.unlock(self._nova, seen)
        self._check_owner(decision)
        getattr(self._nova, call)(uuid)
        if call not in _LAST_CALLS:
            raise VictimBusy(f'server {uuid} is still to be ended')
        return decisions.ENDING

    def _check_owner(self, decision: decisions.Decision) -> bool:
        """Return True if the decision is still ours.

        :raises LostDecision: it is not
        """
        if self._owner.keeps([decision]):
            return True
        raise decisions.LostDecision(decision.uuid)
