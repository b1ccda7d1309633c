# SPDX-License-Identifier: Apache-2.0
"""Ends of the engine: many at once in few threads."""

import dataclasses
import threading
import types
from unittest import mock

import testtools

from nova_preempt import db
from nova_preempt import pause_reader
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.core import requester_liveness
from nova_preempt.core.eviction import eviction_values
from nova_preempt.db import decisions as db_decisions
from nova_preempt.engine import standalone_evictions
from nova_preempt.handover import eviction_observer
from nova_preempt.handover import victim_evictor

WAIT_S = 60


def make_server(number):
    return mock.Mock(spec=preemptible_server_cache.PreemptibleServer,
                     uuid=f's{number}', host='host1', node='node1',
                     restore=False)


class FakeTerminator:
    """Terminator whose victims get notice, and end when they may."""

    def __init__(self, expected):
        self.noticed = []
        self.closed = []
        self.all_noticed = threading.Event()
        self.allowed = threading.Event()
        self.error = None
        self._expected = expected

    def begin(self, decisions):
        decision, = decisions
        self.noticed.append(decision.uuid)
        if len(self.noticed) == self._expected:
            self.all_noticed.set()
        work = mock.Mock(spec=victim_evictor.EvictionRun,
                         memory=eviction_values.Memory({}, 0))
        work.step.side_effect = self.step
        work.pause_s.return_value = 0.001
        work.close.side_effect = lambda: self.closed.append(decision.uuid)
        return work

    def step(self):
        if self.error is not None:
            raise self.error
        return self.allowed.is_set()


class TestEnds(testtools.TestCase):

    def make(self, expected, threads=2):
        self.terminator = FakeTerminator(expected)
        self.settled = []
        self.left = []
        self.given_back = []
        self.done = threading.Event()

        def settle(decisions, ended):
            self.settled += [decision.uuid for decision in decisions]
            if len(self.settled) == expected:
                self.done.set()

        def give_back(decisions, reason):
            self.given_back.append((decisions[0].uuid, reason))
            self.done.set()

        process = mock.Mock(pauses=mock.Mock(spec=pause_reader.PauseReader))
        process.owner.acquire.return_value = 'me'
        self.handover = mock.Mock(terminator=self.terminator)
        self.handover.claims.active = set()
        self.handover.settle.side_effect = settle
        self.handover.roll_back.side_effect = give_back
        made = standalone_evictions.Evictions(process, self.handover,
                                              mock.Mock(), mock.Mock(),
                                              threads, self.note_left)
        made._make_victim = lambda server, *_args: types.SimpleNamespace(
            server_uuid=server.uuid)
        self.addCleanup(made.close)
        return made

    def note_left(self, nodes):
        self.left.append((nodes, list(self.settled)))

    def begin(self, made, number):
        return [made.begin(make_server(index), 'test', 'why')
                for index in range(number)]

    def test_notice_is_given_to_all_at_once(self):
        """A few threads suffice, as no eviction waits in a thread."""
        made = self.make(expected=300)
        uuids = self.begin(made, 300)
        self.assertTrue(self.terminator.all_noticed.wait(WAIT_S))
        self.assertEqual([], self.settled)
        self.assertEqual(set(uuids), set(self.terminator.noticed))
        self.assertEqual(set(uuids), self.handover.claims.active)
        self.terminator.allowed.set()
        self.assertTrue(self.done.wait(WAIT_S))
        self.assertEqual(set(uuids), set(self.settled))

    def test_the_requester_of_an_eviction_is_known(self):
        made = self.make(expected=1)
        made.begin(make_server(1), 'reservation', 'why',
                   asked_by={'reservation_id': 'r'})
        decision, = (call.args[0] for call in made._process.decisions
                     .create_decision.call_args_list)
        self.assertEqual(
            requester_liveness.ServedRequest('reservation', '', 'r', 'node1',
                                             frozenset('p')),
            eviction_observer.purpose(dataclasses.replace(decision, victims=(
                db.Victim('s1', allocations={'p': {}}),))))

    def test_all_resources_are_released(self):
        made = self.make(expected=3)
        self.terminator.allowed.set()
        uuids = self.begin(made, 3)
        self.assertTrue(self.done.wait(WAIT_S))
        made._stepper._pool.shutdown(wait=True)
        self.assertEqual(set(uuids), set(self.terminator.closed))
        self.assertEqual((set(), set()),
                         (made._open, self.handover.claims.active))

    def test_freed_nodes_are_reported_before_an_eviction_is_closed(self):
        made = self.make(expected=1)
        self.terminator.allowed.set()
        self.begin(made, 1)
        self.assertTrue(self.done.wait(WAIT_S))
        self.assertEqual([({'node1'}, [])], self.left)

    def test_a_failed_eviction_is_rolled_back(self):
        made = self.make(expected=1)
        self.terminator.error = db_decisions.LostDecision('lost')
        uuid, = self.begin(made, 1)
        self.assertTrue(self.done.wait(WAIT_S))
        made._stepper._pool.shutdown(wait=True)
        self.assertEqual([(uuid, 'lost')], self.given_back)
        self.assertEqual([uuid], self.terminator.closed)
        self.assertEqual(set(), self.handover.claims.active)


