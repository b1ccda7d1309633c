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

from nova_preempt import placement as placement_api
from nova_preempt.db import api as db_api


class Claims:
    """Makes claims.

    :param placement: a nova_preempt.placement.Placement
    :param db: a nova_preempt.db.Database
    :param owner: the nova_preempt.termination.owner.Owner of this process
    :param budgets: a nova_preempt.scheduler.budgets.Budgets
    """

    def __init__(self, placement, db, owner, budgets):
        self._placement = placement
        self._db = db
        self._owner = owner
        self._budgets = budgets
        # Decisions that a thread of this process works on.
        self.active = set()

    def claim(self, option, decision, resources):
        """Swap the allocations of the option's victims for the server's.

        :param option: a nova_preempt.scheduler.candidates.Option
        :param decision: the db.Decision to write, victims without allocations
        :param resources: {class: amount} of the server
        :returns: the db.Decision as it now stands in the database, CLAIMED
        :raises placement.Conflict: somebody was faster; nothing happened
        :raises placement.PlacementError: nothing is known to have happened;
            the intent stays for the recovery to look at
        """
        provider_uuid = option.provider_uuid
        consumers, victims = self._read_victims(option, decision)
        target = self._read_target(decision)
        if target.resources_on(provider_uuid):
            raise placement_api.Conflict(
                f'server {decision.server_uuid} has allocations on provider '
                f'{provider_uuid} already')
        # In an evacuation the server keeps its allocations on the failed
        # host until the compute service there is back, as in Nova's claim.
        target = placement_api.Consumer(
            target.uuid,
            target.allocations | {provider_uuid: {'resources': resources}},
            target.generation, decision.project_id, decision.user_id)
        kept = get_kept(option)
        changes = [_reduced(consumer, provider_uuid, kept[consumer.uuid])
                   for consumer in consumers]
        changes.append(target)

        decision = dataclasses.replace(
            decision, owner=self._owner.acquire(), victims=victims,
            status=db_api.INTENT,
            record={**decision.record, 'surplus': _total(kept.values()),
                    # By which the recovery knows our claim again.
                    'consumer_generation': (target.generation or 0) + 1})
        self.active.add(decision.uuid)
        try:
            # After the victims' space was read: another scheduler writes its
            # intent before it takes any.
            self._db.create_decision(decision, **self._budgets.guard(victims))
        except (db_api.AlreadyEnding, db_api.OverBudget) as exc:
            raise placement_api.Conflict(str(exc)) from exc
        try:
            self._placement.post_allocations(changes)
        except placement_api.Conflict as exc:
            self._db.update_decision(decision.uuid, decision.owner,
                                     db_api.ABORTED, reason=str(exc))
            raise
        except placement_api.PlacementError as exc:
            # It may still arrive: leave it to the recovery to look later.
            self._db.update_decision(decision.uuid, decision.owner,
                                     db_api.INTENT, new_owner='',
                                     reason=str(exc))
            raise
        if not self._db.update_decision(
                decision.uuid, decision.owner, db_api.CLAIMED,
                from_status=db_api.INTENT):
            raise db_api.LostDecision(decision.uuid)
        return dataclasses.replace(decision, status=db_api.CLAIMED)

    def _read_target(self, decision):
        """The Consumer of the server that the host is taken for."""
        if decision.operation == 'create':
            # If it has allocations after all, Placement refuses the claim.
            return placement_api.Consumer(decision.server_uuid, {})
        return self._placement.get_consumer(decision.server_uuid)

    def _read_victims(self, option, decision):
        """([Consumer], [Victim]) as Placement has them now."""
        consumers, victims = [], []
        expected = option.allocated
        for victim in decision.victims:
            consumer = self._placement.get_consumer(victim.server_uuid)
            found = consumer.resources_on(option.provider_uuid)
            if found != expected[victim.server_uuid]:
                raise placement_api.Conflict(
                    f'victim {victim.server_uuid} has {found} instead of '
                    f'{expected[victim.server_uuid]}')
            consumers.append(consumer)
            victims.append(dataclasses.replace(
                victim, allocations=consumer.allocations,
                consumer_project_id=consumer.project_id,
                consumer_user_id=consumer.user_id))
        return consumers, tuple(victims)


def get_kept(option):
    """What each victim keeps until it is gone: {uuid: {class: amount}}.

    Only what is missing is taken from them. The rest stays allocated as long
    as they live: until then it is not free, and a rollback needs it. What a
    provider would refuse as an allocation (less than min_unit, not a multiple
    of step_size) cannot be kept.
    """
    missing = dict(option.missing)
    kept = {}
    for victim in option.victim_set.victims:
        rest = kept[victim.uuid] = {}
        for name, amount in option.allocated[victim.uuid].items():
            taken = min(victim.resources.get(name, 0), missing.get(name, 0))
            missing[name] = missing.get(name, 0) - taken
            inventory = option.host.inventories[name]
            amount = min(amount - taken, inventory.max_unit)
            amount -= amount % inventory.step_size
            if amount >= max(1, inventory.min_unit):
                rest[name] = amount
    return kept


def _reduced(consumer, provider_uuid, kept):
    """The consumer with only this on the provider."""
    allocations = {uuid: item for uuid, item in consumer.allocations.items()
                   if uuid != provider_uuid}
    if kept:
        allocations[provider_uuid] = {'resources': kept}
    return consumer.with_allocations(allocations)


def _total(resources):
    total = {}
    for item in resources:
        for name, amount in item.items():
            total[name] = total.get(name, 0) + amount
    return total
