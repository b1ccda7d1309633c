# SPDX-License-Identifier: Apache-2.0
"""Server groups in a pass that places one by one."""

import dataclasses
import unittest

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import wait_estimate
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus
from tests.unit.core.backlog.test_host_capacity import held

NEAR = group_placement.Group('near', group_placement.AFFINITY)
FAR = group_placement.Group('far', group_placement.ANTI_AFFINITY)


def in_group(name, uuid, *alternatives, **values):
    return base.request(uuid, *alternatives, body={
        'server': {}, 'os:scheduler_hints': {'group': name}}, **values)


def near(uuid, *alternatives, **values):
    return in_group('near', uuid, *alternatives, **values)


def far(uuid, *alternatives, **values):
    return in_group('far', uuid, *alternatives, **values)


def with_group(place, **members):
    return dataclasses.replace(place, members=members)


def decide(requests, rooms, *known, planner=None, options=None, **kwargs):
    return base.decide(
        requests, rooms, base.NOW, options or dispatch.Options(),
        planner=planner,
        known_groups={group.uuid: group for group in known or (NEAR, FAR)},
        **kwargs)


def started(found):
    return {start.uuid: start.count for start in found.starts}


def waits(found):
    return {uuid: note.waits_for['code']
            for uuid, note in found.notes.items()}


class TestWhich(unittest.TestCase):

    def test_group_hint_reads_the_name(self):
        self.assertEqual('', group_placement.group_hint(base.request()))
        for name in ('os:scheduler_hints', 'OS-SCH-HNT:scheduler_hints'):
            for value, found in (('g', 'g'), (['g'], ''), (None, ''),
                                 (7, '')):
                self.assertEqual(found,
                    group_placement.group_hint(base.request(
                    body={'server': {}, name: {'group': value}})))
        for odd in (None, [], 'g'):
            self.assertEqual('', group_placement.group_hint(base.request(
                body={'server': {}, 'os:scheduler_hints': odd})))

    def test_group_of_finds_the_group(self):
        known = {'near': NEAR}
        self.assertIsNone(group_placement.group_of(base.request(), known))
        self.assertIsNone(group_placement.group_of(far('x'), known))
        self.assertEqual(NEAR, group_placement.group_of(near('x'), known))
        # Its own goes before one that it names.
        apart = near('x', apart=True, count=2, servers=base.servers(
            backlog_model.RUNNING))
        self.assertEqual(
            group_placement.Group('x', group_placement.ANTI_AFFINITY,
                                  members=frozenset(['s0'])),
            group_placement.group_of(apart, known))

    def test_on_hosts(self):
        known = [dataclasses.replace(NEAR, members=frozenset('abz')),
                 dataclasses.replace(FAR, members=frozenset('b'))]
        self.assertEqual(
            {'h': {'near': 2, 'far': 1}},
            group_placement.members_by_host(known, {'h': frozenset('abc'),
                                             'i': frozenset('c')}))
        self.assertEqual({}, group_placement.members_by_host([FAR],
                                                      {'h': frozenset('a')}))
        rooms = [dataclasses.replace(host('h', 1), consumers=frozenset('b')),
                 host('i', 1)]
        self.assertEqual([{'near': 1, 'far': 1}, {}], [
            each.members for each in host_capacity.with_members(rooms, known)])


