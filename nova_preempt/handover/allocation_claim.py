# SPDX-License-Identifier: Apache-2.0
"""Moves allocations of victims to a server, in two Placement transactions.

1. Claims.claim() moves them from the victims to a stand-in: a consumer of ours
   that Nova does not know. The intent is in the database before.
2. Claims.hand_over() moves them from the stand-in to the server once the
   victims are evicted.

In between the server's own allocations do not change. Nova frees those if the
server is deleted or its move is reverted; they do not include capacity that
victims still use.

Each stand-in belongs to one decision, so a change of its allocations excludes
all others: a late hand-over is refused once a roll-back has emptied the
stand-in, and vice versa. If a process dies or an answer of Placement is lost,
the allocations of the stand-in and of the server show the progress.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import time
from typing import Any, TypeAlias
import uuid as uuids

from oslo_log import log as logging

from nova_preempt.cloud import placement_api
from nova_preempt.core import capacity
from nova_preempt.core import poll_timing
from nova_preempt.core.model import Host, Provider, Resources
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.db import decisions
from nova_preempt.handover import budget_reader
from nova_preempt.handover import process_lease

LOG = logging.getLogger(__name__)

# The generation of a consumer after its first allocation.
_FIRST_GENERATION = 1

# How long the hand-over is retried, in seconds: its victims are evicted, so it
# is worth waiting for a restart of Placement.
_HAND_OVER_S = 30.0
_HAND_OVER_INTERVAL_S = 0.5


#: {'resources': {class: amount}} of a consumer on a provider.
Allocation: TypeAlias = dict[str, Any]


class OutcomeUnknown(placement_api.PlacementError):
    """It is unknown whether Placement has applied, or will apply, a claim."""


class ClaimLost(Exception):
    """The stand-in has lost the allocations that it held for a server."""


class Claims:
    """Claims allocations of victims and hands them over to servers.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param decisions: a nova_preempt.db.Decisions
    :param owner: the nova_preempt.handover.process_lease.Lease of this process
    :param budgets: a nova_preempt.handover.budget_reader.BudgetReader
    """

    def __init__(self, placement: placement_api.Placement,
                 decisions: decisions.Decisions, owner: process_lease.Lease,
                 budgets: budget_reader.BudgetReader,
                 monotonic: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._placement = placement
        self._decisions = decisions
        self._owner = owner
        self._budgets = budgets
        self._monotonic = monotonic
        self._sleep = sleep
        # Uuids of decisions that a thread of this process works on.
        self.active: set[str] = set()

    def claim(self, plan: Plan, decision: decisions.Decision,
              allocations: dict[str, Allocation]) -> decisions.Decision:
        """Move the plan's allocations from its victims to a stand-in.

        :param plan: a nova_preempt.core.scheduling.preemption_plan.Plan
        :param decision: the db.Decision to write, victims without allocations
        :param allocations: {provider uuid: {'resources': {class: amount}}}
            that the server is to get, on the providers of the plan's host
        :returns: the db.Decision as it now stands in the database, CLAIMED
        :raises placement_api.Conflict: another request was faster; nothing
            was claimed
        :raises OutcomeUnknown: the caller must roll it back
        :raises placement_api.PlacementError: nothing was claimed
        """
        consumers, victims = self._read_victims(plan, decision)
        target = self._read_target(decision)
        own = set(allocations) - plan.host.shared
        for uuid in sorted(own & target.allocations.keys()):
            raise placement_api.Conflict(
                f'server {decision.server_uuid} already has allocations on '
                f'provider {uuid}')
        retained = plan.retained()
        changes = [_reduced(consumer, plan.host, retained[consumer.uuid])
                   for consumer in consumers]
        changes, holders = _replaced(changes, plan, decision.uuid)
        stand_in = placement_api.Consumer(
            _stand_in(decision.uuid, decision.server_uuid), allocations, None,
            decision.project_id, decision.user_id)
        changes.append(stand_in)

        decision = dataclasses.replace(
            decision, owner=self._owner.acquire(), victims=victims,
            status=decisions.INTENT,
            record={**decision.record, 'surplus': capacity.total(
                        capacity.by_class(slots)
                        for slots in retained.values()),
                    'allocations': {uuid: dict(item['resources']) for
                                    uuid, item in allocations.items()},
                    'stand_in': stand_in.uuid,
                    # Stand-ins that hold the rest of displaced victims.
                    **({'stand_ins': holders} if holders else {}),
                    # Detects changes of the server's allocations.
                    'consumer_generation': target.generation})
        self.active.add(decision.uuid)
        try:
            # After the victims' allocations were read: another scheduler
            # writes its intent before it claims any.
            self._decisions.create_decision(
                decision, **self._budgets.guard(victims))
        except (decisions.AlreadyEnding, decisions.OverBudget) as exc:
            raise placement_api.Conflict(str(exc)) from exc
        self._take(decision, changes)
        if not self._decisions.update_decision(
                decision.uuid, decision.owner, decisions.CLAIMED,
                from_status=decisions.INTENT):
            raise decisions.LostDecision(decision.uuid)
        return dataclasses.replace(decision, status=decisions.CLAIMED)

    def _take(self, decision: decisions.Decision,
              changes: Sequence[placement_api.Consumer]) -> None:
        """Apply the first transaction, or detect that it was applied."""
        try:
            self._placement.post_allocations(changes)
        except (placement_api.Conflict, placement_api.PlacementError) as exc:
            # The answer may be lost. Or the client has retried: then the
            # conflict is with the first attempt.
            try:
                is_made = self._holds(decision)
            except placement_api.PlacementError as error:
                raise OutcomeUnknown(str(exc)) from error
            if is_made:
                return
            if isinstance(exc, placement_api.Conflict):
                self._decisions.update_decision(
                    decision.uuid, decision.owner, decisions.ABORTED,
                    reason=str(exc))
                raise
            raise OutcomeUnknown(str(exc)) from exc

    def _holds(self, decision: decisions.Decision) -> bool:
        """Return whether the server's stand-in has allocations."""
        return bool(self._placement.get_consumer(
            stand_in(decision)).allocations)

    def hand_over(self, decisions: Sequence[decisions.Decision],
                  left_s: Callable[[], float] = lambda: _HAND_OVER_S) -> None:
        """Move the stand-ins' allocations to the servers, all or none.

        :param decisions: CLAIMED db.Decisions for servers, whose victims are
            evicted
        :param left_s: returns the seconds until the request's deadline
        :raises ClaimLost: the allocations of a stand-in or of a server have
            changed meanwhile
        :raises PlacementError: it is unknown whether it was done
        """
        wait = poll_timing.BoundedWait(self._monotonic(), _HAND_OVER_S,
                                       _HAND_OVER_INTERVAL_S)
        while decisions:
            try:
                self._placement.post_allocations([
                    change for decision in decisions
                    for change in self._moved(decision)])
                return
            except (placement_api.Conflict,
                    placement_api.PlacementError) as exc:
                failure = exc
            # The answer may be lost, or a generation has changed.
            try:
                if self._is_handed_over(decisions):
                    return
            except placement_api.PlacementError as exc:
                failure = exc
            pause_s = wait.pause_s(self._monotonic(), left_s())
            if isinstance(failure, placement_api.Conflict) and (
                    failure.is_capacity_conflict or not pause_s):
                raise ClaimLost(str(failure)) from failure
            if not pause_s:
                raise failure
            LOG.info('Retrying the hand-over of allocations to servers: %s',
                     failure)
            self._sleep(pause_s)

    def _moved(self, decision: decisions.Decision
               ) -> list[placement_api.Consumer]:
        """Return the Consumers after the hand-over of a decision."""
        target = self._unchanged(decision, self._read_target(decision))
        who = decision.project_id, decision.user_id
        # In an evacuation the server keeps its allocations on the failed
        # host until the compute service there is back, as in Nova's claim.
        return [
            placement_api.Consumer(decision.record['stand_in'], {},
                                   _FIRST_GENERATION, *who),
            placement_api.Consumer(
                target.uuid,
                _added(target.allocations, decision.record['allocations']),
                target.generation, *who)]

    def _is_handed_over(self, decisions: Iterable[decisions.Decision]) -> bool:
        """Return whether the hand-over was applied; if not, retry it.

        :raises ClaimLost: a retry cannot succeed
        """
        # Check all of them: any of them may raise ClaimLost.
        have = [self._has_space(decision) for decision in decisions]
        return all(have)

    def _has_space(self, decision: decisions.Decision) -> bool:
        # In this order: allocations move from the stand-in to the server.
        is_held = self._holds(decision)
        server = self._placement.get_consumer(decision.server_uuid)
        if is_held:
            self._unchanged(decision, server)
            return False
        if not decision.record['allocations'].keys() <= (
                server.allocations.keys()):
            raise ClaimLost(
                f'consumer {stand_in(decision)}, which held capacity for '
                f'server {decision.server_uuid}, has lost its allocations')
        return True

    @staticmethod
    def _unchanged(decision: decisions.Decision, target: placement_api.Consumer
                   ) -> placement_api.Consumer:
        """Return the Consumer of a server, unchanged since the claim.

        :raises ClaimLost: its allocations have changed
        """
        if target.generation != decision.record['consumer_generation']:
            raise ClaimLost(f'the allocations of server {target.uuid} changed '
                            'while its victims were evicted')
        return target

    def _read_target(self, decision: decisions.Decision
                     ) -> placement_api.Consumer:
        """Return the Consumer of the server that the claim is for."""
        if decision.operation == 'create':
            # If it has allocations, Placement refuses the claim.
            return placement_api.Consumer(decision.server_uuid, {})
        return self._placement.get_consumer(decision.server_uuid)

    def _read_victims(self, plan: Plan, decision: decisions.Decision) -> tuple[
            list[placement_api.Consumer], tuple[decisions.Victim, ...]]:
        """Return ([Consumer], [Victim]) with their current allocations."""
        consumers: list[placement_api.Consumer] = []
        victims: list[decisions.Victim] = []
        on_host = {provider.uuid for provider in plan.host.providers}
        for victim in decision.victims:
            consumer = self._placement.get_consumer(victim.server_uuid)
            expected = plan.host.held(victim.server_uuid)
            found = {slot: amount for slot, amount in consumer.slots.items()
                     if slot[0] in on_host}
            if found != expected:
                raise placement_api.Conflict(
                    f'victim {victim.server_uuid} has allocations of '
                    f'{capacity.by_class(found)} instead of '
                    f'{capacity.by_class(expected)}')
            consumers.append(consumer)
            victims.append(dataclasses.replace(
                victim, allocations=consumer.allocations,
                consumer_project_id=consumer.project_id,
                consumer_user_id=consumer.user_id))
        return consumers, tuple(victims)


