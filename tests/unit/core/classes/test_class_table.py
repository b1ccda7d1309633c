# SPDX-License-Identifier: Apache-2.0

"""Tests of class definitions and their errors."""

from __future__ import annotations

from fractions import Fraction
import unittest

from nova_preempt.core.classes import class_table
from nova_preempt.core.classes.availability_margin import QosClass

GOLD = {"name": "gold", "importance": "1", "availability": "1"}
SILVER = {"name": "silver", "importance": "2", "availability": "0.9"}


class TestTable(unittest.TestCase):
    def test_defaults_of_a_class(self) -> None:
        found = class_table.parse([SILVER, GOLD])
        self.assertEqual(("gold", "silver"), found.names)
        self.assertEqual(
            QosClass("silver", 2, Fraction(9, 10), 300, Fraction(1), 300),
            found.classes.find("silver"),
        )
        self.assertEqual(frozenset(), found.open)
        self.assertEqual((60_000_000, 300),
                         (found.overhead_us, found.pass_period_s))

    def test_the_safety_margin_is_a_period(self) -> None:
        found = class_table.parse([GOLD], pass_period_s=7)
        qos = found.classes.find("gold")
        assert qos is not None
        self.assertEqual((7, 7, 300), (
            found.pass_period_s, qos.safety_margin_s, qos.least_run_s))

    def test_all_that_may_be_said(self) -> None:
        found = class_table.parse([{
            **SILVER, "safety_margin_s": "10", "overhead_limit": "0.05",
            "least_run_s": "0", "open": "true"}])
        self.assertEqual(
            QosClass("silver", 2, Fraction(9, 10), 10, Fraction(1, 20), 0),
            found.classes.find("silver"),
        )
        self.assertEqual({"silver"}, found.open)
        self.assertEqual(("silver",), found.hasty)
        self.assertEqual((), class_table.parse([SILVER]).hasty)

    def test_errors_name_the_mistake(self) -> None:
        for entries, text in (
            ([], "0 classes are defined; there must be 1 to 8"),
            ([GOLD, {}], "class number 2: field name is missing"),
            ([{**GOLD, "importance": ""}], "field importance is missing"),
            ([{"name": "gold", "importance": "1"}],
             "class gold: field availability is missing"),
            ([{**GOLD, "colour": "red"}],
             "class gold: field colour is unknown; known are name, "),
            ([{**GOLD, "name": "a b"}], "class a b: name must have 1 to 64"),
            ([{**GOLD, "name": "a" * 65}], "name must have 1 to 64 letters"),
            ([{**GOLD, "importance": "1.5"}],
             "class gold: importance is '1.5'; it must be a whole number"),
            ([{**GOLD, "importance": "0"}], "it must be 1 or more"),
            ([{**GOLD, "availability": "most"}],
             "class gold: availability is 'most'; it must be a number such"),
            ([{**GOLD, "availability": "1/0"}], "it must be a number such"),
            ([{**GOLD, "availability": "nan"}], "it must be a number such"),
            ([{**GOLD, "availability": "90"}],
             "availability of class gold is 90; it must be more than 0 and"),
            ([{**GOLD, "least_run_s": "-1"}],
             "least_run_s of class gold is -1; it must be 0 or more"),
            ([{**GOLD, "open": "yes"}],
             "class gold: open is 'yes'; it must be true or false"),
            ([GOLD, GOLD], "two classes have the name gold"),
            ([GOLD, {**SILVER, "importance": "1"}],
             "the same importance, 1"),
        ):
            with self.subTest(text), self.assertRaises(ValueError) as caught:
                class_table.parse(entries)
            self.assertIn(text, str(caught.exception))
