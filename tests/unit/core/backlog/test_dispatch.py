# SPDX-License-Identifier: Apache-2.0
"""Tests of a pass over the waiting requests."""

import dataclasses
import datetime
import unittest
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import batch_plans
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import wait_estimate
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import codes
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import starts
from tests.unit.core.backlog.base import vcpus

LATER = base.NOW + datetime.timedelta(seconds=90)


def decide(requests, rooms, now=base.NOW, pace=None, **options):
    return base.decide(requests, rooms, now, dispatch.Options(**options),
                       pace=pace)


class TestDecide(unittest.TestCase):

    def test_a_request_that_does_not_fit_does_not_stop_others(self):
        found = decide([base.request('a', vcpus(8)), base.request('b'),
                        base.request('c')], [host('h', 1)])
        self.assertEqual([('b', 'small', 1)], starts(found))
        self.assertEqual({'a': 'room', 'c': 'room'}, codes(found))
        self.assertEqual({'a': 1, 'c': 3}, {
            uuid: note.position for uuid, note in found.notes.items()})
        self.assertEqual({'VCPU': 7}, found.notes['a'].waits_for['lacks'])
        self.assertEqual({'VCPU': 1}, found.notes['a'].waits_for['hosts'])

    def test_requests_that_start_get_a_position(self):
        """Nothing else changes, as the start may still fail."""
        waits_for = {'code': 'room', 'text': 'None.'}
        found = decide([base.request('a', position=7, waits_for=waits_for,
                                     estimate_s=9), base.request('b')],
                       [host('h', 1)])
        self.assertEqual({'a': dispatch.WaitNote(1, waits_for, 9)},
                         found.chosen)
        self.assertEqual(2, found.notes['b'].position)

    def test_a_fault_of_one_request_does_not_stop_others(self):
        for method in ('check', 'look'):
            real = getattr(dispatch._Pass, method)

            def fail(one, request, real=real):
                if request.uuid == 'bad':
                    raise TypeError('no ids')
                return real(one, request)

            with self.subTest(method), mock.patch.object(
                    dispatch._Pass, method, fail):
                found = decide([base.request('a'), base.request('bad'),
                                base.request('c')], [host('h', 1)])
                self.assertEqual([('a', 'small', 1)], starts(found))
                self.assertEqual({'bad': 'fault', 'c': 'room'}, codes(found))
                self.assertEqual([None, 2], [
                    found.notes[uuid].position for uuid in ('bad', 'c')])
                self.assertEqual(['bad'], list(found.faults))
                self.assertIsInstance(found.faults['bad'], TypeError)

    def test_all_servers_of_a_count_start_together(self):
        rooms = [host('h', 2), host('i', 1)]
        self.assertEqual([('a', 'small', 3)], starts(decide(
            [base.request('a', count=3)], rooms)))
        found = decide([base.request('a', count=4), base.request('b')], rooms)
        self.assertEqual([('b', 'small', 1)], starts(found))
        self.assertIn('enough', found.notes['a'].waits_for['text'])

    def test_as_many_servers_as_fit_start_above_the_least_count(self):
        self.assertEqual([('a', 'small', 3)], starts(decide(
            [base.request('a', count=9, least_count=2)],
            [host('h', 2), host('i', 1)])))

    def test_missing_servers_start_one_by_one(self):
        """The least count runs already."""
        request = base.request('a', count=5, least_count=3,
                               servers=base.servers(*[backlog_model.RUNNING]
                                                    * 3))
        self.assertEqual([('a', 'small', 1)], starts(decide(
            [request], [host('h', 1)])))
        request = dataclasses.replace(request, servers=base.servers(
            backlog_model.RUNNING, backlog_model.ENDED))
        self.assertEqual([], starts(decide([request], [host('h', 1)])))
        self.assertEqual([('a', 'small', 2)], starts(decide(
            [request], [host('h', 2)])))

    def test_alternatives_in_their_order(self):
        request = base.request('a', vcpus(4), vcpus(2), vcpus(1))
        for free, expected in ((4, '4'), (3, '2'), (1, '1')):
            self.assertEqual([('a', expected, 1)], starts(decide(
                [request], [host('h', free)])))

    def test_a_request_does_not_start_before_its_time(self):
        found = decide([base.request('a', not_before=LATER),
                        base.request('b', next_try_at=LATER, tries=3),
                        base.request('c', not_before=base.NOW)],
                       [host('h', 8)])
        self.assertEqual([('c', 'small', 1)], starts(found))
        self.assertEqual({'a': 'window', 'b': 'retry'}, codes(found))
        self.assertIn('3 times', found.notes['b'].waits_for['text'])

    def test_the_last_answer_of_nova_stays_in_waits_for(self):
        waits_for = {'code': 'quota', 'text': 'Quota exceeded'}
        request = base.request(next_try_at=LATER, tries=3,
                               waits_for=waits_for)
        decided = decide([request], [host('h', 9)])
        self.assertEqual(waits_for, decided.notes['r1'].waits_for)

    def test_no_host_is_large_enough(self):
        found = decide([base.request('a', vcpus(9))], [host('h', 1)],
                       now=LATER, hold_after_s=0)
        self.assertEqual({'a': 'too_large'}, codes(found))
        self.assertEqual((), found.held)

    def test_too_large_if_empty_hosts_do_not_suffice(self):
        """No host is kept for a request that cannot start on empty ones."""
        rooms = [host('h', 4), host('i', 4)]
        for count, code in ((16, 'room'), (17, 'too_large')):
            found = decide(
                [base.request('a', count=count, created_at=base.ago(60)),
                 base.request('b')], rooms, hold_after_s=60)
            self.assertEqual(code, codes(found)['a'])
        self.assertEqual(['b'], [start.uuid for start in found.starts])
        self.assertEqual((), found.held)
        self.assertIsNone(found.notes['a'].estimate_s)
        self.assertIn('could not run the servers',
                      found.notes['a'].waits_for['text'])
        # Once it has some it asks for the rest one by one.
        found = decide([base.request(
            'a', count=17,
            servers=base.servers(*[backlog_model.RUNNING] * 16))],
            [host('h', 0)])
        self.assertEqual({'a': 'room'}, codes(found))

    def test_a_project_does_not_make_a_pass_long(self):
        requests = [base.request(str(number)) for number in range(4)]
        requests.append(base.request('other', project_id='p2'))
        found = decide(requests, [host('h', 8)], most_of_project=2)
        self.assertEqual(['0', '1', 'other'],
                         [start.uuid for start in found.starts])
        self.assertEqual({'2': 'turn', '3': 'turn'}, codes(found))
        found = decide(requests, [host('h', 8)], most_starts=1)
        self.assertEqual(['0'], [start.uuid for start in found.starts])

    def test_no_hosts_and_no_requests(self):
        self.assertEqual(dispatch.PassResult((), {}), decide([], []))
        found = decide([base.request()], [])
        self.assertEqual({'r1': 'no_host'}, codes(found))
        # All may be down, which is nothing to change flavors for.
        self.assertIn('No enabled host', found.notes['r1'].waits_for['text'])


