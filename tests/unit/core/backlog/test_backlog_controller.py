# SPDX-License-Identifier: Apache-2.0
"""The controller of the backlog."""

import dataclasses
import datetime
import unittest

from nova_preempt.core import eviction_status
from nova_preempt.core import times
from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import batch_plans
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import request_servers
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import placing
from tests.unit.core.backlog.base import running
from tests.unit.core.backlog.base import sight
from tests.unit.core.backlog.base import vcpus


class StepTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.memory = backlog_controller.Memory()
        self.rooms = [host('h', 4)]
        self.now = base.NOW

    def follow(self, *requests, seen=None, closed=()):
        return backlog_controller.follow(
            requests, closed, seen or {}, times.microseconds(self.now),
            boot_outcome.Options())

    def observe(self, *requests, **cloud):
        return backlog_controller.Observed(
            backlog_controller.Options(), requests, requests,
            dispatch_values.Cloud(self.rooms, **cloud))

    def step(self, *requests, **values):
        """The intents; the memory is kept."""
        step = backlog_controller.step(
            self.observe(*requests, **values), self.memory,
            times.microseconds(self.now))
        self.memory = step.memory
        return list(step.intents)

    def kinds(self, *requests, **values):
        return [(type(item).__name__, item.request.uuid)
                for item in self.step(*requests, **values)]


class TestFollow(StepTestCase):

    def test_an_evicted_request_waits_again(self):
        evicted = running(backlog_model.RUNNING, comes_back=True)
        found = self.follow(evicted, base.request('a'), seen={
            evicted.uuid: request_servers.FoundServers((),
                                               {'s0': eviction_status.GONE})})
        self.assertEqual([evicted], [each.request for each in found.records])
        self.assertEqual([(evicted.uuid, backlog_model.EVICTED),
                          ('a', backlog_model.WAITING)],
                         [(each.uuid, each.state) for each in found.waiting])
        self.assertEqual(
            [('RecordWaitReason', evicted.uuid), ('Launch', evicted.uuid)],
            self.kinds(found.waiting[0]))

    def test_a_building_request_does_not_wait(self):
        placed = placing(backlog_model.BUILDING)
        found = self.follow(placed, seen={
            placed.uuid: request_servers.FoundServers((sight('s0'),))})
        self.assertEqual(backlog_model.ACTIVE, found.records[0].verdict.state)
        self.assertEqual((1, ()), (len(found.requests), found.waiting))

    def test_servers_that_come_back(self):
        evicted = running(backlog_model.AWAY, comes_back=True)
        self.assertEqual({'s0'}, self.follow(evicted).coming_back)
        self.assertEqual(frozenset(), self.follow().coming_back)

    def test_a_closed_request_is_cleaned_up(self):
        closed = dataclasses.replace(
            running(backlog_model.RUNNING), uuid='c', state=backlog_model.DONE)
        (clear,) = self.follow(
            closed=[closed], seen={'c': request_servers.FoundServers()}).clears
        self.assertEqual((closed, True), (clear.request, clear.is_last))
        # Nobody knows what there is.
        self.assertEqual((), self.follow(closed=[closed]).clears)

    def test_a_request_that_closes_is_cleaned_up_at_once(self):
        found = self.follow(base.request('a', not_after=base.ago(1)))
        self.assertEqual(['a'], [each.request.uuid for each in found.clears])
        self.assertEqual((), found.requests)
        gone = running(backlog_model.RUNNING)
        found = self.follow(gone,
            seen={gone.uuid: request_servers.FoundServers()})
        self.assertEqual(backlog_model.DONE, found.records[0].verdict.state)
        self.assertEqual((backlog_model.DONE, True), (
            found.clears[0].request.state, found.clears[0].is_last))

    def test_an_intent_that_was_not_carried_out_is_repeated(self):
        """The process died before it carried out any intent."""
        late = base.request('a', not_after=base.ago(1))
        self.assertEqual(self.follow(late), self.follow(late))


