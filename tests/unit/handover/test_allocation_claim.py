# SPDX-License-Identifier: Apache-2.0
"""The second transaction: space moves from stand-ins to servers."""

import unittest

from nova_preempt.cloud import placement_api
from nova_preempt.core import model
from nova_preempt.db import decisions
from nova_preempt.handover import allocation_claim
from tests.unit.handover import test_preemption_rollback

AWAY = placement_api.PlacementError('away')
BUSY = placement_api.Conflict('busy', placement_api.CONCURRENT_UPDATE)
FULL = placement_api.Conflict('full', placement_api.NO_ROOM)


class TestHandOver(unittest.TestCase):
    """Stand-ins of a host of 3 VCPUs hold 1 for server a and 2 for b."""

    def setUp(self):
        super().setUp()
        self.placement = test_preemption_rollback.FakePlacement(3)
        self.now = 0.0
        self.pauses = []
        self.claims = allocation_claim.Claims(self.placement, None, None, None,
                                              lambda: self.now, self.sleep)
        self.decisions = []
        for name, vcpus in ('a', 1), ('b', 2):
            self.placement.give(f'for {name}', vcpus)
            self.decisions.append(decisions.Decision(
                f'd{name}', name, operation='create', provider_uuid='rp',
                record={'stand_in': f'for {name}',
                        'allocations': {'rp': {'VCPU': vcpus}},
                        'consumer_generation': None}))

    def sleep(self, pause_s):
        self.pauses.append(pause_s)
        self.now += pause_s

    def fail(self, *failures, works=False):
        """Let the first writes fail.

        :param works: whether what they ask for happens all the same
        """
        real, left = self.placement.post_allocations, list(failures)

        def post(consumers):
            if not left:
                return real(consumers)
            if works:
                real(consumers)
            raise left.pop(0)

        self.placement.post_allocations = post

    def assert_has(self, **vcpus):
        names = 'a', 'b', 'for a', 'for b'
        self.assertEqual(vcpus, {
            name.replace(' ', '_'): self.placement.vcpus(name)
            for name in names if self.placement.vcpus(name)})

    def assert_handed_over(self, pauses=0):
        self.claims.hand_over(self.decisions)
        self.assert_has(a=1, b=2)
        self.assertEqual(pauses, len(self.pauses))

    def assert_lost(self, **vcpus):
        """Assert that the claim is lost without waiting."""
        self.assertRaises(allocation_claim.ClaimLost, self.claims.hand_over,
                          self.decisions)
        self.assert_has(**vcpus)
        self.assertEqual([], self.pauses)

    def test_all_stand_ins_are_handed_over_together(self):
        self.assert_handed_over()
        self.claims.hand_over([])

    def test_other_allocations_of_a_server_stay(self):
        self.placement.give('a', 5, 'other')
        self.decisions[0] = decisions.Decision(
            'da', 'a', operation='evacuate', provider_uuid='rp',
            record={**self.decisions[0].record, 'consumer_generation': 1})
        self.assert_handed_over()
        self.assertEqual(5, self.placement.vcpus('a', 'other'))

    def test_the_answer_is_lost(self):
        self.fail(AWAY, works=True)
        self.assert_handed_over()

    def test_the_client_has_asked_twice(self):
        self.fail(BUSY, works=True)
        self.assert_handed_over()

    def test_placement_is_restarted_or_busy(self):
        self.fail(AWAY, BUSY, AWAY)
        self.assert_handed_over(pauses=3)

    def test_placement_stays_away(self):
        self.fail(*[AWAY] * 1000)
        for left_s, waited_s in ((1000, 30), (7, 7)):
            self.now, since = 100.0, 100.0
            self.assertRaises(
                placement_api.PlacementError, self.claims.hand_over,
                self.decisions,
                lambda end=since + left_s: end - self.now)
            self.assertAlmostEqual(waited_s, self.now - since, delta=0.5)
        self.assert_has(for_a=1, for_b=2)

    def test_a_hand_over_without_space_fails(self):
        """The inventory of the host was reduced."""
        self.fail(FULL)
        self.assert_lost(for_a=1, for_b=2)

    def test_a_hand_over_to_a_server_changed_by_nova_fails(self):
        self.placement.capacity = 4
        self.placement.give('b', 1)
        self.assert_lost(for_a=1, for_b=2, b=1)

    def test_a_hand_over_of_a_freed_stand_in_fails(self):
        for name in 'a', 'b':
            self.setUp()
            self.placement.delete_allocations(f'for {name}')
            self.assert_lost(**({'for_b': 2} if name == 'a'
                                else {'for_a': 1}))

    def test_a_roll_back_was_faster(self):
        """Another process has taken the decision over."""
        for decision in self.decisions:
            self.placement.delete_allocations(
                allocation_claim.stand_in(decision))
        self.placement.give('victim', 3)
        self.assertRaises(allocation_claim.ClaimLost, self.claims.hand_over,
                          self.decisions)


class TestOnBehalf(unittest.TestCase):

    def test_servers_instead_of_their_stand_ins(self):
        provider = model.Provider('rp', 0, {}, {'for a': {'VCPU': 1},
                                                'b': {'VCPU': 2}})
        self.assertEqual({'a': {'VCPU': 1}, 'b': {'VCPU': 2}},
                         allocation_claim.on_behalf(provider, {'for a': 'a'})
                         .allocations)
        self.assertIs(provider,
                      allocation_claim.on_behalf(provider, {'for c': 'c'}))


if __name__ == '__main__':
    unittest.main()
