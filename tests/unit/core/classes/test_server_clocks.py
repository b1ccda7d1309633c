# SPDX-License-Identifier: Apache-2.0

"""Clocks of a request over all its incarnations."""

from __future__ import annotations

import fractions
import itertools
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.classes.server_clocks import Times
from tests.unit.core.support import LAW

LIFE = (
    Event(1000, Kind.QUEUED),
    Event(1010, Kind.ALLOCATING),
    Event(1013, Kind.RUNNING),
    Event(1113, Kind.EVICTED),
    Event(1213, Kind.ALLOCATING),
    Event(1215, Kind.RUNNING),
    Event(1300, Kind.ENDED),
)

EVENTS = st.lists(
    st.builds(Event, st.integers(0, 60), st.sampled_from(Kind)), max_size=9
)


@st.composite
def lives(draw: st.DrawFn) -> tuple[Event, ...]:
    """Draw possible events, in order of time."""
    now_us = draw(st.integers(0, 10**15))
    events = [Event(now_us, Kind.QUEUED)]
    for _ in range(draw(st.integers(0, 4))):
        for kind in (Kind.ALLOCATING, Kind.RUNNING, Kind.EVICTED):
            now_us += draw(st.integers(1, 10**9))
            events.append(Event(now_us, kind))
    return tuple(events[: draw(st.integers(1, len(events)))])


class TestClocks(unittest.TestCase):
    def test_each_state_has_its_clock(self) -> None:
        clocks = ServerClocks()
        for event, now_us, expected in zip(
            LIFE,
            (1004, 1011, 1063, 1123, 1214, 1225, 9999),
            (
                Times(0, 4, 0),
                Times(0, 10, 1),
                Times(50, 10, 3),
                Times(100, 20, 3),
                Times(100, 110, 4),
                Times(110, 110, 5),
                Times(185, 110, 5),
            ),
            strict=True,
        ):
            clocks = clocks.applied(event)
            self.assertEqual(expected, clocks.at(now_us), event)
        self.assertEqual(1000, clocks.admitted_us)
        self.assertEqual(Kind.ENDED, clocks.kind)
        self.assertFalse(clocks.has_gap)

    def test_shares(self) -> None:
        times = Times(100, 20, 5)
        self.assertEqual(fractions.Fraction(4, 5), times.availability)
        self.assertEqual(0, Times().availability)

    def test_only_the_present_incarnation_has_run(self) -> None:
        self.assertEqual(20, ServerClocks(LIFE[:3]).ran_us(1033))
        self.assertEqual(0, ServerClocks(LIFE[:4]).ran_us(1133))
        self.assertEqual(0, ServerClocks(LIFE[:5]).ran_us(1214))
        self.assertEqual(5, ServerClocks(LIFE[:6]).ran_us(1220))

    def test_a_repeated_event_changes_nothing(self) -> None:
        clocks = ServerClocks((*LIFE[:3], Event(1050, Kind.RUNNING)))
        self.assertEqual(ServerClocks(LIFE[:3]).at(1100), clocks.at(1100))
        self.assertEqual(87, clocks.ran_us(1100))
        self.assertFalse(clocks.has_gap)

    def test_nothing_comes_after_the_end(self) -> None:
        clocks = ServerClocks((*LIFE, Event(2000, Kind.RUNNING)))
        self.assertEqual(Times(185, 110, 5), clocks.at(3000))
        self.assertEqual(0, clocks.ran_us(3000))

    def test_no_clock_runs_for_a_shelved_server(self) -> None:
        clocks = ServerClocks(LIFE[:3]).applied(Event(2000, Kind.ASIDE))
        before = clocks.at(2000)
        self.assertEqual(before, clocks.at(10**15))
        self.assertEqual(0, clocks.ran_us(10**15))
        later = clocks.applied(
            Event(9000, Kind.ALLOCATING), Event(9010, Kind.RUNNING)
        )
        self.assertEqual(before.waiting_us, later.at(9999).waiting_us)
        self.assertEqual(before.binding_us + 10, later.at(9999).binding_us)
        self.assertFalse(later.has_gap)
        for order in itertools.permutations(
            (Kind.RUNNING, Kind.ASIDE, Kind.ENDED)
        ):
            ended = ServerClocks(LIFE[:2]).applied(
                *(Event(2000, kind) for kind in order)
            )
            self.assertEqual(Kind.ENDED, ended.kind)
            self.assertFalse(ended.has_gap)

    def test_clocks_without_events(self) -> None:
        self.assertEqual(Times(), ServerClocks().at(10**15))
        self.assertEqual(0, ServerClocks().ran_us(10**15))
        self.assertFalse(ServerClocks().has_gap)

    def test_events_of_one_instant_are_ordered(self) -> None:
        for known, kinds, last in (
            # It gave way, and was allocated again at once.
            (3, (Kind.EVICTED, Kind.ALLOCATING), Kind.ALLOCATING),
            (3, (Kind.EVICTED, Kind.ALLOCATING, Kind.RUNNING), Kind.RUNNING),
            (3, (Kind.EVICTED, Kind.QUEUED), Kind.QUEUED),
            # It had just come to run, and gave way.
            (2, (Kind.RUNNING, Kind.EVICTED), Kind.EVICTED),
            (2, (Kind.RUNNING, Kind.EVICTED, Kind.ALLOCATING),
             Kind.ALLOCATING),
            (1, (Kind.ALLOCATING, Kind.RUNNING), Kind.RUNNING),
            (0, (Kind.QUEUED, Kind.ALLOCATING, Kind.RUNNING), Kind.RUNNING),
            (3, (Kind.ENDED, Kind.EVICTED), Kind.ENDED),
        ):
            for order in itertools.permutations(kinds):
                clocks = ServerClocks(LIFE[:known]).applied(
                    *(Event(2000, kind) for kind in order)
                )
                self.assertEqual(last, clocks.kind, order)
                self.assertFalse(clocks.has_gap, order)