class TestTime(unittest.TestCase):
    """A pass ends when its time is over; the next pass continues."""

    def run_pass(self, requests, looks, unseen=(), free=0):
        left = iter(range(looks))
        return base.decide(
            requests, [host('h', free)], base.NOW, dispatch.Options(),
            unseen=unseen, is_over=lambda: next(left, None) is None)

    def test_unseen_requests_come_first_in_the_next_pass(self):
        requests = [base.request(str(number)) for number in range(5)]
        found = self.run_pass(requests, 2)
        self.assertEqual({'3', '4'}, found.unseen)
        self.assertEqual(
            {'0': 1, '1': 2, '2': 3, '3': 4, '4': 5},
            {uuid: note.position for uuid, note in found.notes.items()})
        self.assertIn('before its turn', found.notes['4'].waits_for['text'])
        found = self.run_pass(requests, 2, found.unseen)
        self.assertEqual({'1', '2'}, found.unseen)
        self.assertEqual(['3'], names(self.run_pass(
            requests, 2, {'3', '4'}, free=1)))

    def test_notes_of_unseen_requests_stay(self):
        waits_for = {'code': 'room', 'text': 'None.'}
        found = self.run_pass(
            [base.request('a'), base.request('b', waits_for=waits_for)], 0)
        self.assertEqual(waits_for, found.notes['b'].waits_for)

    def test_at_least_one(self):
        self.assertEqual(['a'], names(self.run_pass(
            [base.request('a'), base.request('b')], 0, free=2)))


