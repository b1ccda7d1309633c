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
"""How headroom is written."""

import testtools

from nova_preempt.engine import headroom


class TestParse(testtools.TestCase):

    def test_nothing(self):
        for text in ('', ' ', ',', ' , '):
            self.assertEqual({}, headroom.parse(text), text)

    def test_amounts_and_percentages(self):
        self.assertEqual(
            {'VCPU': (5, True), 'MEMORY_MB': (65536, False),
             'CUSTOM_X': (0, False)},
            headroom.parse('VCPU:5%, MEMORY_MB:65536,CUSTOM_X:0,'))
        self.assertEqual({'VCPU': (100, True)}, headroom.parse('VCPU:100%'))

    def test_of_two_the_last_counts(self):
        self.assertEqual({'VCPU': (2, False)},
                         headroom.parse('VCPU:1,VCPU:2'))

    def test_what_is_none(self):
        for text in ('VCPU', 'VCPU:', ':5', 'VCPU:%', 'VCPU:-1', 'VCPU:1.5',
                     'VCPU:101%', 'VCPU:ten', 'VCPU=5', 'VCPU:1 MEMORY_MB:2'):
            exc = self.assertRaises(ValueError, headroom.parse,
                                    f'DISK_GB:1,{text}')
            self.assertIn(repr(text), str(exc))
