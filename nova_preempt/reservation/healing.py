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
from nova_preempt.core.reservation import intents
from nova_preempt.db import reservation_rows as rows

LOG = logging.getLogger(__name__)

# How an owner is told why a host is lost.
_PUBLIC = {None: '',
           intents.Loss.DOWN: 'a host is down',
           intents.Loss.OCCUPIED: 'a host could not be emptied',
           intents.Loss.ASLEEP: 'a host could not be powered on'}


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
                yield len(lost), self.candidates(reservation, hosts)

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

    def down(self, hosts):
        """{name: why} of hosts that are given up."""
        now_s = rows.to_s(self._clock())
        return {
            name: _why_down(name, hosts.get(name))
            for name, since_s in self._down_since.items()
            if healing.is_given_up(since_s, now_s, self._options.host_grace_s,
                                   braked=bool(self._braked))}

    def replace(self, reservation, intent, why):
        """Give another host for one, or none, or add one that is missing.

        :param intent: a core.reservation.intents.ReplaceHost
        :param why: its host is lost, for operators
        :returns: the Reservation as it is then, None if it is as before
        """
        uuid, old, public = reservation.uuid, intent.host, _PUBLIC[intent.loss]
        for name in intent.candidates:
            try:
                found = self._reservations.replace_host(
                    uuid, old, name, why, public)
            except exceptions.NoHostsForReservation:
                continue           # somebody was faster
            self._tell_new_host(found, intent, name, why)
            return found
        if not intent.or_lose:
            return None
        found = self._reservations.replace_host(uuid, old, None, why, public)
        LOG.warning('Reservation %(uuid)s loses host %(host)s: %(reason)s. '
                    'No other host can take its place.',
                    {'uuid': uuid, 'host': old, 'reason': why})
        self._events.degraded(found)
        return found

    @staticmethod
    def _tell_new_host(reservation, intent, new, why):
        if intent.host is None:
            LOG.info('Reservation %(uuid)s has %(count)s of %(quantity)s '
                     'hosts: %(hosts)s.',
                     {'uuid': reservation.uuid,
                      'count': len(reservation.held),
                      'quantity': reservation.quantity,
                      'hosts': ', '.join(reservation.held)})
            return
        metrics.HOSTS_REPLACED.labels(intent.loss.value).inc()
        LOG.warning('Reservation %(uuid)s has host %(new)s in place of '
                    '%(old)s: %(reason)s.%(stay)s',
                    {'uuid': reservation.uuid, 'new': new,
                     'old': intent.host, 'reason': why,
                     'stay': '' if reservation.ready_at is None else
                     ' Servers on it are not moved.'})

    def former(self, reservation, hosts):
        """Names of hosts that a reservation has lost and that are free."""
        lost = [host.host for host in reservation.hosts
                if host.status == rows.LOST]
        busy = self._reservations.calendar() if lost else None
        return [name for name in lost
                if name in hosts and hosts[name].is_usable
                and busy.is_free(name, rows.to_s(self._clock()),
                                 reservation.end_s)]

    def give_back(self, reservation, intent):
        """Give a host back on which servers of a reservation run.

        :param intent: a core.reservation.healing.Return
        :returns: the Reservation as it is then, None if it is as before
        """
        try:
            found = self._reservations.replace_host(
                reservation.uuid, intent.instead_of, intent.host,
                f'given back for host {intent.host}', 'a host has come back')
        except exceptions.NoHostsForReservation:
            return None            # somebody was faster
        LOG.info('Host %(host)s, with its servers, comes back to '
                 'reservation %(uuid)s%(old)s.',
                 {'host': intent.host, 'uuid': reservation.uuid,
                  'old': f' in place of {intent.instead_of}'
                  if intent.instead_of else ''})
        return found

    def candidates(self, reservation, hosts):
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


def _why_down(name, host):
    if host is None:
        return f'host {name} is gone'
    if host.state != 'up':
        return f'the compute service of host {name} is down'
    return f'the compute service of host {name} is disabled'
