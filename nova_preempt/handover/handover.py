# SPDX-License-Identifier: Apache-2.0
"""Carries out claimed decisions: evicts victims, hands over or rolls back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
import datetime
import time
from typing import TYPE_CHECKING, Protocol

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt import pause_reader
from nova_preempt.cloud import awaited_servers
from nova_preempt.cloud import clients
from nova_preempt.cloud import instances
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import eviction_values
from nova_preempt.db import backlog_rows
from nova_preempt.db import decisions as db_decisions
from nova_preempt.db import reservations
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import preemption_notifications
from nova_preempt.handover import preemption_rollback
from nova_preempt.handover import requester_reader
from nova_preempt.handover import victim_evictor
from nova_preempt.handover.preemptor_outcomes import PreemptorOutcomes

if TYPE_CHECKING:
    from nova_preempt import headroom as headrooms
    from nova_preempt.handover import budget_reader
    from nova_preempt.handover import service_context

LOG = logging.getLogger(__name__)

# How long a stuck victim is not chosen again, in seconds.
STUCK_S = 600
# The same for a victim that must be kept: the cache shows the reason soon.
KEPT_S = 60


class RequestDeadline(Protocol):
    """The deadline of the request."""

    began: float

    def check(self, what: str = 'go on') -> None:
        """Raise an exception if the deadline has passed."""

    def left_s(self) -> float: ...


class ServersNotWanted(Exception):
    """The servers that were to be placed were deleted meanwhile.

    Or the backlog request that they belong to was closed, so that the engine
    deletes them.
    """

    def __init__(self) -> None:
        super().__init__(requester_liveness.SERVER_GONE)


class VictimsStuck(Exception):
    """Victims were not evicted in time, or must not be evicted any more."""

    def __init__(self, uuids: Iterable[str],
                 why: str = 'were not evicted in time') -> None:
        super().__init__(f'preemptible servers {why}: '
                         + ', '.join(sorted(uuids)))


class Handover:
    """Evicts the victims of decisions, and rolls back failed decisions.

    :param conf: nova.conf.CONF
    :param host: the publisher of notifications
    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param clients: a nova_preempt.cloud.clients.Clients
    :param budgets: a nova_preempt.handover.budget_reader.BudgetReader
    :param headroom: a nova_preempt.headroom.Headroom
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str,
                 process: service_context.ProcessContext,
                 clients: clients.Clients, budgets: budget_reader.BudgetReader,
                 headroom: headrooms.Headroom) -> None:
        options = process.options

        def clock() -> datetime.datetime:
            return process.clock().replace(tzinfo=None)

        def given_up(uuids: Collection[str]) -> set[str]:
            return backlog_rows.given_up(process.db, uuids) if (
                conf.backlog.enabled) else set()

        self._given_up = given_up
        self._process = process
        self.events = preemption_notifications.Notifications(conf, host)
        self.claims = allocation_claim.Claims(
            clients.placement, process.decisions, process.owner, budgets)
        self.recovery = preemption_rollback.PreemptionRollback(
            clients.placement, clients.nova, process.decisions,
            process.owner, options, self.claims.active,
            lambda operation: process.pauses.why(
                pause_reader.of_operation(operation)))
        self.terminator = victim_evictor.VictimEvictor(
            clients, awaited_servers.AwaitedServers(),
            requester_reader.RequesterReader(
                lambda uuids: instances.find_unwanted(uuids) | given_up(uuids),
                headroom=headroom, clock=clock,
                are_hosts_emptied=lambda: conf.reservation.enabled,
                reservations=reservations.Reservations(process.db, clock)),
            process.decisions, process.owner, options, self.events,
            halt=self._halt)
        self.outcomes = PreemptorOutcomes(process.db, clients)
        self._stuck: dict[str, float] = {}          # server uuid: until when

    def _halt(self, operation: str) -> None:
        self._process.pauses.check(pause_reader.of_operation(operation))

    def stuck(self) -> set[str]:
        """Return uuids of victims whose eviction has failed lately."""
        now = time.monotonic()
        self._stuck = {uuid: until for uuid, until in self._stuck.items()
                       if now < until}
        return set(self._stuck)

    def finish(self, decisions: Sequence[db_decisions.Decision],
               limit: RequestDeadline | None = None) -> int:
        """Evict the victims of claimed decisions, and hand them over.

        :param limit: the RequestDeadline, None if there is none
        :returns: the number of decisions that were rolled back because their
            server is not wanted any more
        :raises ServersNotWanted: their backlog request was closed
        :raises TimeIsUp: the deadline has passed
        :raises VictimsStuck: victims were not evicted
        :raises LostDecision: another process has taken a decision over
        :raises ClaimLost: a stand-in has lost its allocations
        :raises PlacementError: the hand-over has failed
        """
        with metrics.PHASES.labels('end').time():
            ended = self.terminator.end(
                decisions, None if limit is None else limit.check,
                None if limit is None else limit.began)
        return self.settle(decisions, ended, limit)

    def settle(self, decisions: Sequence[db_decisions.Decision],
               ended: eviction_values.Memory,
               limit: RequestDeadline | None = None) -> int:
        """Hand over the claims to their servers, and close the decisions.

        :param ended: the eviction's
            nova_preempt.core.eviction.eviction_values.Memory
        :returns, raises: see finish()
        """
        if ended.stuck:
            self._note_stuck(decisions, ended.stuck)
            raise VictimsStuck(ended.stuck)
        if ended.refusals:
            self._leave_alone(ended.refusals, KEPT_S)
            raise VictimsStuck(
                [f'{uuid} ({why})' for uuid, why in ended.refusals.items()],
                'must not be evicted')
        gone = [each for each in decisions if each.uuid in ended.unwanted]
        if gone and self._given_up([each.server_uuid for each in gone]):
            # Nova still has it, and would build it without allocations.
            raise ServersNotWanted
        for decision in gone:
            self.recovery.roll_back(decision.uuid,
                                    ended.unwanted[decision.uuid])
        wanted = [each for each in decisions if each not in gone]
        placed = [decision for decision in wanted if decision.server_uuid]
        if placed and limit:
            limit.check("create the server's allocations")
        self.claims.hand_over(placed, *([limit.left_s] if limit else []))
        self._close_all(wanted)
        return len(ended.unwanted)

    def _close_all(self, decisions: Iterable[db_decisions.Decision]) -> None:
        """Close all decisions or none: a request fails as a whole.

        :raises LostDecision, DBError: the caller must roll_back() all
        """
        closed = []
        try:
            for decision in decisions:
                if not self._close(decision):
                    raise db_decisions.LostDecision(decision.uuid)
                closed.append(decision)
        except Exception:
            for decision in closed:
                self._process.decisions.update_decision(
                    decision.uuid, '', db_decisions.CLAIMED,
                    new_owner=decision.owner, from_status=db_decisions.DONE)
            raise

    def _leave_alone(self, uuids: Iterable[str], for_s: float) -> None:
        until = time.monotonic() + for_s
        self._stuck.update(dict.fromkeys(uuids, until))

    def _note_stuck(self, decisions: Iterable[db_decisions.Decision],
                    stuck: Collection[str]) -> None:
        self._leave_alone(stuck, STUCK_S)
        LOG.error('Preemptible servers %s did not end within %s s; looking '
                  'for other victims.', ', '.join(sorted(stuck)),
                  self._process.options.termination_timeout_s)
        for decision in decisions:
            for victim in decision.victims:
                if victim.server_uuid in stuck:
                    self.events.error(decision, victim,
                                      'it was not evicted in time')

    def _close(self, decision: db_decisions.Decision) -> bool:
        """Close a decision, with retries while our lease lasts."""
        while True:
            try:
                db = self._process.decisions
                # The answer to an earlier attempt may be lost; no other
                # process sets this status.
                return db.update_decision(
                    decision.uuid, decision.owner, db_decisions.DONE,
                    new_owner='') or (db.get_decision(decision.uuid).status
                                      == db_decisions.DONE)
            except db_exc.DBError:
                if not self._process.owner.keeps([decision]):
                    raise
                LOG.exception('Cannot close preemption %s yet.', decision.uuid)

    def roll_back(self, decisions: Iterable[db_decisions.Decision], reason: str
                  ) -> None:
        """Roll back the claims of a failed request.

        A decision that cannot be rolled back now is left to repair().
        """
        for decision in decisions:
            _try(self.recovery.roll_back, decision.uuid, reason)

    def roll_back_lost(self, uuids: Iterable[str], reason: str) -> None:
        """Reopen and roll back decisions that others may have rolled back.

        They may have done so before the claim was applied.
        """
        for uuid in uuids:
            _try(self.recovery.reopen_and_roll_back, uuid, reason)

    def repair(self) -> int:
        """Roll back orphaned decisions, and record outcomes of closed ones.

        :returns: the number of decisions that were rolled back
        """
        repaired = self.recovery.repair()
        self.outcomes.note()
        return repaired


def _try(roll_back: Callable[[str, str], object], uuid: str, reason: str
               ) -> None:
    try:
        roll_back(uuid, reason)
    except Exception:
        # Go on with other decisions, and servers without victims.
        LOG.exception('Cannot roll back preemption %s yet.', uuid)
