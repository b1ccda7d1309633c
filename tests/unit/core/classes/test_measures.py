# SPDX-License-Identifier: Apache-2.0

"""Figures of whole classes."""

from __future__ import annotations

import fractions
import unittest

from nova_preempt.core.classes import availability_margin
from nova_preempt.core.classes.server_clocks import Event
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.classes.server_clocks import ServerClocks
from nova_preempt.core.classes.server_clocks import Times

Fraction = fractions.Fraction


class TestKept(unittest.TestCase):
    GOLD = availability_margin.QosClass("gold", 1, Fraction(1))
    BRONZE = availability_margin.QosClass("bronze", 2, Fraction(1, 2))

    def test_states_times_and_broken_promises(self) -> None:
        def clocks(*told: tuple[int, Kind]) -> ServerClocks:
            return ServerClocks(Event(at_us, kind) for at_us, kind in told)

        begun = ((1, Kind.QUEUED), (1, Kind.ALLOCATING), (1, Kind.RUNNING))
        found = availability_margin.promise_status(
            availability_margin.QosClasses(self.GOLD, self.BRONZE),
            [
                # 6, 2 and 0 of 10; exactly half; nothing wanted; over.
                (self.BRONZE, clocks(*begun, (7, Kind.EVICTED))),
                (self.BRONZE, clocks((1, Kind.QUEUED), (9, Kind.RUNNING))),
                (self.BRONZE, clocks((1, Kind.QUEUED), (4, Kind.ALLOCATING))),
                (self.BRONZE, clocks(*begun, (6, Kind.EVICTED))),
                (self.BRONZE, clocks(*begun, (7, Kind.ASIDE))),
                (self.BRONZE, clocks(*begun, (8, Kind.ENDED))),
                (self.BRONZE, ServerClocks()),
            ],
            11,
        )
        self.assertEqual(["gold", "bronze"], list(found))
        self.assertEqual(availability_margin.PromiseStatus(), found["gold"])
        self.assertEqual(
            availability_margin.PromiseStatus(
                {"running": 1, "waiting": 2, "starting": 1, "aside": 1},
                Times(6 + 2 + 0 + 5 + 6, 4 + 8 + 3 + 5, 7),
                2,
            ),
            found["bronze"],
        )


if __name__ == "__main__":
    unittest.main()
