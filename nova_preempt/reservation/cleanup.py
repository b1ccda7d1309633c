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
"""The servers of a reservation that is over are cleared away.

They are shelved and offloaded, or deleted, as the reservation says, again and
again until they are gone. What else is on its hosts stays: whoever put it
there knew of no reservation.
"""

import dataclasses
import datetime

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.core.reservation import cleanup as core
from nova_preempt.db import reservation_rows as rows
from nova_preempt.reservation import occupancy

LOG = logging.getLogger(__name__)


class Cleanup:
    """Clears away what reservations leave.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param inventory: a nova_preempt.reservation.inventory.Inventory
    :param events: a
        nova_preempt.reservation.notifications.ReservationNotifications
    :param options: [reservation] of the configuration
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, reservations, nova, inventory, events, options,
                 clock):
        self._reservations = reservations
        self._nova = nova
        self._inventory = inventory
        self._occupancy = inventory.occupancy
        self._events = events
        self._options = options
        self._clock = clock
        self._since = {}           # uuid of a reservation: first seen
        self._asked = {}           # uuid of a server: when
        self._warned = set()       # uuids of servers
        self._needed = frozenset()  # names of hosts

    def look(self, near):
        """Note which hosts others need now.

        :param near: the Reservations that have begun, or are prepared
        """
        self._needed = core.needed(near)

    def unfinished(self):
        """The Reservations that are over and whose hosts may not be free."""
        return self._reservations.list(
            statuses=(rows.ENDED, rows.CANCELLED), released=False)

    def lately(self):
        """Those whose hosts were found free a moment ago."""
        return self._reservations.list(
            statuses=(rows.ENDED, rows.CANCELLED),
            released_since=self._clock() - datetime.timedelta(
                seconds=core.LATE_S))

    def clear(self, reservation, hosts, running):
        """Do the next step for one of these.

        :param hosts: {name: known_host.Host}
        :param running: {id: Reservation} of others that have started
        :returns: whether it is done
        """
        left = self._left(reservation, running)
        now = self._clock()
        if reservation.released_at is not None:
            for resident in left:
                self._end(reservation, resident, now)
            return True
        dark = any(host.host in hosts and hosts[host.host].service_host
                   in self._occupancy.dark for host in reservation.hosts)
        coming = [] if left or dark else self._coming(reservation, hosts)
        since = (now if dark
                 else self._since.setdefault(reservation.uuid, now))
        state = core.State(bool(left), bool(coming), dark,
                           (now - since).total_seconds())
        step = core.step(state, self._options.end_timeout_s)
        if step is core.Step.RELEASE:
            return self._release(reservation, left or coming, now)
        if step is core.Step.END:
            spent = core.spent(state, self._options.end_timeout_s)
            for resident in left or self._homeless(coming):
                self._end(reservation, resident, now, spent)
        return False

    def _left(self, reservation, running):
        """Its servers that are still on its hosts."""
        left = []
        for host in reservation.hosts:
            for resident in self._occupancy.on_node(host.host):
                fate = core.fate(
                    reservation, host,
                    self._occupancy.reservations_of(resident.uuid), running,
                    preemptible=resident.preemptible)
                if fate is core.Fate.STAY:
                    self._leave_alone(reservation, resident)
                elif fate is core.Fate.END:
                    left.append(resident)
        return left

    def _coming(self, reservation, hosts):
        """Its servers that have space on its hosts and are not there yet."""
        coming = []
        for host in reservation.hosts:
            if host.host not in hosts or host.status == rows.LOST:
                continue
            known = {resident.uuid for resident
                     in self._occupancy.on_node(host.host)}
            coming += [
                occupancy.Resident(uuid, host.host, '', 'building', None)
                for uuid in sorted(self._inventory.occupants(
                    hosts[host.host]).consumers - known)
                if reservation.uuid in self._occupancy.reservations_of(uuid)]
        return coming

    def _homeless(self, coming):
        """Those of them that are on no host, in their true states.

        One that was evacuated has space on its old host, too.
        """
        for resident in coming:
            try:
                found = self._nova.get(resident.uuid)
            except nova_api.NovaError as exc:
                LOG.warning('Cannot see how server %(uuid)s is, which comes '
                            'to host %(host)s: %(exc)s',
                            {'uuid': resident.uuid, 'host': resident.node,
                             'exc': exc})
                continue
            if found is not None and not found.host:
                yield dataclasses.replace(
                    resident, vm_state=found.vm_state,
                    task_state=found.task_state,
                    is_kept=found.locked_by == 'admin')

    def _leave_alone(self, reservation, resident):
        if resident.uuid not in self._warned:
            LOG.warning('Server %(server)s on host %(host)s does not belong '
                        'to reservation %(uuid)s, which is over; it stays.',
                        {'server': resident.uuid, 'host': resident.node,
                         'uuid': reservation.uuid})
        self._warned.add(resident.uuid)

    def _end(self, reservation, resident, now, spent=0.0):
        asked_at = self._asked.get(resident.uuid)
        call = core.call(
            reservation.end_action, resident.vm_state, resident.task_state,
            asked_at and (now - asked_at).total_seconds(), spent=spent,
            needed=resident.node in self._needed, is_kept=resident.is_kept)
        if not call:
            return
        self._asked[resident.uuid] = now
        try:
            getattr(self._nova, call)(resident.uuid)
        except nova_api.NovaError as exc:
            LOG.warning('Server %(server)s of reservation %(uuid)s cannot '
                        'end yet: %(exc)s',
                        {'server': resident.uuid, 'uuid': reservation.uuid,
                         'exc': exc})

    def _release(self, reservation, left, now):
        values = core.outcome(
            reservation.status,
            [(item.uuid, item.vm_state, item.node) for item in left],
            self._options.end_timeout_s)
        if self._reservations.update(
                reservation.uuid, from_status=reservation.status,
                released_at=now.replace(microsecond=0), **values):
            self._say(self._reservations.get(reservation.uuid), left)
        del self._since[reservation.uuid]
        for resident in left:
            self._asked.pop(resident.uuid, None)
        return True

    def _say(self, reservation, left):
        if left:
            LOG.error('Reservation %(uuid)s: %(reason)s',
                      {'uuid': reservation.uuid,
                       'reason': reservation.reason})
            self._events.error(reservation)
        else:
            LOG.info('The hosts of reservation %s are free of its servers.',
                     reservation.uuid)
            if (reservation.status == rows.CANCELLED
                    and reservation.ready_at is not None):
                self._events.end(reservation)

    def forget(self):
        """Forget servers that are gone, or are on no node for a while."""
        lately = self._clock() - datetime.timedelta(seconds=core.ASK_AGAIN_S)
        self._asked = {uuid: when for uuid, when in self._asked.items()
                       if when > lately
                       or self._occupancy.get(uuid) is not None}
        self._warned = {uuid for uuid in self._warned
                        if self._occupancy.get(uuid) is not None}
