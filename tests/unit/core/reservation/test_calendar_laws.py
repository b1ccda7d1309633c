# SPDX-License-Identifier: Apache-2.0

"""Laws of the calendar of free and reserved hosts."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any
import unittest

import hypothesis
from hypothesis import strategies as st

from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation.calendar import FoundWindow
from nova_preempt.core.reservation.calendar import Interval
from nova_preempt.core.reservation.calendar import ReservableHost
from tests.unit.core.support import LAW

END_S = 24
TIMES = st.integers(0, END_S)
INTERVALS = st.lists(st.tuples(TIMES, TIMES), max_size=4)


@st.composite
def calendars(draw: st.DrawFn) -> list[ReservableHost]:
    """Draw hosts that are taken now and then, some with a known power."""
    busy = draw(st.lists(INTERVALS, min_size=1, max_size=5))
    return [
        ReservableHost(
            f"h{number}",
            calendar.merged(intervals),
            draw(st.sampled_from((None, 1.0, 2.0))),
            draw(st.none() | TIMES),
        )
        for number, intervals in enumerate(busy)
    ]


@dataclasses.dataclass(frozen=True)
class Request:
    """Arguments of find()."""

    start_s: int
    end_s: int | None
    duration_s: int
    quantity: int

    def find(
        self,
        hosts: list[ReservableHost],
        ranking: calendar.Ranking = calendar.best_fit,
    ) -> FoundWindow | None:
        """Ask."""
        return calendar.find(
            hosts,
            window_start_s=self.start_s,
            window_end_s=self.end_s,
            duration_s=self.duration_s,
            quantity=self.quantity,
            ranking=ranking,
        )


REQUESTS = st.builds(
    Request,
    TIMES,
    st.none() | TIMES,
    st.integers(1, 8),
    st.integers(1, 4),
)


def is_free(busy: tuple[Interval, ...], start_s: int, end_s: int) -> bool:
    """Tell by every second."""
    return not any(
        begin_s <= second < finish_s
        for second in range(start_s, end_s)
        for begin_s, finish_s in busy
    )


def free_at(hosts: list[ReservableHost], start_s: int,
            duration_s: int) -> set[str]:
    """Return the hosts that are free for a duration."""
    return {
        host.name
        for host in hosts
        if is_free(host.busy, start_s, start_s + duration_s)
        and (host.not_before_s is None or host.not_before_s <= start_s)
    }


def brute_force(hosts: list[ReservableHost], request: Request) -> int | None:
    """Search by trying every second."""
    last_s = 2 * END_S if request.end_s is None else request.end_s
    for start_s in range(request.start_s, last_s - request.duration_s + 1):
        free = free_at(hosts, start_s, request.duration_s)
        if len(free) >= request.quantity:
            return start_s
    return None


class TestLaws(unittest.TestCase):
    """Trying every second is the judge."""

    @LAW
    @hypothesis.given(calendars(), REQUESTS)
    def test_the_earliest_start(
        self, hosts: list[ReservableHost], request: Request
    ) -> None:
        found = request.find(hosts)
        expected = brute_force(hosts, request)
        self.assertEqual(expected, None if found is None else found.start_s)

    @LAW
    @hypothesis.given(
        calendars(), REQUESTS, st.sampled_from(("best_fit", "energy", "name"))
    )
    def test_the_best_free_hosts(
        self, hosts: list[ReservableHost], request: Request, name: str
    ) -> None:
        keys: dict[str, Any] = {}

        def ranking(fit: calendar.HostWindow) -> Any:
            keys[fit.name] = getattr(calendar, name)(fit)
            return keys[fit.name]

        found = request.find(hosts, ranking)
        if found is None:
            return
        free = free_at(hosts, found.start_s, request.duration_s)
        self.assertEqual(free, set(keys))
        best = sorted(free, key=keys.__getitem__)
        self.assertEqual(best[: request.quantity], list(found.hosts))

    @LAW
    @hypothesis.given(calendars(), REQUESTS, st.integers(0, 99))
    def test_the_order_of_hosts_is_nothing(
        self, hosts: list[ReservableHost], request: Request, seed: int
    ) -> None:
        shuffled = random.Random(seed).sample(hosts, len(hosts))
        self.assertEqual(request.find(hosts), request.find(shuffled))

    @LAW
    @hypothesis.given(calendars(), REQUESTS)
    def test_gaps_before_and_after_are_given(
        self, hosts: list[ReservableHost], request: Request
    ) -> None:
        """A ranking gets the free time on both sides."""
        fits: list[calendar.HostWindow] = []

        def ranking(fit: calendar.HostWindow) -> str:
            fits.append(fit)
            return fit.name

        found = request.find(hosts, ranking)
        busy = {host.name: host.busy for host in hosts}
        for fit in fits:
            assert found is not None
            before = [e for _s, e in busy[fit.name] if e <= found.start_s]
            after = [s for s, _e in busy[fit.name] if s >= found.end_s]
            self.assertEqual(
                (
                    found.start_s - max(before) if before else None,
                    min(after) - found.end_s if after else None,
                ),
                (fit.gap_before_s, fit.gap_after_s),
            )

    @LAW
    @hypothesis.given(
        calendars(), st.lists(REQUESTS, max_size=8), st.integers(0, 99)
    )
    def test_never_two_on_a_host_at_once(
        self, hosts: list[ReservableHost], requests: list[Request], seed: int
    ) -> None:
        """For any requests in any order."""
        random.Random(seed).shuffle(requests)
        for request in requests:
            found = request.find(hosts)
            if found is None:
                continue
            self.assertEqual(request.quantity, len(set(found.hosts)))
            self.assertLessEqual(request.start_s, found.start_s)
            if request.end_s is not None:
                self.assertLessEqual(found.end_s, request.end_s)
            hosts = self.take(hosts, found)

    def take(self, hosts: list[ReservableHost],
             found: FoundWindow) -> list[ReservableHost]:
        """Return the hosts after the reservation."""
        taken = []
        for host in hosts:
            if host.name in found.hosts:
                self.assertTrue(
                    is_free(host.busy, found.start_s, found.end_s)
                )
                busy = (*host.busy, (found.start_s, found.end_s))
                host = dataclasses.replace(host, busy=calendar.merged(busy))
            taken.append(host)
        return taken

    @LAW
    @hypothesis.given(calendars(), REQUESTS, st.integers(1, 8))
    def test_equal_requests_never_get_more_than_there_is(
        self, hosts: list[ReservableHost], request: Request, times: int
    ) -> None:
        """Consecutive reservations fill the window."""
        promised = 0
        starts = []
        free_s = sum(
            is_free(host.busy, second, second + 1)
            for host in hosts
            for second in range(request.start_s, request.end_s or 4 * END_S)
        )
        for _time in range(times):
            found = request.find(hosts)
            if found is None:
                break
            hosts = self.take(hosts, found)
            promised += request.quantity * request.duration_s
            starts.append(found.start_s)
        if request.end_s is not None:
            self.assertLessEqual(promised, free_s)
        self.assertEqual(sorted(starts), starts)
        if len(starts) < times:
            self.assertIsNone(brute_force(hosts, request))

    @LAW
    @hypothesis.given(INTERVALS)
    def test_merged_covers_the_same(self, intervals: list[Interval]) -> None:
        merged = calendar.merged(intervals)
        for second in range(END_S):
            self.assertEqual(
                is_free(tuple(intervals), second, second + 1),
                is_free(merged, second, second + 1),
            )
        for (_start, end_s), (start_s, _end) in itertools.pairwise(merged):
            self.assertLess(end_s, start_s)


if __name__ == "__main__":
    unittest.main()