def names(found):
    return [start.uuid for start in found.starts]


class TestOff(unittest.TestCase):
    """Normal servers wake hosts that are off, and preemptible ones do not."""

    def test_only_normal_servers_use_hosts_that_are_off(self):
        rooms = [dataclasses.replace(host('h', 8), off=True), host('i', 0)]
        spot = base.request('a', vcpus(1, preemptible=True))
        found = decide([spot, base.request('b')], rooms)
        self.assertEqual(['b'], names(found))
        self.assertEqual('No host has free capacity for one of its servers '
                         'now.', found.notes['a'].waits_for['text'])
        # Nor is anything of it planned for them.
        self.assertEqual(['i'], [
            each.host
            for each in CapacityTracker(rooms).left(spot.alternatives)])


class TestOnTheirWay(unittest.TestCase):

    def test_pending_servers_keep_their_space(self):
        found = base.decide(
            [base.request('a'), base.request('b')], [host('h', 3)], base.NOW,
            dispatch.Options(), pending=[(vcpus(2), 1, {}, '')])
        self.assertEqual(['a'], [start.uuid for start in found.starts])

    def test_pending_servers_may_exceed_the_space(self):
        self.assertEqual((), base.decide(
            [base.request('a')], [host('h', 1)], base.NOW, dispatch.Options(),
            pending=[(vcpus(1), 9, {}, ''),
                          (vcpus(2), 1, {}, '')]).starts)

    def test_pending_servers_use_their_chosen_hosts(self):
        """Chosen hosts that are gone or full do not count."""
        for hosts, rest in (({'i': 2}, 'i'), ({'h': 1, 'i': 1}, ''),
                            ({'gone': 2}, 'h'), ({'i': 9}, 'i')):
            found = base.decide(
                [base.request('a', vcpus(4))], [host('h', 4), host('i', 4)],
                base.NOW, dispatch.Options(), planner=One(),
                pending=[(vcpus(2), 2, hosts, '')])
            self.assertEqual(
                {'i': ['h'], '': [], 'h': ['i']}[rest],
                [name for start in found.starts for name in start.hosts],
                hosts)


class One:
    """Plans the first request where it fits first."""

    def plan(self, requests, rooms):
        wanted = requests[0].alternatives[0]
        hosts = [each.host for each in rooms
                 if each.free['VCPU'] >= wanted.resources['VCPU']]
        return {
            requests[0].uuid: batch_plans.PlannedHosts(wanted, {hosts[0]: 1})
                } if hosts else {}


