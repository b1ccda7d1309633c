# SPDX-License-Identifier: Apache-2.0
"""Starts and ends of reservations, each at its time."""

from __future__ import annotations

import dataclasses

from nova_preempt.core.reservation import lease_events
from nova_preempt.core.reservation import model
from nova_preempt.simulator import cleanup
from nova_preempt.simulator import servers
from nova_preempt.simulator.events import Alarm
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.parts import Parts
from nova_preempt.simulator.reservation_book import Book


class LeaseEvents:
    """Steps the controller of lease events."""

    def __init__(self, parts: Parts, book: Book,
                 ends: cleanup.Cleanup) -> None:
        self._report = parts.report
        self._book = book
        self._cleanup = ends
        self._told = lease_events.Told()
        self._alarm = Alarm(parts.events, Turn.END, self.run)

    def run(self) -> None:
        """Do what is due, and come again for the next event."""
        step = lease_events.step(tuple(self._book.opened.values()),
                                 self._told, self._book.now_us())
        self._told = step.memory
        for intent in step.intents:
            for uuid in intent.reservations:
                self._happen(intent.kind, uuid)
        if step.wake_at_us is not None:
            self._alarm.set(step.wake_at_us - servers.clock_us(0))

    def start(self, uuid: str) -> None:
        """Start a reservation if its time has come and it is ready."""
        self._happen(lease_events.Kind.START, uuid)

    def _happen(self, kind: lease_events.Kind, uuid: str) -> None:
        before = self._book.opened.get(uuid)
        if before is None:
            return
        now = self._book.now()
        changes = lease_events.change(before, kind, now)
        found = dataclasses.replace(before, **changes)
        if found.status not in model.OPEN:
            self.finish(found, 'never started' if before.ready_at is None
                        else 'ended')
            return
        self._book.put(found)
        if found.ready_at != before.ready_at:
            self._report.started(
                found, (now - found.start_at).total_seconds())

    def finish(self, reservation: model.Reservation, event: str) -> None:
        """Note that a reservation is over, and clear its hosts."""
        self._book.put(reservation)
        self._report.reservation(event, reservation.uuid)
        self._cleanup.begin(reservation)