class TestManyVictims(testtools.TestCase):

    def test_allocations_of_victims_are_read_in_parallel(self):
        """No victim gets notice before all are read."""
        together = threading.Barrier(4, timeout=WAIT_S)

        def get_consumer(uuid):
            together.wait()
            return placement_api.Consumer(uuid, {uuid: {'resources': {}}})

        process, handover, clients = mock.Mock(), mock.Mock(), mock.Mock()
        clients.get_consumer.side_effect = get_consumer
        handover.claims.active = set()
        made = standalone_evictions.Evictions(process, handover, clients,
                                              mock.Mock(), 1)
        self.addCleanup(made.close)
        made._stepper = mock.Mock(spec=standalone_evictions.TimedStepPool)
        with mock.patch.object(
                standalone_evictions.eviction_policy, 'make_victim',
                side_effect=lambda server, *_args: db_decisions.Victim(
                    server.uuid, 'project', 'user', 'small')):
            made.begin_all([make_server(number) for number in range(4)],
                           'test', 'why')
        decision, = process.decisions.create_decision.call_args.args
        self.assertEqual(
            [(f's{number}', {f's{number}': {'resources': {}}})
             for number in range(4)],
            [(victim.server_uuid, victim.allocations)
             for victim in decision.victims])


class TestStepper(testtools.TestCase):

    def make(self):
        made = standalone_evictions.TimedStepPool(1, 'test')
        self.addCleanup(made.close)
        return made

    def test_a_failing_step_does_not_stop_others(self):
        made = self.make()
        done = threading.Event()
        made.add(mock.Mock(side_effect=ValueError))
        made.add(lambda: done.set())
        self.assertTrue(done.wait(WAIT_S))

    def test_a_step_is_repeated_after_its_pause(self):
        made = self.make()
        done = threading.Event()
        waits = [0.0, 0.001, 0.002, None]

        def step():
            wait_s = waits.pop(0)
            if not waits:
                done.set()
            return wait_s

        made.add(step)
        self.assertTrue(done.wait(WAIT_S))
        made._pool.shutdown(wait=True)
        self.assertEqual([], waits)
        self.assertTrue(made._due.empty())

    def test_a_closed_stepper_accepts_no_steps(self):
        made = self.make()
        began, go_on = threading.Event(), threading.Event()

        def hold():
            began.set()
            go_on.wait(WAIT_S)

        later = mock.Mock()
        made.add(hold)
        self.assertTrue(began.wait(WAIT_S))
        made.add(later)
        made.close()
        go_on.set()
        made._pool.shutdown(wait=True)
        later.assert_not_called()