class TestAffinity(unittest.TestCase):

    def test_an_affinity_group_starts_on_one_host(self):
        rooms = [host('a', 2), host('b', 3)]
        self.assertEqual({'x': 3}, started(decide(
            [near('x', count=3)], rooms)))
        found = decide([near('x', count=4)], rooms)
        self.assertEqual({'x': 'group'}, waits(found))
        self.assertIn('on the same host', found.notes['x'].waits_for['text'])
        self.assertEqual({'x': 3}, started(decide(
            [near('x', count=4, least_count=2)], rooms)))

    def test_new_members_start_on_the_host_of_the_group(self):
        rooms = [host('a', 9), with_group(host('b', 1), near=1)]
        found = decide([near('x'), near('y'), base.request('z')], rooms)
        self.assertEqual({'x': 1, 'z': 1}, started(found))
        self.assertEqual({'y': 'group'}, waits(found))
        self.assertIn('has no capacity', found.notes['y'].waits_for['text'])

    def test_on_several_hosts(self):
        """A member was moved: new members may join either host."""
        rooms = [host('a', 9), with_group(host('b', 1), near=1),
                 with_group(host('c', 1), near=1)]
        self.assertEqual({'x': 1, 'y': 1}, started(decide(
            [near('x'), near('y'), near('z')], rooms)))

    def test_no_member_starts_if_the_host_is_not_in_use(self):
        """Its host is down or disabled, so Nova would find no host."""
        found = decide([near('x')], [host('a', 9)], dataclasses.replace(
            NEAR, elsewhere=True))
        self.assertEqual({'x': 'group'}, waits(found))
        self.assertIn('not in use', found.notes['x'].waits_for['text'])

    def test_a_member_without_space_does_not_blame_the_group(self):
        """The group is not the reason."""
        found = decide([near('x', vcpus(9))], [host('a', 8)])
        self.assertEqual({'x': 'too_large'}, waits(found))
        found = decide([near('x')], [host('a', 0)])
        self.assertEqual({'x': 'room'}, waits(found))

    def test_members_wait_until_the_first_has_its_host(self):
        """Nova chooses its host."""
        rooms = [host('a', 9), host('b', 9)]
        found = decide([near('x'), near('y'), base.request('z')], rooms)
        self.assertEqual({'x': 1, 'z': 1}, started(found))
        self.assertEqual({'y': 'group'}, waits(found))
        self.assertIn('has not chosen', found.notes['y'].waits_for['text'])
        for hosts, code in (({}, {'y': 'group'}), ({'gone': 1},
                                                   {'y': 'group'}),
                            ({'b': 1}, {})):
            found = decide([near('y')], rooms, pending=[
                (vcpus(1), 1, hosts, 'near')])
            self.assertEqual(code, waits(found), hosts)

    def test_the_host_of_the_group_is_kept(self):
        """It is kept for a request that has waited long."""
        rooms = [with_group(host('a', 1), near=1), host('b', 2)]
        found = decide([near('x', vcpus(2), created_at=base.ago(7200)),
                        base.request('y')], rooms)
        self.assertEqual((('x',), {'x': 'group'}),
                         (found.held, waits(found)))
        tracker = CapacityTracker(rooms)
        tracker.hold(vcpus(2), 1, NEAR)
        self.assertEqual({'b': 1}, tracker.take(vcpus(1), 1))
        # All of them on one host.
        tracker = CapacityTracker([host('a', 7), host('b', 3)])
        tracker.hold(vcpus(4), 2, NEAR)
        self.assertEqual([-1, 3], [
            each.free['VCPU'] for each in tracker.left([])])


