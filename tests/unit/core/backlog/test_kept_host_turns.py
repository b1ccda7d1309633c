# SPDX-License-Identifier: Apache-2.0
"""Turns in which hosts are kept free for projects."""

import unittest

from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import kept_host_turns
from tests.unit.core.backlog import base
from tests.unit.core.backlog.base import host
from tests.unit.core.backlog.base import vcpus
from tests.unit.core.backlog.test_kept_hosts import HOUR
from tests.unit.core.backlog.test_kept_hosts import Cloud
from tests.unit.core.backlog.test_kept_hosts import later


class TestTurns(unittest.TestCase):

    def run_days(self, cloud, days):
        """{project: at how many looks a half hour apart it had hosts}."""
        found = dict.fromkeys(
            (item.project_id for item in cloud.requests.values()), 0)
        self.idle = 0
        for at_s in range(0, days * 24 * HOUR, HOUR // 2):
            held = cloud.look(at_s).held
            for project in {cloud.requests[uuid].project_id for uuid in held}:
                found[project] += 1
            self.idle += not held
        return found

    def test_each_project_has_its_turn(self):
        """Between two turns no project keeps the host."""
        cloud = Cloud([host('h', 1)], [
            base.request(project, vcpus(8), project_id=project,
                         created_at=base.ago(HOUR)) for project in 'abc'])
        seen = [(at_s, tuple(cloud.look(at_s).held))
                for at_s in range(0, 30 * HOUR, HOUR // 2)]
        expected = {}
        for begins, project in ((0, 'a'), (8, 'b'), (16, 'c'), (24, 'a')):
            for hour, held in ((begins, (project,)), (begins + 6, ())):
                expected.update(dict.fromkeys(range(
                    hour * HOUR, 30 * HOUR, HOUR // 2), held))
        self.assertEqual(expected, dict(seen))

    def test_no_project_waits_for_ever_for_a_turn(self):
        for hosts, projects in ((1, 'abc'), (1, 'abcdefg'), (16, 'abcde'),
                                (64, 'abcdefghi')):
            cloud = Cloud([host(f'h{number:02}', 1)
                           for number in range(hosts)], [
                base.request(project, vcpus(8), project_id=project,
                             count=max(1, hosts // 8),
                             created_at=base.ago((9 - number) * HOUR))
                for number, project in enumerate(projects)])
            found = self.run_days(cloud, 7)
            with self.subTest(hosts=hosts, projects=projects):
                self.assertLessEqual(
                    max(found.values()) - min(found.values()), 12, found)
                if hosts == 1:
                    self.assertEqual(7 * 48 // 4, self.idle)

    def test_new_requests_are_no_new_turn(self):
        """A project that cancels all requests keeps its turn and its rest."""
        cloud = Cloud([host('h', 1)], [])
        held = []
        for at_s in range(0, 6 * 24 * HOUR, HOUR // 2):
            cloud.requests = {
                f'{project}{at_s}': base.request(
                    f'{project}{at_s}', vcpus(8), project_id=project,
                    created_at=base.ago(age * HOUR))
                for project, age in (('a', 9), ('b', 8), ('c', 7))}
            held += cloud.look(at_s).held
        found = [sum(uuid.startswith(project) for uuid in held)
                 for project in 'abc']
        self.assertEqual([72] * 3, found)

    def test_an_old_turn_is_forgotten(self):
        cloud = Cloud([host('h', 1)], [
            base.request('a', vcpus(8), created_at=base.ago(HOUR))])
        cloud.look(0)
        cloud.requests.clear()
        cloud.look(kept_host_turns.MEMORY_S - 1)
        self.assertEqual(['p1'], list(cloud.turns))
        cloud.look(kept_host_turns.MEMORY_S)
        self.assertEqual({}, cloud.turns)

    def test_a_pass_that_was_cut_does_not_lose_it(self):
        """It keeps the turn and the shortfall."""
        requests = [base.request(uuid, vcpus(8), created_at=base.ago(HOUR))
                    for uuid in 'ab']
        before = {'p1': kept_host_turns.ProjectTurn(
            later(-HOUR), later(-HOUR), frozenset({'h'}), {'b': 5})}
        found = base.decide(
            requests, [host('h', 1)], base.NOW, dispatch.Options(
                most_holds=0), turns=before,
            is_over=lambda: True)
        self.assertEqual({'b'}, found.unseen)
        self.assertEqual(before, found.turns)

    def test_lasts_until_its_hosts_are_known_to_have_room(self):
        """The turn lasts up to a day; no other project has the hosts."""
        for end, expected in ((8, 8), (23, 23), (30, 6)):
            cloud = Cloud([], [base.request(
                'a', vcpus(8), created_at=base.ago(HOUR))])
            seen = []
            for hour in range(min(end, 8)):
                cloud.rooms = [host('h', 0, ends=[((end - hour) * HOUR, 8)])]
                if cloud.look(hour * HOUR).held:
                    seen.append(hour)
            self.assertEqual([*range(min(8, expected))], seen)

    def test_a_rest_ends_at_a_whole_second(self):
        turn = kept_host_turns.ProjectTurn(base.NOW, later(100))
        self.assertEqual(later(21700), turn.ends_at)
        self.assertEqual(later(21700 + 7233), turn.rests_until)

    def test_is_longer_while_its_hosts_come_nearer(self):
        for ends, expected in (
                ((), 6), ((1,), 7), ((5, 10), 16), ((5, 12), 11),
                ((5, 10, 15, 19, 23), 24)):
            cloud = Cloud([host('h', 0)], [base.request(
                'a', vcpus(8), created_at=base.ago(HOUR))])
            seen = []
            for hour in range(34):
                cloud.rooms = [host('h', sum(end <= hour for end in ends))]
                if cloud.look(hour * HOUR).held:
                    seen.append(hour)
            with self.subTest(ends):
                rest = range(expected, -(-expected * 4 // 3))
                self.assertEqual([*range(expected)], seen[:expected])
                self.assertEqual(set(), {*rest} & {*seen})
                self.assertIn(rest.stop, seen)


class TestFirst(unittest.TestCase):
    """Small requests come all the time and rank first."""

    def run_days(self, hold_after_s, runs_s=HOUR, days=1):
        """Return when the large request starts on a busy host."""
        cloud = Cloud([], [base.request('large', vcpus(8),
                                        created_at=base.ago(1))],
                      hold_after_s=hold_after_s)
        step_s = runs_s // 8
        ends = [step_s * number for number in range(1, 9)]
        for number, at_s in enumerate(range(0, days * 24 * HOUR, HOUR // 8)):
            ends = [end_s for end_s in ends if end_s > at_s]
            if not at_s % step_s:
                cloud.requests.update({uuid: base.request(
                    uuid, project_id='p2', created_at=later(at_s))
                    for uuid in (f'a{number:04}', f'b{number:04}')})
            cloud.rooms = [host('h', 8 - len(ends))]
            # The newest first, so that the others wait for hosts, too.
            found = cloud.look(at_s, [*sorted(
                cloud.requests.keys() - {'large'}, reverse=True), 'large'])
            for start in found.starts:
                if start.uuid == 'large':
                    return at_s
                ends.append(at_s + runs_s)
        return None

    def test_a_long_hold_applies_to_earlier_requests(self):
        self.assertIsNone(self.run_days(10 ** 6))
        # Those that started in the first two hours end within the third.
        self.assertEqual(3 * HOUR - HOUR // 8, self.run_days(HOUR))

    def test_neighbours_that_outlive_a_turn(self):
        """The turn is extended while servers keep ending."""
        for hours in (4, 12, 20):
            self.assertLessEqual(self.run_days(HOUR, hours * HOUR, 3) or 1e9,
                                 (hours + 2) * HOUR, hours)
        # A day is the limit.
        self.assertIsNone(self.run_days(HOUR, 48 * HOUR, 10))

    def test_not_at_once(self):
        rooms = [host('h', 1)]
        for held_s, expected in ((0, ['a']), (HOUR - 1, ['a']), (HOUR, [])):
            found = base.decide(
                [base.request('a'), base.request(
                    'large', vcpus(8), created_at=base.ago(5 * HOUR),
                    waits_for={'code': 'room', 'kept': {
                        'since': base.ago(held_s).isoformat(), 'hosts': 1,
                        'held_since': base.ago(held_s).isoformat()}})],
                rooms, base.NOW, dispatch.Options())
            self.assertEqual(expected, [item.uuid for item in found.starts])

    def test_a_full_cloud_keeps_its_order(self):
        """Few requests come first, each of them once."""
        rooms = [host(f'h{number}', 0) for number in range(8)]
        old = [base.request(f'old{number:02}', created_at=base.ago(9 * HOUR))
               for number in range(20)]
        cloud = Cloud(rooms, old)
        for at_s in range(0, 2 * HOUR, 600):
            cloud.requests.update({
                uuid: base.request(uuid, created_at=later(at_s),
                                   project_id='p2')
                for uuid in (f'new{at_s:04}',)})
            # One server ends on one of the hosts.
            cloud.rooms = [host('h0', 1), *rooms[1:]]
            cloud.look(at_s, sorted(cloud.requests))
        # One host is kept for the project: one start an hour comes first.
        self.assertEqual(1, sum(
            uuid.startswith('old') for uuid in cloud.started))


if __name__ == '__main__':
    unittest.main()
