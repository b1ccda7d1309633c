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
"""A reservation gets other hosts for those that are down or stay full."""

import datetime

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.core import host_query
from nova_preempt.db import booking

LOG = logging.getLogger(__name__)

# Why a host is lost, in one word.
DOWN = 'down'
OCCUPIED = 'occupied'


class Repairs:
    """Replaces hosts, and adds those that are missing.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param inventory: a nova_preempt.reservation.inventory.Inventory
    :param events: a nova_preempt.reservation.events.ReservationEvents
    :param options: [reservation] of the configuration
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, reservations, inventory, events, options, clock):
        self._reservations = reservations
        self._inventory = inventory
        self._events = events
        self._options = options
        self._clock = clock
        self._down_since = {}      # host: first seen to be down

    def look(self, reservations, hosts):
        """Take note of which hosts of these reservations are down.

        :param hosts: {name: inventory.Host}
        """
        now = self._clock()
        down = {name for reservation in reservations
                for name in reservation.held
                if name not in hosts or not hosts[name].is_usable}
        self._down_since = {name: self._down_since.get(name, now)
                            for name in down}

    def why_down(self, hosts, name):
        """Why a host is taken for dead, '' if it is not."""
        since = self._down_since.get(name)
        if since is None or self._clock() - since < datetime.timedelta(
                seconds=self._options.host_grace_s):
            return ''
        if name not in hosts:
            return f'host {name} is gone'
        if hosts[name].state != 'up':
            return f'the compute service of host {name} is down'
        return f'the compute service of host {name} is disabled'

    def replace(self, reservation, name, kind, reason, hosts):
        """Give another host for one, or none.

        :param kind: DOWN or OCCUPIED
        :param reason: why, for people
        :returns: the Reservation as it is then
        """
        found = self.swap(reservation, name, kind, reason, hosts)
        if found is None:
            found = self._reservations.replace_host(
                reservation.uuid, name, None, reason)
            LOG.warning('Reservation %(uuid)s loses host %(host)s: '
                        '%(reason)s. No other host can take its place.',
                        {'uuid': reservation.uuid, 'host': name,
                         'reason': reason})
            self._events.degraded(found)
        return found

    def swap(self, reservation, name, kind, reason, hosts):
        """Give another host for one if there is one; as replace().

        :returns: the Reservation as it is then, None if there is none
        """
        found = self._try(reservation, name, reason, hosts)
        if found is None:
            return None
        metrics.HOSTS_REPLACED.labels(kind).inc()
        new = set(found.held) - set(reservation.held)
        LOG.warning('Reservation %(uuid)s has host %(new)s in place of '
                    '%(old)s: %(reason)s.%(stay)s',
                    {'uuid': reservation.uuid, 'new': ', '.join(new),
                     'old': name, 'reason': reason,
                     'stay': '' if reservation.ready_at is None else
                     ' Servers on it are not moved.'})
        return found

    def complete(self, reservation, hosts):
        """Add hosts that are missing, as far as there are any.

        :returns: the Reservation as it is then
        """
        while len(reservation.held) < reservation.quantity:
            found = self._try(reservation, None, '', hosts)
            if found is None:
                return reservation
            LOG.info('Reservation %(uuid)s has %(count)s of %(quantity)s '
                     'hosts: %(hosts)s.',
                     {'uuid': reservation.uuid, 'count': len(found.held),
                      'quantity': found.quantity,
                      'hosts': ', '.join(found.held)})
            reservation = found
        return reservation

    def _try(self, reservation, old, reason, hosts):
        """Another host in place of the old one, if any; None if none."""
        for name in self._candidates(reservation, hosts):
            try:
                return self._reservations.replace_host(
                    reservation.uuid, old, name, reason)
            except exceptions.NoHostsForReservation:
                continue           # somebody was faster
        return None

    def _candidates(self, reservation, hosts):
        """Names of hosts that could be added, the best ones first.

        One on which nothing runs before others, then by operations per watt
        where they are known.
        """
        now = self._clock()
        since = max(now.replace(microsecond=0), reservation.start_at)
        soon = since <= now + datetime.timedelta(
            seconds=self._options.evacuation_lead_s)
        matches = host_query.parse(reservation.host_properties).matches
        busy = self._reservations.calendar()
        counts = self._inventory.occupancy.counts()
        found = [
            host for host in hosts.values()
            if host.reservable and host.is_usable
            and host.name not in reservation.held
            and host.name not in self._down_since
            and matches(host.properties)
            and busy.is_free(host.name, booking.to_s(since),
                             reservation.end_s)
            and (not soon or self._inventory.is_vacant(host, counts))]
        lost = {host.host for host in reservation.hosts
                if host.status == booking.LOST}
        return [host.name for host in sorted(found, key=lambda host: (
            host.name in lost, counts.get(host.name, (0, 0))[0],
            -(host.flops_per_watt or 0.0), host.name))]
