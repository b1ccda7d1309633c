# SPDX-License-Identifier: Apache-2.0
"""Tests of the lifetime of trusts."""

import dataclasses
import datetime
import unittest
import uuid

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.backlog import trust_lifetime
from tests.unit.core.backlog import base

NOW = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.timedelta(days=1)
SECOND = datetime.timedelta(seconds=1)


class TestTrust(unittest.TestCase):

    def test_latest_start(self):
        at, later = NOW + DAY, NOW + 2 * DAY
        for expected, values in (
                (None, {}), (at, {'not_after': at}),
                (NOW + DAY, {'longest_wait_s': 86400}),
                (at, {'not_after': at, 'longest_wait_s': 9 * 86400}),
                (None, {'not_after': at, 'comes_back': True}),
                (later, {'not_after': at, 'comes_back': True,
                         'back_until': later}),
                (at, {'not_after': at, 'comes_back': True,
                      'back_until': NOW}),
                (at, {'not_after': at, 'count': 2, 'least_count': 2}),
                (None, {'not_after': at, 'count': 2, 'least_count': 1}),
                (None, {'not_after': at, 'count': 2, 'least_count': 2,
                        'apart': True}),
                # No trust lasts until then.
                (None, {'not_after': datetime.datetime(9990, 1, 1)}),
                (None, {'not_after': datetime.datetime(
                    9999, 12, 31, 23, 59, 59)}),
                (trust_lifetime.EARLIEST - SECOND,
                 {'not_after': trust_lifetime.EARLIEST - SECOND})):
            self.assertEqual(expected,
                             trust_lifetime.latest_start(base.request(
                                 'a', **{'created_at': NOW, **values})),
                             values)

    def test_requests_that_need_a_longer_trust(self):
        until = NOW + 9 * DAY
        for expected, values in (
                (False, {'not_after': NOW + 8 * DAY}),
                (True, {'not_after': NOW + 8 * DAY + SECOND}),
                (True, {'not_after': None}),
                (True, {'not_after': NOW, 'comes_back': True})):
            self.assertEqual(expected,
                             trust_lifetime.outlasts_trust(base.request(
                                 'a', trust_until=until, **values)))
            self.assertFalse(trust_lifetime.outlasts_trust(base.request(
                'a', **values)))


    def test_small_moves_need_few(self):
        """Ten days at a time, for years."""
        made, request = 0, base.request('a', not_after=NOW + DAY)
        request = dataclasses.replace(request,
            trust_until=trust_lifetime.expiry(
            'a', trust_lifetime.latest_start(request)))
        for number in range(1, 200):
            request = dataclasses.replace(
                request, not_after=NOW + 10 * number * DAY)
            if trust_lifetime.outlasts_trust(request):
                made += 1
                request = dataclasses.replace(
                    request, trust_until=trust_lifetime.expiry(
                        str(made), trust_lifetime.renewed_until(request, NOW)))
                self.assertFalse(trust_lifetime.outlasts_trust(request))
        self.assertLess(made, 10)

    def test_renewed_for_any_time(self):
        self.assertIsNone(trust_lifetime.renewed_until(base.request('a'), NOW))


class TestExpiry(unittest.TestCase):

    @given(st.uuids().map(str))
    def test_is_in_whole_seconds_and_far_ahead(self, of):
        found = trust_lifetime.expiry(of)
        self.assertEqual(found, trust_lifetime.expiry(of))
        self.assertEqual(0, found.microsecond)
        self.assertGreaterEqual(found, trust_lifetime.EARLIEST)
        self.assertLess(found, datetime.datetime(4700, 1, 1))

    @given(st.uuids().map(str), st.datetimes(
        datetime.datetime(2026, 1, 1), datetime.datetime(9999, 1, 1)))
    def test_is_soon_after_the_last_start(self, of, latest):
        found = trust_lifetime.expiry(of, latest.replace(microsecond=0))
        self.assertEqual(0, found.microsecond)
        if latest < trust_lifetime.EARLIEST:
            self.assertLess(datetime.timedelta(days=6), found - latest)
            self.assertGreater(datetime.timedelta(days=9), found - latest)

    def test_expiries_of_many_trusts_differ(self):
        latest = datetime.datetime(2026, 11, 20)
        self.assertLess(95, len({
            trust_lifetime.expiry(str(uuid.UUID(int=number)), latest)
            for number in range(100)}))

    def test_is_another_one_for_each(self):
        """1,000 trusts that begin at the same time differ."""
        self.assertEqual(1000, len({
            trust_lifetime.expiry(str(uuid.UUID(int=number)))
            for number in range(1000)}))
