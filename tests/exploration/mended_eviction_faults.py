# SPDX-License-Identifier: Apache-2.0
"""Mended faults of evictions and roll-backs, which can be put back."""

import dataclasses
from unittest import mock

import sqlalchemy as sa

from nova_preempt import pause_reader
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import eligibility
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import closing_rules
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import DELETING
from nova_preempt.db import decision_owners
from nova_preempt.db import decisions
from nova_preempt.db import models
from nova_preempt.engine import repairs
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import eviction_observer
from nova_preempt.handover import handover
from nova_preempt.handover import preemption_rollback
from nova_preempt.handover import process_lease
from nova_preempt.handover import requester_reader
from nova_preempt.handover import rollback_allocations
from nova_preempt.handover import victim_allocations
from nova_preempt.handover import victim_evictor
from nova_preempt.scheduler import scheduling_pass
from tests.exploration.mended_fault import fault
from tests.exploration.mended_fault import returns
from tests.exploration.mended_fault import together

# -- claims and hand-overs -------------------------------------------------

@fault(28, 'space_is_held_first')
def ends_without_claim():
    """Victims end without a check that their space is still claimed."""
    return mock.patch.object(
        eviction_observer.EvictionObserver, 'look_at_claim',
        lambda self, unwanted: self._facts.update(is_held=True))


@fault(6, 'stand_ins_are_open')
def lost_claim_is_refused():
    """A claim whose answer is lost counts as refused."""
    def take(self, decision, changes):
        try:
            self._placement.post_allocations(changes)
        except (placement_api.Conflict, placement_api.PlacementError) as exc:
            self._decisions.update_decision(
                decision.uuid, decision.owner, decisions.ABORTED,
                reason=str(exc))
            raise placement_api.Conflict(str(exc)) from exc
    return mock.patch.object(allocation_claim.Claims, '_take', take)


@fault(6, 'guests_keep_their_space')
def lost_hand_over_is_done():
    """A hand-over counts as made though its answer is an error."""
    return returns(allocation_claim.Claims, '_is_handed_over', True)


@fault(14, 'victims_end_once')
def victims_of_two_decisions():
    """Two decisions at once take the same victim."""
    return returns(decisions.Decisions, '_check_ending', None)


@fault(10, 'done_is_done')
def stuck_victims_have_ended():
    """A victim that does not end in time counts as ended."""
    def settle(self, found, ended, limit=None):
        return real(self, found, dataclasses.replace(
            ended, stuck=frozenset()), limit)
    real = handover.Handover.settle
    return mock.patch.object(handover.Handover, 'settle', settle)


# -- who owns a decision ---------------------------------------------------

def _victims_of_any_owner():
    """A patch: records of victims were not checked for their owner then."""
    def update(self, decision_uuid, server_uuid, status, owner=None, **values):
        return real(self, decision_uuid, server_uuid, status, **values)
    real = decisions.Decisions.update_victim
    return mock.patch.object(decisions.Decisions, 'update_victim', update)


@fault(253, 'acts_have_a_decision', 'interruptions')
def acts_without_lease():
    """A process goes on with its decisions after its lease is over."""
    return returns(process_lease.Lease, 'keeps', True)


@fault(1, 'fitting_requests_are_served')
def leases_of_others_are_over():
    """A process takes over the decisions of processes that live."""
    def get_leases(self):
        return {name: name == self.name for name in real(self)}
    real = process_lease.Lease.get_leases
    return mock.patch.object(process_lease.Lease, 'get_leases', get_leases)


@fault(147, 'acts_have_a_decision', 'interruptions')
def expired_lease_is_renewed():
    """A process renews a lease that is over, as others take over."""
    def renew(self):
        with self._db.writer() as session:
            session.execute(decision_owners.sa.update(
                decision_owners.models.Owner).where(
                    decision_owners.models.Owner.name == self._name).values(
                        expires_at=decision_owners.database_clock.SecondsFromNow(
                            self.lease_s)))
        self._until = self._monotonic() + self.lease_s
    return mock.patch.object(process_lease.Lease, 'renew', renew)


@fault(30, 'fitting_requests_are_served')
def work_of_threads_is_orphaned():
    """A process rolls back decisions that its own threads work on."""
    def is_orphan(*args, working_on, **kwargs):
        return real(*args, working_on=(), **kwargs)
    real = requester_liveness.is_orphan
    return mock.patch.object(requester_liveness, 'is_orphan', is_orphan)


@fault(22, 'victims_are_as_recorded', 'interruptions')
def updates_without_owner():
    """A process changes decisions that another one has taken over."""
    def update(self, uuid, owner, status, **values):
        found = self.get_decision(uuid)
        return real(self, uuid, found.owner, status, **values)
    real = decisions.Decisions.update_decision
    return together(
        mock.patch.object(decisions.Decisions, 'update_decision', update),
        _victims_of_any_owner())