class TestHolds(unittest.TestCase):
    """Hosts are kept for requests that have waited long and can start."""

    OLD = base.ago(7200)

    def test_no_host_is_kept_if_the_group_host_is_too_small(self):
        """Such requests do not use the quota of kept hosts."""
        rooms = [with_group(host('a', 1, capacity=4), near=1), host('b', 6)]
        found = decide(
            [near('x', vcpus(3), count=2, created_at=self.OLD),
             base.request('y', vcpus(8), created_at=self.OLD)], rooms,
            options=dispatch.Options(most_holds=1),
            pace=wait_estimate.PlacementPace(3600, {'VCPU': 60}, 60))
        self.assertEqual({'x': 'too_large', 'y': 'room'}, waits(found))
        self.assertIsNone(found.notes['x'].estimate_s)
        self.assertNotIn('kept', found.notes['x'].waits_for['text'])
        self.assertIn('The host of its', found.notes['x'].waits_for['text'])
        self.assertEqual(('y',), found.held)

    def test_too_large_without_free_space(self):
        for request, text in (
            (near('x', vcpus(5), count=2), 'on the same host'),
            (far('x', count=3), 'per host'),
            (base.request('x', count=3, apart=True), 'per host'),
        ):
            found = decide(
                [dataclasses.replace(request, created_at=self.OLD)],
                [host('a', 0), host('b', 0)])
            self.assertEqual({'x': 'too_large'}, waits(found))
            self.assertIn(text, found.notes['x'].waits_for['text'])
            self.assertEqual((), found.held)

    def test_no_host_is_kept_if_the_group_host_is_kept_already(self):
        rooms = [with_group(host('a', 1), near=1), host('b', 0)]
        found = decide([near(name, vcpus(4), created_at=self.OLD)
                        for name in 'xy'], rooms)
        self.assertEqual(('x',), found.held)
        self.assertNotIn('kept', found.notes['y'].waits_for['text'])

    def test_no_host_is_kept_if_the_group_host_is_not_in_use(self):
        found = decide([near('x', vcpus(4), created_at=self.OLD)],
                       [host('a', 4)],
                       dataclasses.replace(NEAR, elsewhere=True))
        self.assertEqual(((), {'x': 'group'}), (found.held, waits(found)))
        self.assertNotIn('kept', found.notes['x'].waits_for['text'])

    def test_hosts_are_kept_for_the_flavor_that_can_fit(self):
        found = decide(
            [base.request('x', vcpus(9), vcpus(8), created_at=self.OLD),
             base.request('y')], [host('a', 7)])
        self.assertEqual((('x',), {'x': 'room', 'y': 'room'}),
                         (found.held, waits(found)))

    def test_a_host_is_kept_for_all_servers_of_an_affinity_group(self):
        """Each host has space for some members, none for all."""
        rooms = [host('a', 16, capacity=32), host('b', 16, capacity=32)]
        found = decide([near('x', vcpus(8), count=4, created_at=self.OLD),
                        base.request('y', vcpus(16), count=2)], rooms)
        self.assertEqual((('x',), {'x': 'group', 'y': 'room'}),
                         (found.held, waits(found)))
        self.assertIn('same host by their server group. Hosts are kept',
                      found.notes['x'].waits_for['text'])

    def test_one_host_is_kept_for_an_affinity_group(self):
        """All members have to start on the host of the first."""
        rooms = [host('a', 4), host('b', 4)]
        found = decide(
            [near('x', vcpus(8), created_at=self.OLD),
             near('y', vcpus(7), created_at=self.OLD), base.request('z')],
            rooms)
        self.assertEqual((('x',), {'z': 1}), (found.held, started(found)))
        self.assertNotIn('kept', found.notes['y'].waits_for['text'])
        tracker = CapacityTracker(rooms)
        self.assertEqual([1, 0, 1, 0], [
            held(tracker, vcpus(8), 1, group)[0] for group in (
                NEAR, NEAR, dataclasses.replace(NEAR, uuid='other'), None)])

    def test_hosts_without_members_are_kept_for_anti_affinity(self):
        """Only a host with a member has space; others fill the rest."""
        rooms = [with_group(host('a', 4), far=1), host('b', 1)]
        found = decide([far('x', vcpus(2), created_at=self.OLD),
                        base.request('y', count=5)], rooms)
        self.assertEqual((('x',), {'x': 'group', 'y': 'room'}),
                         (found.held, waits(found)))

    def test_no_host_is_kept_if_own_servers_occupy_the_hosts(self):
        """Only they could free space."""
        rooms = [with_group(host('a', 4), far=1), host('b', 4)]
        found = decide([far('x', count=2, created_at=self.OLD),
                        base.request('y', count=8)], rooms)
        self.assertEqual((('x',), {'x': 'group'}),
                         (tuple(found.notes), waits(found)))
        self.assertEqual(((), {'y': 8}), (found.held, started(found)))