class TestEvents(unittest.TestCase):
    @LAW
    @hypothesis.given(EVENTS, st.data())
    def test_late_twice_or_out_of_order_is_all_the_same(
        self, events: list[Event], data: st.DataObject
    ) -> None:
        again = data.draw(
            st.permutations(
                [*events, *data.draw(st.lists(st.sampled_from(events)))]
                if events
                else []
            )
        )
        one, other = ServerClocks().applied(
            *events), ServerClocks().applied(*again)
        self.assertEqual(one, other)
        self.assertEqual(hash(one), hash(other))
        self.assertEqual(ServerClocks(events), one)
        for now_us in (-5, 0, 30, 100):
            self.assertEqual(one.at(now_us), other.at(now_us))
            self.assertEqual(one.ran_us(now_us), other.ran_us(now_us))
        self.assertEqual(one.has_gap, other.has_gap)

    @LAW
    @hypothesis.given(EVENTS, st.lists(st.integers(-50, 150)))
    def test_no_time_is_ever_negative_however_clocks_jump(
        self, events: list[Event], jumps: list[int]
    ) -> None:
        clocks = ServerClocks()
        for event in events:
            clocks = clocks.applied(event)
            for now_us in jumps:
                times = clocks.at(now_us)
                self.assertGreaterEqual(
                    min(times.running_us, times.waiting_us, times.binding_us,
                        clocks.ran_us(now_us)), 0
                )
                self.assertLessEqual(times.availability, 1)

    @LAW
    @hypothesis.given(lives(), st.integers(0, 10**9))
    def test_together_the_clocks_show_the_time_since_the_admission(
        self, life: tuple[Event, ...], more_us: int
    ) -> None:
        now_us = life[-1].at_us + more_us
        clocks = ServerClocks(life)
        self.assertEqual(
            now_us - clocks.admitted_us, clocks.at(now_us).total_us
        )
        self.assertFalse(clocks.has_gap)

    @LAW
    @hypothesis.given(lives(), st.data())
    def test_a_complete_list_repairs_losses(
        self, life: tuple[Event, ...], data: st.DataObject
    ) -> None:
        count = data.draw(st.integers(0, len(life)))
        lost = data.draw(st.sets(st.integers(0, max(0, count - 1))))
        clocks = ServerClocks().applied(
            *(event for i, event in enumerate(life)
              if i not in lost or i >= count),
            Event(life[0].at_us, Kind.ALLOCATING),
        )
        until_us = life[count - 1].at_us if count else life[0].at_us
        if data.draw(st.booleans()):
            clocks = clocks.settled(until_us)
        self.assertEqual(ServerClocks(life), clocks.repaired(life, until_us))

    def test_most_losses_are_seen(self) -> None:
        unseen = [
            [event.kind.name for event in lost]
            for count in (1, 2)
            for lost in itertools.combinations(LIFE, count)
            if not ServerClocks(set(LIFE) - set(lost)).has_gap
        ]
        # What may have been so, or was told twice, nobody can doubt.
        self.assertEqual(
            [
                ["RUNNING"],
                ["RUNNING"],
                ["ENDED"],
                ["RUNNING", "EVICTED"],
                ["RUNNING", "RUNNING"],
                ["RUNNING", "ENDED"],
                ["EVICTED", "ALLOCATING"],
                ["ALLOCATING", "RUNNING"],
                ["RUNNING", "ENDED"],
            ],
            unseen,
        )

    @LAW
    @hypothesis.given(lives(), st.integers(-10, 10**10))
    def test_settling_keeps_the_clocks(
        self, life: tuple[Event, ...], after_us: int
    ) -> None:
        clocks = ServerClocks(life)
        until_us = life[0].at_us + after_us
        settled = clocks.settled(until_us)
        self.assertLessEqual(len(settled.events), len(life))
        for now_us in (until_us, life[-1].at_us, life[-1].at_us + 10**9):
            self.assertEqual(clocks.at(now_us), settled.at(now_us))
            self.assertEqual(clocks.ran_us(now_us), settled.ran_us(now_us))
        self.assertEqual(clocks.admitted_us, settled.admitted_us)
        # What was known is not counted again.
        self.assertEqual(settled, settled.applied(*life))

    def test_settled_history_is_short_and_not_believed_again(self) -> None:
        clocks = ServerClocks(LIFE[:6]).settled(1213)
        self.assertEqual(LIFE[5:6], clocks.events)
        self.assertEqual(
            clocks, clocks.applied(Event(1200, Kind.RUNNING))
        )
        self.assertIn("RUNNING", repr(clocks))
        self.assertNotEqual(clocks, 1)


if __name__ == "__main__":
    unittest.main()
