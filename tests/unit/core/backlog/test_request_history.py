# SPDX-License-Identifier: Apache-2.0

"""Tests of the history of requests."""

import datetime
import fractions
import itertools
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_history
from nova_preempt.core.classes import server_clocks
from nova_preempt.core.times import microseconds

NOW = datetime.datetime(2026, 1, 1, 12)


def at(minutes):
    return NOW + datetime.timedelta(minutes=minutes)


def told(*changes, class_name='', not_before=None):
    """:param changes: (minutes, state)"""
    return request_history.History(
        [backlog_model.StateChange(at(minutes), state) for minutes,
         state in changes],
        class_name, not_before)


class TestCondensed(unittest.TestCase):

    def test_few_changes_are_not_condensed(self):
        changes = told(*(((0, 'waiting'), (1, 'active'), (2, 'evicted'))
                         * 333)).changes
        self.assertEqual((0, ()), request_history.condensed(changes))

    def test_a_request_that_never_ran_is_not_condensed(self):
        changes = told(*((n, ('placing', 'waiting')[n % 2])
                         for n in range(2000))).changes
        self.assertEqual((0, ()), request_history.condensed(changes))

    @hypothesis.given(
        st.lists(st.tuples(*[st.integers(0, 99)] * 4), min_size=1,
                 max_size=5),
        st.integers(0, 500), st.integers(0, 3))
    def test_condensing_keeps_the_clocks(self, pattern, not_before, more):
        """Waiting, placing and running times stay the same."""
        changes, minute = [], 0
        for number in range(260):
            for state, length in zip(('waiting', 'placing', 'active',
                                      'evicted'),
                                     pattern[number % len(pattern)],
                                     strict=True):
                changes.append((minute, state))
                minute += length
        changes = changes[:len(changes) - more]
        # It is not started before.
        whole = told(*changes, not_before=at(min(not_before,
                                                 changes[1][0])))
        number, sums = request_history.condensed(whole.changes,
                                                 whole.not_before)
        self.assertEqual(3, len(sums))
        fewer = request_history.History((*sums, *whole.changes[number:]),
                                        not_before=whole.not_before)
        self.assertLess(len(fewer.changes), request_history.MOST_CHANGES * 0.6)
        times = [change.at for change in fewer.changes]
        self.assertEqual(sorted(times), times)
        for later in (0, 77):
            now_us = (at(minute + later) - datetime.datetime(1970, 1, 1)
                      ) // datetime.timedelta(microseconds=1)
            self.assertEqual(request_history.clocks_of(whole).at(now_us),
                             request_history.clocks_of(fewer).at(now_us))


class TestClocks(unittest.TestCase):

    def test_a_try_that_took_no_time_ends_no_wait(self):
        """The first of them came in the second in which it was made."""
        for before, evicted_us in (((), 0), ((
                (0, 'waiting'), (1, 'placing'), (2, 'active'),
                (5, 'evicted')), 3 * 60 * 10 ** 6)):
            tries = [(minute, state) for minute in (5, 6, 7)
                     for state in ('placing', 'waiting')]
            times = request_history.clocks_of(told(
                *before, (5, 'waiting'), *tries, (8, 'placing'))).at(
                    microseconds(at(9)))
            self.assertEqual(
                (evicted_us, (4 if before else 3) * 60 * 10 ** 6,
                 (2 if before else 1) * 60 * 10 ** 6),
                (times.running_us, times.waiting_us, times.binding_us))


class TestWaits(unittest.TestCase):

    def waits(self, *changes, since=-99, **values):
        return request_history.waits([told(*changes, **values)],
                                     at(since)).get('')

    def test_a_wait_ends_when_the_request_runs(self):
        self.assertEqual(request_history.WaitStats(1, 300, 300), self.waits(
            (0, 'waiting'), (1, 'placing'), (2, 'waiting'), (4, 'placing'),
            (5, 'partly_active'), (9, 'active'), (10, 'done')))

    def test_an_eviction_begins_another_wait(self):
        changes = ((0, 'waiting'), (2, 'active'), (10, 'evicted'),
                   (11, 'waiting'), (15, 'active'))
        self.assertEqual(request_history.WaitStats(2, 120, 240),
                         self.waits(*changes))
        self.assertEqual(request_history.WaitStats(1, 240, 240),
                         self.waits(*changes, since=10))

    def test_changes_without_a_wait(self):
        for changes in ((), ((0, 'waiting'),),
                        ((0, 'waiting'), (9, 'cancelled')),
                        # It was kept, and is not started anew.
                        ((0, 'evicted'), (9, 'active'))):
            self.assertIsNone(self.waits(*changes))
        self.assertEqual(request_history.WaitStats(1, 60, 60), self.waits(
            (0, 'waiting'), (9, 'active'), not_before=at(8)))

    def test_changes_after_the_start_do_not_count(self):
        changes = ((0, 'waiting'), (2, 'placing'), (3, 'active'),
                   (10, 'evicted'), (11, 'waiting'), (13, 'placing'),
                   (15, 'active'))
        plain = told(*changes)
        for minutes in (5, 12, 1000):
            later = told(*changes, not_before=at(minutes))
            self.assertEqual(self.waits(*changes), self.waits(
                *changes, not_before=at(minutes)))
            self.assertEqual(*(
                request_history.clocks_of(item).at(10 ** 18)
                for item in (plain, later)))
            self.assertEqual(*(
                request_history.run_times([item], at(0), at(20), 3)
                for item in (plain, later)))

    def test_percentiles(self):
        self.assertEqual(request_history.WaitStats(0, None, None),
                         request_history.summary([]))
        self.assertEqual(request_history.WaitStats(100, 50, 95),
                         request_history.summary(range(100, 0, -1)))
        self.assertEqual(request_history.WaitStats(3, 2, 3),
                         request_history.summary([3, 1, 2]))

    def test_classes(self):
        found = request_history.waits([
            told((0, 'waiting'), (1, 'active'), class_name='gold'),
            told((0, 'waiting'), (9, 'active'))], NOW)
        self.assertEqual((60, 540),
                         (found['gold'].median_s, found[''].median_s))


