# SPDX-License-Identifier: Apache-2.0
"""Server groups across the requests that are placed together."""

import collections
import dataclasses
import random
import unittest

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.batch import backlog_batch
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus
from tests.unit.core.backlog.test_group_placement import FAR
from tests.unit.core.backlog.test_group_placement import NEAR
from tests.unit.core.backlog.test_group_placement import decide
from tests.unit.core.backlog.test_group_placement import far
from tests.unit.core.backlog.test_group_placement import in_group
from tests.unit.core.backlog.test_group_placement import near
from tests.unit.core.backlog.test_group_placement import waits
from tests.unit.core.backlog.test_group_placement import with_group
from tests.unit.core.batch import base as batch_base


def plan(requests, rooms, *known, **options):
    known = known or (NEAR, FAR)
    options.setdefault('time_limit_s', 60)
    placer = solver_choice.make(batch_model.Options(**options))
    return decide(requests, rooms, *known, planner=backlog_batch.Planner(
        lambda: placer, {group.uuid: group for group in known}))


def hosts(found):
    return {start.uuid: dict(start.hosts) for start in found.starts}


class TestAffinity(unittest.TestCase):

    def test_a_group_uses_a_host_with_space_for_all(self):
        """Placed one by one, the first would use a host too small for all."""
        for mode in batch_model.MODES:
            self.assertEqual(
                {'x': {'b': 1}, 'y': {'b': 2}, 'z': {'a': 1}},
                hosts(plan([near('x', vcpus(2)), near('y', count=2),
                            base.request('z', vcpus(2))],
                           [host('a', 3), host('b', 4)], mode=mode)), mode)

    def test_earlier_requests_come_first_without_space_for_all(self):
        rooms = [host('a', 4), host('b', 3)]
        found = plan([near('x', vcpus(3)), near('y', vcpus(2)), near('z')],
                     rooms)
        self.assertEqual({'x': {'a': 1}, 'z': {'a': 1}}, hosts(found))
        self.assertEqual({'y': 'group'}, waits(found))
        # A part of the second is enough for it.
        self.assertEqual(
            {'x': {'a': 1}, 'y': {'a': 1}},
            hosts(plan([near('x', vcpus(3)),
                        near('y', count=5, least_count=1)], rooms)))

    def test_new_members_use_the_host_of_the_group(self):
        rooms = [host('a', 9), with_group(host('b', 2), near=7)]
        found = plan([near('x'), near('y', count=2), near('z')], rooms)
        self.assertEqual({'x': {'b': 1}, 'z': {'b': 1}}, hosts(found))
        self.assertEqual({'y': 'group'}, waits(found))

    def test_no_member_is_placed_if_the_host_is_not_in_use(self):
        self.assertEqual({'y': {'a': 1}}, hosts(plan(
            [near('x'), base.request('y')], [host('a', 9)],
            dataclasses.replace(NEAR, elsewhere=True))))

    def test_host_that_is_about_to_be_reserved(self):
        """It counts as the host of the group."""
        rooms = [host('a', 9), with_group(host('b', 9), near=1)]
        shown = [dataclasses.replace(each, free={})
                 if each.members else each for each in rooms]
        planner = backlog_batch.Planner(
            lambda: solver_choice.make(batch_model.Options()), {'near': NEAR})
        self.assertEqual({'x': backlog_batch.NO_ROOM},
                         planner.plan([near('x')], shown))

    def test_traits_of_all(self):
        rooms = [host_capacity.HostCapacity(name, *3 * ({'VCPU': 4},),
                                    traits=frozenset(traits))
                 for name, traits in (('a', ()), ('b', 'S'), ('c', 'ST'))]
        fast = backlog_model.Alternative('f', 'f', {'VCPU': 1},
                                         required=('T',))
        plain = backlog_model.Alternative('s', 's', {'VCPU': 1},
                                          required=('S',))
        self.assertEqual(
            {'x': {'c': 1}, 'y': {'c': 1}},
            hosts(plan([near('x', plain), near('y', fast)], rooms)))

    def test_alternative_flavors_use_the_host_of_the_group(self):
        """They are placed later, on the host of the group."""
        self.assertEqual(
            {'x': {'b': 1}, 'y': {'b': 1}},
            hosts(plan([near('x', vcpus(9), vcpus(2)), near('y', vcpus(4))],
                       [host('a', 3), host('b', 6)])))

    def test_two_groups_and_other_requests(self):
        other = dataclasses.replace(NEAR, uuid='other')
        self.assertEqual(
            {'x': {'b': 1}, 'y': {'a': 1}, 'x2': {'b': 1}, 'y2': {'a': 1}},
            hosts(plan([near('x', vcpus(2)), in_group('other', 'y'),
                        near('x2', vcpus(2)), in_group('other', 'y2')],
                       [host('a', 2), host('b', 4)], NEAR, other)))


