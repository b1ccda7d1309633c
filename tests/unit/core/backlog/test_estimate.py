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
"""How long a request may still wait."""

import unittest

from nova_preempt.core.backlog import estimate


class TestPace(unittest.TestCase):

    def test_the_slowest_class_counts(self):
        pace = estimate.Pace.of(3600, [{'VCPU': 2, 'MEMORY_MB': 100}] * 6)
        self.assertEqual(estimate.Pace(3600, {'VCPU': 12, 'MEMORY_MB': 600},
                                       6), pace)
        for ahead, expected in (
                ({}, 0), ({'VCPU': 0}, 0), ({'VCPU': 12}, 3600),
                ({'VCPU': 1}, 300), ({'VCPU': 12, 'MEMORY_MB': 601}, 3606),
                # Of this nothing was placed.
                ({'VGPU': 1}, None)):
            with self.subTest(ahead):
                self.assertEqual(expected, pace.wait_s(ahead))

    def test_few_starts_say_nothing(self):
        pace = estimate.Pace.of(3600, [{'VCPU': 1}] * 4)
        self.assertIsNone(pace.wait_s({'VCPU': 1}))
        self.assertIsNone(estimate.Pace.of(60, []).wait_s({'VCPU': 1}))


if __name__ == '__main__':
    unittest.main()
