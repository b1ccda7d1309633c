# SPDX-License-Identifier: Apache-2.0
"""Failed claims, and retries of their requests."""

import types
import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt import metrics
from nova_preempt.cloud import placement_api
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.handover import allocation_claim
from nova_preempt.scheduler import host_states
from nova_preempt.scheduler import manager
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import scheduling_pass

REQUEST = {'allocations': {'uuid': {'resources': {'VCPU': 1}}}}


class TestAges(unittest.TestCase):

    def test_lists_of_hosts_are_read_in_the_background(self):
        """They may be older than the servers that a decision reads."""
        made = scheduling_pass.SchedulingPass(mock.Mock(), mock.Mock())
        made._wanted = mock.Mock()
        with mock.patch.object(scheduling_pass.scheduling_cycle,
                               'SchedulingCycle') as core, (
                                       mock.patch.object(
                                           scheduling_pass.request_specs,
                                           'protected_servers',
                                           return_value=frozenset())), (
                                       mock.patch.object(
                                           scheduling_pass.nova_cloud_view,
                                           'NovaCloudView')):
            made.preemption.handover.stuck.return_value = frozenset()
            made._begin(mock.Mock(), {})
        ages = core.call_args.kwargs
        self.assertEqual((cloud_view.MAX_AGE_S, cloud_view.LIST_MAX_AGE_S),
                         (ages['idle_age_s'], ages['list_age_s']))
        self.assertGreater(cloud_view.LIST_MAX_AGE_S, manager.REFRESH_S)


class TestClaim(unittest.TestCase):

    def setUp(self):
        self.preemption, asked = mock.Mock(), mock.Mock()
        asked.deadline.silent = cloud_view.UnansweredHosts()
        self.now = 0
        self.preemption.monotonic = lambda: self.now
        self.cycle = scheduling_pass.SchedulingPass(self.preemption, asked)
        self.cycle._take = mock.Mock()
        state = types.SimpleNamespace(
            uuid='uuid', host='h',
            preemption=host_states.PreemptionMark(('victim',)))
        self.cycle.cloud = mock.Mock(states={'uuid': state})
        self.decision = self.cycle.decision = mock.Mock()
        self.decision.plan_of.return_value.joins = ()
        plan = self.decision.confirm.return_value.taking.return_value
        plan.victims = (mock.Mock(uuid='victim'),)
        self.decision.leave.side_effect = (
            asked.deadline.silent.exclude)
        self.outdated = self.preemption.known.providers.outdated

    def claim(self, error=None):
        """Claim, which fails after a minute."""
        def take(*args):
            self.now += 60
            raise error

        if error is not None:
            self.cycle._take = take
        before = metrics.CONFLICTS._value.get()
        done = self.cycle.claim(None, 'server', REQUEST, 'p', 'u')
        self.races = metrics.CONFLICTS._value.get() - before
        return done

    def test_made(self):
        self.assertTrue(self.claim())
        self.assertEqual([self.cycle._take.return_value],
                         self.cycle.made.claims)
        self.assertEqual((0, 0), (self.races, self.cycle.made.conflicts))

    def test_a_conflict_refuses_the_claim(self):
        self.assertFalse(self.claim(placement_api.Conflict('409')))
        self.assertEqual((1, 1), (self.races, self.cycle.made.conflicts))
        self.decision.lost.assert_called_once_with('uuid')
        self.decision.leave.assert_not_called()
        self.outdated.assert_called_once_with()

    def test_a_changed_host_refuses_the_claim(self):
        self.decision.confirm.return_value = None
        self.assertFalse(self.claim())
        self.assertEqual((1, 1), (self.races, self.cycle.made.conflicts))

    def test_placement_fails(self):
        """The host is left out; others may be tried now, and anew."""
        with self.assertLogs('nova_preempt.scheduler', 'WARNING') as logs:
            self.assertFalse(self.claim(placement_api.PlacementError('500')))
        self.assertIn('Host h ', logs.output[0])
        self.assertEqual((0, 1), (self.races, self.cycle.made.conflicts))
        (host, exc), _ = self.decision.leave.call_args
        self.assertEqual(('uuid', '500', 60), (host, str(exc), exc.after_s))
        self.outdated.assert_not_called()

    def test_an_unknown_outcome_is_raised(self):
        with self.assertRaises(allocation_claim.OutcomeUnknown):
            self.claim(allocation_claim.OutcomeUnknown('500'))
        self.decision.leave.assert_not_called()


class TestOutcomeUnknown(unittest.TestCase):

    def setUp(self):
        self.preemption = mock.Mock()
        records = self.enterContext(mock.patch.object(scheduling_pass,
                                                      'decision_records'))
        decision = records.decision.return_value
        decision.uuid, decision.victims = 'd', [mock.Mock(notice_s=0)]
        handover = self.preemption.handover
        self.roll_back = handover.recovery.reopen_and_roll_back
        handover.claims.claim.side_effect = (
            allocation_claim.OutcomeUnknown('500'))
        deadline = mock.Mock()
        deadline.longest_notice_s.return_value = 0
        self.cycle = scheduling_pass.SchedulingPass(
            self.preemption, request_context.RequestContext(
                deadline=deadline))

    def take(self, error):
        with self.assertRaises(error) as caught:
            self.cycle._take(None, None, 's', 'p', 'u', {'allocations': {}})
        self.roll_back.assert_called_once_with('d', '500')
        return caught.exception

    def test_taken_back(self):
        self.roll_back.return_value = True
        self.assertNotIsInstance(self.take(placement_api.PlacementError),
                                 allocation_claim.OutcomeUnknown)
        self.assertEqual([], self.cycle.made.lost)

    def test_not_yet(self):
        """It is tried again when the request has failed."""
        self.roll_back.return_value = False
        self.take(allocation_claim.OutcomeUnknown)
        self.assertEqual(['d'], self.cycle.made.lost)

    def test_database_away(self):
        self.roll_back.side_effect = db_exc.DBError
        self.take(db_exc.DBError)
        self.assertEqual(['d'], self.cycle.made.lost)
