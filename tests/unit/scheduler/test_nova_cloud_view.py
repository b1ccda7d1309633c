# SPDX-License-Identifier: Apache-2.0

"""Tests of the view of the cloud for Nova."""

import threading
import unittest
from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.core import poll_timing
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.scheduler import nova_cloud_view
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import request_deadline

TIMES = poll_timing.TimeBudget(whole_s=100, end_s=20)


class NovaCloudTestCase(unittest.TestCase):

    def setUp(self):
        self.now = 0
        self.places = threading.Semaphore(4)
        mine = request_deadline.Deadline(TIMES, self.places, lambda: self.now)
        self.preemption = mock.Mock(monotonic=lambda: self.now)
        self.cloud = nova_cloud_view.NovaCloudView(
            self.preemption, request_context.RequestContext(
                server_uuids=('server',), deadline=mine), None, None)


class TestUnanswered(NovaCloudTestCase):

    def test_how_long_it_took(self):
        def look_again(*args):
            self.now += 60
            raise placement_api.PlacementError('timeout')

        self.now = 7
        self.cloud._query = []
        self.preemption.known.providers.look_again = look_again
        with self.assertRaisesRegex(cloud_view.Unanswered,
                                    'timeout') as caught:
            self.cloud.list_again('host', 1)
        self.assertEqual(60, caught.exception.after_s)


class TestMayWait(NovaCloudTestCase):

    def test_before_anything_is_read(self):
        """A query that only counts reads servers in another way."""
        self.assertTrue(self.cloud.may_wait(80))
        self.assertFalse(self.cloud.may_wait(81))

    def test_time_passes(self):
        """79 s are left: 59 s before the end that has to fit too."""
        self.now = 21
        self.cloud.refresh(0)
        self.assertTrue(self.cloud.may_wait(59))
        self.assertFalse(self.cloud.may_wait(60))

    def test_too_many_requests_wait(self):
        """Only victims without notice are evicted."""
        for _ in range(4):
            self.places.acquire(blocking=False)
        self.assertFalse(self.cloud.may_wait(60))
        self.assertTrue(self.cloud.may_wait(0))
        self.places.release()
        self.assertFalse(self.cloud.may_wait(60))

    def test_one_more_may_wait(self):
        for _ in range(3):
            self.places.acquire(blocking=False)
        self.assertTrue(self.cloud.may_wait(60))
        self.assertFalse(self.places.acquire(blocking=False))

    def test_no_notice_needs_no_place(self):
        self.assertTrue(self.cloud.may_wait(0))
        for _ in range(4):
            self.assertTrue(self.places.acquire(blocking=False))
