# SPDX-License-Identifier: Apache-2.0
"""Capacity of victims that end already, and its claims."""

import datetime
import types
import unittest
from unittest import mock

from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt.cloud import awaited_servers
from nova_preempt.core import model
from nova_preempt.core import poll_timing
from nova_preempt.core.scheduling import plan_search
from nova_preempt.db import decisions as db_decisions
from nova_preempt.scheduler import release_waiter
from nova_preempt.scheduler import request_deadline
from tests.unit.core.scheduling import world

NOW = datetime.datetime(2026, 11, 20, 12)


class SurplusTestCase(unittest.TestCase):
    """A full host of 4 VCPU; the victim v1 still has 2, v2 would cost 20."""

    def setUp(self):
        self.now = 0.0
        patch = mock.patch.object(timeutils, 'utcnow', return_value=NOW)
        patch.start()
        self.addCleanup(patch.stop)
        self.claimed = {'d'}
        self.options = types.SimpleNamespace(
            actions=['delete'], maximum_notice_s=300,
            termination_timeout_s=120)
        patch = mock.patch.object(awaited_servers, 'POLL_INTERVAL_S', 1.0)
        patch.start()
        self.addCleanup(patch.stop)
        self.surplus = release_waiter.ReleaseWaiter(
            types.SimpleNamespace(get_claimed_uuids=lambda: self.claimed),
            self.options, lambda: self.now, self.sleep)
        self.world = world.World()
        self.world.add('node', {'VCPU': 4, 'DISK_GB': 40}, {}, {
            uuid: (20, {'VCPU': 2, 'DISK_GB': 20}) for uuid in ('v1', 'v2')},
            uuid='rp')
        self.allocations = self.world.hosts['rp'].allocations

    def sleep(self, seconds):
        self.now += seconds

    def decision(self, *victims, **values):
        return db.Decision(**{
            'uuid': 'd', 'server_uuid': 's', 'status': db_decisions.CLAIMED,
            'provider_uuid': 'rp', 'victims': victims, **values})

    def best(self, *decisions, wanted=2, **resources):
        """The first plan of a request, None if there is none.

        It can wait for 60 s.
        """
        self.world.hosts['rp'].generation += 1
        self.world.longest_notice_s = 60
        self.resources = {'VCPU': wanted, **resources}
        cloud = self.world.answers()
        cloud.releasing = lambda: self.surplus.releasing(decisions)
        found = plan_search.PlanSearch(
            cloud, model.Request.of(self.resources), self.world.policy,
            world.NOW, excluded=['v1'])
        found.exclude_ending()
        return next(found.ranked(()), None)


class TestLeaving(SurplusTestCase):

    def test_a_request_joins_evictions(self):
        """Lesson 5: no victim is evicted for space that is being freed."""
        option = self.best(self.decision(db.Victim('v1')))
        self.assertEqual((('d',), 0), (option.joins, option.cost_us))
        self.assertEqual(['v1'], [server.uuid for server in option.victims])

    def test_no_evictions_to_join(self):
        option = self.best()
        self.assertEqual((), option.joins)
        self.assertEqual(['v2'], [server.uuid for server in option.victims])

    def test_no_join_if_too_little_is_freed(self):
        self.assertIsNone(self.best(self.decision(db.Victim('v1')),
                                    wanted=3))

    def test_no_join_if_the_victim_does_not_hold_its_space(self):
        self.allocations['v1'] = {'VCPU': 1}
        self.allocations['normal'] = {'VCPU': 1}
        self.assertEqual((), self.best(self.decision(db.Victim('v1'))).joins)

    def test_no_join_before_the_claim(self):
        for status in (db_decisions.INTENT, db_decisions.ROLLING_BACK):
            self.assertEqual((), self.best(self.decision(
                db.Victim('v1'), status=status)).joins)

    def test_no_decision_is_joined_twice(self):
        decision = self.decision(db.Victim('v1'))
        self.assertEqual({}, self.surplus.releasing([decision], {'d'}))

    def test_a_stopped_server_keeps_its_disk(self):
        stops = self.decision(db.Victim('v1', action='stop'))
        self.assertEqual(('d',), self.best(stops).joins)
        self.assertEqual((), self.best(stops, DISK_GB=20).joins)

    def test_a_victim_that_is_kept(self):
        self.assertEqual((), self.best(self.decision(
            db.Victim('v1', status=db_decisions.KEPT))).joins)

    def test_no_join_if_the_notice_is_too_long(self):
        """The rest of the notice is compared with the 60 s of the request."""
        for left_s, joins in ((60, ('d',)), (61, ())):
            self.assertEqual(joins, self.best(self.decision(db.Victim(
                'v1', notice_s=300, deadline=NOW + datetime.timedelta(
                    seconds=left_s)))).joins)

    def test_an_eviction_of_the_engine_is_joined(self):
        """It has no provider and no surplus in its record."""
        option = self.best(self.decision(
            db.Victim('v1', allocations={'rp': {'resources': {'VCPU': 2}}}),
            server_uuid='', provider_uuid='', record={'why': 'age'}))
        self.assertEqual(('d',), option.joins)

    def test_a_second_request_does_not_join_the_same_space(self):
        decision = self.decision(db.Victim('v1'))
        option = self.best(decision)
        self.assertRaises(release_waiter.CapacityReleasing,
                          self.surplus.join, option, self.resources)
        self.assertEqual((), self.best(decision).joins)
        self.assertFalse(self.surplus.join(option, self.resources),
                         'it is given twice')


class TestWaiting(SurplusTestCase):

    def wait(self, whole_s):
        with self.assertRaises(release_waiter.CapacityReleasing) as caught:
            self.surplus.join(self.best(self.decision(db.Victim('v1'))),
                              self.resources)
        self.surplus.wait(caught.exception, request_deadline.Deadline(
            poll_timing.TimeBudget(whole_s, 0), None,
            lambda: self.now))
        self.assertEqual((), self.surplus.waiting('rp'))

    def test_a_joined_request_waits_until_the_decision_is_done(self):
        real = self.sleep

        def sleep(seconds):
            real(seconds)
            if self.now >= 30:
                self.claimed = set()

        self.surplus._sleep = sleep
        self.wait(1000)
        self.assertEqual(30, self.now)

    def test_a_joined_request_waits_no_longer_than_the_eviction(self):
        self.wait(1000)
        self.assertEqual(420, self.now)

    def test_a_joined_request_waits_no_longer_than_its_deadline(self):
        self.wait(50)
        self.assertEqual(50, self.now)
