# SPDX-License-Identifier: Apache-2.0
"""Starts reservations, warns before their end, and ends them.

Nothing here waits for Nova: all events that are due take one read and one
transaction of the database, so many are on time as well. The reconciler does
the slow work before and after.
"""

import dataclasses

from oslo_log import log as logging

from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservation_rows

LOG = logging.getLogger(__name__)

# How often the calendar is polled.
POLL_S = 1.0


class LeaseEventLoop:
    """Moves reservations through their states in time.

    :param database: a nova_preempt.db.Database
    :param reservations: a nova_preempt.db.reservations.Reservations of it
    :param events: a
        reservation_engine_tasks.ReservationNotifications
    :param clock: returns now, naive and in UTC
    :param is_enabled: returns whether reservations may start
    """

    def __init__(self, database, reservations, events, clock,
                 is_enabled=lambda: True):
        self._db = database
        self._reservations = reservations
        self._events = events
        self._clock = clock
        self._is_enabled = is_enabled
        self._told = lease_event_controller.Memory()

    def run(self):
        """Handle the events that are due.

        :returns: after how many seconds to repeat it
        """
        # NOTE: read once: a clock set back in between would lose an event.
        now = self._clock()
        step = lease_event_controller.step(
            self._reservations.snapshot().reservations, self._told,
            reservation_model.to_us(now))
        for intent in step.intents:
            self._act(intent.kind, intent.reservations, now)
        # NOTE: afterwards, so that failed events are retried.
        self._told = step.memory
        if step.wake_at_us is None:
            return POLL_S
        wait_s = (step.wake_at_us
                  - reservation_model.to_us(self._clock())) / SECOND
        return min(POLL_S, max(0.0, wait_s))

    def start(self, uuid):
        """Start a reservation if its time has come and it is ready."""
        self._act(lease_event_controller.Kind.START, [uuid], self._clock())

    def _act(self, kind, uuids, now):
        """Read the reservations again, which may be old, and change them."""
        def decide(reservation):
            return lease_event_controller.change(reservation, kind, now,
                                                 enabled=self._is_enabled())

        kinds = lease_event_controller.Kind
        tell = {kinds.END: self._tell_end,
                kinds.BEFORE_END: self._events.before_end,
                kinds.START: self._tell_start}[kind]
        # NOTE: without the lock, as often nothing is due.
        ripe = [reservation.uuid for reservation
                in reservation_rows.get_many(self._db, uuids)
                if decide(reservation)]
        if not ripe:
            return
        for before, values in reservation_rows.change_many(
                self._db, ripe, decide, now):
            tell(dataclasses.replace(before, **values))

    # -- notifications -----------------------------------------------------

    def _tell_start(self, reservation):
        late_s = (self._clock() - reservation.start_at).total_seconds()
        LOG.info('Reservation %(uuid)s of project %(project)s has started on '
                 '%(hosts)s, %(late).1f s late.',
                 {'uuid': reservation.uuid, 'project': reservation.project_id,
                  'hosts': ', '.join(reservation.held), 'late': late_s})
        self._events.start(reservation, late_s)

    def _tell_end(self, reservation):
        late_s = (self._clock() - reservation.end_at).total_seconds()
        LOG.info('Reservation %(uuid)s of project %(project)s has ended, '
                 '%(late).1f s late.',
                 {'uuid': reservation.uuid,
                  'project': reservation.project_id, 'late': late_s})
        self._events.end(reservation, late_s)
