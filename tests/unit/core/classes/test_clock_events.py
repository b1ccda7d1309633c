# SPDX-License-Identifier: Apache-2.0

"""Tests of clock events that are read from Nova's records."""

from __future__ import annotations

import datetime
import unittest

from nova_preempt.core.classes import clock_events
from nova_preempt.core.classes.clock_events import InstanceAction
from nova_preempt.core.classes.clock_events import PreemptionPeriod
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.classes.server_clocks import Times
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer


def record(created_s=100, launched_s=105, ended_s=None):
    def at(seconds):
        return seconds and datetime.datetime(
            1970, 1, 1) + datetime.timedelta(seconds=seconds)

    return ObservedServer('s', 'active', created_at=at(created_s),
                          launched_at=at(launched_s), ended_at=at(ended_s))


RECORD = record()
CREATE = ("create", 100, True, 102, 105)


def actions(*told: tuple[object, ...]) -> list[InstanceAction]:
    """Return actions of (name, requested, by owner, placed, done, failed),
    times in seconds."""
    found = []
    for number, (name, asked_s, by_owner, *more) in enumerate(told):
        placed_s, done_s, failed = (*more, None, None, False)[:3] if (
            len(more) < 3) else more
        found.append(InstanceAction(
            str(name), number, int(str(asked_s)) * SECOND, bool(by_owner),
            None if placed_s is None else int(str(placed_s)) * SECOND,
            None if done_s is None else int(str(done_s)) * SECOND,
            bool(failed)))
    return found


def told(*pairs: tuple[int, Kind]) -> tuple[Event, ...]:
    return tuple(Event(at_s * SECOND, kind) for at_s, kind in pairs)


BUILT = ((100, Kind.QUEUED), (102, Kind.ALLOCATING), (105, Kind.RUNNING))