class TestAntiAffinity(unittest.TestCase):

    def test_anti_affinity_starts_one_server_a_host(self):
        rooms = [host('a', 9), host('b', 9)]
        found = decide([far('x'), far('y'), far('z')], rooms)
        self.assertEqual({'x': 1, 'y': 1}, started(found))
        self.assertEqual({'z': 'group'}, waits(found))
        self.assertIn('the maximum number of servers',
                      found.notes['z'].waits_for['text'])
        rooms = [host('a', 9), host('b', 0)]
        found = decide([far('x', count=2)], rooms)
        self.assertEqual({'x': 'group'}, waits(found))
        self.assertIn('do not have enough capacity for the servers',
                      found.notes['x'].waits_for['text'])
        rooms = [host('a', 9), host('b', 9)]
        self.assertEqual({'x': 2}, started(decide([far('x', count=2)],
                                                  rooms)))
        self.assertEqual({'x': 2}, started(decide(
            [far('x', count=3, least_count=2)], rooms)))

    def test_members_of_an_anti_affinity_group_count(self):
        rooms = [with_group(host('a', 9), far=1), host('b', 9)]
        self.assertEqual({'x': 1}, started(decide([far('x'), far('y')],
                                                  rooms)))
        # More than one, as its rule has it; and more than it allows now.
        three = dataclasses.replace(FAR, most=3)
        for there, rest in ((0, 6), (2, 4), (3, 3), (5, 3)):
            rooms = [with_group(host('a', 9), far=there), host('b', 9)]
            self.assertEqual({'x': rest}, started(decide(
                [far('x', count=9, least_count=1)], rooms, three)), there)

    def test_pending_members_of_an_anti_affinity_group_count(self):
        rooms = [host('a', 9), host('b', 9)]
        self.assertEqual({'x': 1}, started(decide(
            [far('x'), far('y')], rooms,
            pending=[(vcpus(1), 1, {'b': 1}, 'far')])))

    def test_members_of_other_groups_do_not_count(self):
        other = dataclasses.replace(FAR, uuid='other')
        self.assertEqual({'x': 1, 'y': 1}, started(decide(
            [far('x'), in_group('other', 'y')], [host('a', 2)], FAR, other)))

    def test_own_servers_of_a_partly_active_request_count(self):
        """Its servers exclude further servers from their hosts."""
        request = base.request('x', count=3, least_count=1, apart=True,
                               servers=base.servers(backlog_model.RUNNING))
        rooms = host_capacity.with_members(
            [dataclasses.replace(host('a', 9), consumers=frozenset(['s0'])),
             host('b', 9)], [group_placement.own_group(request)])
        self.assertEqual({'x': 1}, started(decide([request], rooms)))


class TestUnknown(unittest.TestCase):

    def test_unknown_groups_are_left_to_nova(self):
        """Groups of other projects, deleted groups, soft policies."""
        rooms = [host('a', 9)]
        self.assertEqual({'x': 1, 'y': 1}, started(base.decide(
            [far('x'), far('y')], rooms, base.NOW, dispatch.Options())))


class TestLeft(unittest.TestCase):

    def test_hosts_with_members_are_listed(self):
        """A host that is reserved soon has no space, but its members count."""
        rooms = [dataclasses.replace(host(name, 4), free_s=60,
                                     members=members)
                 for name, members in (('a', {'near': 1}), ('b', {}))]
        left = CapacityTracker(
            [*rooms, host('c', 4)], lambda _: 600).left([vcpus(1)])
        self.assertEqual([('a', {}), ('c', {'VCPU': 4})],
                         [(each.host, each.free) for each in left])

    def test_copies_are_independent(self):
        tracker = CapacityTracker([host('a', 4)])
        other = tracker.copy()
        other.take_at(vcpus(1), {'a': 1}, FAR)
        self.assertEqual((1, 0), (tracker.count(vcpus(1), 9, FAR),
                                  other.count(vcpus(1), 9, FAR)))