class TestTriesInVain(unittest.TestCase):

    def indexes(self, *changes, before=99):
        return request_history.failed_tries(told(*changes).changes,
                                             at(before))

    def test_failed_tries_are_found(self):
        self.assertEqual([1, 2, 3, 4], self.indexes(
            (0, 'waiting'), (1, 'placing'), (2, 'waiting'), (3, 'placing'),
            (4, 'waiting'), (5, 'placing'), (6, 'active'), (7, 'evicted'),
            (8, 'placing')))
        self.assertEqual([2, 3], self.indexes(
            (0, 'active'), (1, 'evicted'), (2, 'placing'), (3, 'evicted')))
        self.assertEqual([1, 2], self.indexes(
            (0, 'partly_active'), (1, 'placing'), (2, 'partly_active')))

    def test_tries_that_changed_the_state_stay(self):
        self.assertEqual([], self.indexes(
            (0, 'partly_active'), (1, 'placing'), (2, 'active')))
        self.assertEqual([], self.indexes(
            (0, 'evicted'), (1, 'placing'), (2, 'waiting')))

    def test_only_tries_before_a_time_are_found(self):
        changes = ((0, 'waiting'), (1, 'placing'), (2, 'waiting'))
        self.assertEqual([1, 2], self.indexes(*changes, before=3))
        self.assertEqual([], self.indexes(*changes, before=2))
        self.assertEqual([], self.indexes())

    @hypothesis.given(
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from(
            backlog_model.STATES)), max_size=12), st.integers(0, 41))
    def test_the_run_time_stays(self, changes, before):
        changes = told(*sorted(changes, key=lambda item: item[0])).changes
        gone = request_history.failed_tries(changes, at(before))
        left = [change for index, change in enumerate(changes)
                if index not in gone]
        ran, now_ran = (sum((
            later.at - change.at for (change, later), kind
            in zip(itertools.pairwise(some), request_history.kinds(some),
                   strict=False)
            if kind is server_clocks.Kind.RUNNING),
            datetime.timedelta()) for some in (changes, left))
        self.assertEqual(ran, now_ran)
        if changes:
            self.assertEqual(
                (changes[0], changes[-1].state), (left[0], left[-1].state))
        # And a second time there is nothing left.
        self.assertEqual([], request_history.failed_tries(left, at(before)))


class TestCourses(unittest.TestCase):

    def course(self, *histories, parts=2, since=0, until=20):
        return request_history.run_times(histories, at(since), at(until),
            parts)

    def shares(self, *changes, **values):
        course = self.course(told(*changes), **values)['']
        return [part.availability for part in course.parts]

    def test_shares_of_intervals(self):
        half = fractions.Fraction(1, 2)
        self.assertEqual([half, 1], self.shares(
            (0, 'waiting'), (5, 'active')))
        self.assertEqual([half, half], self.shares(
            (0, 'active'), (5, 'evicted'), (15, 'active')))
        # It has ended; what it was before the time counts.
        self.assertEqual([half, 0], self.shares(
            (-9, 'waiting'), (5, 'active'), (10, 'done')))

    def test_a_partly_active_request_runs(self):
        self.assertEqual([1, 1], self.shares(
            (0, 'partly_active'), (3, 'placing'), (7, 'partly_active'),
            (8, 'placing'), (12, 'active')))

    def test_time_before_the_window_does_not_count(self):
        course = self.course(told((0, 'waiting'), (15, 'active'),
                                  not_before=at(10)))['']
        self.assertEqual([0, fractions.Fraction(1, 2)],
                         [part.availability for part in course.parts])
        self.assertEqual(0, course.parts[0].total_us)

    def test_classes(self):
        found = self.course(
            told((0, 'active'), class_name='gold'),
            told((0, 'waiting'), class_name='gold'),
            told((0, 'waiting')),
            told((-9, 'waiting'), (-5, 'done'), class_name='old'),
            told((30, 'waiting'), class_name='new'))
        self.assertEqual({'gold', ''}, set(found))
        self.assertEqual((2, fractions.Fraction(1, 2)), (
            found['gold'].requests, found['gold'].total.availability))

    @hypothesis.given(
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from(
            backlog_model.STATES)), max_size=8), st.integers(1, 7))
    def test_shares_agree_with_the_clocks(self, changes, parts):
        changes = sorted(changes, key=lambda item: item[0])
        found = self.course(told(*changes), parts=parts, since=7, until=31)
        edges = [at(7), at(31)]
        expected = server_clocks.Times()
        for (start, _state), end, kind in itertools.zip_longest(
                changes, [minutes for minutes, _state in changes[1:]],
                request_history.kinds(told(*changes).changes)):
            end = at(31 if end is None else end)
            elapsed = (min(end, edges[1]) - max(at(start), edges[0]))
            if elapsed > datetime.timedelta():
                expected = expected.later(
                    kind,
                    elapsed // datetime.timedelta(microseconds=1))
        total = found[''].total if found else server_clocks.Times()
        self.assertEqual(expected, total)
        if found:
            self.assertEqual(total.running_us, sum(
                part.running_us for part in found[''].parts))
            self.assertEqual(parts, len(found[''].parts))


if __name__ == '__main__':
    unittest.main()
