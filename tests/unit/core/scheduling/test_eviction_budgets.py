# SPDX-License-Identifier: Apache-2.0
"""Budgets of simultaneous evictions."""

import unittest

from nova_preempt.core.model import VictimCap
from nova_preempt.core.scheduling.eviction_budgets import EvictionBudgets
from tests.unit.core.scheduling.world import server

# Two groups of two servers each; "alone" is in none.
GROUPS = {'a1': [1], 'a2': [1], 'b1': [2], 'b2': [2]}


class TestBudgets(unittest.TestCase):

    def test_project(self):
        found = EvictionBudgets(2, 0, {'x': 'p', 'y': 'q'}, {})
        self.assertTrue(found.allows(server('a1')))
        self.assertEqual(
            [VictimCap(frozenset({'a1', 'alone'}), 1),
             VictimCap(frozenset({'z'}), 1)],
            found.caps([server('a1'), server('alone'),
                        server('z', project_id='q')]))
        found = EvictionBudgets(2, 0, {'x': 'p', 'z': 'p'}, {})
        self.assertFalse(found.allows(server('a1')))
        # Those that count already may end.
        self.assertTrue(found.allows(server('x')))
        self.assertEqual([], found.caps([server('x')]))

    def test_group(self):
        found = EvictionBudgets(0, 1, {'a1': 'p'}, GROUPS)
        self.assertFalse(found.allows(server('a2')))
        self.assertTrue(found.allows(server('b1')))
        self.assertTrue(found.allows(server('alone')))
        self.assertEqual(
            [VictimCap(frozenset({'b1', 'b2'}), 1)],
            found.caps([server('b1'), server('b2'), server('alone')]))

    def test_exceeded(self):
        """Only the budgets of the victims' projects count."""
        ending = {'a1': 'p', 'b1': 'p', 'b2': 'p', 'y': 'q', 'z': 'q'}
        self.assertEqual(
            '', EvictionBudgets(3, 0, ending, {}).exceeded({'a1': 'p'}))
        self.assertEqual(
            'project p would have 3 servers ending, its budget is 2',
            EvictionBudgets(2, 0, ending, {}).exceeded({'a1': 'p'}))
        self.assertEqual(
            '', EvictionBudgets(0, 1, ending, GROUPS).exceeded({'a1': 'p'}))
        self.assertEqual(
            'server group 2 would have 2 servers ending, its budget is 1',
            EvictionBudgets(0, 1, ending, GROUPS).exceeded({'b1': 'p'}))
