# SPDX-License-Identifier: Apache-2.0
"""Replaces hosts of reservations that are down or cannot be drained."""

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.core.reservation import down_host_controller
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.core.reservation import reservation_model

LOG = logging.getLogger(__name__)

# Reasons of a lost host, as its owner is told them.
_PUBLIC = {
    None: '',
    reservation_controller.Loss.DOWN: 'a host is down',
    reservation_controller.Loss.OCCUPIED: 'a host could not be emptied',
    reservation_controller.Loss.ASLEEP: 'a host could not be powered on'}


class HostReplacer:
    """Replaces lost hosts of reservations, and adds missing ones.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param events: a
        reservation_engine_tasks.ReservationNotifications
    :param options: [reservation] of the configuration
    :param ranking: a core.reservation.calendar.Ranking
    :param clock: returns now, naive and in UTC
    :param sight: returns why this engine cannot tell which hosts are up,
        '' if it can
    """

    def __init__(self, reservations, inventory, events, options, ranking,
                 clock, sight=lambda: ''):
        self._reservations = reservations
        self._inventory = inventory
        self._events = events
        self.options = options
        self._ranking = ranking
        self._clock = clock
        self.sight = sight
        self._memory = down_host_controller.Memory()

    def look(self, reservations, hosts):
        """Record which hosts of these reservations are down.

        :param hosts: {name: core.reservation.observed_hosts.Host}
        """
        before = self._memory.why
        step = down_host_controller.step(
            down_host_controller.Observed(
                reservations, self.find_down(reservations, hosts),
                self.options.brake_percent, self.sight,
                lambda each: self.candidates(each, hosts)),
            self._memory, reservation_model.to_us(self._clock()))
        self._memory = step.memory
        self._tell_brake(before, step.memory.why)
        for intent in step.intents:
            self._tell_owner(intent)

    def find_down(self, reservations, hosts):
        """Return a core.reservation.host_replacement.DownHosts."""
        held = {name for each in reservations for name in each.held}
        return host_replacement.find_down(
            held, hosts, partial=bool(self._inventory.occupancy.dark))

    def _tell_owner(self, intent):
        """Record in a reservation that its host is not replaced yet."""
        uuid = intent.reservation
        try:
            # The reservation given may be out of date.
            known = self._reservations.get(uuid)
        except exceptions.ReservationNotFound:
            return
        changes = down_host_controller.owner_reasons(known,
            self._memory.down_since, intent.many)
        if changes and self._reservations.update(
                uuid, from_status=reservation_model.OPEN,
                **changes) and intent.waits:
            self._events.degraded(self._reservations.get(uuid))

    @staticmethod
    def _tell_brake(before, why):
        if why and not before:
            LOG.error('No host is replaced in any reservation: %s.', why)
        elif before and not why:
            LOG.warning('Hosts that are down are replaced in reservations '
                        'again, after two minutes.')
        metrics.RESERVATION_BRAKE.set(bool(why))

    def down(self, hosts):
        """Return {name: why} of hosts that count as lost."""
        now_us = reservation_model.to_us(self._clock())
        return {name: _why_down(name, hosts.get(name))
                for name in self._memory.given_up(now_us)}

    def replace(self, reservation, intent, why):
        """Replace or remove a host, or add a missing one.

        :param intent: a core.reservation.reservation_controller.ReplaceHost
        :param why: the host is lost, for operators
        :returns: the changed Reservation, None without a change
        """
        uuid, old, public = reservation.uuid, intent.host, _PUBLIC[intent.loss]
        for name in intent.candidates:
            try:
                found = self._reservations.replace_host(
                    uuid, old, name, why, public)
            except exceptions.NoHostsForReservation:
                continue           # another reservation has it
            self._tell_new_host(found, intent, name, why)
            return found
        if not intent.or_lose:
            return None
        found = self._reservations.replace_host(uuid, old, None, why, public)
        LOG.warning('Reservation %(uuid)s loses host %(host)s: %(reason)s. '
                    'No other host can replace it.',
                    {'uuid': uuid, 'host': old, 'reason': why})
        self._events.degraded(found)
        return found

    @staticmethod
    def _tell_new_host(reservation, intent, new, why):
        if intent.host is None:
            LOG.info('Reservation %(uuid)s has %(count)s of %(quantity)s '
                     'hosts: %(hosts)s.',
                     {'uuid': reservation.uuid, 'count': len(reservation.held),
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
        """Return names of hosts that a reservation has lost and are free."""
        if not host_replacement.lost_hosts(reservation):
            return []
        return host_replacement.free_lost_hosts(
            reservation, hosts.get, self._reservations.calendar().busy,
            reservation_model.to_s(self._clock()))

    def give_back(self, reservation, intent):
        """Return to a reservation a host on which its servers still run.

        :param intent: a core.reservation.host_replacement.ReturnHost
        :returns: the changed Reservation, None without a change
        """
        try:
            found = self._reservations.replace_host(
                reservation.uuid, intent.instead_of, intent.host,
                f'given back for host {intent.host}', 'a host has come back')
        except exceptions.NoHostsForReservation:
            return None            # another reservation has it
        LOG.info('Host %(host)s, with its servers, returns to '
                 'reservation %(uuid)s%(old)s.',
                 {'host': intent.host, 'uuid': reservation.uuid,
                  'old': f' in place of {intent.instead_of}'
                  if intent.instead_of else ''})
        return found

    def candidates(self, reservation, hosts):
        """Return names of hosts that could be added, best first."""
        counts = self._inventory.occupancy.counts()
        try:
            return host_replacement.candidates(
                reservation, hosts.values(),
                self._reservations.calendar().busy,
                now_s=reservation_model.to_s(self._clock()),
                lead_s=self.options.evacuation_lead_s, ranking=self._ranking,
                is_vacant=lambda name: self._inventory.is_vacant(
                    hosts[name], counts),
                servers={name: total for name, (total, _) in counts.items()},
                down=self._memory.down_since)
        except host_query.InvalidQuery as exc:
            # NOTE: an earlier release accepted the query.
            LOG.warning('Reservation %(uuid)s cannot get another host: '
                        '%(exc)s',
                        {'uuid': reservation.uuid, 'exc': exc})
            return []


def _why_down(name, host):
    if host is None:
        return f'host {name} is gone'
    if host.state != 'up':
        return f'the compute service of host {name} is down'
    return f'the compute service of host {name} is disabled'
