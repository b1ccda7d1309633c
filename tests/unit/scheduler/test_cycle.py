# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Claims that fail: whether, and where, the request goes on."""

import types
import unittest
from unittest import mock

from nova_preempt import metrics
from nova_preempt.cloud import placement
from nova_preempt.core.scheduling import port
from nova_preempt.handover import claim
from nova_preempt.scheduler import cycle
from nova_preempt.scheduler import states

REQUEST = {'allocations': {'uuid': {'resources': {'VCPU': 1}}}}


class TestClaim(unittest.TestCase):

    def setUp(self):
        self.preemption, self.act = mock.Mock(), mock.Mock()
        self.act.patience.silent = port.Silent()
        self.cycle = cycle.SchedulingCycle(self.preemption, None, mock.Mock(),
                                           self.act)
        self.now = 0
        self.cycle.cloud.monotonic = lambda: self.now
        state = types.SimpleNamespace(
            uuid='uuid', host='h', preemption=states.Mark(('victim',)))
        self.cycle.cloud.states = {'uuid': state}
        self.decision = self.cycle.decision = mock.Mock()
        self.decision.plan_of.return_value.joins = ()
        plan = self.decision.confirm.return_value.taking.return_value
        plan.victims = (mock.Mock(uuid='victim'),)
        self.decision.leave.side_effect = (
            self.act.patience.silent.exclude)
        self.outdated = self.preemption.known.providers.outdated

    def claim(self, error=None):
        """Claim, which fails after a minute."""
        def take(*args):
            self.now += 60
            raise error

        if error is not None:
            self.act.take = take
        before = metrics.CONFLICTS._value.get()
        done = self.cycle.claim(None, 'server', REQUEST, 'p', 'u')
        self.races = metrics.CONFLICTS._value.get() - before
        return done

    def test_made(self):
        self.assertTrue(self.claim())
        self.assertEqual([self.act.take.return_value],
                         self.cycle.taken.claims)
        self.assertEqual((0, 0), (self.races, self.cycle.taken.conflicts))

    def test_others_were_faster(self):
        self.assertFalse(self.claim(placement.Conflict('409')))
        self.assertEqual((1, 1), (self.races, self.cycle.taken.conflicts))
        self.decision.lost.assert_called_once_with('uuid')
        self.decision.leave.assert_not_called()
        self.outdated.assert_called_once_with()

    def test_not_what_it_was(self):
        self.decision.confirm.return_value = None
        self.assertFalse(self.claim())
        self.assertEqual((1, 1), (self.races, self.cycle.taken.conflicts))

    def test_placement_fails(self):
        """The host is left out; others may be tried now, and anew."""
        with self.assertLogs('nova_preempt.scheduler', 'WARNING') as logs:
            self.assertFalse(self.claim(placement.PlacementError('500')))
        self.assertIn('host h', logs.output[0])
        self.assertEqual((0, 1), (self.races, self.cycle.taken.conflicts))
        (host, exc), _ = self.decision.leave.call_args
        self.assertEqual(('uuid', '500', 60), (host, str(exc), exc.after_s))
        self.outdated.assert_not_called()

    def test_nobody_knows(self):
        with self.assertRaises(claim.OutcomeUnknown):
            self.claim(claim.OutcomeUnknown('500'))
        self.decision.leave.assert_not_called()
