# SPDX-License-Identifier: Apache-2.0

"""Cases of the calendar of free and reserved hosts."""

from __future__ import annotations

import unittest

from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation.calendar import FoundWindow
from nova_preempt.core.reservation.calendar import ReservableHost

#: The example of 004-d.
HOSTS = (
    ReservableHost("A", ((0, 100),)),
    ReservableHost("B", ((50, 150),)),
    ReservableHost("C", ((200, 300),)),
)


class Test004D(unittest.TestCase):
    """A is taken in [0, 100), B in [50, 150), C in [200, 300)."""

    def find(self, quantity: int, duration_s: int) -> tuple[int, str] | None:
        """Return the start and the hosts, by name."""
        found = calendar.find(
            HOSTS,
            window_start_s=0,
            window_end_s=400,
            duration_s=duration_s,
            quantity=quantity,
        )
        if found is None:
            return None
        self.assertEqual(found.start_s + duration_s, found.end_s)
        return found.start_s, "".join(sorted(found.hosts))

    def test_004_d_two_for_60(self) -> None:
        self.assertEqual((100, "AC"), self.find(2, 60))

    def test_004_d_three_for_60(self) -> None:
        self.assertEqual((300, "ABC"), self.find(3, 60))

    def test_004_d_three_for_50(self) -> None:
        """Just so long that all are free between B and C."""
        self.assertEqual((150, "ABC"), self.find(3, 50))

    def test_004_d_two_for_50(self) -> None:
        self.assertEqual((0, "BC"), self.find(2, 50))

    def test_004_d_one_for_150(self) -> None:
        self.assertEqual((0, "C"), self.find(1, 150))

    def test_004_d_more_than_there_are(self) -> None:
        self.assertIsNone(self.find(4, 1))


class TestWindow(unittest.TestCase):
    """Hosts are reserved only within the window."""

    def find(self, start_s: int, end_s: int | None) -> int | None:
        """Return when B is free for 60 s."""
        found = calendar.find(
            HOSTS[1:2],
            window_start_s=start_s,
            window_end_s=end_s,
            duration_s=60,
            quantity=1,
        )
        return None if found is None else found.start_s

    def test_as_long_as_the_duration(self) -> None:
        self.assertEqual(150, self.find(150, 210))

    def test_a_second_too_short(self) -> None:
        self.assertIsNone(self.find(150, 209))

    def test_ends_before_the_host_is_free(self) -> None:
        self.assertIsNone(self.find(0, 209))

    def test_has_no_end(self) -> None:
        self.assertEqual(150, self.find(0, None))

    def test_starts_in_a_reservation(self) -> None:
        self.assertEqual(150, self.find(100, None))

    def test_starts_after_all(self) -> None:
        self.assertEqual(1000, self.find(1000, None))

    def test_starts_in_a_gap_that_it_leaves_too_short(self) -> None:
        host = ReservableHost("A", ((0, 100), (200, 300)))
        for start_s, expected in ((140, 140), (141, 300)):
            found = calendar.find(
                [host],
                window_start_s=start_s,
                window_end_s=None,
                duration_s=60,
                quantity=1,
            )
            assert found is not None
            self.assertEqual(expected, found.start_s)

    def test_invalid_arguments(self) -> None:
        for duration_s, quantity in ((0, 1), (-1, 1), (1, 0), (1, -1)):
            with self.assertRaises(ValueError):
                calendar.find(
                    HOSTS,
                    window_start_s=0,
                    window_end_s=None,
                    duration_s=duration_s,
                    quantity=quantity,
                )


class TestRankings(unittest.TestCase):
    """Tests of the ranking of hosts for [100, 200)."""

    def best(self, ranking: str, *hosts: ReservableHost) -> str:
        """Return the names, best first."""
        found = calendar.find(
            hosts,
            window_start_s=100,
            window_end_s=200,
            duration_s=100,
            quantity=len(hosts),
            ranking=getattr(calendar, ranking),
        )
        self.assertEqual((100, 200), found and (found.start_s, found.end_s))
        assert isinstance(found, FoundWindow)
        return "".join(found.hosts)

    def test_the_tightest_gap(self) -> None:
        self.assertEqual(
            "DCBA",
            self.best(
                "best_fit",
                ReservableHost("A"),
                ReservableHost("B", ((200, 300),)),
                ReservableHost("C", ((0, 90), (210, 300))),
                ReservableHost("D", ((0, 100), (200, 300))),
            ),
        )

    def test_the_gap_before_counts_as_that_after(self) -> None:
        self.assertEqual(
            "BCA",
            self.best(
                "best_fit",
                ReservableHost("A", ((230, 300),)),
                ReservableHost("B", ((0, 90),)),
                ReservableHost("C", ((220, 300),)),
            ),
        )

    def test_energy_before_the_gap(self) -> None:
        hosts = (
            ReservableHost("A", ((0, 100), (200, 300))),
            ReservableHost("B", (), 1.5),
            ReservableHost("C", (), 2.0),
            ReservableHost("D", ((0, 100),), 1.5),
            ReservableHost("E", (), 0.0),
        )
        self.assertEqual("CDBEA", self.best("best_fit", *hosts))
        self.assertEqual("CBDEA", self.best("energy", *hosts))
        self.assertEqual("ABCDE", self.best("name", *hosts))


class TestMerged(unittest.TestCase):
    """Tests of the union of intervals."""

    def test_merged(self) -> None:
        for intervals, expected in (
            ([], ()),
            ([(5, 5), (7, 6)], ()),
            ([(5, 6), (1, 2)], ((1, 2), (5, 6))),
            ([(1, 2), (2, 3)], ((1, 3),)),
            ([(1, 9), (2, 3), (8, 10)], ((1, 10),)),
        ):
            self.assertEqual(expected, calendar.merged(intervals))


if __name__ == "__main__":
    unittest.main()
