# SPDX-License-Identifier: Apache-2.0
"""Hosts that are kept free, for which requests, how many and how long."""

import dataclasses
import datetime
import unittest
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import kept_host_turns
from nova_preempt.core.backlog import kept_hosts
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus

HOUR = 3600
USED_UP = {'maxTotalInstances': 1, 'totalInstancesUsed': 1}


def later(seconds):
    return base.NOW + datetime.timedelta(seconds=seconds)


class Cloud:
    """A cloud in which no server ends and requests wait."""

    def __init__(self, rooms, requests, **options):
        self.rooms = rooms
        self.requests = {request.uuid: request for request in requests}
        self.options = dispatch.Options(**options)
        self.started = {}
        self.turns = {}

    def look(self, at_s, ranked=None):
        ranked = ranked or sorted(self.requests)
        found = base.decide(
            [self.requests[uuid] for uuid in ranked
             if uuid in self.requests], self.rooms, later(at_s), self.options,
            turns=self.turns)
        self.turns = found.turns
        for start in found.starts:
            del self.requests[start.uuid]
            self.started[start.uuid] = at_s
        for uuid, note in found.notes.items():
            self.requests[uuid] = dataclasses.replace(
                self.requests[uuid], waits_for=note.waits_for)
        return found


def kept(found):
    """{uuid: for how many hosts}."""
    return {uuid: found.notes[uuid].waits_for[kept_hosts.KEPT]['hosts']
            for uuid in found.held}


class TestBounds(unittest.TestCase):

    def test_two_large_requests_do_not_stop_the_others(self):
        """Each wants 100 servers on 200 hosts; 200 small requests fit."""
        rooms = [host(f'h{number:03}', 1) for number in range(200)]
        large = [base.request(f'a{number}', vcpus(8), count=100,
                              created_at=base.ago(HOUR))
                 for number in range(2)]
        small = [base.request(f'b{number:03}', project_id='p2')
                 for number in range(200)]
        options = {'most_starts': 500, 'most_of_project': 500}
        found = Cloud(rooms, large + small, **options).look(0)
        self.assertEqual(200, len(found.starts))
        self.assertIn('more hosts than can be kept',
                      found.notes['a0'].waits_for['text'])
        # Of smaller servers several are on one of the hosts that are kept.
        large = [dataclasses.replace(request, alternatives=(vcpus(2),))
                 for request in large]
        found = Cloud(rooms, large + small, **options).look(0)
        self.assertEqual({'a0': 25}, kept(found))
        self.assertEqual(175, len(found.starts))
        told = found.notes['b199'].waits_for
        self.assertIn('are kept free for requests', told['text'])
        self.assertEqual(25, told['kept_from'])

    def test_a_project_gets_half_of_the_kept_hosts(self):
        rooms = [host(f'h{number:02}', 1) for number in range(32)]
        requests = [
            base.request(f'{project}{number}', vcpus(8), project_id=project,
                         created_at=base.ago(HOUR))
            for project in 'pqr' for number in range(10)]
        self.assertEqual(
            {'p0': 1, 'p1': 1, 'p2': 1, 'p3': 1,
             'q0': 1, 'q1': 1, 'q2': 1, 'q3': 1},
            kept(base.decide(requests, rooms, base.NOW,
                             dispatch.Options())))
        self.assertEqual(
            {'p0': 1, 'p1': 1, 'q0': 1},
            kept(base.decide(requests, rooms, base.NOW,
                             dispatch.Options(most_holds=3))))

    def test_the_number_of_trials_is_limited(self):
        """Each trial evaluates all hosts."""
        rooms = [host(f'h{number:02}', 1) for number in range(16)]
        flavors = [vcpus(number) for number in range(2, 9)]
        requests = [base.request(f'a{count:03}', *flavors, count=count,
                                 project_id=f'p{count % 9}',
                                 created_at=base.ago(HOUR))
                    for count in range(1, 101)]
        asked, hold = [], CapacityTracker.hold

        def counted(*args):
            asked.append(args)
            return hold(*args)

        with mock.patch.object(CapacityTracker, 'hold', counted):
            found = base.decide(requests, rooms, base.NOW,
                                dispatch.Options(most_holds=100))
        self.assertEqual(4, sum(kept(found).values()))
        self.assertLess(len(asked), 120)

    def test_at_least_one_host_is_kept(self):
        found = Cloud([host('h', 1)], [
            base.request('a', vcpus(8), created_at=base.ago(HOUR)),
            base.request('b')]).look(0)
        self.assertEqual({'a': 1}, kept(found))
        self.assertEqual((), found.starts)

    def test_a_rest_is_told(self):
        cloud = Cloud([host('h', 1)], [
            base.request('a', vcpus(8), created_at=base.ago(HOUR))])
        cloud.look(0)
        self.assertIn('until 2026-01-01 20:00:00Z', cloud.look(
            6 * HOUR).notes['a'].waits_for['text'])

    def test_hosts_with_a_trait_are_shared(self):
        """One project wants all hosts with a trait, others one each."""
        rooms = [dataclasses.replace(
            host(f'h{number:03}', 1),
            traits=frozenset({'T'} if number < 10 else ()))
            for number in range(200)]
        wanted, one = (dataclasses.replace(vcpus(n), required=('T',))
                       for n in (8, 1))
        small = [base.request(f'b{number}', one, project_id='p2')
                 for number in range(10)]
        for count, hosts, started in ((10, {}, 10), (2, {'a': 2}, 8)):
            found = base.decide(
                [base.request('a', wanted, count=count,
                              created_at=base.ago(HOUR)), *small],
                rooms, base.NOW, dispatch.Options())
            self.assertEqual(hosts, kept(found))
            self.assertEqual(started, len(found.starts))
        # Three for all projects together.
        found = base.decide(
            [base.request(project, wanted, count=2, project_id=project,
                          created_at=base.ago(HOUR)) for project in 'abc'],
            rooms, base.NOW, dispatch.Options())
        self.assertEqual({'a': 2}, kept(found))
        found = base.decide(
            [base.request(project, wanted, project_id=project,
                          created_at=base.ago(HOUR)) for project in 'abcd'],
            rooms, base.NOW, dispatch.Options())
        self.assertEqual(3, len(kept(found)))

    def test_requests_of_a_project_share_its_turn(self):
        cloud = Cloud([host('h', 1)], [
            base.request('a', vcpus(8), created_at=base.ago(HOUR)),
            base.request('b', vcpus(8), created_at=base.ago(HOUR))])
        cloud.look(0)
        cloud.look(5 * HOUR)
        del cloud.requests['a']
        self.assertEqual({'b': 1}, kept(cloud.look(6 * HOUR - 1)))
        self.assertEqual((), cloud.look(6 * HOUR).held)

    def test_hosts_of_its_reservation_do_not_count(self):
        """No other project may use them."""
        own = frozenset(('h', 'i', 'j'))
        wanted = dataclasses.replace(vcpus(8), hosts=own, own_hosts=own)
        requests = [base.request('a', wanted, count=3,
                                 created_at=base.ago(HOUR))]
        found = base.decide(
            requests, [host(name, 1) for name in 'hijk'], base.NOW,
            dispatch.Options())
        self.assertEqual({'a': 3}, kept(found))


