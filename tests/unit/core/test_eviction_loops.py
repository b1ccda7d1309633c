# SPDX-License-Identifier: Apache-2.0
"""Detection of repeated evictions."""

from __future__ import annotations

import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_preempt.core.eviction_loops import PROJECTS
from nova_preempt.core.eviction_loops import SERVER
from nova_preempt.core.eviction_loops import Eviction
from nova_preempt.core.eviction_loops import EvictionLoop
from nova_preempt.core.eviction_loops import find


def turns(*pairs: tuple[str, str]) -> list[Eviction]:
    """(victim, taker), of projects "pv" and "pt", one after the other."""
    return [Eviction(at_s, str(at_s), victim, f'p{victim}', taker, f'p{taker}')
            for at_s, (victim, taker) in enumerate(pairs)]


class TestCycles(unittest.TestCase):

    def test_no_evictions(self) -> None:
        self.assertEqual((), find([], 1))

    def test_a_server_that_comes_back(self) -> None:
        history = turns(('a', 'x'), ('a', 'y'), ('b', 'x'), ('a', 'z'))
        self.assertEqual((EvictionLoop(SERVER, ('a',), 3),), find(history, 3))
        self.assertEqual((), find(history, 4))

    def test_a_server_on_both_sides(self) -> None:
        history = turns(('a', 'b'), ('b', 'a'), ('a', 'b'))
        self.assertEqual(
            [(SERVER, ('a',)), (SERVER, ('b',))],
            [(cycle.kind, cycle.ids) for cycle in find(history, 3)
             if cycle.kind == SERVER])

    def test_two_projects(self) -> None:
        history = [
            Eviction(0, 'd0', 's0', 'p', 'n0', 'q'),
            Eviction(1, 'd1', 's1', 'q', 'n1', 'p'),
            Eviction(2, 'd2', 's2', 'p', 'n2', 'q'),
            Eviction(2, 'd2', 's3', 'p', 'n2', 'q')]
        self.assertEqual((EvictionLoop(PROJECTS, ('p',
                                                  'q'), 3),), find(history, 3))

    def test_a_project_that_is_always_the_victim(self) -> None:
        history = [Eviction(at_s, str(at_s), f's{at_s}', 'p', f'n{at_s}', 'q')
                   for at_s in range(9)]
        self.assertEqual((), find(history, 2))

    def test_a_project_and_itself(self) -> None:
        history = [Eviction(at_s, str(at_s), f's{at_s}', 'p', f'n{at_s}', 'p')
                   for at_s in range(9)]
        self.assertEqual((), find(history, 2))

    def test_evictions_for_no_server(self) -> None:
        """An end for headroom, say."""
        history = [Eviction(at_s, str(at_s), 'a', 'p') for at_s in range(3)]
        self.assertEqual((EvictionLoop(SERVER, ('a',), 3),), find(history, 2))

    @given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from('abc'),
                              st.sampled_from('xyabc')), max_size=8),
           st.randoms())
    def test_any_order(self, items: list[tuple[int, str, str]],
                       random: object) -> None:
        history = [Eviction(at_s, str(number), victim, victim, taker, taker)
                   for number, (at_s, victim, taker) in enumerate(items)]
        found = find(history, 2)
        random.shuffle(history)  # type: ignore[attr-defined]
        self.assertEqual(found, find(history, 2))
