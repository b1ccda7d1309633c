# SPDX-License-Identifier: Apache-2.0
"""Starts and ends of reservations, each at its time."""

from __future__ import annotations

import dataclasses

from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.simulator import simulated_cleanup
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.events import Alarm
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.reservation_book import Book
from nova_preempt.simulator.simulation_state import Parts


class LeaseEvents:
    """Steps the controller of lease events."""

    def __init__(self, parts: Parts, book: Book,
                 ends: simulated_cleanup.Cleanup) -> None:
        self._report = parts.report
        self._book = book
        self._cleanup = ends
        self._told = lease_event_controller.Told()
        self._alarm = Alarm(parts.events, Turn.END, self.run)

    def run(self) -> None:
        """Do what is due, and come again for the next event."""
        step = lease_event_controller.step(tuple(self._book.opened.values()),
                                           self._told, self._book.now_us())
        self._told = step.memory
        for intent in step.intents:
            for uuid in intent.reservations:
                self._happen(intent.kind, uuid)
        if step.wake_at_us is not None:
            self._alarm.set(step.wake_at_us - simulated_servers.clock_us(0))

    def start(self, uuid: str) -> None:
        """Start a reservation if its time has come and it is ready."""
        self._happen(lease_event_controller.Kind.START, uuid)

    def _happen(self, kind: lease_event_controller.Kind, uuid: str) -> None:
        before = self._book.opened.get(uuid)
        if before is None:
            return
        now = self._book.now()
        changes = lease_event_controller.change(before, kind, now)
        found = dataclasses.replace(before, **changes)
        if found.status not in reservation_model.OPEN:
            self.finish(found, 'never started' if before.ready_at is None
                        else 'ended')
            return
        self._book.put(found)
        if found.ready_at != before.ready_at:
            self._report.started(found, (now - found.start_at).total_seconds())

    def finish(self, reservation: reservation_model.Reservation,
               event: str) -> None:
        """Note that a reservation is over, and clear its hosts."""
        self._book.put(reservation)
        self._report.reservation(event, reservation.uuid)
        self._cleanup.begin(reservation)
