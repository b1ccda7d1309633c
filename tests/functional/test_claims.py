# SPDX-License-Identifier: Apache-2.0
"""Tests in which each call of a claim is lost, doubled, or the last one."""

import collections
import contextlib
import itertools
import tempfile
import types
from unittest import mock
import uuid

from nova import test
from nova.scheduler.client import report
from nova.tests.functional import fixtures as func_fixtures
from oslo_db import exception as db_exc

from nova_preempt.cloud import placement_api
from nova_preempt.core import model
from nova_preempt.core import observed_server
from nova_preempt.core.scheduling import preemption_plan
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import handover
from nova_preempt.handover import preemption_rollback
from nova_preempt.handover import process_lease
from tests import tables
from tests.unit.db import test_decisions

CAPACITY = 4
VICTIMS = {'a': 2, 'b': 2}
# Of one victim it takes all, of the other one a half.
SERVER = 3
OTHER = 2


class Killed(BaseException):
    """Ends a thread as a kill ends the process: nothing is cleaned up."""


class Faulty:
    """Proxy of an object; the n-th call of all that share a Fault fails.

    :param error: what a call that fails raises
    """

    def __init__(self, real, fault, error, names):
        self._real = real
        self._fault = fault
        self._error = error
        self._names = names

    def __getattr__(self, name):
        found = getattr(self._real, name)
        if name not in self._names:
            return found
        return lambda *args, **kwargs: self._fault.call(
            name, lambda: found(*args, **kwargs), self._error)


class Fault:
    """The call that fails, and how.

    :param number: from 0; None: none
    :param kind: before: it is lost; after: its answer is lost; doubled: the
        client asks again after a lost answer; killed: nothing happens in this
        process any more
    """

    KINDS = ('before', 'after', 'doubled', 'killed')

    def __init__(self, number=None, kind=''):
        self.number = number
        self.kind = kind
        self.names = []

    def __repr__(self):
        return f'{self.kind} call {self.number} of {self.names}'

    @property
    def is_done(self):
        return len(self.names) > self.number

    def call(self, name, do, error):
        self.names.append(name)
        if self.number != len(self.names) - 1:
            return do()
        if self.kind == 'before':
            raise error
        if self.kind == 'doubled':
            if name != 'post_allocations':
                return do()
            with contextlib.suppress(placement_api.PlacementError):
                do()
            return do()
        do()
        raise Killed if self.kind == 'killed' else error


class Nova:
    """Knows which victims live, and deletes them at once."""

    def __init__(self, placement, uuids):
        self.placement = placement
        self.alive = dict.fromkeys(uuids)

    def get(self, uuid):
        return observed_server.ObservedServer(
            'a', 'active', None, 'host', status='ACTIVE') \
            if uuid in self.alive else None

    def force_delete(self, uuid):
        self.alive.pop(uuid, None)
        self.placement.delete_allocations(uuid)