class TestEstimates(unittest.TestCase):

    PACE = wait_estimate.PlacementPace(3600, {'VCPU': 60}, 60)

    def test_an_estimate_counts_the_requests_ahead(self):
        found = decide(
            [base.request('a'), base.request('b', vcpus(2), count=2),
             base.request('c', not_before=base.NOW + datetime.timedelta(
                 hours=9)),
             base.request('d', vcpus(9)),
             base.request('e', base.alternative('gpu', VCPU=1, VGPU=1))],
            [host('h', 0),
             host_capacity.HostCapacity('i', {}, {}, {'VCPU': 1, 'VGPU': 1})],
            pace=self.PACE)
        self.assertEqual(
            {'a': 60, 'b': 300, 'c': 9 * 3600, 'd': None, 'e': None},
            {uuid: note.estimate_s for uuid, note in found.notes.items()})

    def test_requests_that_never_start_do_not_count_as_ahead(self):
        gpu = dataclasses.replace(vcpus(1), required=('GPU',))
        found = decide(
            [base.request('a', vcpus(10**30)), base.request('b', gpu),
             base.request('c', count=99), base.request('d')],
            [host('h', 0)], pace=self.PACE)
        self.assertEqual(
            {'a': None, 'b': None, 'c': None, 'd': 60},
            {uuid: note.estimate_s for uuid, note in found.notes.items()})

    def test_an_estimate_beyond_the_database_is_none(self):
        found = decide([base.request('a', vcpus(10**30), vcpus(1)),
                        base.request('b')], [host('h', 0)], pace=self.PACE)
        self.assertEqual([None, None], [
            note.estimate_s for note in found.notes.values()])

    def test_no_estimate_without_a_pace(self):
        found = decide([base.request('a')], [host('h', 0)])
        self.assertIsNone(found.notes['a'].estimate_s)


class TestLaws(unittest.TestCase):

    requests = st.lists(st.tuples(
        st.integers(1, 9), st.booleans(), st.integers(1, 4),
        st.integers(1, 4), st.integers(0, 2)), max_size=8)
    hosts = st.lists(st.tuples(st.integers(-1, 8), st.integers(0, 4)),
                     max_size=5)

    def make(self, rows):
        return [base.request(
            f'r{number}', vcpus(amount, preemptible=preemptible),
            vcpus(1, preemptible=preemptible),
            count=max(count, least), least_count=least,
            created_at=base.ago(age))
            for number, (amount, preemptible, count, least, age)
            in enumerate(rows)]

    @given(requests, hosts, st.integers(0, 3), st.randoms(
        use_true_random=False))
    def test_no_space_is_used_twice(self, rows, hosts, most_holds, rng):
        requests = self.make(rows)
        rooms = [host(f'h{number}', free, max(free, 0) + more,
                      capacity=max(free, 0) + more)
                 for number, (free, more) in enumerate(hosts)]
        found = decide(requests, rooms, hold_after_s=1,
                       most_holds=most_holds)
        of = {request.uuid: request for request in requests}
        used = {False: 0, True: 0}
        for start in found.starts:
            request = of[start.uuid]
            self.assertLessEqual(request.least_count, start.count)
            self.assertLessEqual(start.count, request.count)
            used[request.alternatives[0].preemptible] += (
                int(start.flavor_id) * start.count)
        self.assertLessEqual(used[True], sum(
            max(0, item.free['VCPU']) for item in rooms))
        self.assertLessEqual(used[False], sum(
            max(0, item.reclaimable['VCPU']) for item in rooms))
        # Each is started, or is told why not, whatever order hosts come in.
        self.assertEqual(
            sorted(of), sorted([*found.notes,
                                *(start.uuid for start in found.starts)]))
        self.assertEqual(
            set(range(1, len(of) + 1)),
            {note.position for notes in (found.notes, found.chosen)
             for note in notes.values()})
        rng.shuffle(rooms)
        self.assertEqual(found, decide(requests, rooms, hold_after_s=1,
                                       most_holds=most_holds))

    @given(requests, hosts)
    def test_no_request_waits_that_fits(self, rows, hosts):
        requests = [dataclasses.replace(
            request, count=1, least_count=1,
            alternatives=request.alternatives[:1])
            for request in self.make(rows)]
        requests = [request for request in requests
                    if not request.alternatives[0].preemptible]
        rooms = [host(f'h{number}', free, capacity=9)
                 for number, (free, _more) in enumerate(hosts)]
        found = decide(requests, rooms, most_holds=0)
        tracker = CapacityTracker(rooms)
        for start in found.starts:
            tracker.take(vcpus(int(start.flavor_id)), 1)
        for request in requests:
            if request.uuid in found.notes:
                self.assertEqual(0, tracker.count(request.alternatives[0], 1))


if __name__ == '__main__':
    unittest.main()
