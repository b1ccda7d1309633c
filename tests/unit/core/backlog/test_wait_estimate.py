# SPDX-License-Identifier: Apache-2.0
"""Tests of estimated waits."""

import unittest

from nova_preempt.core.backlog import wait_estimate


class TestPace(unittest.TestCase):

    def test_the_slowest_class_counts(self):
        pace = wait_estimate.PlacementPace.of(
            3600, [{'VCPU': 2, 'MEMORY_MB': 100}] * 6)
        self.assertEqual(wait_estimate.PlacementPace(
            3600, {'VCPU': 12, 'MEMORY_MB': 600}, 6), pace)
        for ahead, expected in (
                ({}, 0), ({'VCPU': 0}, 0), ({'VCPU': 12}, 3600),
                ({'VCPU': 1}, 300), ({'VCPU': 12, 'MEMORY_MB': 601}, 3606),
                # Of this nothing was placed.
                ({'VGPU': 1}, None)):
            with self.subTest(ahead):
                self.assertEqual(expected, pace.wait_s(ahead))

    def test_few_starts_say_nothing(self):
        pace = wait_estimate.PlacementPace.of(3600, [{'VCPU': 1}] * 4)
        self.assertIsNone(pace.wait_s({'VCPU': 1}))
        self.assertIsNone(
            wait_estimate.PlacementPace.of(60, []).wait_s({'VCPU': 1}))


if __name__ == '__main__':
    unittest.main()