class TestEachCall(test.TestCase):
    """Two victims on a host of four VCPUs; a real Placement and database."""

    def setUp(self):
        super().setUp()
        self.api = self.useFixture(func_fixtures.PlacementFixture()).api
        client = report.SchedulerReportClient()
        self.placement = placement_api.Placement(lambda: client)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        database = test_decisions.make_database(
            f'sqlite:///{directory.name}/test.sqlite')
        tables.make(database)
        self.addCleanup(database.engine.dispose)
        self.decisions = db_decisions.Decisions(database)
        self.owner = types.SimpleNamespace(
            name='me', acquire=lambda: 'me', get_leases=dict,
            keeps=lambda decisions: {
                decision.owner for decision in decisions} == {'me'})

    # -- what is there -------------------------------------------------

    def begin(self, operation='create'):
        """A new host with its victims, and a server that is to go there."""
        self.uuids = collections.defaultdict(lambda: str(uuid.uuid4()))
        for name in 'host', 'source':
            provider = self.uuids[name]
            self.api.post('/resource_providers', {
                'name': provider, 'uuid': provider}, version='1.36')
            self.api.put(f'/resource_providers/{provider}/inventories', {
                'resource_provider_generation': 0,
                'inventories': {'VCPU': {'total': CAPACITY}}})
        for name, amount in VICTIMS.items():
            self.give(name, amount)
        if operation == 'evacuate':
            self.give('server', SERVER, 'source')
        self.nova = Nova(self.placement,
                         [self.uuids[name] for name in VICTIMS])
        self.operation = operation

    def give(self, name, amount, provider='host'):
        self.placement.post_allocations([placement_api.Consumer(
            self.uuids[name], {self.uuids[provider]: {
                'resources': {'VCPU': amount}}}, None, 'project', 'user')])

    def has(self, name, provider='host'):
        return self.placement.get_consumer(self.uuids[name]).slots.get(
            (self.uuids[provider], 'VCPU'), 0)

    def consumers(self):
        """{uuid: VCPUs} on the host."""
        state = self.placement.get_provider_state(self.uuids['host'])
        return {uuid: item['VCPU'] for uuid, item
                in state.allocations.items()}

    def assert_room(self, *others):
        """Check that no more servers run than fit, in Placement and on the
        host."""
        self.assertLessEqual(sum(self.consumers().values()), CAPACITY)
        running = [VICTIMS[name] for name in VICTIMS
                   if self.uuids[name] in self.nova.alive]
        self.assertLessEqual(sum([*running, *others]), CAPACITY)

    # -- what is done --------------------------------------------------

    def plan(self):
        state = self.placement.get_provider_state(self.uuids['host'])
        slot = self.uuids['host'], 'VCPU'
        victims = tuple(model.Candidate(self.uuids[name], {slot: amount}, 1)
                        for name, amount in VICTIMS.items())
        return preemption_plan.Plan(
            model.Host('host', (state,), victims), {slot: SERVER},
            model.VictimSet(victims, 2, optimal=True, steps=0), {})

    def place(self, placement, decisions):
        """Place a server as a scheduler does; return whether it was placed."""
        claims = allocation_claim.Claims(
            placement, decisions, self.owner,
            types.SimpleNamespace(guard=lambda victims: {}),
            sleep=lambda pause_s: None)
        undo = preemption_rollback.PreemptionRollback(placement, self.nova,
                                                      decisions, self.owner,
                                                      None, set())
        process = types.SimpleNamespace(decisions=decisions, owner=self.owner)
        decision = db_decisions.Decision(
            str(uuid.uuid4()), self.uuids['server'], project_id='project',
            user_id='user', operation=self.operation, host='host',
            provider_uuid=self.uuids['host'], victims=tuple(
                db_decisions.Victim(self.uuids[name], 'project', 'user')
                for name in VICTIMS))
        try:
            claimed = claims.claim(self.plan(), decision, {
                self.uuids['host']: {'resources': {'VCPU': SERVER}}})
        except (db_decisions.LostDecision, db_exc.DBError,
                allocation_claim.OutcomeUnknown) as exc:
            with contextlib.suppress(db_exc.DBError):
                undo.reopen_and_roll_back(decision.uuid, str(exc))
            return False
        except (placement_api.PlacementError, placement_api.Conflict):
            return False
        try:
            for victim in claimed.victims:
                self.nova.force_delete(victim.server_uuid)
                self.decisions.update_victim(
                    decision.uuid, victim.server_uuid, db_decisions.GONE)
            claims.hand_over([claimed])
            return handover.Handover._close(
                types.SimpleNamespace(_process=process), claimed)
        except Exception as exc:  # noqa: BLE001 (as the scheduler)
            with contextlib.suppress(db_exc.DBError):
                undo.roll_back(decision.uuid, str(exc))
            return False

    def faulty(self, fault):
        return (
            Faulty(self.placement, fault,
                   placement_api.PlacementError('timeout'),
                   ('get_consumer', 'post_allocations')),
            Faulty(self.decisions, fault, db_exc.DBError('gone away'),
                   ('create_decision', 'update_decision')))

    def repair(self, fault=None):
        placement, decisions = self.faulty(fault or Fault())
        with mock.patch.object(process_lease, 'INTENT_TIMEOUT_S', 0):
            preemption_rollback.PreemptionRollback(
                placement, self.nova, decisions, self.owner,
                types.SimpleNamespace(actions=['delete']), set()).repair()

    def end(self, is_placed):
        """Other processes interfere; then the repair runs."""
        others = [SERVER] if is_placed else []
        if not is_placed and self.operation == 'create':
            # Its user deletes the server, which is in ERROR.
            self.placement.delete_allocations(self.uuids['server'])
        try:
            self.give('other', OTHER)
            others.append(OTHER)
        except placement_api.Conflict:
            pass
        self.assert_room(*others)
        self.repair()

    def check(self, is_placed):
        self.assertEqual([], self.decisions.get_open_decisions())
        others = [SERVER] if is_placed else []
        others += [OTHER] if self.has('other') else []
        self.assert_room(*others)
        for name, amount in VICTIMS.items():
            alive = self.uuids[name] in self.nova.alive
            self.assertEqual(amount if alive else 0, self.has(name))
        # A server whose scheduler dies before it answers has its space until
        # its user deletes it, as with stock Nova.
        has_it = is_placed or (
            self.operation == 'evacuate' and db_decisions.DONE in {
                decision.status for decision in self.decisions.get_decisions(
                    server_uuid=self.uuids['server'])})
        self.assertEqual(SERVER if has_it else 0, self.has('server'))
        self.assertEqual(SERVER if self.operation == 'evacuate' else 0,
                         self.has('server', 'source'))
        known = {self.uuids[name] for name in (*VICTIMS, 'server', 'other')}
        self.assertEqual(set(), self.consumers().keys() - known)

    def attempt(self, operation, fault, repair=None):
        """Return whether the failing calls were made."""
        self.begin(operation)
        is_placed = False
        with contextlib.suppress(Killed):
            is_placed = self.place(*self.faulty(fault))
        if repair is not None:
            with contextlib.suppress(Killed):
                self.repair(repair)
        try:
            self.end(is_placed)
            self.check(is_placed)
        except Exception as exc:
            raise AssertionError(
                f'{operation}: {fault}, then {repair}') from exc
        return all(each.is_done for each in (fault, repair) if each)

    # -- the tables ----------------------------------------------------

    def test_without_faults(self):
        for operation in 'create', 'evacuate':
            fault = Fault()
            self.begin(operation)
            self.assertTrue(self.place(*self.faulty(fault)))
            self.end(True)
            self.check(True)
            self.assertEqual(
                2, fault.names.count('post_allocations'), fault.names)

    def test_each_call_of_a_claim(self):
        for operation, kind in (
                *itertools.product(['create'], Fault.KINDS),
                ('evacuate', 'after'), ('evacuate', 'killed')):
            number = 0
            while self.attempt(operation, Fault(number, kind)):
                number += 1
            # It ends after the last call, and there are many.
            self.assertGreater(number, 5)

    def test_each_call_of_a_repair(self):
        """The process crashes at each call that moves allocations."""
        fault = Fault(100)
        self.attempt('create', fault)
        for number, name in enumerate(fault.names):
            again = 0
            while name == 'post_allocations' and self.attempt(
                    'create', Fault(number, 'killed'),
                    Fault(again, 'killed')):
                again += 1