class TestEvents(unittest.TestCase):
    def check(
        self, asked: list[InstanceAction], *pairs: tuple[int, Kind]
    ) -> ServerClocks:
        found = clock_events.events(RECORD, asked)
        self.assertEqual(told(*pairs), found)
        # In whatever order Nova lists them.
        self.assertEqual(found, clock_events.events(RECORD, asked[::-1]))
        return ServerClocks(found)

    def test_a_server_that_was_built(self) -> None:
        clocks = self.check(actions(CREATE), *BUILT)
        self.assertEqual(
            Times(5 * SECOND, 2 * SECOND, 3 * SECOND), clocks.at(110 * SECOND)
        )

    def test_a_server_that_is_being_built(self) -> None:
        self.check(actions(("create", 100, True)), BUILT[0])
        self.check(actions(("create", 100, True, 102)), *BUILT[:2])

    def test_a_failed_build_is_not_retried(self) -> None:
        clocks = self.check(
            actions(("create", 100, True, 102, 104, True)),
            *BUILT[:2], (104, Kind.ASIDE))
        self.assertEqual(
            Times(0, 2 * SECOND, 2 * SECOND), clocks.at(999 * SECOND))

    def test_an_eviction_and_a_return(self) -> None:
        clocks = self.check(
            actions(CREATE, ("shelve", 200, False),
                    ("unshelve", 300, False, None, 360)),
            *BUILT, (200, Kind.EVICTED), (300, Kind.ALLOCATING),
            (360, Kind.RUNNING))
        self.assertEqual(
            Times(105 * SECOND, 102 * SECOND, 63 * SECOND),
            clocks.at(370 * SECOND))
        self.assertFalse(clocks.has_gap)

    def test_a_failed_return(self) -> None:
        clocks = self.check(
            actions(CREATE, ("shelve", 200, False),
                    ("unshelve", 300, False, None, 310, True),
                    ("unshelve", 400, True, None, 430)),
            *BUILT, (200, Kind.EVICTED), (300, Kind.ALLOCATING),
            (310, Kind.QUEUED), (400, Kind.ALLOCATING), (430, Kind.RUNNING))
        self.assertFalse(clocks.has_gap)

    def test_a_return_that_fails_within_a_second(self) -> None:
        """It still waits; most databases of Nova keep whole seconds."""
        tries = [("unshelve", at_s, False, None, at_s, True)
                 for at_s in (300, 400)]
        found = clock_events.events(RECORD, actions(
            CREATE, ("shelve", 200, False), *tries))
        clocks = ServerClocks(found)
        self.assertEqual(Kind.QUEUED, clocks.kind)
        self.assertEqual(
            Times(95 * SECOND, 302 * SECOND, 3 * SECOND),
            clocks.at(500 * SECOND))
        self.assertFalse(clocks.has_gap)
        self.assertEqual((), clock_events.returns(found))

    def test_a_server_shelved_by_its_owner_does_not_wait(self) -> None:
        clocks = self.check(
            actions(CREATE, ("shelve", 200, True),
                    ("unshelve", 1000, True, None, 1010)),
            *BUILT, (200, Kind.ASIDE), (1000, Kind.ALLOCATING),
            (1010, Kind.RUNNING))
        self.assertEqual(
            Times(95 * SECOND, 2 * SECOND, 13 * SECOND),
            clocks.at(1010 * SECOND))
        self.assertFalse(clocks.has_gap)

    def test_a_failed_unshelve_by_the_owner_waits(self) -> None:
        clocks = self.check(
            actions(CREATE, ("shelve", 200, True),
                    ("unshelve", 300, True, None, 301, True)),
            *BUILT, (200, Kind.ASIDE), (300, Kind.ALLOCATING),
            (301, Kind.QUEUED))
        self.assertEqual(9 + 2, clocks.at(310 * SECOND).waiting_us // SECOND)

    def test_actions_of_the_owner_keep_it_running(self) -> None:
        clocks = self.check(
            actions(CREATE, ("stop", 200, True),
                    ("start", 300, True, 301, 302), ("reboot", 400, True),
                    ("resize", 500, True)), *BUILT)
        self.assertEqual(495, clocks.at(600 * SECOND).running_us // SECOND)

    def test_a_guest_that_shuts_down_keeps_running(self) -> None:
        """Nova stops its server then, and is of no project."""
        for asked_by, kind in ((None, Kind.RUNNING), ("", Kind.RUNNING),
                               ("ours", Kind.RUNNING),
                               ("others", Kind.EVICTED)):
            found = clock_events.events(RECORD, actions(
                CREATE, ("stop", 200, clock_events.is_by_owner(
                    asked_by, "ours"))))
            self.assertIs(kind, ServerClocks(found).kind)
        # Unless that is how it gave way.
        found = clock_events.events(
            RECORD, actions(CREATE, ("stop", 200, True)),
            [clock_events.PreemptionPeriod(199 * SECOND)])
        self.assertIs(Kind.EVICTED, ServerClocks(found).kind)

    def test_a_server_ran_before_it_left(self) -> None:
        """Nova records the time of the launch later than the host."""
        for name, by_owner, kind in (
                ("shelve", True, Kind.ASIDE), ("delete", True, Kind.ASIDE),
                ("shelve", False, Kind.EVICTED),
                ("stop", False, Kind.EVICTED)):
            for left_s in (102, 103, 104):
                clocks = self.check(
                    actions(CREATE, (name, left_s, by_owner)), *BUILT[:2],
                    (left_s, Kind.RUNNING), (left_s, kind))
                self.assertIs(kind, clocks.kind)
                self.assertFalse(clocks.has_gap)
        found = clock_events.events(RECORD, actions(
            CREATE, ("shelve", 200, False),
            ("unshelve", 300, False, None, 310), ("shelve", 305, True)))
        self.assertEqual(
            told((300, Kind.ALLOCATING), (305, Kind.RUNNING),
                 (305, Kind.ASIDE)), found[-3:])
        # That it is to go before it has a host is no such case.
        self.check(actions(CREATE, ("delete", 101, True)), *BUILT[:2],
                   BUILT[2], (101, Kind.ASIDE))
        # Nor is what has failed.
        self.check(actions(CREATE, ("shelve", 103, True, None, None, True)),
                   *BUILT)

    def test_a_stop_by_another_project_is_an_eviction(self) -> None:
        self.check(
            actions(CREATE, ("stop", 200, False),
                    ("start", 300, True, 301, 302)),
            *BUILT, (200, Kind.EVICTED), (300, Kind.ALLOCATING),
            (302, Kind.RUNNING))

    def test_failed_actions_change_nothing(self) -> None:
        for name in ("shelve", "stop", "delete", "restore"):
            self.check(actions(CREATE, (name, 200, False, None, None, True)),
                       *BUILT)

    def test_deleted_and_taken_back(self) -> None:
        self.check(actions(CREATE, ("delete", 200, True),
                           ("restore", 300, True)),
                   *BUILT, (200, Kind.ASIDE), (300, Kind.RUNNING))
        found = clock_events.events(
            record(ended_s=204),
            actions(CREATE, ("delete", 200, True)))
        self.assertEqual(
            told(*BUILT, (200, Kind.ASIDE), (204, Kind.ENDED)), found)

    def test_a_server_older_than_its_actions(self) -> None:
        self.assertEqual(
            told((100, Kind.QUEUED), (105, Kind.RUNNING)),
            clock_events.events(RECORD, ()))
        self.assertEqual(told((100, Kind.QUEUED)),
                         clock_events.events(record(launched_s=None), ()))

    def test_a_preemption_is_not_its_owners_whoever_asks(self) -> None:
        asked = actions(CREATE, ("shelve", 200, True))
        for preemption, kind in (
            (PreemptionPeriod(190 * SECOND), Kind.EVICTED),
            (PreemptionPeriod(190 * SECOND, 210 * SECOND), Kind.EVICTED),
            # Two clocks may differ by a little.
            (PreemptionPeriod(202 * SECOND), Kind.EVICTED),
            (PreemptionPeriod(150 * SECOND, 198 * SECOND), Kind.EVICTED),
            (PreemptionPeriod(203 * SECOND), Kind.ASIDE),
            (PreemptionPeriod(150 * SECOND, 197 * SECOND), Kind.ASIDE),
        ):
            found = clock_events.events(RECORD, asked, (preemption,))
            self.assertEqual(kind, found[-1].kind, preemption)


class TestReturns(unittest.TestCase):
    def test_the_duration_of_each_return(self) -> None:
        found = clock_events.events(RECORD, actions(
            CREATE, ("shelve", 200, False),
            ("unshelve", 300, False, None, 310, True),
            ("unshelve", 400, False, None, 430),
            ("shelve", 500, False), ("unshelve", 600, False, None, 610)))
        first, second = ((430 * SECOND, 30 * SECOND),
                         (610 * SECOND, 10 * SECOND))
        self.assertEqual((first, second), clock_events.returns(found))
        self.assertEqual((second,), clock_events.returns(found, 430 * SECOND))
        self.assertEqual((), clock_events.returns(found, 610 * SECOND))

    def test_building_is_none(self) -> None:
        self.assertEqual((), clock_events.returns(told(*BUILT)))

    def test_a_return_of_a_server_older_than_its_actions(self) -> None:
        found = clock_events.events(RECORD, actions(
            ("shelve", 200, False), ("unshelve", 300, False, None, 310)))
        self.assertEqual(((310 * SECOND, 10 * SECOND),),
                         clock_events.returns(found))
