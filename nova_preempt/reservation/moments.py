# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What happens at a time: reservations start, near their end, and end.

Nothing here waits for Nova: a moment costs a read and a write of the
database, so that many of them at one second are still on time. What takes
longer (see chores.py) is done before, or after.
"""

import dataclasses
import datetime
import heapq

from oslo_log import log as logging

from nova_preempt.db import reservations as db

LOG = logging.getLogger(__name__)

# How often the database is asked whether the calendar has changed.
POLL_S = 1.0

# In the order in which they happen at one time: a host goes from one
# reservation to the next.
_END, _BEFORE_END, _START = range(3)


class Moments:
    """Moves reservations on when their time has come.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param events: a nova_preempt.reservation.events.ReservationEvents
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, reservations, events, clock):
        self._reservations = reservations
        self._events = events
        self._clock = clock
        self._generation = None
        self._due = []             # a heap of (time, kind, uuid)

    def run(self):
        """Do what is due.

        :returns: how many seconds later to come again
        """
        self._refresh()
        while self._due and self._due[0][0] <= self._clock():
            _when, kind, uuid = heapq.heappop(self._due)
            try:
                self._act(kind, uuid)
            except Exception:
                self._generation = None        # it is tried again
                raise
        if not self._due:
            return POLL_S
        wait = (self._due[0][0] - self._clock()).total_seconds()
        return min(POLL_S, max(0.0, wait))

    def _refresh(self):
        """Find out what is to come, if the calendar has changed."""
        generation = self._reservations.generation()
        if generation == self._generation:
            return
        snapshot = self._reservations.snapshot()
        self._due = [moment for reservation in snapshot.reservations
                     for moment in _moments(reservation)]
        heapq.heapify(self._due)
        self._generation = snapshot.generation

    def _act(self, kind, uuid):
        """Look again, for what was known may be old, and act."""
        reservation = self._reservations.get(uuid)
        now = self._clock()
        if reservation.status not in db.OPEN or (kind not in [
                due for when, due, _uuid in _moments(reservation)
                if when <= now]):
            return
        if kind == _END:
            self._end(reservation, now)
        elif kind == _BEFORE_END:
            self._tell(reservation, now)
        else:
            self.start(reservation)

    def start(self, reservation):
        """Let it become active if all of its hosts are empty.

        :returns: whether its time had come and they are
        """
        now = self._clock()
        if (reservation.ready_at is not None or now < reservation.start_at
                or not is_ready(reservation)):
            return False
        # A degraded one stays so: it has started, with fewer hosts.
        status = (db.ACTIVE if reservation.status == db.PENDING
                  else reservation.status)
        ready_at = now.replace(microsecond=0)
        if not self._reservations.update(
                reservation.uuid, from_status=reservation.status,
                status=status, ready_at=ready_at):
            return False
        late_s = (now - reservation.start_at).total_seconds()
        LOG.info('Reservation %(uuid)s of project %(project)s has started on '
                 '%(hosts)s, %(late).1f s late.',
                 {'uuid': reservation.uuid,
                  'project': reservation.project_id,
                  'hosts': ', '.join(reservation.held), 'late': late_s})
        self._events.start(dataclasses.replace(
            reservation, status=status, ready_at=ready_at), late_s)
        return True

    def _tell(self, reservation, now):
        if reservation.noticed_at is None and self._reservations.update(
                reservation.uuid, from_status=reservation.status,
                noticed_at=now.replace(microsecond=0)):
            self._events.before_end(reservation)

    def _end(self, reservation, now):
        reason = reservation.reason
        if reservation.ready_at is None:
            reason = ('it ended before its hosts were empty'
                      + (f': {reason}' if reason else ''))
        if not self._reservations.update(
                reservation.uuid, from_status=reservation.status,
                from_end_at=reservation.end_at, status=db.ENDED,
                reason=reason):
            return
        late_s = (now - reservation.end_at).total_seconds()
        LOG.info('Reservation %(uuid)s of project %(project)s has ended, '
                 '%(late).1f s late.',
                 {'uuid': reservation.uuid,
                  'project': reservation.project_id, 'late': late_s})
        self._events.end(dataclasses.replace(
            reservation, status=db.ENDED, reason=reason), late_s)


def is_ready(reservation):
    """Whether it has hosts, and all that it has are empty."""
    held = [host for host in reservation.hosts if host.status != db.LOST]
    return bool(held) and all(host.status == db.READY for host in held)


def _moments(reservation):
    """[(time, kind, uuid)] of what is still to come of an open one."""
    uuid = reservation.uuid
    found = [(reservation.end_at, _END, uuid)]
    if reservation.ready_at is None:
        found.append((reservation.start_at, _START, uuid))
    elif reservation.noticed_at is None:
        found.append((reservation.end_at - datetime.timedelta(
            seconds=reservation.before_end_s), _BEFORE_END, uuid))
    return found
