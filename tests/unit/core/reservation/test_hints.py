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
"""Which reservations a scheduler hint names."""

import unittest

from nova_preempt.core.reservation import hints


class TestNamed(unittest.TestCase):

    def test_names(self):
        for found, expected in ((None, ()), ({}, ()),
                                ({'reservation': 'a'}, ('a',)),
                                ({'reservation': ['a', 'b']}, ('a', 'b')),
                                ({'group': 'a'}, ())):
            self.assertEqual(expected, hints.named(found))

    def test_neither_text_nor_texts(self):
        for value in (5, 0, None, True, False, [5], [None], ['a', 5],
                      [{'a': 1}], {'a': 1}, {}):
            with self.subTest(value), self.assertRaises(hints.InvalidHint):
                hints.named({'reservation': value})
        for value in ('', []):
            self.assertEqual((), hints.named({'reservation': value}))