class TestWhoMay(unittest.TestCase):

    def look(self, quotas=None, **values):
        return base.decide(
            [base.request('a', vcpus(8), created_at=base.ago(HOUR),
                          **values), base.request('b')],
            [host('h', 1)], base.NOW, dispatch.Options(), quotas=quotas)

    def test_no_host_is_kept_after_other_refusals(self):
        for code in boot_outcome.CODES:
            found = self.look(tries=1, waits_for={'code': code})
            self.assertEqual(('a',) if code == boot_outcome.NO_HOST else (),
                             found.held, code)
            # From pass to pass.
            if code != boot_outcome.NO_HOST:
                self.assertEqual(
                    code, found.notes['a'].waits_for['refused'])
            self.assertEqual(found.held, self.look(
                tries=1, waits_for=found.notes['a'].waits_for).held)

    def test_requests_that_nova_refuses_repeatedly_come_last(self):
        """Placement has space for them, so kept hosts do not help."""
        refused = [base.request(
            name, created_at=base.ago(2 * HOUR), tries=4,
            waits_for={'code': boot_outcome.NO_HOST, 'text': ''},
            next_try_at=later(60)) for name in 'abcdef']
        large = base.request('large', vcpus(8), created_at=base.ago(HOUR))
        found = base.decide([*refused, large], [host('h', 7)], base.NOW,
                            dispatch.Options())
        self.assertEqual(('large',), found.held)

    def test_an_earlier_refusal_is_forgotten_after_a_run(self):
        self.assertEqual(('a',), self.look(
            waits_for={'code': 'room', 'refused': boot_outcome.QUOTA}).held)

    def test_no_host_is_kept_if_the_quota_is_used_up(self):
        found = self.look({('p1', 'u1'): USED_UP})
        self.assertEqual((), found.held)
        self.assertEqual(['b'], [start.uuid for start in found.starts])
        self.assertIn('the quota of its project has 0 servers',
                      found.notes['a'].waits_for['text'])
        # It may be another one by the next pass.
        self.assertEqual(('a',), found.quotas)

    def test_no_host_is_kept_before_the_quota_is_known(self):
        found = self.look({})
        self.assertEqual(((), ('a',)), (found.held, found.quotas))
        self.assertIn('the quota of its user has not been read',
                      found.notes['a'].waits_for['text'])
        # Nova does not answer, or nobody asks for quotas.
        for quotas, asked in (({('p1', 'u1'): {}}, ('a',)), (None, ())):
            found = self.look(quotas)
            self.assertEqual((('a',), asked), (found.held, found.quotas))

    def test_kept_hosts_stay_while_the_quota_is_unknown(self):
        """The engine has restarted and not read the quota yet."""
        kept = self.look().notes['a'].waits_for
        self.assertEqual(('a',), self.look({}, waits_for=kept).held)

    def test_quotas_are_read_only_if_hosts_could_be_kept(self):
        requests = [
            base.request(f'{name}{number}', vcpus(size), project_id=name,
                         user_id=f'{name}{number}', created_at=base.ago(HOUR))
            for name, size in (('a', 9), ('b', 8), ('c', 8))
            for number in range(3)]
        rooms = [host(f'h{number}', 1) for number in range(4)]
        quotas = {}
        for asked, held in ((('b0',), ()), (('b0', 'b1'), ()),
                            (('b0', 'b1'), ('b1',))):
            found = base.decide(requests, rooms, base.NOW, dispatch.Options(),
                                quotas=quotas)
            # None is large enough for a; b1 has the only one that may be
            # kept, which those that were refused before it did not use up.
            self.assertEqual((asked, held), (found.quotas, found.held))
            quotas.update({
                (uuid[0], uuid): {} if uuid == 'b1' else USED_UP
                for uuid in found.quotas})

    def test_requests_without_quota_use_no_trials(self):
        requests = [base.request(f'a{number:03}', vcpus(8),
                                 project_id=f'p{number}',
                                 created_at=base.ago(2 * HOUR))
                    for number in range(150)]
        requests.append(base.request('b', vcpus(8), project_id='p',
                                     created_at=base.ago(HOUR)))
        found = base.decide(
            requests, [host('h', 1)], base.NOW, dispatch.Options(),
            quotas={('p', 'u1'): {}, **{
                (f'p{number}', 'u1'): USED_UP for number in range(150)}})
        self.assertEqual(('b',), found.held)


