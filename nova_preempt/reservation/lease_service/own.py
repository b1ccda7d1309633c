# SPDX-License-Identifier: Apache-2.0
"""The lease service "native": reservations in our own database."""

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt.core.reservation import leases as core
from nova_preempt.db import reservation_calendar
from nova_preempt.db import reservations


class NativeLeases:
    """A lease service; see nova_preempt.reservation.lease_service."""

    def __init__(self, conf):
        self._conf = conf
        self._db = None
        self._calendar = None
        self._all = None           # the Leases from which _started was made
        self._started = None

    def _open(self):
        if self._db is None:
            self._db = db.Database(self._conf)
            self._calendar = reservation_calendar.CalendarCache(self._db)
        return self._db

    def fetch(self):
        self._open()
        # NOTE: reads one small row while nothing has changed.
        found = self._calendar.read().leases
        if self._conf.reservation.enabled:
            return found
        # Reservations that have started are obeyed to their end.
        if self._all is not found:
            self._started = core.Leases(
                lease for lease in found if lease.status == core.ACTIVE)
            self._all = found
        return self._started

    def get(self, lease_id):
        try:
            return core.of(
                reservations.Reservations(self._open()).get(lease_id))
        except exceptions.ReservationNotFound:
            return None
