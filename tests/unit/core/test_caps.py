# SPDX-License-Identifier: Apache-2.0

"""Victims under caps on their number."""

from __future__ import annotations

import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.model import Candidate, VictimCap
from nova_preempt.core.victims import SearchLimits
from nova_preempt.core.victims import cheapest_victims
from tests.unit.core import support
from tests.unit.core.support import LAW
from tests.unit.core.support import candidate
from tests.unit.core.support import exhaustive
from tests.unit.core.support import frees_enough
from tests.unit.core.support import uuids

Problem = tuple[list[Candidate], dict[str, int], dict[str, int] | None]

ENOUGH = 10**7
EXACT = SearchLimits(accept_checks=ENOUGH, cap_splits=ENOUGH)
SMALL = st.builds(
    SearchLimits,
    branch_steps=st.integers(0, 5),
    dp_labels=st.integers(0, 500),
    accept_checks=st.integers(0, 3),
    cap_splits=st.integers(0, 3),
)


@st.composite
def capped(draw: st.DrawFn) -> tuple[Problem, list[VictimCap]]:
    """Draw a problem and caps, which may overlap as groups and projects."""
    problem = draw(support.problems())
    known = st.sampled_from([c.uuid for c in problem[0]] or ["nobody"])
    caps = draw(
        st.lists(
            st.builds(
                VictimCap, st.frozensets(known, max_size=6), st.integers(-1, 4)
            ),
            max_size=4,
        )
    )
    return problem, caps


def keeps(victims: tuple[Candidate, ...], caps: list[VictimCap]) -> bool:
    """Tell whether no cap is broken."""
    names = set(uuids(victims))
    return all(len(names & cap.uuids) <= max(0, cap.most) for cap in caps)


class TestCaps(unittest.TestCase):
    """The exhaustive search is the judge."""

    @LAW
    @hypothesis.given(capped())
    def test_the_best_that_keeps_them(
        self, given: tuple[Problem, list[VictimCap]]
    ) -> None:
        (candidates, missing, capacity), caps = given
        expected = exhaustive(
            candidates, missing, capacity, lambda chosen: keeps(chosen, caps)
        )
        for limits in (EXACT, SearchLimits()):
            found = cheapest_victims(
                candidates,
                missing,
                capacity=capacity,
                caps=caps,
                limits=limits,
            )
            if found is None:
                self.assertIsNone(expected)
            elif limits is EXACT or found.optimal:
                self.assertTrue(found.optimal)
                self.assertEqual(expected, found.victims)

    @LAW
    @hypothesis.given(capped(), st.sets(st.integers(0, 99), max_size=2))
    def test_together_with_a_test_of_the_set(
        self, given: tuple[Problem, list[VictimCap]], wanted: set[int]
    ) -> None:
        (candidates, missing, capacity), caps = given
        names = {f"{number:02}" for number in wanted}

        def accept(victims: tuple[Candidate, ...]) -> bool:
            return names <= set(uuids(victims))

        expected = exhaustive(
            candidates,
            missing,
            capacity,
            lambda chosen: accept(chosen) and keeps(chosen, caps),
        )
        found = cheapest_victims(
            candidates,
            missing,
            capacity=capacity,
            accept=accept,
            caps=caps,
            limits=EXACT,
        )
        self.assertEqual(expected, found and found.victims)

    @LAW
    @hypothesis.given(capped(), SMALL)
    def test_never_broken_however_small_the_budget(
        self, given: tuple[Problem, list[VictimCap]], limits: SearchLimits
    ) -> None:
        (candidates, missing, capacity), caps = given
        found = cheapest_victims(
            candidates, missing, capacity=capacity, caps=caps, limits=limits
        )
        if found is None:
            return
        self.assertTrue(keeps(found.victims, caps))
        self.assertTrue(frees_enough(found.victims, missing))
        for victim in found.victims:
            others = [v for v in found.victims if v is not victim]
            self.assertFalse(frees_enough(others, missing))

    def test_many_of_a_kind(self) -> None:
        """Forty alike, of which three may end: found without trying all."""
        alike = [candidate(f"a{n:02}", 1, VCPU=1) for n in range(40)]
        dear = [candidate(f"b{n:02}", 100, VCPU=4) for n in range(9)]
        found = cheapest_victims(
            alike + dear,
            {"VCPU": 20},
            caps=[VictimCap(frozenset(c.uuid for c in alike), 3)],
        )
        assert found is not None
        self.assertEqual(5 * 100, found.cost)
        self.assertEqual(5, len(found.victims))
