# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


"""Tests of nova_preempt.core.scheduling.room."""

import unittest

from nova_preempt.core.scheduling.room import Room


class TestRoom(unittest.TestCase):

    def setUp(self):
        self.room = Room({'VCPU': 2, 'MEMORY_MB': 512})
        self.room.found({'a': {'VCPU': 4, 'MEMORY_MB': 1024}})

    def test_who_takes_it(self):
        for _ in range(2):
            self.assertTrue(self.room.has('a'))
            self.room.take('a')
        self.assertFalse(self.room.has('a'))
        self.assertIn('a', self.room, 'it had some when it was asked')

    def test_a_host_that_is_not_known(self):
        self.assertFalse(self.room.has('b'))
        self.room.take('b')
        self.assertEqual(['a'], list(self.room))

    def test_classes_that_were_not_told(self):
        """Placement has looked at them."""
        self.room.found({'b': {'VCPU': 2}})
        self.assertTrue(self.room.has('b'))

    def test_another_form(self):
        """It counts on hosts that are new, and on these alone."""
        self.room.found({'a': {'VCPU': 1}, 'b': {'VCPU': 1},
                         'c': {'VCPU': 1}}, {'VCPU': 1}, planned={'c'})
        self.assertEqual(['a', 'b'], list(self.room))
        self.assertTrue(self.room.has('a'))
        self.room.take('b')
        self.assertFalse(self.room.has('b'))
