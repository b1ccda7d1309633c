# SPDX-License-Identifier: Apache-2.0
"""By what the trust of a request is known."""

import datetime
import unittest
import uuid

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.backlog import trust_marker


class TestExpiry(unittest.TestCase):

    @given(st.uuids().map(str))
    def test_is_in_whole_seconds_and_far_ahead(self, of):
        found = trust_marker.expiry(of)
        self.assertEqual(found, trust_marker.expiry(of))
        self.assertEqual(0, found.microsecond)
        self.assertGreaterEqual(found, trust_marker.EARLIEST)
        self.assertLess(found, datetime.datetime(4700, 1, 1))

    @given(st.uuids().map(str), st.datetimes(
        datetime.datetime(2026, 1, 1), datetime.datetime(9999, 1, 1)))
    def test_is_soon_after_the_last_start(self, of, latest):
        found = trust_marker.expiry(of, latest.replace(microsecond=0))
        self.assertEqual(0, found.microsecond)
        if latest < trust_marker.EARLIEST:
            self.assertLess(datetime.timedelta(days=6), found - latest)
            self.assertGreater(datetime.timedelta(days=9), found - latest)

    def test_of_many_at_the_same_time(self):
        latest = datetime.datetime(2026, 11, 20)
        self.assertLess(95, len({
            trust_marker.expiry(str(uuid.UUID(int=number)), latest)
            for number in range(100)}))

    def test_is_another_one_for_each(self):
        """Of 1,000, which are many more than are begun at once."""
        self.assertEqual(1000, len({
            trust_marker.expiry(str(uuid.UUID(int=number)))
            for number in range(1000)}))