class TestAntiAffinity(unittest.TestCase):

    def test_across_requests(self):
        rooms = [host('a', 9), host('b', 9), host('c', 9)]
        for mode in batch_model.MODES:
            found = hosts(plan([far('x'), far('y', count=2), far('z')],
                               rooms, mode=mode))
            self.assertEqual({'x', 'y'}, found.keys(), mode)
            self.assertEqual(['a', 'b', 'c'],
                             sorted([*found['x'], *found['y']]))

    def test_members_count(self):
        two = dataclasses.replace(FAR, most=2)
        rooms = [with_group(host('a', 9), far=1),
                 with_group(host('b', 9), far=2),
                 with_group(host('c', 9), far=5), host('d', 1)]
        for mode in batch_model.MODES:
            found = plan([far('x', count=2), far('y')], rooms, two,
                         mode=mode)
            self.assertEqual({'x': {'a': 1, 'd': 1}}, hosts(found), mode)
            self.assertEqual({'y': 'group'}, waits(found))

    def test_a_very_large_rule(self):
        self.assertEqual({'x': {'a': 9}}, hosts(plan(
            [far('x', count=9)], [host('a', 9)],
            dataclasses.replace(FAR, most=2**31 - 1))))

    def test_own_servers_of_a_partly_active_request_count(self):
        request = base.request('x', count=3, apart=True, least_count=1,
                               servers=base.servers(backlog_model.RUNNING))
        own = group_placement.own_group(request)
        rooms = host_capacity.with_members(
            [dataclasses.replace(host('a', 9), consumers=frozenset(['s0'])),
             host('b', 9)], [own])
        self.assertEqual({'x': {'b': 1}}, hosts(plan([request], rooms, own)))


class TestWhyAlone(unittest.TestCase):

    def why(self, *requests, rooms=(), known=(NEAR, FAR), **options):
        return {start.uuid: start.reason for start in plan(
            requests, rooms or [host('a', 9)], *known, **options).starts}

    def test_no_reason_for_a_planned_request(self):
        self.assertEqual({'x': ''}, self.why(base.request('x')))

    def test_hints_and_zones_are_not_planned(self):
        for body in ({'server': {}, 'os:scheduler_hints': {'group': 'soft'}},
                     {'server': {}, 'os:scheduler_hints': {
                         'group': 'near', 'same_host': 'u'}},
                     {'server': {'availability_zone': 'z'}}):
            self.assertEqual({'x': backlog_batch.BOUND},
                             self.why(base.request('x', body=body)))

    def test_devices(self):
        rooms = [host_capacity.HostCapacity('a',
                                    *3 * ({'VCPU': 4, 'VGPU': 2, 'X': 2},),
                                    parts=frozenset(['VGPU', 'X']))]
        device = backlog_model.Alternative('d', 'd', {'VCPU': 1, 'VGPU': 1})
        found = self.why(base.request('x', device), base.request('y'),
                         rooms=rooms)
        self.assertEqual('', found['y'])
        self.assertIn('requests VGPU, which', found['x'])

    def test_victims(self):
        self.assertEqual({'x': backlog_batch.NO_ROOM}, self.why(
            base.request('x'), rooms=[host('a', 0, reclaimable=1)]))

    def test_time(self):
        found = decide([base.request('x')], [host('a', 1)],
                       planner=backlog_batch.Planner(lambda: None))
        self.assertEqual([backlog_batch.TIME],
                         [start.reason for start in found.starts])

    def test_no_reason_without_a_planner(self):
        self.assertEqual([''], [start.reason for start in decide(
            [base.request('x')], [host('a', 1)]).starts])


