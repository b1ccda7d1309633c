# SPDX-License-Identifier: Apache-2.0
"""Reservations that a scheduler hint names."""

import unittest

from nova_preempt.core.reservation import reservation_model


class TestNamed(unittest.TestCase):

    def test_names(self):
        for found, expected in ((None, ()), ({}, ()),
                                ({'reservation': 'a'}, ('a',)),
                                ({'reservation': ['a', 'b']}, ('a', 'b')),
                                ({'group': 'a'}, ())):
            self.assertEqual(expected, reservation_model.ids_in_hints(found))

    def test_neither_text_nor_texts(self):
        for value in (5, 0, None, True, False, [5], [None], ['a', 5],
                      [{'a': 1}], {'a': 1}, {}):
            with self.subTest(value), self.assertRaises(
                reservation_model.InvalidHint):
                reservation_model.ids_in_hints({'reservation': value})
        for value in ('', []):
            self.assertEqual((),
                             reservation_model.ids_in_hints(
                                 {'reservation': value}))
