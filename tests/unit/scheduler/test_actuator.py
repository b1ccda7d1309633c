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
"""A claim that fails: what is known of it afterwards."""

import unittest
from unittest import mock

from oslo_db import exception as db_exc

from nova_preempt.cloud import placement
from nova_preempt.handover import claim
from nova_preempt.scheduler import actuator


class TestOutcomeUnknown(unittest.TestCase):

    def setUp(self):
        self.preemption = mock.Mock()
        decision = self.preemption.records.decision.return_value
        decision.uuid, decision.victims = 'd', [mock.Mock(notice_s=0)]
        self.handover = self.preemption.handover
        self.handover.claims.claim.side_effect = claim.OutcomeUnknown('500')
        patience = mock.Mock()
        patience.limit.longest_notice_s.return_value = 0
        self.act = actuator.Actuator(self.preemption, patience)
        self.cycle = mock.Mock(taken=actuator.ClaimsMade())

    def take(self, error):
        with self.assertRaises(error) as caught:
            self.act.take(self.cycle, None, None, 's', 'p', 'u',
                          {'allocations': {}})
        self.handover.recovery.take_back.assert_called_once_with('d', '500')
        return caught.exception

    def test_taken_back(self):
        self.handover.recovery.take_back.return_value = True
        self.assertNotIsInstance(self.take(placement.PlacementError),
                                 claim.OutcomeUnknown)
        self.assertEqual([], self.cycle.taken.lost)

    def test_not_yet(self):
        """It is tried again when the request has failed."""
        self.handover.recovery.take_back.return_value = False
        self.take(claim.OutcomeUnknown)
        self.assertEqual(['d'], self.cycle.taken.lost)

    def test_database_away(self):
        self.handover.recovery.take_back.side_effect = db_exc.DBError
        self.take(db_exc.DBError)
        self.assertEqual(['d'], self.cycle.taken.lost)