class TestMany(unittest.TestCase):

    def test_a_group_of_a_thousand(self):
        rooms = [host(f'h{number:03}', number % 7, capacity=8)
                 for number in range(300)]
        for one in (near, far):
            requests = [one(f'r{number:04}') for number in range(1000)]
            placer = solver_choice.make(batch_model.Options(time_limit_s=60))
            found = decide(
                requests, rooms, options=dispatch.Options(1000, 1000),
                planner=backlog_batch.Planner(
                    lambda placer=placer: placer, {'near': NEAR, 'far': FAR}))
            if one is near:
                self.assertEqual(6, len(found.starts))
                self.assertEqual(1, len({
                    name for start in found.starts for name in start.hosts}))
            else:
                free = sum(each.free['VCPU'] > 0 for each in rooms)
                self.assertEqual(free, len(found.starts))

    def test_a_group_of_one_request(self):
        """It is placed as without a group."""
        for one in (near, far):
            self.assertEqual({'x': {'b': 1}}, hosts(plan(
                [one('x', vcpus(3))], [host('a', 2), host('b', 4)])))

    def test_twenty_thousand(self):
        """Few of them fit; the others are not searched one by one."""
        rooms = [host(f'h{number:03}', 2) for number in range(200)]
        for one, found in ((near, 2), (far, 200)):
            requests = [one(f'r{number:05}') for number in range(20_000)]
            self.assertEqual(found, len(decide(
                requests, rooms, options=dispatch.Options(1000, 1000),
                planner=backlog_batch.Planner(
                    lambda: solver_choice.make(
                        batch_model.Options(time_limit_s=60)),
                    {'near': NEAR, 'far': FAR})).starts))

    def test_no_time_is_left(self):
        """The first of an affinity group starts, others follow it then."""
        planner = backlog_batch.Planner(lambda: None,
                                        {'near': NEAR, 'far': FAR})
        rooms = [host('a', 9), host('b', 9)]
        found = decide([near('x'), near('y'), far('z')], rooms,
                       planner=planner)
        self.assertEqual({'x': {}, 'z': {}}, hosts(found))
        self.assertEqual({'y': 'group'}, waits(found))

    def test_earlier_requests_are_preferred(self):
        chance = random.Random(15)
        for _ in range(50):
            rooms = [host(f'h{number}', chance.randint(0, 9))
                     for number in range(4)]
            wishes = [
                backlog_batch.GroupRequest(vcpus(chance.randint(1, 4)), count,
                                           chance.randint(1, count))
                      for count in chance.choices((1, 2, 3), k=4)]
            self.assertEqual(
                max(one_host(wishes, each.free['VCPU']) for each in rooms),
                backlog_batch.HostRooms(rooms).fitting(wishes))
            self.assertEqual(
                one_host(wishes, rooms[1].free['VCPU']),
                backlog_batch.HostRooms(rooms).fitting(wishes, {'h1', 'gone'}))

    def test_more_than_can_be_counted(self):
        rooms = backlog_batch.HostRooms([host('a', 2**80), host('b', 4)])
        self.assertEqual([0, 1], rooms.fitting([
            backlog_batch.GroupRequest(vcpus(2**70), 1, 1),
            backlog_batch.GroupRequest(vcpus(9), 1, 1)]))
        self.assertEqual([0], backlog_batch.HostRooms([]).fitting([
            backlog_batch.GroupRequest(vcpus(1), 1, 1)]))