class TestLaws(unittest.TestCase):

    requests = st.lists(st.tuples(
        st.sampled_from('pqr'), st.integers(1, 8), st.integers(1, 5),
        st.integers(0, 2)), max_size=12)

    @given(requests, st.lists(st.integers(0, 8), min_size=1, max_size=20),
           st.integers(0, 6), st.data())
    def test_kept_hosts_are_bounded(self, rows, free, most_holds, data):
        """Their number has a limit per project and in all; so has time."""
        cloud = Cloud(
            [host(f'h{number:02}', amount)
             for number, amount in enumerate(free)],
            [base.request(f'r{number:02}', vcpus(size), count=count,
                          project_id=project,
                          created_at=base.ago(age * HOUR))
             for number, (project, size, count, age) in enumerate(rows)],
            most_holds=most_holds)
        projects = {uuid: request.project_id
                    for uuid, request in cloud.requests.items()}
        # Nothing starts, so that what is kept is kept for ever.
        cloud.options = dataclasses.replace(cloud.options, most_starts=0)
        most = -(-len(free) // kept_hosts.HOSTS_PER_KEPT)
        before = {}
        at_s = 0
        for _look in range(20):
            ranked = data.draw(st.permutations(sorted(cloud.requests)))
            found = cloud.look(at_s, ranked)
            hosts = kept(found)
            self.assertLessEqual(len(hosts), most_holds)
            self.assertLessEqual(sum(hosts.values()), most)
            for project in set(projects.values()):
                of = [n for uuid, n in hosts.items()
                      if projects[uuid] == project]
                self.assertLessEqual(len(of), -(-most_holds // 2))
                self.assertLessEqual(sum(of), -(-most // 2))
                if of:
                    self.check_turn(before.get(project),
                                    found.turns[project], at_s)
            before = found.turns
            at_s += data.draw(st.sampled_from((300, HOUR, 3 * HOUR)))

    def check_turn(self, before, turn, at_s):
        """Check that a turn is on and began after the rest."""
        self.assertLess(later(at_s), turn.ends_at)
        self.assertLess((later(at_s) - turn.since).total_seconds(),
                        kept_host_turns.LONGEST_TURN_S)
        if before is not None and before.since != turn.since:
            self.assertEqual(later(at_s), turn.since)
            self.assertGreaterEqual(turn.since, before.rests_until)


if __name__ == '__main__':
    unittest.main()