class TestStep(StepTestCase):

    def test_starts_and_notes(self):
        first, second, launch = self.step(
            base.request('a', vcpus(3)), base.request('b', vcpus(2)))
        self.assertEqual((1, {}), (first.note.position, first.note.waits_for))
        self.assertEqual('room', second.note.waits_for['code'])
        self.assertEqual(batch_plans.PlannedBoot('a', '3', 1), launch.start)

    def test_an_unchanged_note_is_not_repeated(self):
        request = base.request('b', vcpus(5))
        (note,) = self.step(request)
        told = dataclasses.replace(
            request, position=note.note.position,
            waits_for=note.note.waits_for, estimate_s=note.note.estimate_s)
        self.assertEqual([], self.step(told))

    def test_equal_input_gives_an_equal_step(self):
        observed = self.observe(base.request('a', vcpus(3)),
                                base.request('b', vcpus(2)))
        now_us = times.microseconds(self.now)
        found = [backlog_controller.step(observed, self.memory, now_us)
                 for _ in range(2)]
        self.assertEqual(*found)
        self.assertEqual(now_us + 10 * 10**6, found[0].wake_at_us)

    def test_a_clock_that_is_turned_back(self):
        request = base.request('a', vcpus(5))
        self.step(request)
        self.now -= datetime.timedelta(days=2)
        self.assertEqual([('RecordWaitReason', 'a')], self.kinds(request))
        self.assertEqual([('RecordWaitReason', 'b'), ('Launch', 'b')],
                         self.kinds(base.request('b')))
        self.now += datetime.timedelta(days=4)
        self.assertEqual([('RecordWaitReason', 'b'), ('Launch', 'b')],
                         self.kinds(base.request('b')))


class TestStartable(unittest.TestCase):

    def test_startable_requests(self):
        for request, expected in (
                (base.request(), True),
                (running(backlog_model.RUNNING), False),
                (base.request(state=backlog_model.CANCELLED), False),
                (placing(backlog_model.BUILDING), False),
                (dataclasses.replace(running(backlog_model.RUNNING, count=2),
                                     state=backlog_model.PARTLY_ACTIVE), True),
                (dataclasses.replace(
                    running(backlog_model.RUNNING, count=2,
                            not_after=base.NOW),
                    state=backlog_model.PARTLY_ACTIVE), False),
                (dataclasses.replace(
                    running(backlog_model.AWAY, count=2),
                    state=backlog_model.EVICTED),
                 False)):
            self.assertIs(expected, boot_outcome.is_startable(
                request, base.NOW), request)


class TestUnknownCapacity(StepTestCase):

    def test_requests_that_could_start_are_noted(self):
        requests = [
            base.request('a', position=4), base.request('b'),
            base.request('c', not_before=base.ago(-9)),
            base.request('d', next_try_at=base.ago(-9)),
            base.request('e', not_before=base.ago(9))]
        notes = backlog_controller.step(dataclasses.replace(
            self.observe(*requests), cloud=None), self.memory,
            times.microseconds(self.now)).intents
        self.assertEqual({'a': 4, 'b': None, 'e': None}, {
            item.request.uuid: item.note.position for item in notes})
        self.assertEqual({('room_unknown', None)}, {
            (item.note.waits_for['code'], item.note.estimate_s)
            for item in notes})


class TestFaults(StepTestCase):

    def test_a_fault_does_not_stop_other_requests(self):
        bad = base.request('bad', body=None)
        fault, *_, launch = self.step(base.request('a'), bad)
        self.assertEqual(bad, fault.request)
        self.assertIsInstance(fault.exception, AttributeError)
        self.assertEqual('a', launch.request.uuid)
        self.assertIn(('RecordWaitReason', 'bad'), self.kinds(bad))


class TestQuotas(StepTestCase):

    def test_quotas_are_requested(self):
        request = base.request('a', vcpus(8), created_at=base.ago(3600))
        self.assertEqual([('RecordWaitReason', 'a'), ('FetchUserQuota', 'a')],
                         self.kinds(request, quotas={}))


class TestUses(unittest.TestCase):

    def test_usage_of_planned_starts(self):
        requests = {uuid: base.request(uuid, vcpus(4), vcpus(2))
                    for uuid in 'xyz'}
        starts = [dispatch.PlannedBoot('x', '2', 3, {'a': 2, 'b': 1}),
                  dispatch.PlannedBoot('y', '4', 1, {'a': 1}),
                  # Nova chooses.
                  dispatch.PlannedBoot('z', '2', 1)]
        self.assertEqual(
            [{'name': name, 'resources': {'VCPU': {
                'capacity': 8, 'used': used, 'used_after': used_after}}}
             for name, used, used_after in (
                 ('a', 0, 8), ('b', 3, 5), ('c', 9, 9))],
            batch_plans.host_usage(
                [dataclasses.replace(host(name, free), capacity={'VCPU': 8})
                 for name, free in (('c', -1), ('b', 5), ('a', 8))],
                starts, requests))

    def test_usage_without_starts(self):
        self.assertEqual([], batch_plans.host_usage([], [], {}))


if __name__ == '__main__':
    unittest.main()
