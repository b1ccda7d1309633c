# SPDX-License-Identifier: Apache-2.0
"""The changes of allocations that take a claim back.

Computes them from what Placement has now;
nova_preempt.handover.preemption_rollback writes them.
"""

from collections.abc import Iterable, Mapping

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import capacity
from nova_preempt.core.eviction import rollback
from nova_preempt.db import decisions
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import victim_allocations
from nova_preempt.handover.victim_allocations import resources


class ClaimReversal:
    """Computes what undoes decisions.

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
        """What takes the space back from stand-ins, or from the server.

        The server has it only after all victims have left. Stand-ins are read
        first: whoever moves their space to the server meanwhile is seen, or
        changes what is written here.
        """
        uuids = allocation_claim.all_stand_ins(decision)
        consumers = [self._placement.get_consumer(uuid) for uuid in uuids]
        emptied = [consumer.with_allocations({}) for consumer in consumers
                   if consumer.allocations]
        if not uuids or uuids[0] != allocation_claim.stand_in(decision) or (
                consumers[0].allocations) or not rollback.have_left(
                    victim.status for victim in decision.victims):
            return emptied
        return [*emptied, *self._released_by_server(decision)]

    def _released_by_server(self, decision: decisions.Decision
                            ) -> list[placement_api.Consumer]:
        target = self._placement.get_consumer(decision.server_uuid)
        # Where nothing was claimed, or it is given back already, it has none
        # of the host. What it has of providers that hosts share is its own.
        if decision.provider_uuid not in target.allocations or (
                self._is_used(decision, target)):
            return []
        return [target.with_slots(capacity.subtract(
            target.slots, capacity.by_slot(decision.record['allocations'])))]

    def _is_used(self, decision: decisions.Decision,
                 target: placement_api.Consumer) -> bool:
        """Whether the server has come to that host in another way since.

        In a resize that it is there says nothing: it may have been there
        before. But then nobody has changed its allocations since we moved the
        space to it.
        """
        # Retries that were aborted or taken back hold nothing.
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
        """What gives victims back what was taken from them.

        :param victims: db.Victims that are on their host
        :param consumers: {uuid of a victim: its Consumer}
        """
        restored: list[placement_api.Consumer] = []
        for victim in victims:
            consumer = consumers[victim.server_uuid]
            if rollback.lacks_space(
                    resources(consumer.allocations),
                    resources(victim.allocations), decision.provider_uuid):
                restored.append(victim_allocations.as_it_was(
                    victim, consumer.generation))
        return restored

    def part(self, decision: decisions.Decision, victim: decisions.Victim,
             consumer: placement_api.Consumer) -> list[placement_api.Consumer]:
        """The Consumers by which one victim gets its allocations back.

        Stand-ins lose in the same transaction what it gets: its own all, that
        for the server the rest. So nobody else takes the space in between.
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
    def fence(decision: decisions.Decision,
              consumers: Mapping[str, placement_api.Consumer],
              restored: Iterable[placement_api.Consumer]
              ) -> list[placement_api.Consumer]:
        """What refuses a claim that is on its way and may still arrive.

        It carries the generations of its victims: those that still have
        something of their host are written anew as they are. They have to be
        as they were read before the stand-in was found empty: one that is
        read afterwards may have the claim behind it. The generation of one
        without allocations changes with its next allocation.

        :param consumers: {uuid of a victim: its Consumer}
        :param restored: Consumers of victims that are written already
        """
        if allocation_claim.stand_in(decision) is None:
            return []
        written = {consumer.uuid for consumer in restored}
        return [consumers[victim.server_uuid] for victim in decision.victims
                if victim.server_uuid in consumers.keys() - written
                and consumers[victim.server_uuid].allocations.keys()
                & victim.allocations.keys()]
