# SPDX-License-Identifier: Apache-2.0

"""Evicts the victims of decisions, each on its terms, all at once.

nova_preempt.core.eviction.eviction_controller returns the next intents for the
current records of Nova in each round; this module carries them out. Each call
to Nova is recorded in the database first. Right before it, it is checked that
the capacity is still needed and that the decision is still ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import datetime
import time
from typing import Any

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import awaited_servers
from nova_preempt.cloud import clients
from nova_preempt.cloud import host_records
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import parallel_calls
from nova_preempt.cloud import placement_api
from nova_preempt.core import eviction_status
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.model import SECOND
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import eviction_observer
from nova_preempt.handover import preemption_notifications
from nova_preempt.handover import process_lease
from nova_preempt.handover import requester_reader
from nova_preempt.handover import victim_allocations

LOG = logging.getLogger(__name__)

#: Pauses before attempts to withdraw a notice that was written too late.
_PAUSES_S = (0.0, *12 * (5.0,))


class VictimEvictor:
    """Evicts the victims of decisions.

    :param clients: a nova_preempt.cloud.clients.Clients
    :param watch: a nova_preempt.cloud.awaited_servers.AwaitedServers
    :param requests: a nova_preempt.handover.requester_reader.RequesterReader
    :param decisions: a nova_preempt.db.Decisions
    :param owner: the nova_preempt.handover.process_lease.Lease of this process
    :param options: [preemption] of the configuration
    :param events: a
        nova_preempt.handover.preemption_notifications.Notifications
    :param monotonic, sleep: the clock to wait by
    :param halt: given an operation, raises if preemption for it is paused;
        called until the first victim is asked to end
    :param host_is_up: see nova_preempt.cloud.host_records
    """

    def __init__(
            self, clients: clients.Clients,
            watch: awaited_servers.AwaitedServers,
            requests: requester_reader.RequesterReader,
            decisions: db_decisions.Decisions, owner: process_lease.Lease,
            options: cfg.ConfigOpts.GroupAttr,
            events: preemption_notifications.Notifications,
            monotonic: Callable[[], float] = time.monotonic,
            sleep: Callable[[float], None] = time.sleep,
            halt: Callable[[str], None] = lambda operation: None,
            host_is_up: Callable[[str, str], bool] = host_records.host_is_up
    ) -> None:
        self.clients = clients
        self.watch = watch
        self.requests = requests
        self.decisions = decisions
        self.owner = owner
        self.halt = halt
        self.host_is_up = host_is_up
        self.options = options
        self.events = events
        self.monotonic = monotonic
        self._sleep = sleep

    def end(self, decisions: Sequence[db_decisions.Decision],
            check: Callable[[], None] | None = None,
            chosen_at: float | None = None) -> eviction_values.Memory:
        """Evict all victims of these decisions and wait until that is done.

        :param decisions: db.Decisions, CLAIMED
        :param check: called before each step of a victim; an exception of it
            stops the eviction
        :param chosen_at: when their hosts were known to be up
        :returns: its eviction_values.Memory
        :raises LostDecision: another process has taken a decision over
        """
        work = self.begin(decisions, check, chosen_at)
        try:
            while not work.step():
                self._sleep(work.pause_s())
            return work.memory
        finally:
            work.close()

    def begin(self, decisions: Sequence[db_decisions.Decision],
              check: Callable[[], None] | None = None,
              chosen_at: float | None = None) -> EvictionRun:
        """Give notice to all victims of these decisions.

        :returns: an EvictionRun: call its step() until it returns True, then
            close()
        """
        return EvictionRun(self, decisions, check or (lambda: None), chosen_at)


class EvictionRun:
    """A running eviction of the victims of decisions.

    :ivar memory: its progress, an eviction_values.Memory
    """

    def __init__(self, terminator: VictimEvictor,
                 decisions: Sequence[db_decisions.Decision],
                 check: Callable[[], None], chosen_at: float | None) -> None:
        self._terminator = terminator
        self._check = check
        self._decisions = tuple(decisions)
        self._victims = {victim.server_uuid: (decision, victim)
                         for decision in decisions
                         for victim in decision.victims}
        self._view = eviction_observer.EvictionObserver(terminator, decisions,
                                                        chosen_at)
        self._wake_at_us: int | None = None
        self.memory: eviction_values.Memory = eviction_controller.begin(
            self._view.victims.values(), self._now_us())
        try:
            self.step()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop polling the victims."""
        self._view.close()

    def step(self) -> bool:
        """Carry out the intents of one round; the first gives notice.

        :returns: whether the eviction is over
        :raises LostDecision: another process has taken a decision over
        """
        self._view.begin_round()
        while True:
            step = eviction_controller.step(self._view.observed(), self.memory,
                                            self._now_us())
            self.memory, self._wake_at_us = step.memory, step.wake_at_us
            for intent in step.intents:
                self._carry_out(intent)
            if self.memory.is_over:
                return True
            if self.memory.pending and not any(
                    isinstance(intent, eviction_values.Read)
                    for intent in step.intents):
                return False

    def pause_s(self) -> float:
        """Return the seconds until the next step()."""
        pause_s = self._age_s()
        return pause_s if self._wake_at_us is None else min(
            pause_s, max(0, self._wake_at_us - self._now_us()) / SECOND)

    def _now_us(self) -> int:
        return round(self._terminator.monotonic() * SECOND)

    def _age_s(self) -> float:
        return eviction_controller.pause_s(
            (self._now_us() - self.memory.acted_us) / SECOND,
            awaited_servers.POLL_INTERVAL_S)

    def _carry_out(self, intent: eviction_values.Intent) -> None:
        """Carry out an intent; some kinds are retried in the next round."""
        act = _ACTS[type(intent)]
        if not isinstance(intent, _AGAIN):
            act(self, intent)
            return
        try:
            act(self, intent)
        except nova_api.NovaError as exc:
            LOG.warning('Cannot evict victim %s yet: %s', intent.victim, exc)
        except (placement_api.Conflict, placement_api.PlacementError) as exc:
            LOG.warning('Cannot read the allocations of victim %s: %s',
                        intent.victim, exc)
        except db_exc.DBError as exc:
            LOG.warning('Cannot record the eviction of victim %s yet: %s',
                        intent.victim, exc)

    def _check_all(self) -> None:
        """Check the deadline, our lease and pauses.

        Pauses do not stop an eviction that has begun: its victims would have
        been evicted in vain.
        """
        self._check()
        if not self._terminator.owner.keeps(self._decisions):
            raise db_decisions.LostDecision(', '.join(
                decision.uuid for decision in self._decisions))
        if not self.memory.has_begun:
            self._terminator.halt(self._decisions[0].operation)

    def _may_act(self, uuid: str) -> bool:
        """Return whether a call to Nova for a victim is still permitted.

        Called right before the call: meanwhile the request may have been
        deleted, another process may have the decision, or the victim may have
        moved. Remote checks come first, for they may take long.

        :raises TimeIsUp, LostDecision, Paused: the eviction must stop
        """
        decision, _ = self._victims[uuid]
        is_wanted = self._view.why_unwanted(decision.uuid) == ''
        self._check_all()
        now_us = self._now_us()
        if not is_wanted or not self._view.is_fresh(uuid, now_us):
            return False
        self.memory = dataclasses.replace(self.memory, acted_us=now_us)
        return True

    # -- notices -----------------------------------------------------------

    def _give_notice(self, intent: eviction_values.GiveNotice) -> None:
        """Give notice to all victims with a notice period, in parallel."""
        # The claim, and checks of hosts, may have taken long.
        self._check_all()
        told = [(uuid, self._note_notice(uuid)) for uuid in intent.victims
                if self._victims[uuid][1].notice_s]
        parallel_calls.call(lambda item: self._tell(*item), told)
        # However long that took: each guest has its whole notice.
        for uuid, _deadline in told:
            self.memory = self.memory.note(uuid, notice_until_us=(
                self._now_us() + self._victims[uuid][1].notice_s * SECOND))

    def _note_notice(self, uuid: str) -> datetime.datetime:
        """Record the notice of a victim; return its deadline."""
        decision, victim = self._victims[uuid]
        deadline = timeutils.utcnow() + datetime.timedelta(
            seconds=victim.notice_s)
        self._terminator.decisions.update_victim(
            decision.uuid, uuid, db_decisions.NOTICED, decision.owner,
            deadline=deadline)
        self._terminator.events.notice(decision, dataclasses.replace(
            victim, deadline=deadline, status=db_decisions.NOTICED))
        return deadline

    def _tell(self, uuid: str, deadline: datetime.datetime) -> None:
        """Write the deadline for the guest; ignore failures."""
        decision, victim = self._victims[uuid]
        nova = self._terminator.clients.nova
        try:
            nova.set_notice(
                uuid, victim.action, self._view.victims[uuid].terms.action,
                deadline, decision.operation, decision.uuid)
        except nova_api.NovaError as exc:
            LOG.warning('Cannot write the notice of victim %s: %s', uuid, exc)
        if not self._terminator.owner.keeps([decision]):
            # Another process may have rolled it back before the notice came.
            for pause_s in _PAUSES_S:
                self._terminator._sleep(pause_s)
                with contextlib.suppress(nova_api.NoAnswer):
                    if nova.clear_notice(uuid, decision.uuid):
                        return
            LOG.warning('The notice of server %s cannot be withdrawn; it is '
                        'not evicted by preemption %s.', uuid, decision.uuid)

    # -- one step of one victim --------------------------------------------

    def _look(self, intent: eviction_values.ReadServer) -> None:
        self._check_all()
        self._view.look_at_server(intent.victim, self._age_s())

    def _ask(self, intent: eviction_values.CallNova) -> None:
        """Call Nova for a victim."""
        uuid, method = intent.victim, intent.method
        clients, (decision, _) = self._terminator.clients, self._victims[uuid]
        # Before it counts as asked: a pause stops it until then.
        clients.nova.check_cell(method, uuid)
        if intent.is_recorded:
            self._terminator.decisions.update_victim(
                decision.uuid, uuid, db_decisions.ENDING, decision.owner,
                asked=method)
        if not self._may_act(uuid):
            return
        self.memory = self.memory.note(uuid, asked=method,
                                       asked_us=self.memory.acted_us)
        try:
            getattr(clients.nova, method)(uuid)
        except nova_api.NovaError as exc:
            if method != 'live_migrate':
                raise
            # The answer may be lost; Nova's records show the outcome.
            LOG.info('Cannot ask Nova to migrate victim %s: %s', uuid, exc)
        if method == 'live_migrate':
            # It may have taken long: earlier readings do not count.
            self.memory = self.memory.note(uuid, asked_us=self._now_us())

    def _lock(self, intent: eviction_values.LockVictim) -> None:
        uuid = intent.victim
        if self._may_act(uuid):
            # Recorded before: the answer may be lost.
            self.memory = self.memory.note(uuid, asked=eviction_steps.LOCK)
            self._terminator.clients.nova.lock(uuid, victim_allocations.LOCKED)
            now_us = self._now_us()
            self.memory = dataclasses.replace(
                self.memory.note(uuid, locked_us=now_us), acted_us=now_us)

    def _close(self, intent: eviction_values.CloseVictim) -> None:
        """Free the allocations held for a victim, and record its status."""
        clients, uuid = self._terminator.clients, intent.victim
        decision, victim = self._victims[uuid]
        if intent.first is eviction_steps.StepKind.FREE:
            clients.placement.delete_allocations(uuid)
        elif intent.first is eviction_steps.StepKind.LEAVE_STOPPED and not (
                victim_allocations.leave_stopped(
                    clients.placement, uuid, lambda: self._may_act(uuid))):
            return
        if self.memory.pending[uuid].may_be_locked and intent.status in (
                eviction_status.MIGRATED, eviction_status.SHELVED):
            clients.nova.unlock(uuid)
        if intent.status == eviction_status.MIGRATED and victim.notice_s:
            clients.nova.clear_notice(uuid)
        stand_in = allocation_claim.stand_ins(decision).get(uuid)
        if stand_in is not None:
            clients.placement.delete_allocations(stand_in)
        now = timeutils.utcnow()
        lifetime_s = None if victim.launched_at is None else int(
            (now - victim.launched_at).total_seconds())
        self._terminator.decisions.update_victim(
            decision.uuid, uuid, intent.status, decision.owner, ended_at=now,
            lifetime_s=lifetime_s)
        self.memory = self.memory.close(uuid)
        self._terminator.events.end(decision, victim, intent.status)

    def _spare(self, intent: eviction_values.SpareVictim) -> None:
        if intent.uuid in self._victims:
            decision, _ = self._victims[intent.uuid]
            LOG.info('Victim %s of preemption %s must not be evicted: %s.',
                     intent.uuid, decision.uuid, intent.why)
        else:
            LOG.info('Preemption %(uuid)s evicts no victims: %(why)s.',
                     {'uuid': intent.uuid, 'why': intent.why})


#: Intents that are retried in the next round if they fail.
_AGAIN = (eviction_values.ReadAllocation, eviction_values.CallNova,
          eviction_values.LockVictim, eviction_values.CloseVictim)
_ACTS: dict[type, Callable[[EvictionRun, Any], None]] = {
    eviction_values.GiveNotice: EvictionRun._give_notice,
    eviction_values.ReadServer: EvictionRun._look,
    eviction_values.ReadAllocation:
        lambda work, intent: work._view.look_at_allocation(intent),
    eviction_values.CheckHostUp:
        lambda work, intent: work._view.look_at_host(intent),
    eviction_values.CheckClaimedCapacity:
        lambda work, intent: work._view.look_at_claim(work.memory.unwanted),
    eviction_values.CallNova: EvictionRun._ask,
    eviction_values.LockVictim: EvictionRun._lock,
    eviction_values.CloseVictim: EvictionRun._close,
    eviction_values.SpareVictim: EvictionRun._spare}
