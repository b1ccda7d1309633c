# SPDX-License-Identifier: Apache-2.0
"""Base classes of tests of roll-backs."""

import dataclasses
import types
import unittest
from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.core import observed_server
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import preemption_rollback
from nova_preempt.handover import process_lease

SIZE = {'VCPU': 1}


class FakePlacement:
    """Placement with one provider, "rp", that has a number of VCPUs."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.consumers = {}

    def give(self, uuid, vcpus, provider='rp'):
        self.post_allocations([self.get_consumer(uuid).with_allocations(
            {provider: {'resources': {'VCPU': vcpus}}})])

    def vcpus(self, uuid, provider='rp'):
        return self.get_consumer(uuid).slots.get((provider, 'VCPU'), 0)

    def get_consumer(self, uuid):
        return self.consumers.get(uuid, placement_api.Consumer(uuid, {}))

    def post_allocations(self, consumers):
        after = dict(self.consumers)
        for item in consumers:
            found = self.consumers.get(item.uuid)
            if item.generation != (found and found.generation):
                raise placement_api.Conflict(
                    'generation', placement_api.CONCURRENT_UPDATE)
            after[item.uuid] = dataclasses.replace(
                item, generation=(item.generation or 0) + 1)
            if not item.allocations:
                del after[item.uuid]
        if sum(item.slots.get(('rp', 'VCPU'), 0)
               for item in after.values()) > self.capacity:
            raise placement_api.Conflict('full', placement_api.NO_ROOM)
        self.consumers = after

    def delete_allocations(self, uuid):
        self.consumers.pop(uuid, None)


class FakeNova:

    def __init__(self):
        self.servers = {}
        self.calls = []
        self.refuses = set()
        self.left_off = set()

    def put(self, uuid, vm_state='active', task_state=None, host='host1',
            locked_reason=None, locked_by=''):
        self.servers[uuid] = observed_server.ObservedServer(
            uuid, vm_state, task_state, host, status=vm_state.upper(),
            locked_by=locked_by, locked_reason=locked_reason)

    def get(self, uuid):
        return self.servers.get(uuid)

    def is_left_off(self, server):
        return server.uuid in self.left_off

    def __getattr__(self, name):
        def call(uuid, *args):
            self.calls.append((name, uuid))
            return name not in self.refuses

        return call


class FakeDatabase:
    """Keeps one decision, and later ones of the same server and host."""

    def __init__(self, decision):
        self.decision = decision
        self.later = []

    def get_decision(self, uuid):
        return self.decision

    def get_decisions(self, statuses, **kwargs):
        return [each for each in [self.decision, *self.later]
                if each.status in statuses]

    def get_victims(self, *statuses):
        return [(each.uuid, victim) for each in self.later
                for victim in each.victims if victim.status in statuses]

    def get_open_decisions(self):
        return [(each, 0) for each in [self.decision, *self.later]
                if each.status in db_decisions.OPEN]

    def update_decision(self, uuid, owner, status, new_owner=None,
                        from_status=None, **values):
        if owner != self.decision.owner:
            return False
        if new_owner is not None:
            values['owner'] = new_owner
        self.decision = dataclasses.replace(self.decision, status=status,
                                            **values)
        return True

    def reopen(self, uuid, owner):
        others = {victim.server_uuid for each in self.later
                  if each.status in db_decisions.OPEN
                  for victim in each.victims}
        self.decision = dataclasses.replace(
            self.decision, owner=owner, status=db_decisions.ROLLING_BACK,
            victims=tuple(
                dataclasses.replace(victim, status=db_decisions.PENDING)
                if victim.status == db_decisions.KEPT
                and victim.server_uuid not in others else victim
                for victim in self.decision.victims))
        return True

    def update_victim(self, uuid, server_uuid, status, owner=None, **values):
        if owner not in (None, self.decision.owner):
            raise db_decisions.LostDecision(uuid)
        self.decision = dataclasses.replace(self.decision, victims=tuple(
            dataclasses.replace(victim, status=status, **values)
            if victim.server_uuid == server_uuid else victim
            for victim in self.decision.victims))


class RollBackTestCase(unittest.TestCase):
    """On a host of 2 VCPUs "held" holds the VCPUs of a and b."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(process_lease, 'INTENT_TIMEOUT_S', 0)
        patch.start()
        self.addCleanup(patch.stop)
        self.why_paused = ''
        self.owner_keeps = True
        self.placement = FakePlacement(2)
        self.placement.give('held', 2)
        self.nova = FakeNova()
        for uuid in 'ab':
            self.nova.put(uuid)

    def roll_back(self, record=None, later=(), status=db_decisions.CLAIMED,
                  victims=db_decisions.ENDING, operation='create', **values):
        """Return the statuses of the victims: {uuid: status}.

        :param later: statuses of later decisions
        :param status: of the decision
        :param victims: their status before
        """
        victims = tuple(db_decisions.Victim(
            uuid, status=victims,
            allocations={'rp': {'resources': SIZE}}, **values)
            for uuid in 'ab')
        self.decisions = FakeDatabase(db_decisions.Decision(
            'd', 'new', owner='me', status=status, host='host1',
            operation=operation,
            provider_uuid='rp',
            record={'stand_in': 'held', 'consumer_generation': None,
                    'allocations': {'rp': {'VCPU': 2}}, **(record or {})},
            victims=victims))
        self.decisions.later = [
            dataclasses.replace(self.decisions.decision, uuid=status,
                                status=status) for status in later]
        return self.again()

    def again(self, reopen=False, honored_locks='admin'):
        """Roll back an existing decision again.

        :param reopen: whether it may be closed already
        """
        found = self.make_recovery(honored_locks)
        (found.reopen_and_roll_back if reopen
         else found.roll_back)('d', 'test')
        return self.statuses()

    def make_recovery(self, honored_locks='admin', leases=None):
        return preemption_rollback.PreemptionRollback(
            self.placement, self.nova, self.decisions,
            types.SimpleNamespace(name='me', acquire=lambda: 'me',
                                  get_leases=lambda: leases or {},
                                  keeps=lambda decisions: self.owner_keeps),
            types.SimpleNamespace(actions=['delete', 'shelve', 'stop'],
                                  honored_locks=honored_locks,
                                  minimum_runtime_s=0),
            set(), lambda operation: self.why_paused)

    def statuses(self):
        return {victim.server_uuid: victim.status
                for victim in self.decisions.decision.victims}

    def assert_space(self, **vcpus):
        for uuid, amount in vcpus.items():
            self.assertEqual(amount, self.placement.vcpus(uuid), uuid)