@fault(8, 'victims_are_as_recorded', 'interruptions')
def late_records_are_written():
    """A slow process records a victim over what its successor recorded."""
    return _victims_of_any_owner()


# -- the end of victims ----------------------------------------------------

@fault(3, 'notices_are_kept')
def notices_are_cut_short():
    """Victims end before their notice is over."""
    return returns(eviction_controller, 'notice_is_over', True)


@fault(6, 'guests_keep_their_space')
def deletions_count_as_done():
    """A victim counts as gone once Nova has begun to delete it."""
    def is_gone(seen, terms):
        return real(seen, terms) or seen.task_state in DELETING
    real = eviction_steps.is_gone
    return mock.patch.object(eviction_steps, 'is_gone', is_gone)


@fault(24, 'notices_are_kept')
def notices_start_early():
    """A notice counts from before all guests have been told."""
    def give(self, intent):
        began_us = self._now_us()
        real(self, intent)
        for uuid in intent.victims:
            self.memory = self.memory.note(uuid, notice_until_us=began_us + (
                self._victims[uuid][1].notice_s * SECOND))
    real = victim_evictor.EvictionRun._give_notice
    return mock.patch.dict(victim_evictor._ACTS,
                           {eviction_values.GiveNotice: give})


@fault(417, 'notices_are_kept')
def ends_without_notice():
    """Victims that got no notice end once their host is back."""
    def give(*args):
        step = real(*args)
        return dataclasses.replace(step, memory=dataclasses.replace(
            step.memory, unwarned=frozenset()))
    real = eviction_controller._give_notice
    return mock.patch.object(eviction_controller, '_give_notice', give)


@fault(2, 'space_is_held_first', 'delays')
def old_readings_count():
    """A victim ends by a reading of Nova's records that is old."""
    return returns(eviction_controller, 'is_fresh', True)


@fault(6, 'pauses_are_kept')
def pauses_are_ignored():
    """Victims end while preemption is paused."""
    return returns(pause_reader.PauseReader, 'why', '')


@fault(70, 'locks_are_kept')
def locks_during_notice_are_ignored():
    """A victim ends though it was locked during its notice."""
    return returns(eviction_steps, '_is_kept_by_lock', False)


@fault(10, 'ends_are_needed')
def gone_servers_are_wanted():
    """Victims end for a server that was deleted meanwhile."""
    return returns(requester_reader.RequesterReader, 'is_gone', False)


@fault(25, 'guests_keep_their_space')
def stopped_victims_are_not_locked():
    """The space of a stopped victim is given away before it is locked."""
    def end(*args):
        step = real(*args)
        if step.what is eviction_steps.StepKind.LOCK:
            return eviction_steps.VictimStep(
                eviction_steps.StepKind.LEAVE_STOPPED, step.detail)
        return step
    real = eviction_steps._end
    return mock.patch.object(eviction_steps, '_end', end)


@fault(369, 'guests_keep_their_space')
def starts_before_a_lock_are_missed():
    """A stopped victim counts as such by a reading before its lock."""
    return mock.patch.object(eviction_steps, 'LOCKED_S', -1000.0)


@fault(16, 'notices_are_withdrawn', 'reservations')
def migrated_victims_keep_their_notice():
    """A victim that was migrated keeps its notice and our lock."""
    return mock.patch.object(victim_evictor, 'eviction_status',
                             mock.Mock(MIGRATED='never'))


@fault(11, 'minimum_runtimes_are_kept')
def minimum_runtimes_are_ignored():
    """Servers end before the run time that was promised to them."""
    return returns(eligibility.Rules, 'promised_s', 0)


# -- roll-backs ------------------------------------------------------------

def _nothing_is_freed_later():
    """A patch: no audit freed the allocations of no server then."""
    return returns(repairs.AllocationRepair, '_free', False)


@fault(56, 'nothing_is_left_open')
def intents_are_left():
    """No process repairs a decision whose owner died while claiming."""
    def get(self):
        return [(each, age_s) for each, age_s in real(self)
                if each.status != decisions.INTENT]
    real = decisions.Decisions.get_open_decisions
    return mock.patch.object(decisions.Decisions, 'get_open_decisions', get)


@fault(4, 'stand_ins_are_open')
def late_claims_arrive():
    """A claim that arrives after its roll-back takes the space."""
    return returns(rollback_allocations.RollbackAllocations, 'fence', [])


@fault(36, 'consumers_exist', 'interruptions')
def refused_servers_keep_space():
    """A roll-back leaves the space to the server that got it."""
    return together(
        returns(rollback_allocations.RollbackAllocations,
                '_released_by_server', []), _nothing_is_freed_later())


@fault(7, 'guests_keep_their_space', 'interruptions')
def roll_back_in_steps():
    """A roll-back frees the space before the victims have it again."""
    def post(self, consumers):
        for each in consumers:
            self._placement.post_allocations([each])
    return mock.patch.object(preemption_rollback.PreemptionRollback, '_post',
                             post)


