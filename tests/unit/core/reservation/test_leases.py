# SPDX-License-Identifier: Apache-2.0
"""Tests of leases: which hosts a request may use."""

import dataclasses
import math
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core import eligibility
from nova_preempt.core import notice_period
from nova_preempt.core.reservation import leases
from tests.unit.core.support import LAW
from tests.unit.reservation import support

lease = support.lease


def view(found=(), now_s=0, fresh=True, fail_open=False):
    return leases.LeaseView(
        found if found is None else leases.Leases(found), fresh, fail_open,
        now_s)


class TestFreeTime(unittest.TestCase):

    def test_free_time_ends_at_the_next_start(self):
        """004-e: A is reserved, B until 50, C until 200."""
        found = leases.Leases((lease('r1', 0, 100, 'A'),
                               lease('r2', 50, 150, 'B'),
                               lease('r3', 200, 300, 'C')))
        self.assertEqual([0, 50, 200, math.inf],
                         [found.free_s(host, 0) for host in 'ABCD'])

    def test_intervals_are_half_open(self):
        found = leases.Leases((lease('r1', 10, 20, 'A'),))
        self.assertEqual([1, 0, 0, math.inf],
                         [found.free_s('A', now_s)
                          for now_s in (9, 10, 19, 20)])

    def test_free_time_between_leases(self):
        found = leases.Leases((lease('r2', 20, 30, 'A'),
                               lease('r1', 10, 20, 'A', 'B'),
                               lease('r3', 40, 50, 'A')))
        self.assertEqual(0, found.free_s('A', 25))
        self.assertEqual(10, found.free_s('A', 30))
        self.assertEqual(math.inf, found.free_s('B', 25))

    @hypothesis.given(
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)),
                 max_size=8), st.integers(-5, 45))
    def test_free_time_agrees_with_counting(self, intervals, now_s):
        found = leases.Leases(tuple(
            lease(f'r{number}', start_s, start_s + length_s, 'A')
            for number, (start_s, length_s) in enumerate(intervals)))
        taken = {second for start_s, length_s in intervals
                 for second in range(start_s, start_s + length_s)}
        expected = next((second - now_s for second in range(now_s, 50)
                         if second in taken), math.inf)
        self.assertEqual(expected, found.free_s('A', now_s))


class TestGuard(unittest.TestCase):

    GUARD = leases.GuardTime(60, notice_period.NoticeRule(120),
                             eligibility.Rules(minimum_runtime_s=10), 30, 5)

    def test_how_long_a_server_has_to_have_its_host(self):
        self.assertEqual(60, self.GUARD.lead_s(False, 900, 900))
        end_s = 30 + 5 + notice_period.MARGIN_S
        self.assertEqual(10 + 120 + end_s, self.GUARD.lead_s(True, 0, None))
        self.assertEqual(900 + 7 + end_s, self.GUARD.lead_s(True, 900, 7))

    def test_one_second_longer(self):
        found = view([lease('r1', 100, 200, 'A')], now_s=39)
        self.assertTrue(found.may_take('A', 60))
        self.assertFalse(found.may_take('A', 61))
        self.assertTrue(found.may_take('B', 10**9))

    def test_a_reason_is_one_line(self):
        answer = view([]).answer(('x' * 70 + '\nFORGED',), 'p')
        self.assertEqual(
            f"There is no reservation '{'x' * 64}' of this project.",
            answer.reason)
        answer = view([]).answer(('x\nFORGED',), 'p')
        self.assertEqual(
            "There is no reservation 'x\\nFORGED' of this project.",
            answer.reason)


TIMES = st.integers(0, 24)
# Few ids and hosts, so that they meet.
LEASES = st.lists(st.builds(
    lease, st.sampled_from('rstuv'), TIMES, TIMES,
    project=st.sampled_from('pq'),
    status=st.sampled_from((leases.PENDING, leases.ACTIVE))),
    max_size=5, unique_by=lambda item: item.id)
ON_HOSTS = LEASES.flatmap(lambda found: st.tuples(*(
    st.frozensets(st.sampled_from('ABC')).map(
        lambda hosts, item=item: dataclasses.replace(item, hosts=hosts))
    for item in found)))
CHANGES = st.lists(st.tuples(ON_HOSTS, st.frozensets(
    st.sampled_from('rstuv'))), max_size=6)


class TestChanges(unittest.TestCase):

    @LAW
    @hypothesis.given(ON_HOSTS, CHANGES)
    def test_updates_agree_with_new_leases(self, first, changes):
        found = leases.Leases(first)
        expected = {item.id: item for item in first}
        for changed, gone in changes:
            before, was = found, leases.Leases(expected.values())
            found = found.updated(changed, gone)
            for lease_id in gone:
                expected.pop(lease_id, None)
            expected.update({item.id: item for item in changed})
            self.assert_same(leases.Leases(expected.values()), found)
            # Somebody else may still be reading it.
            self.assert_same(was, before)

    def assert_same(self, expected, found):
        self.assertEqual(expected, found)
        self.assertEqual(list(expected), list(found))
        self.assertEqual(expected.busy, found.busy)
        self.assertEqual(
            {host: set(items) for host, items in expected._by_host.items()},
            {host: set(items) for host, items in found._by_host.items()})

    def test_leases_differ(self):
        one = leases.Leases([lease('r', 0, 1, 'A')])
        self.assertNotEqual(one, leases.Leases([lease('r', 0, 1, 'B')]))
        self.assertNotEqual(one, leases.Leases())

    @LAW
    @hypothesis.given(ON_HOSTS, TIMES, st.integers(0, 9))
    def test_hosts_that_are_needed(self, found, now_s, length_s):
        until_s = now_s + length_s
        expected = {}
        for host in 'ABC':
            taken = {second for item in found if host in item.hosts
                     for second in range(item.start_s, item.end_s)}
            if taken.intersection(range(now_s, until_s + 1)):
                start_s = min(second for second in taken if second >= now_s)
                while start_s - 1 in taken:
                    start_s -= 1
                expected[host] = start_s
        self.assertEqual(
            expected, leases.Leases(found).needed(now_s, until_s))

    @LAW
    @hypothesis.given(ON_HOSTS, TIMES, st.integers(1, 9))
    def test_is_free(self, found, start_s, length_s):
        taken = {second for item in found if 'A' in item.hosts
                 for second in range(item.start_s, item.end_s)}
        end_s = start_s + length_s
        self.assertEqual(
            not taken.intersection(range(start_s, end_s)),
            leases.Leases(found).is_free('A', start_s, end_s))


