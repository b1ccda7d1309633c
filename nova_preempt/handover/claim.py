# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Taking the victims' space for a server, in one transaction of Placement.

The intent is written to the database first. Whatever happens afterwards, and
wherever the process dies, it says what to finish or to take back.
"""

import dataclasses
import uuid as uuids

from nova_preempt.cloud import placement as placement_api
from nova_preempt.core import capacity
from nova_preempt.db import decisions


class Claims:
    """Makes claims.

    :param placement: a nova_preempt.cloud.placement.Placement
    :param decisions: a nova_preempt.db.Decisions
    :param owner: the nova_preempt.handover.owner.Owner of this process
    :param budgets: a nova_preempt.handover.budgets.Budgets
    """

    def __init__(self, placement, decisions, owner, budgets):
        self._placement = placement
        self._decisions = decisions
        self._owner = owner
        self._budgets = budgets
        # Decisions that a thread of this process works on.
        self.active = set()

    def claim(self, plan, decision, allocations):
        """Swap the allocations of the plan's victims for the server's.

        :param plan: a nova_preempt.core.scheduling.plan.Plan
        :param decision: the db.Decision to write, victims without allocations
        :param allocations: {provider uuid: {'resources': {class: amount}}}
            of the server, on the providers of the plan's host
        :returns: the db.Decision as it now stands in the database, CLAIMED
        :raises placement.Conflict: somebody was faster; nothing happened
        :raises placement.PlacementError: nothing is known to have happened;
            the intent stays for the recovery to look at
        """
        consumers, victims = self._read_victims(plan, decision)
        target = self._read_target(decision)
        own = set(allocations) - plan.host.shared
        for uuid in sorted(own & target.allocations.keys()):
            raise placement_api.Conflict(
                f'server {decision.server_uuid} has allocations on provider '
                f'{uuid} already')
        # In an evacuation the server keeps its allocations on the failed
        # host until the compute service there is back, as in Nova's claim.
        target = placement_api.Consumer(
            target.uuid,
            _added(target.allocations, allocations),
            target.generation, decision.project_id, decision.user_id)
        retained = plan.retained()
        changes = [_reduced(consumer, plan.host, retained[consumer.uuid])
                   for consumer in consumers]
        changes, holders = _replaced(changes, plan, decision.uuid)
        changes.append(target)

        decision = dataclasses.replace(
            decision, owner=self._owner.acquire(), victims=victims,
            status=decisions.INTENT,
            record={**decision.record, 'surplus': capacity.total(
                        capacity.by_class(slots)
                        for slots in retained.values()),
                    'allocations': {uuid: dict(item['resources']) for
                                    uuid, item in allocations.items()},
                    # Who holds the rest of victims that have none of it.
                    **({'stand_ins': holders} if holders else {}),
                    # By which the recovery knows our claim again.
                    'consumer_generation': (target.generation or 0) + 1})
        self.active.add(decision.uuid)
        try:
            # After the victims' space was read: another scheduler writes its
            # intent before it takes any.
            self._decisions.create_decision(
                decision, **self._budgets.guard(victims))
        except (decisions.AlreadyEnding, decisions.OverBudget) as exc:
            raise placement_api.Conflict(str(exc)) from exc
        try:
            self._placement.post_allocations(changes)
        except placement_api.Conflict as exc:
            self._decisions.update_decision(decision.uuid, decision.owner,
                                            decisions.ABORTED, reason=str(exc))
            raise
        except placement_api.PlacementError as exc:
            # It may still arrive: leave it to the recovery to look later.
            self._decisions.update_decision(decision.uuid, decision.owner,
                                            decisions.INTENT, new_owner='',
                                            reason=str(exc))
            raise
        if not self._decisions.update_decision(
                decision.uuid, decision.owner, decisions.CLAIMED,
                from_status=decisions.INTENT):
            raise decisions.LostDecision(decision.uuid)
        return dataclasses.replace(decision, status=decisions.CLAIMED)

    def _read_target(self, decision):
        """The Consumer of the server that the host is taken for."""
        if decision.operation == 'create':
            # If it has allocations after all, Placement refuses the claim.
            return placement_api.Consumer(decision.server_uuid, {})
        return self._placement.get_consumer(decision.server_uuid)

    def _read_victims(self, plan, decision):
        """([Consumer], [Victim]) as Placement has them now."""
        consumers, victims = [], []
        for victim in decision.victims:
            consumer = self._placement.get_consumer(victim.server_uuid)
            expected = plan.host.held(victim.server_uuid)
            found = {(provider.uuid, name): amount
                     for provider in plan.host.providers for name, amount
                     in consumer.resources_on(provider.uuid).items()}
            if found != expected:
                raise placement_api.Conflict(
                    f'victim {victim.server_uuid} has '
                    f'{capacity.by_class(found)} instead of '
                    f'{capacity.by_class(expected)}')
            consumers.append(consumer)
            victims.append(dataclasses.replace(
                victim, allocations=consumer.allocations,
                consumer_project_id=consumer.project_id,
                consumer_user_id=consumer.user_id))
        return consumers, tuple(victims)


def _added(allocations, more):
    """Both together: on a provider that hosts share there may be some."""
    return allocations | {
        uuid: {'resources': capacity.total((
            allocations.get(uuid, {}).get('resources', {}),
            item['resources']))}
        for uuid, item in more.items()}


def _reduced(consumer, host, retained):
    """The consumer with only this on the host, by slot."""
    on_host = {provider.uuid for provider in host.providers}
    allocations = {uuid: item for uuid, item in consumer.allocations.items()
                   if uuid not in on_host}
    for (uuid, name), amount in retained.items():
        allocations.setdefault(uuid, {'resources': {}})[
            'resources'][name] = amount
    return consumer.with_allocations(allocations)


def _replaced(consumers, plan, decision_uuid):
    """([Consumer], {uuid of a victim: that of who holds what it retains}).

    For the victims that must have nothing on the host, see Plan.displaced().
    The stand-in is a consumer that Nova does not know, so that no service of
    Nova touches it, as the other half of a migration's allocations. It lives
    until its victim has ended, or has got its allocations back.
    """
    displaced = plan.displaced()
    own = {provider.uuid for provider in plan.host.providers}
    found, holders = [], {}
    for consumer in consumers:
        held = {uuid: item for uuid, item in consumer.allocations.items()
                if uuid in own}
        if consumer.uuid not in displaced or not held:
            found.append(consumer)
            continue
        stand_in = holders[consumer.uuid] = str(uuids.uuid5(
            uuids.NAMESPACE_OID, f'{decision_uuid} {consumer.uuid}'))
        found.append(consumer.with_allocations(
            {uuid: item for uuid, item in consumer.allocations.items()
             if uuid not in own}))
        found.append(placement_api.Consumer(
            stand_in, held, None, consumer.project_id, consumer.user_id))
    return found, holders


def stand_ins(decision):
    """{uuid of a victim: that of who holds what it retains, if not it}."""
    return decision.record.get('stand_ins', {})