def _added(allocations: dict[str, Allocation], more: Mapping[str, Resources]
           ) -> dict[str, Allocation]:
    """Return the sum of allocations, for both may use a sharing provider.

    :param more: {provider uuid: {class: amount}}
    """
    return allocations | {
        uuid: {'resources': capacity.total((
            allocations.get(uuid, {}).get('resources', {}), resources))}
        for uuid, resources in more.items()}


def _reduced(consumer: placement_api.Consumer, host: Host,
             retained: Mapping[tuple[str, str], int]
             ) -> placement_api.Consumer:
    """Return the consumer with only these slots on the host."""
    on_host = {provider.uuid for provider in host.providers}
    return consumer.with_slots({
        slot: amount for slot, amount in consumer.slots.items()
        if slot[0] not in on_host} | dict(retained))


def _replaced(consumers: Iterable[placement_api.Consumer], plan: Plan,
              decision_uuid: str
              ) -> tuple[list[placement_api.Consumer], dict[str, str]]:
    """Return ([Consumer], {victim uuid: uuid of its own stand-in}).

    Victims that must not keep anything on the host, see Plan.displaced(), get
    a stand-in for the rest of their allocations. It exists until its victim is
    evicted or has its allocations again.
    """
    displaced = plan.displaced()
    own = {provider.uuid for provider in plan.host.providers}
    found: list[placement_api.Consumer] = []
    holders: dict[str, str] = {}
    for consumer in consumers:
        held = {uuid: item for uuid, item in consumer.allocations.items()
                if uuid in own}
        if consumer.uuid not in displaced or not held:
            found.append(consumer)
            continue
        stand_in = holders[consumer.uuid] = _stand_in(decision_uuid,
                                                      consumer.uuid)
        found.append(consumer.with_allocations(
            {uuid: item for uuid, item in consumer.allocations.items()
             if uuid not in own}))
        found.append(placement_api.Consumer(
            stand_in, held, None, consumer.project_id, consumer.user_id))
    return found, holders