class TestView(unittest.TestCase):

    leases = (lease('soon', 10, 20, 'A'),
              lease('now', 0, 20, 'B', 'C', status=leases.ACTIVE),
              lease('late', 4, 20, 'D', status=leases.PENDING),
              lease('other', 0, 20, 'E', status=leases.ACTIVE, project='q'),
              lease('over', 0, 3, 'F', status=leases.ACTIVE),
              lease('empty', 0, 20, status=leases.ACTIVE))

    def answer(self, *lease_ids, project='p', now_s=5, **kwargs):
        return view(self.leases, now_s, **kwargs).answer(lease_ids, project)

    def test_hosts_of_an_active_reservation(self):
        self.assertEqual(leases.AllowedHosts(
            frozenset('BC'), own_hosts=frozenset('BC')),
                         self.answer('now'))
        self.assertEqual(leases.AllowedHosts(
            frozenset('E'), own_hosts=frozenset('E')),
                         self.answer('other', project='q'))

    def test_leases_that_do_not_bind_existing_servers(self):
        self.assertFalse(self.answer('now').is_void)
        for lease_id in ('over', 'nobodys', 'other'):
            self.assertTrue(self.answer(lease_id).is_void)
        self.assertFalse(leases.AllowedHosts(reason='nobody knows',
                                       known=False).is_void)

    def test_hosts_that_others_are_still_on(self):
        lease = leases.HostLease('r', 'p', leases.ACTIVE, 0, 2 ** 40,
                                 frozenset('AB'), frozenset('B'))
        for unready, expected in (
                ('B', leases.AllowedHosts(
                    frozenset('A'), own_hosts=frozenset('AB'))),
                ('', leases.AllowedHosts(
                    frozenset('AB'), own_hosts=frozenset('AB'))),
                ('AB', leases.AllowedHosts(
                    reason='Reservation r has no host that is empty yet.'))):
            known = leases.Leases([dataclasses.replace(
                lease, unready=frozenset(unready))])
            self.assertEqual(expected, leases.LeaseView(
                known, True, False, 1).answer(['r'], 'p'))
            # Nobody else comes, either.
            self.assertEqual(0, known.free_s('B', 1))

    def test_each_of_several_leases_must_be_usable(self):
        self.assertEqual(self.answer('soon'), self.answer('now', 'soon'))

    def test_reasons(self):
        for lease_id, reason in (
                ('none', "There is no reservation 'none' of this project."),
                ('soon', ('Reservation soon is not active yet: it starts at '
                          '1970-01-01T00:00:10Z.')),
                # Its hosts may not be empty yet.
                ('late', ('Reservation late is not active yet: it starts at '
                          '1970-01-01T00:00:04Z.')),
                ('over', ('Reservation over has ended at '
                          '1970-01-01T00:00:03Z.')),
                ('empty', 'Reservation empty has no host left.')):
            with self.subTest(lease_id):
                self.assertEqual(leases.AllowedHosts(reason=reason),
                                 self.answer(lease_id))

    def test_a_lease_of_another_project_counts_as_unknown(self):
        self.assertEqual(self.answer('none').reason.replace('none', 'other'),
                         self.answer('other').reason)

    def test_a_long_id_is_not_repeated(self):
        self.assertLess(len(self.answer('x' * 10 ** 6).reason), 120)

    def test_an_ended_lease_that_was_looked_up(self):
        past = lease('gone', 0, 3, project='p', status=leases.ENDED)
        found = leases.Leases(self.leases).updated([past])
        self.assertEqual(
            'Reservation gone has ended at 1970-01-01T00:00:03Z.',
            leases.LeaseView(found, True, False, 5).answer(
                ['gone'], 'p').reason)

    def test_old_and_fail_closed(self):
        """The last leases are obeyed, but no request may use them."""
        old = view(self.leases, 5, fresh=False)
        self.assertEqual(5, old.free_s('A'))
        self.assertEqual(0, old.free_s('B'))
        answer = old.answer(['now'], 'p')
        self.assertFalse(answer.known)
        self.assertIn('does not answer', answer.reason)

    def test_old_and_fail_open(self):
        old = view(self.leases, 5, fresh=False, fail_open=True)
        self.assertEqual(math.inf, old.free_s('A'))
        self.assertEqual(math.inf, old.free_s('B'))
        self.assertEqual(leases.AllowedHosts(
            frozenset('BC'), own_hosts=frozenset('BC')),
                         old.answer(['now'], 'p'))

    def test_nothing_known(self):
        self.assertEqual(0, view(None, fresh=False).free_s('A'))
        self.assertEqual(
            math.inf, view(None, fresh=False, fail_open=True).free_s('A'))
        for fail_open in (False, True):
            answer = view(None, fresh=False, fail_open=fail_open).answer(
                ['now'], 'p')
            self.assertTrue(answer.reason)
            self.assertFalse(answer.known)
