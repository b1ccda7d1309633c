# SPDX-License-Identifier: Apache-2.0

"""Tests of granting, changing and cancelling reservations."""

import unittest

from nova_preempt.core.reservation import admission
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import reservation_limits
from nova_preempt.core.reservation import reservation_model


def reservation(start_s=1000, end_s=2000, quantity=1, **values):
    start_at, end_at = reservation_model.from_s(
        start_s), reservation_model.from_s(end_s)
    return reservation_model.Reservation(**{
        'uuid': 'r1', 'project_id': 'p', 'quantity': quantity,
        'duration_s': end_s - start_s, 'window_start': start_at,
        'end_action': 'delete', 'before_end_s': 0, 'start_at': start_at,
        'end_at': end_at, **values})


class TestRequestedWindow(unittest.TestCase):

    def ask(self, start_s=None, end_s=None, duration_s=None):
        asked = admission.requested_window(1000, start_s, end_s, duration_s)
        return (asked.start_s, asked.end_s, asked.duration_s, asked.immediate)

    def test_windows_of_requests(self):
        for said, expected in (
                ((None, None, 60), (1000, 1060, 60, True)),
                ((2000, None, 60), (2000, None, 60, False)),
                ((None, 1060, 60), (1000, 1060, 60, False)),
                ((2000, 2500, None), (2000, 2500, 500, False)),
                ((2000, 2500, 500), (2000, 2500, 500, False))):
            with self.subTest(said):
                self.assertEqual(expected, self.ask(*said))

    def test_a_start_that_has_just_passed_is_now(self):
        self.assertEqual((1000, 1500, 500, False), self.ask(940, 1500))
        self.assertEqual((1000, None, 60, False),
                         self.ask(1000, duration_s=60))

    def test_invalid_windows(self):
        for said, message in (
                ((939, None, 60), '^start_time: it is in the past'),
                ((None, 1000, 60), '^end_time: it is in the past'),
                ((940, 1000, None), '^end_time: it is in the past'),
                ((2000, 2000, None), '^end_time: it must be after start_time'),
                ((None, None, None), '^duration: it is required unless'),
                ((2000, None, None), '^duration: it is required unless'),
                ((None, 2000, None), '^duration: it is required unless'),
                ((2000, 2500, 501), '^duration: 501 s are more than the 500'),
                ((940, 1500, 560), '^duration: 560 s are more than the 500')):
            with self.subTest(said), self.assertRaisesRegex(
                    admission.BadWindow, message):
                self.ask(*said)


class TestGrant(unittest.TestCase):

    def search(self, end_s=None, max_advance_s=-1):
        return admission.Search(
            admission.RequestedWindow(1000, end_s, 60, False), 1,
            [admission.MatchingHost('a', 2.0, True),
             admission.MatchingHost('b', None, False),
             admission.MatchingHost('c', None, True)],
            reservation_limits.Limits({**dict.fromkeys(
                reservation_limits.LIMITS, -1),
                                       'max_advance_s': max_advance_s}),
            calendar.best_fit, 1000, 1900)

    def test_hosts(self):
        self.assertEqual(
            [calendar.ReservableHost('a', ((1, 2),), 2.0, None),
             calendar.ReservableHost('b', (), None, 1900)],
            self.search().hosts({'a': ((1, 2),)}, 'ab'.__contains__))

    def test_last_end(self):
        """A host that is free from 1400 on."""
        host = calendar.ReservableHost('a', ((900, 1400),))
        for end_s, max_advance_s, expected, later in (
                (None, -1, True, True), (1459, -1, False, True),
                (1460, -1, True, True), (None, 399, False, False),
                (None, 400, True, True), (1500, 300, False, False),
                (1459, 400, False, True)):
            search = self.search(end_s, max_advance_s)
            self.assertEqual((expected, later), (
                search.find([host]) is not None,
                search.find([host], at_any_time=True) is not None))

    def test_hosts_at_once(self):
        for reservations, expected in (
                ([], 0), ([reservation(quantity=2)], 2),
                ([reservation(0, 1000)], 0), ([reservation(2000, 3000)], 0),
                # One gives back what the next one takes.
                ([reservation(0, 1500, 2), reservation(1500, 3000, 3)], 3),
                ([reservation(0, 1501, 2), reservation(1500, 3000, 3)], 5)):
            self.assertEqual(expected, reservation_limits.hosts_at_once(
                reservations, 1000, 2000))


class TestChange(unittest.TestCase):

    def test_new_end(self):
        for end_s, now_s, expected in (
                (3000, 2000, admission.NewEnd.OVER),
                (1500, 1500, admission.NewEnd.PAST),
                (1000, 900, admission.NewEnd.BEFORE_START),
                (1001, 900, admission.NewEnd.EARLIER),
                (2000, 1500, admission.NewEnd.EARLIER),
                (2001, 1999, admission.NewEnd.LATER)):
            with self.subTest(end_s=end_s, now_s=now_s):
                self.assertIs(expected, admission.new_end(
                    reservation(), end_s, now_s))

    def test_cancel(self):
        for status, now_s, expected in (
                (reservation_model.PENDING, 900,
                 admission.CancelEffect.NEVER_STARTS),
                # Its hosts are not empty yet.
                (reservation_model.PENDING, 1500,
                 admission.CancelEffect.NEVER_STARTS),
                (reservation_model.DEGRADED, 900,
                 admission.CancelEffect.NEVER_STARTS),
                (reservation_model.DEGRADED, 1000,
                 admission.CancelEffect.ENDS_NOW),
                (reservation_model.ACTIVE, 1999,
                 admission.CancelEffect.ENDS_NOW),
                (reservation_model.ACTIVE, 2000,
                 admission.CancelEffect.ENDS_ANYWAY)):
            with self.subTest(status=status, now_s=now_s):
                self.assertIs(expected, admission.cancel(
                    reservation(status=status), now_s))
