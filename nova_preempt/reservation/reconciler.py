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
"""What reservations need that takes time: Nova and Placement are asked.

Done again and again, each time by what is true then: nothing that was done
before has to be remembered, in whatever process it was done.
"""

import collections
import datetime

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement
from nova_preempt.core.reservation import drain as core
from nova_preempt.db import reservation_rows as rows
from nova_preempt.reservation import drain as reservation_drain
from nova_preempt.reservation import healing as reservation_healing

LOG = logging.getLogger(__name__)

# How soon to look again.
BUSY_S = core.BUSY_S
IDLE_S = core.IDLE_S

# What stops one host or one reservation, not all of them.
_AWAY = (nova_api.NovaError, placement.PlacementError)

# What the gauge shows beside the open ones.
_LEAVING = 'leaving'


class Reconciler:
    """Empties hosts before reservations, and clears them afterwards.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param lease_events: a nova_preempt.reservation.lease_events.LeaseEvents
    :param inventory: a nova_preempt.reservation.inventory.Inventory
    :param drain: a nova_preempt.reservation.drain.Drain
    :param migration: a nova_preempt.reservation.migration.Migration
    :param healing: a nova_preempt.reservation.healing.Healing
    :param cleanup: a nova_preempt.reservation.cleanup.Cleanup
    :param retention: a nova_preempt.reservation.retention.Retention
    :param clock: returns now, naive and in UTC
    :param is_enabled: returns whether hosts are emptied and replaced
    """

    def __init__(self, reservations, lease_events, inventory, drain,
                 migration, healing, cleanup, retention, clock,
                 is_enabled=lambda: True):
        self._reservations = reservations
        self._lease_events = lease_events
        self._inventory = inventory
        self._drain = drain
        self._migration = migration
        self._healing = healing
        self._cleanup = cleanup
        self._retention = retention
        self._clock = clock
        self._is_enabled = is_enabled
        self._patience = core.Patience()
        self._tried = {}           # (reservation uuid, host): when swapped
        self._left = set()         # uuids of those that do not begin
        self._error = None         # what nobody has expected

    def run(self):
        """Do the next step of everything.

        :returns: how many seconds later to come again
        :raises NovaError, PlacementError, DBError: a service is away
        :raises Exception: something has happened that nobody has expected;
            everything else was done all the same
        """
        self._error = None
        self._retention.run()
        # Hosts' statuses may be old.
        opened = self._reservations.snapshot().reservations
        over = self._cleanup.unfinished()
        lately = self._cleanup.lately()
        self._count(opened, over)
        # A slow move may come to its end after its reservation.
        moves = self._migration.read()
        if not (opened or over or lately or moves):
            return IDLE_S
        # As it is now: who has just come must neither be overlooked at an end
        # nor be in the way at a start.
        self._inventory.occupancy.refresh()
        hosts = self._inventory.hosts()
        running = {reservation.uuid: reservation for reservation
                   in (*opened, *over) if reservation.ready_at is not None}
        self._healing.look(opened, hosts)
        is_enabled = self._is_enabled()
        self._cleanup.look([reservation for reservation in opened
                            if is_enabled and self._is_near(reservation)])
        keep = self._keep if is_enabled else self._leave
        busy = False
        for work, reservations in ((self._clear, (*over, *lately)),
                                   (keep, opened)):
            for reservation in reservations:
                busy |= self._try(work, reservation, hosts, running)
        self._migration.follow()
        self._cleanup.forget()
        self._drain.forget(opened)
        uuids = {reservation.uuid for reservation in opened}
        self._patience.forget(uuids)
        self._left &= uuids
        self._tried = {key: when for key, when in self._tried.items()
                       if key[0] in uuids}
        if self._error is not None:
            raise self._error
        return BUSY_S if busy else IDLE_S

    def _try(self, work, reservation, hosts, running):
        """Let what fails for one reservation not keep the others waiting."""
        try:
            return work(reservation, hosts, running)
        except (exceptions.ReservationNotFound,
                exceptions.WrongState) as exc:
            LOG.debug('Meanwhile: %s', exc)
        except _AWAY as exc:
            LOG.warning('Reservation %(uuid)s has to wait: %(exc)s',
                        {'uuid': reservation.uuid, 'exc': exc})
        except (db_exc.DBError, exceptions.Paused):
            raise                  # it is the same for all
        except Exception as exc:  # noqa: BLE001 (it is raised in the end)
            LOG.warning('Reservation %(uuid)s has to wait: %(exc)s',
                        {'uuid': reservation.uuid,
                         'exc': str(exc) or type(exc).__name__})
            self._error = self._error or exc
        return False

    @staticmethod
    def _count(opened, over):
        counts = collections.Counter(
            reservation.status for reservation in opened)
        counts[_LEAVING] = len(over)
        for status in (*rows.OPEN, _LEAVING):
            metrics.RESERVATIONS.labels(status).set(counts[status])

    # -- after the end ---------------------------------------------------

    def _clear(self, reservation, hosts, running):
        return not self._cleanup.clear(reservation, hosts, running)

    # -- before the end --------------------------------------------------

    def _keep(self, reservation, hosts, running):
        """Whether somebody waits for what is being done."""
        if not (self._is_near(reservation)
                or len(reservation.held) < reservation.quantity
                or any(self._healing.why_down(hosts, name)
                       for name in reservation.held)):
            return False
        reservation = self._reservations.get(reservation.uuid)
        if reservation.status not in rows.OPEN:
            return False
        for name in reservation.held:
            reason = self._healing.why_down(hosts, name)
            if reason:
                reservation = self._healing.replace(
                    reservation, name, reservation_healing.DOWN, reason,
                    hosts)
        reservation = self._healing.take_back(reservation, hosts)
        reservation = self._healing.complete(reservation, hosts)
        if not self._is_near(reservation):
            return False
        for host in reservation.hosts:
            if host.status != rows.LOST and host.host in hosts:
                reservation = self._look_after(reservation, host, hosts,
                                               running)
        self._lease_events.start(reservation.uuid)
        return not self._is_settled(reservation)

    def _leave(self, reservation, hosts, running):
        """Have it as it is: reservations are off."""
        if self._is_near(reservation) and reservation.ready_at is None and (
                reservation.uuid not in self._left):
            self._left.add(reservation.uuid)
            LOG.warning('Reservation %s does not begin: [reservation]enabled '
                        'is false.', reservation.uuid)
        return False

    def _is_near(self, reservation):
        """Whether it is time to look at its hosts."""
        to_start = reservation.start_at - self._clock()
        return core.is_near(to_start.total_seconds() - 2 * IDLE_S,
                            self._drain.leads_s())

    def _is_settled(self, reservation):
        """Whether nobody waits for one of its hosts to become empty."""
        return (self._clock() < reservation.start_at or all(
            host.status in (rows.READY, rows.LOST)
            for host in reservation.hosts))

    def _look_after(self, reservation, host, hosts, running):
        """See to it that a host is empty, until the reservation starts.

        :returns: the Reservation as it is then
        """
        if reservation.ready_at is not None and host.status == rows.READY:
            # Its servers may be there. Others should not.
            if not self._is_dark(hosts[host.host]):
                self._drain.turn_away(reservation, hosts[host.host], running)
            return reservation
        found = self._find(reservation, hosts[host.host], running)
        if found.empty:
            return self._set(reservation, host, rows.READY)
        if found.blocked:
            other = self._swap(reservation, host, found, hosts)
            if other is not None:
                return other
        if self._patience.is_over(
                (reservation.uuid, host.host), reservation.start_at,
                self._clock(), found.lead_s,
                only_waits=found.waiting and not found.blocked):
            return self._healing.replace(
                reservation, host.host, *_why(hosts[host.host], found), hosts)
        return self._set(reservation, host, rows.EMPTYING)

    def _find(self, reservation, host, running):
        """What is Found on a host; that it is not on, if it is not."""
        if self._is_dark(host):
            return _not_now('its cell cannot be read')
        if host.asleep:
            return self._find_asleep(reservation, host)
        if not host.is_usable:
            # It has its time to come back, see Repairs.
            return _not_now(f'it is {host.state} and {host.status}')
        try:
            return self._drain.empty(reservation, host, running)
        except _AWAY as exc:
            LOG.warning('What is on host %(host)s of reservation %(uuid)s '
                        'cannot be told: %(exc)s',
                        {'host': host.name, 'uuid': reservation.uuid,
                         'exc': exc})
            return _not_now('nobody can tell')

    def _find_asleep(self, reservation, host):
        to_start = reservation.start_at - self._clock()
        step = core.wake(host.name, host.asleep, to_start.total_seconds())
        return reservation_drain.Found(
            False, step.waiting, bool(step.blocking), step.lead_s,
            text=host.asleep.why_late or 'it does not wake',
            public='it does not wake')

    def _is_dark(self, host):
        return host.service_host in self._inventory.occupancy.dark

    def _swap(self, reservation, host, found, hosts):
        """Take another host for one that will not be empty in time, if any.

        :returns: the Reservation as it is then, None if there is none
        """
        key = reservation.uuid, host.host
        now = self._clock()
        tried_at = self._tried.get(key)
        if tried_at is not None and now - tried_at < datetime.timedelta(
                seconds=core.SWAP_S):
            return None
        self._tried[key] = now
        return self._healing.swap(
            reservation, host.host, *_why(hosts[host.host], found), hosts)

    def _set(self, reservation, host, status):
        if host.status == status:
            return reservation
        self._reservations.set_host(reservation.uuid, host.host, status)
        return self._reservations.get(reservation.uuid)


def _not_now(text):
    """What is Found where one can only come again."""
    return reservation_drain.Found(False, waiting=True, text=text,
                                      public=text)


def _why(host, found):
    """(Kind of a loss, why) of a host that is not ready in time."""
    if host.asleep:
        return (reservation_healing.ASLEEP,
                f'host {host.name} is not on: {found.text}')
    return (reservation_healing.OCCUPIED,
            f'host {host.name} is not empty: {found.text}')