def one_host(wishes, free):
    """Return the number of servers of each request, the first preferred."""
    found = []
    for wish in wishes:
        size = wish.alternative.resources['VCPU']
        count = min(wish.count, free // size)
        found.append(count if count >= wish.least else 0)
        free -= size * found[-1]
    return found


POLICIES = {
    'near0': group_placement.AFFINITY, 'near1': group_placement.AFFINITY,
    'far0': group_placement.ANTI_AFFINITY,
    'far1': group_placement.ANTI_AFFINITY}


@st.composite
def batches(draw):
    """(Requests, rooms, groups), with members that run."""
    names = [f'h{number}' for number in range(draw(st.integers(1, 4)))]
    known = [group_placement.Group(name, policy, draw(st.integers(1, 3)),
                                   elsewhere=draw(st.integers(0, 9)) == 9)
             for name, policy in POLICIES.items()]
    rooms = []
    for number, name in enumerate(names):
        members = {'far0': draw(st.integers(0, 2))}
        # Where it is it is whole.
        if number == draw(st.integers(0, 5)):
            members |= {'near0': 1}
        rooms.append(with_group(
            host(name, draw(st.integers(-1, 8))),
            **{key: n for key, n in members.items() if n}))
    if sum('near0' in each.members for each in rooms) > 1:
        rooms = [with_group(each) for each in rooms]
    requests = []
    for number in range(draw(st.integers(0, 7))):
        group = draw(st.sampled_from(['', *POLICIES]))
        size = vcpus(draw(st.integers(1, 4)))
        count = draw(st.integers(1, 3))
        values = {'count': count,
                  'least_count': draw(st.integers(1, count))}
        requests.append(
            in_group(group, f'r{number}', size, **values) if group
            else base.request(f'r{number}', size, **values))
    return requests, rooms, known


modes = st.sampled_from(batch_model.MODES)


class TestLaws(unittest.TestCase):

    @settings(max_examples=80, deadline=None)
    @given(batches(), modes)
    def test_groups_are_as_they_have_to_be(self, batch, mode):
        requests, rooms, known = batch
        found = plan(requests, rooms, *known, mode=mode)
        named = {
            each.uuid: group_placement.group_hint(each) for each in requests}
        there = collections.defaultdict(collections.Counter)
        for each in rooms:
            for name, count in each.members.items():
                there[name][each.host] += count
        before = {name: dict(count) for name, count in there.items()}
        for start in found.starts:
            for name, count in start.hosts.items():
                there[named[start.uuid]][name] += count
        for group in known:
            if group.policy == group_placement.AFFINITY:
                self.assertLessEqual(len(there[group.uuid]), 1)
                if group.elsewhere and not before.get(group.uuid):
                    self.assertEqual({}, there[group.uuid])
                continue
            for name, count in there[group.uuid].items():
                self.assertLessEqual(count, max(
                    group.most, before.get(group.uuid, {}).get(name, 0)))

    @settings(max_examples=80, deadline=None)
    @given(batches(), modes)
    def test_no_capacity_is_exceeded(self, batch, mode):
        requests, rooms, known = batch
        found = plan(requests, rooms, *known, mode=mode)
        by_uuid = {each.uuid: each for each in requests}
        free = {each.host: each.free['VCPU'] for each in rooms}
        for start in found.starts:
            asked = by_uuid[start.uuid]
            self.assertLessEqual(asked.least_count, start.count)
            self.assertLessEqual(start.count, asked.count)
            if start.hosts:
                self.assertEqual(start.count, sum(start.hosts.values()))
            for name, count in start.hosts.items():
                free[name] -= count * asked.alternatives[0].resources['VCPU']
                self.assertGreaterEqual(free[name], 0)

    @settings(max_examples=80, deadline=None)
    @given(batches(), modes, st.randoms(use_true_random=False))
    def test_order_of_input(self, batch, mode, chance):
        requests, rooms, known = batch
        self.assertEqual(
            plan(requests, rooms, *known, mode=mode),
            plan(requests, chance.sample(rooms, len(rooms)),
                 *chance.sample(known, len(known)), mode=mode))

    @settings(max_examples=60, deadline=None)
    @given(batches(), modes, st.sampled_from((1, 3, 100)),
           st.randoms(use_true_random=False))
    def test_laws_of_batches_with_groups(self, batch, mode, at_once, chance):
        """Requests in any order and in parts, with members of groups."""
        _requests, rooms, known = batch
        states = [batch_base.host(each.host, each.free['VCPU'],
                                  capacity=(8,)) for each in rooms]
        members = {group.uuid: {
            each.host: each.members[group.uuid] for each in rooms
            if group.uuid in each.members} for group in known}
        wanted = [
            batch_model.Request(
                f'r{number}', number,
                batch_base.request(0, chance.randint(1, 3)).resources,
                apart=(batch_model.AntiAffinity(group.uuid, group.most),))
            for number, group in enumerate(
                chance.choices(known[2:], k=6))]
        placer = solver_choice.make(batch_model.Options(
            mode=mode, most_at_once=at_once, time_limit_s=60))
        found = placer.place(wanted, states, members)
        self.assertEqual(found, placer.place(
            chance.sample(wanted, len(wanted)), states,
            dict(chance.sample(list(members.items()), len(members)))))
        for group in known[2:]:
            there = collections.Counter()
            for each in wanted:
                if each.apart[0].group == group.uuid:
                    there.update(found.placed.get(each.uuid, {}))
            for name, count in there.items():
                self.assertLessEqual(
                    count + members[group.uuid].get(name, 0), group.most)