def _stand_in(decision_uuid: str, uuid: str) -> str:
    return str(uuids.uuid5(uuids.NAMESPACE_OID, f'{decision_uuid} {uuid}'))


def stand_in(decision: decisions.Decision) -> str | None:
    """Return the uuid of the stand-in of a decision's server, or None.

    A decision without a server has none.
    """
    return decision.record.get('stand_in')


def stand_ins(decision: decisions.Decision) -> dict[str, str]:
    """Return {victim uuid: uuid of the stand-in that holds its rest}."""
    found: dict[str, str] = decision.record.get('stand_ins', {})
    return found


def all_stand_ins(decision: decisions.Decision) -> list[str]:
    """Return uuids of all stand-ins, the server's first."""
    return [*filter(None, [stand_in(decision)]), *stand_ins(decision).values()]


def claimants(database: decisions.Decisions) -> dict[str, str]:
    """Return {uuid of a stand-in: uuid of its server} of open decisions.

    :param database: a nova_preempt.db.Decisions
    """
    return {holder: decision.server_uuid for decision
            in database.get_decisions(statuses=decisions.OPEN)
            if (holder := stand_in(decision))}


def on_behalf(provider: Provider, claimants: Mapping[str, str]) -> Provider:
    """Return a core Provider with servers in place of their stand-ins.

    :param claimants: see claimants()
    """
    if provider.allocations.keys().isdisjoint(claimants):
        return provider
    return dataclasses.replace(provider, allocations={
        claimants.get(uuid, uuid): resources
        for uuid, resources in provider.allocations.items()})