@fault(148, 'kept_run_again')
def kept_victims_stay_stopped():
    """A victim that was stopped and is kept is not started again."""
    return returns(victim_allocations, 'resume', None)


@fault(8, 'kept_run_again', 'returns')
def kept_victims_stay_off():
    """A victim that a failed shelve has switched off is not started again."""
    return returns(nova_api.NovaAPI, 'is_left_off', False)


@fault(3, 'notices_are_withdrawn')
def notices_are_left():
    """A victim that is kept has its notice for ever."""
    return returns(nova_api.NovaAPI, 'clear_notice', True)


@fault(157, 'notices_are_withdrawn')
def withdrawals_are_not_retried():
    """A notice stays where Nova is away for the call that withdraws it."""
    def clear(self, *args):
        try:
            return real(self, *args)
        except nova_api.NovaError:
            return True
    real = nova_api.NovaAPI.clear_notice
    return mock.patch.object(nova_api.NovaAPI, 'clear_notice', clear)


@fault(241, 'guests_keep_their_space', 'interruptions')
def moving_victims_are_rolled_back():
    """A victim gets its space back while Nova moves it."""
    return returns(closing_rules, 'is_moving', False)


@fault(48, 'guests_keep_their_space')
def leaving_victims_are_gone():
    """A victim that is being deleted counts as gone in a roll-back."""
    def is_there(seen, host):
        return real(seen, host) and not closing_rules.is_leaving(seen)
    real = closing_rules.is_there
    return mock.patch.object(closing_rules, 'is_there', is_there)


@fault(12, 'consumers_exist', 'interruptions')
def deleted_victims_get_space():
    """A victim that was deleted during the roll-back keeps its space."""
    def close(self, decision, victim, was_there):
        return real(self, decision, victim, False)
    real = preemption_rollback.PreemptionRollback._close
    return together(
        mock.patch.object(preemption_rollback.PreemptionRollback, '_close',
                          close), _nothing_is_freed_later())


@fault(234, 'consumers_exist')
def offloaded_victims_keep_space():
    """A victim that was offloaded during the roll-back keeps its space."""
    return returns(victim_allocations, 'free_offloaded', None)


@fault(396, 'locks_are_kept', 'interruptions')
def locked_victims_end_in_roll_back():
    """A locked victim ends as its space was taken before the roll-back."""
    return mock.patch.object(
        preemption_rollback, 'eviction_policy', mock.Mock(
            get_rules=lambda options: mock.Mock(counts=lambda by: False)))


@fault(208, 'notices_are_kept', 'interruptions')
def roll_backs_end_victims_at_once():
    """A roll-back ends a victim without space that has had no notice."""
    def end(self, decision, victim):
        return real(self, decision, dataclasses.replace(
            victim, asked=victim.asked or 'force_delete'))
    real = preemption_rollback.PreemptionRollback._end
    return mock.patch.object(preemption_rollback.PreemptionRollback, '_end',
                             end)


@fault(10, 'notices_are_withdrawn')
def late_notices_stay():
    """A notice stays that was written after the decision was rolled back."""
    def clear(self, uuid, decision_uuid=''):
        return bool(decision_uuid) or real(self, uuid)
    real = nova_api.NovaAPI.clear_notice
    return mock.patch.object(nova_api.NovaAPI, 'clear_notice', clear)


@fault(138, 'victims_end_once', 'interruptions')
def reopened_decisions_take_victims():
    """A late claim's roll-back takes victims that a newer decision has."""
    def reopen(self, uuid, owner):
        if not real(self, uuid, owner):
            return False
        self._db.write(sa.update(decisions._VICTIMS).where(
            models.Victim.decision_uuid == uuid,
            models.Victim.status == decisions.KEPT
        ).values(status=decisions.PENDING, ended_at=None))
        return True
    real = decisions.Decisions.reopen
    return mock.patch.object(decisions.Decisions, 'reopen', reopen)


@fault(33, 'notices_are_withdrawn', 'returns')
def unshelved_victims_keep_their_notice():
    """A shelved victim that its owner unshelves keeps its old notice."""
    def get_victims(self, *statuses):
        return [each for each in real(self, *statuses)
                if each[1].restore or each[1].status == decisions.STOPPED]
    real = decisions.Decisions.get_victims
    return mock.patch.object(decisions.Decisions, 'get_victims', get_victims)


@fault(36, 'fitting_requests_are_served')
def outdated_hosts_refuse_requests():
    """A host whose free capacity others took looks free for a minute."""
    def claim(self, state, real_claim, server_uuid):
        done = real_claim()
        if done:
            self.made.free.append(server_uuid)
        return done
    return mock.patch.object(scheduling_pass.SchedulingPass, '_claim_room',
                             claim)
