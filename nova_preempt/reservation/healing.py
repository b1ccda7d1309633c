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

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.core.reservation import brake
from nova_preempt.core.reservation import calendar
from nova_preempt.core.reservation import healing
from nova_preempt.core.reservation import host_query
from nova_preempt.db import reservation_rows as rows

LOG = logging.getLogger(__name__)

# Why a host is lost, in one word, and how its owner is told.
DOWN = 'down'
OCCUPIED = 'occupied'
ASLEEP = 'asleep'
_PUBLIC = {DOWN: 'a host is down', OCCUPIED: 'a host could not be emptied',
           ASLEEP: 'a host could not be powered on'}


class Healing:
    """Replaces hosts, and adds those that are missing.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param inventory: a nova_preempt.reservation.inventory.Inventory
    :param events: a
        nova_preempt.reservation.notifications.ReservationNotifications
    :param options: [reservation] of the configuration
    :param ranking: a core.reservation.calendar.Ranking
    :param clock: returns now, naive and in UTC
    :param sight: returns why this engine cannot tell whether hosts are up,
        '' if it can
    """

    def __init__(self, reservations, inventory, events, options, ranking,
                 clock, sight=lambda: ''):
        self._reservations = reservations
        self._inventory = inventory
        self._events = events
        self._options = options
        self._ranking = ranking
        self._clock = clock
        self._sight = sight
        self._down_since = {}      # host: since when it counts as down
        self._looked_s = None      # when that was found out
        self._braked = ''          # why no host is given up
        self._many_since_s = None  # since when too many are down at once
        self._told = set()         # uuids of those whose owner knows of that

    def look(self, reservations, hosts):
        """Take note of which hosts of these reservations are down.

        :param hosts: {name: known_host.Host}
        """
        dark = self._inventory.occupancy.dark
        down = healing.find_down(
            {name for reservation in reservations
             for name in reservation.held},
            {name: healing.Health(host.is_usable, host.status == 'enabled',
                                  host.service_host in dark)
             for name, host in hosts.items()}, partial=bool(dark))
        now_s = rows.to_s(self._clock())
        blind = self._sight() if down.held else ''
        many = '' if blind else self._why_many(
            down, now_s, reservations, hosts)
        braked = blind or many
        self._tell_brake(braked)
        before = {} if healing.is_too_long_ago(
            self._looked_s, now_s, self._options.host_grace_s
        ) else self._down_since
        self._down_since = healing.down_since(
            before, down.held, now_s, braked=bool(braked))
        self._looked_s = now_s
        self._told &= {reservation.uuid for reservation in reservations}
        if not blind:
            for reservation in reservations:
                self._tell_owner(reservation, many)

    def _why_many(self, down, now_s, reservations, hosts):
        """Why no host is given up since many are down at once, or ''."""
        rule = brake.Brake(self._options.brake_percent,
                           self._options.brake_hosts)
        if not (down.held and rule.why(down.number, down.of)):
            self._many_since_s = None
            return ''
        self._many_since_s = brake.held_since(
            reservations, down.held, self._many_since_s, now_s)
        held_s = now_s - self._many_since_s
        return rule.why(
            down.number, down.of, held_s=held_s,
            enough=held_s >= brake.BRAKE_S and brake.are_enough(
                self._wanted(down, reservations, hosts)))

    def _wanted(self, down, reservations, hosts):
        """How many hosts each would lose, and which it could have instead."""
        for reservation in reservations:
            lost = down.held.intersection(reservation.held)
            if lost:
                yield len(lost), self._candidates(reservation, hosts)

    def _tell_owner(self, reservation, many):
        """Say in a reservation that its host is not replaced yet."""
        uuid = reservation.uuid
        waits = bool(many) and not self._down_since.keys().isdisjoint(
            reservation.held)
        if waits == (uuid in self._told) and (
                waits or reservation.public_reason != brake.BRAKED):
            return
        (self._told.add if waits else self._told.discard)(uuid)
        try:
            # The one that was given may be old.
            known = self._reservations.get(uuid)
        except exceptions.ReservationNotFound:
            return
        changes = brake.told(known, self._down_since, many)
        if changes and self._reservations.update(
                uuid, from_status=rows.OPEN, **changes) and waits:
            self._events.degraded(self._reservations.get(uuid))

    def _tell_brake(self, why):
        if why and not self._braked:
            LOG.error('No host is taken from any reservation: %s.', why)
        elif self._braked and not why:
            LOG.warning('Hosts that are down are taken from reservations '
                        'again, after [reservation]host_grace_s.')
        metrics.RESERVATION_BRAKE.set(bool(why))
        self._braked = why

    def why_down(self, hosts, name):
        """Why a host is taken for dead, '' if it is not."""
        if not healing.is_given_up(
                self._down_since.get(name), rows.to_s(self._clock()),
                self._options.host_grace_s, braked=bool(self._braked)):
            return ''
        if name not in hosts:
            return f'host {name} is gone'
        if hosts[name].state != 'up':
            return f'the compute service of host {name} is down'
        return f'the compute service of host {name} is disabled'

    def replace(self, reservation, name, kind, reason, hosts):
        """Give another host for one, or none.

        :param kind: DOWN, OCCUPIED or ASLEEP
        :param reason: why, for people
        :returns: the Reservation as it is then
        """
        found = self.swap(reservation, name, kind, reason, hosts)
        if found is None:
            found = self._reservations.replace_host(
                reservation.uuid, name, None, reason, _PUBLIC[kind])
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
        found = self._try(reservation, name, reason, _PUBLIC[kind], hosts)
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

    def take_back(self, reservation, hosts):
        """Give it back the hosts that it has lost and its servers are on.

        :returns: the Reservation as it is then
        """
        lost = [host.host for host in reservation.hosts
                if host.status == rows.LOST]
        if reservation.ready_at is None or not lost:
            return reservation
        busy = self._reservations.calendar()
        former = {name: self._own(reservation, name) for name in lost
                  if name in hosts and hosts[name].is_usable
                  and busy.is_free(name, rows.to_s(self._clock()),
                                   reservation.end_s)}
        held = {name: self._own(reservation, name)
                for name in reservation.held}
        for item in healing.returns(reservation.quantity, held, former):
            try:
                reservation = self._reservations.replace_host(
                    reservation.uuid, item.instead_of, item.host,
                    f'given back for host {item.host}',
                    'a host has come back')
            except exceptions.NoHostsForReservation:
                continue           # somebody was faster
            LOG.info('Host %(host)s, with its servers, comes back to '
                     'reservation %(uuid)s%(old)s.',
                     {'host': item.host, 'uuid': reservation.uuid,
                      'old': f' in place of {item.instead_of}'
                      if item.instead_of else ''})
        return reservation

    def _own(self, reservation, name):
        """How many servers of a reservation are on a host."""
        occupancy = self._inventory.occupancy
        return sum(reservation.uuid in occupancy.reservations_of(item.uuid)
                   for item in occupancy.on_node(name))

    def complete(self, reservation, hosts):
        """Add hosts that are missing, as far as there are any.

        :returns: the Reservation as it is then
        """
        while len(reservation.held) < reservation.quantity:
            found = self._try(reservation, None, '', '', hosts)
            if found is None:
                return reservation
            LOG.info('Reservation %(uuid)s has %(count)s of %(quantity)s '
                     'hosts: %(hosts)s.',
                     {'uuid': reservation.uuid, 'count': len(found.held),
                      'quantity': found.quantity,
                      'hosts': ', '.join(found.held)})
            reservation = found
        return reservation

    def _try(self, reservation, old, reason, public_reason, hosts):
        """Another host in place of the old one, if any; None if none."""
        for name in self._candidates(reservation, hosts):
            try:
                return self._reservations.replace_host(
                    reservation.uuid, old, name, reason, public_reason)
            except exceptions.NoHostsForReservation:
                continue           # somebody was faster
        return None

    def _candidates(self, reservation, hosts):
        """Names of hosts that could be added, the best ones first."""
        place = healing.make_place(
            reservation, rows.to_s(self._clock()),
            self._options.evacuation_lead_s, self._down_since)
        try:
            matches = host_query.parse(reservation.host_properties).matches
        except host_query.InvalidQuery as exc:
            # Of an earlier release, which took more.
            LOG.warning('Reservation %(uuid)s gets no other host: %(exc)s',
                        {'uuid': reservation.uuid, 'exc': exc})
            return []
        busy = self._reservations.calendar().busy
        counts = self._inventory.occupancy.counts()
        return healing.substitutes(
            place,
            [healing.Spare(
                calendar.ReservableHost(name, busy.get(name, ()),
                                        host.flops_per_watt),
                host.reservable, host.is_usable, matches(host.properties),
                counts.get(name, (0, 0))[0], host.asleep)
             for name, host in hosts.items()],
            self._ranking,
            lambda name: self._inventory.is_vacant(hosts[name], counts))
