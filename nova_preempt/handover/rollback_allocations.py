# SPDX-License-Identifier: Apache-2.0
"""Computes the changes of allocations that roll a claim back.

nova_preempt.handover.preemption_rollback writes them.
"""

from collections.abc import Iterable, Mapping

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import capacity
from nova_preempt.core.eviction import closing_rules
from nova_preempt.db import decisions
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import victim_allocations
from nova_preempt.handover.victim_allocations import resources


class RollbackAllocations:
    """Computes the Consumers that roll decisions back.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param nova: a NovaAPI
    :param decisions: a nova_preempt.db.Decisions
    """

    def __init__(self, placement: placement_api.Placement,
                 nova: nova_api.NovaAPI, decisions: decisions.Decisions
                 ) -> None:
        self._placement = placement
        self._nova = nova
        self._decisions = decisions

    def released(self, decision: decisions.Decision
                 ) -> list[placement_api.Consumer]:
        """Return Consumers that free the allocations of stand-ins or server.

        The server has them only after all victims were evicted. Stand-ins are
        read first, so that a concurrent hand-over is detected, or conflicts
        with this write.
        """
        uuids = allocation_claim.all_stand_ins(decision)
        consumers = [self._placement.get_consumer(uuid) for uuid in uuids]
        emptied = [consumer.with_allocations({}) for consumer in consumers
                   if consumer.allocations]
        if not uuids or uuids[0] != allocation_claim.stand_in(decision) or (
                consumers[0].allocations) or not closing_rules.have_left(
                    victim.status for victim in decision.victims):
            return emptied
        return [*emptied, *self._released_by_server(decision)]

    def _released_by_server(self, decision: decisions.Decision
                            ) -> list[placement_api.Consumer]:
        target = self._placement.get_consumer(decision.server_uuid)
        # If nothing was claimed, or it was freed before, it has none on the
        # host. Its allocations on sharing providers are its own.
        if decision.provider_uuid not in target.allocations or (
                self._is_used(decision, target)):
            return []
        return [target.with_slots(capacity.subtract(
            target.slots, capacity.by_slot(decision.record['allocations'])))]

    def _is_used(self, decision: decisions.Decision,
                 target: placement_api.Consumer) -> bool:
        """Return whether the server has been placed there in another way.

        In a resize it may have been on the host before; then its generation
        shows whether its allocations have changed since the hand-over.
        """
        # Retries that were aborted or rolled back hold nothing.
        later = self._decisions.get_decisions(
            server_uuid=decision.server_uuid,
            provider_uuid=decision.provider_uuid,
            statuses=(*decisions.OPEN, decisions.DONE))
        if later[-1].uuid != decision.uuid:
            return True
        if decision.operation == 'resize' and target.generation == 1 + (
                decision.record['consumer_generation'] or 0):
            return False
        server = self._nova.get(decision.server_uuid)
        return (server is not None and server.host == decision.host
                and server.status != 'ERROR')

    @staticmethod
    def restored(decision: decisions.Decision,
                 victims: Iterable[decisions.Victim],
                 consumers: Mapping[str, placement_api.Consumer]
                 ) -> list[placement_api.Consumer]:
        """Return Consumers that restore the allocations of victims.

        :param victims: db.Victims that are on their host
        :param consumers: {uuid of a victim: its Consumer}
        """
        restored: list[placement_api.Consumer] = []
        for victim in victims:
            consumer = consumers[victim.server_uuid]
            if closing_rules.lacks_space(
                    resources(consumer.allocations),
                    resources(victim.allocations), decision.provider_uuid):
                restored.append(victim_allocations.as_it_was(
                    victim, consumer.generation))
        return restored

    def part(self, decision: decisions.Decision, victim: decisions.Victim,
             consumer: placement_api.Consumer) -> list[placement_api.Consumer]:
        """Return the Consumers that restore one victim.

        The same transaction reduces stand-ins: the victim's own by all, the
        server's by the rest. So no other request can claim it in between.
        """
        restored = self.restored(
            decision, [victim], {victim.server_uuid: consumer})
        if not restored:
            return []
        needed = capacity.shortfall(
            placement_api.slots(victim.allocations), consumer.slots)
        changes = []
        own = allocation_claim.stand_ins(decision).get(victim.server_uuid)
        if own is not None:
            holder = self._placement.get_consumer(own)
            needed = capacity.shortfall(needed, holder.slots)
            changes.append(holder.with_allocations({}))
        if allocation_claim.stand_in(decision) is not None:
            holder = self._placement.get_consumer(
                allocation_claim.stand_in(decision))
            changes.append(holder.with_slots(
                capacity.subtract(holder.slots, needed)))
        return [*restored, *(
            each for each in changes if each.generation is not None)]

    @staticmethod
    def fence(there: Iterable[decisions.Victim],
              consumers: Mapping[str, placement_api.Consumer],
              restored: Iterable[placement_api.Consumer]
              ) -> list[placement_api.Consumer]:
        """Return Consumers that make a delayed claim conflict.

        The claim carries the generations of its victims, so victims with
        allocations on their host are rewritten unchanged. They must have been
        read before the stand-in was found empty: a later reading may already
        include the claim. The generation of a consumer without allocations
        changes with its next allocation. A delayed call that reduces the
        allocations of a stopped victim conflicts as well.

        :param there: db.Victims that are on their host; if another one has
            moved twice, its generation may be that of before
        :param consumers: {uuid of a victim: its Consumer}
        :param restored: Consumers of victims that are written already
        """
        written = {consumer.uuid for consumer in restored}
        return [consumers[victim.server_uuid] for victim in there
                if victim.server_uuid in consumers.keys() - written
                and consumers[victim.server_uuid].allocations.keys()
                & victim.allocations.keys()]
