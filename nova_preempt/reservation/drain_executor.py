# SPDX-License-Identifier: Apache-2.0
"""Carries out what the controller of an open reservation decides."""

from oslo_log import log as logging

from nova_preempt import requester_identity
from nova_preempt.core import requester_liveness
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import decisions
from nova_preempt.reservation import reservation_observer

LOG = logging.getLogger(__name__)


class DrainExecutor:
    """Drains the hosts of open reservations, and replaces lost ones.

    :param reader: an reservation_observer.ReservationObserver
    :param reservations: a nova_preempt.db.reservations.Reservations
    :param lease_events: a
        nova_preempt.reservation.lease_event_loop.LeaseEventLoop
    :param ends: a nova_preempt.engine.standalone_evictions.Evictions
    :param clock: returns now, naive and in UTC
    :param is_enabled: returns whether hosts are drained and replaced
    """

    def __init__(self, reader, reservations, lease_events, ends, clock,
                 is_enabled=lambda: True):
        self._reader = reader
        self._reservations = reservations
        self._lease_events = lease_events
        self._ends = ends
        self._clock = clock
        self._is_enabled = is_enabled
        self._memories = {}        # uuid: reservation_controller.Memory
        self._left = set()         # uuids of reservations that do not begin

    def forget(self, uuids):
        """Forget all reservations but these."""
        self._memories = {uuid: memory for uuid, memory
                          in self._memories.items() if uuid in uuids}
        self._left &= uuids

    def keep(self, reservation, hosts, running):
        """Do the next step for an open reservation.

        :param hosts: {name: core.reservation.observed_hosts.Host}
        :param running: {id: Reservation} of reservations whose servers stay
        :returns: when to repeat it, in microseconds since the epoch, None if
            never
        """
        if not self._is_enabled():
            return self._leave(reservation)
        now_us = reservation_model.to_us(self._clock())
        if not reservation_controller.is_due(
                reservation, self._reader.leads_s(),
                self._reader.healing.down(hosts), now_us):
            return None
        uuid = reservation.uuid
        while True:
            reservation = self._reservations.get(uuid)
            if reservation.status not in reservation_model.OPEN:
                return None
            view = reservation_observer.ObservedReservation(
                self._reader, reservation, hosts, running)
            step = reservation_controller.step(
                view, self._memories.get(
                    uuid, reservation_controller.Memory()), now_us)
            self._memories[uuid] = step.memory
            changed = [self._carry_out(each, view) for each in step.intents]
            wake_at_us = step.wake_at_us
            if wake_at_us is None or wake_at_us > now_us or not any(changed):
                return wake_at_us

    def _carry_out(self, intent, view):
        """Carry out an intent; return whether its hosts have changed."""
        act = {reservation_controller.Evict: self._evict,
               reservation_controller.Migrate: self._migrate,
               reservation_controller.SetHost: self._set_host,
               reservation_controller.StartReservation: self._start,
               reservation_controller.ReplaceHost: self._replace,
               host_replacement.ReturnHost: self._give_back}[type(intent)]
        try:
            return act(intent, view)
        except reservation_observer.AWAY as exc:
            LOG.warning('Reservation %(uuid)s has to wait: %(exc)s',
                        {'uuid': view.reservation.uuid, 'exc': exc})
            return False

    def _replace(self, intent, view):
        why = view.why(intent) if intent.host else ''
        return self._reader.healing.replace(view.reservation, intent, why)

    def _give_back(self, intent, view):
        return self._reader.healing.give_back(view.reservation, intent)

    def _set_host(self, intent, view):
        uuid, public_reason = view.reservation.uuid, ''
        if intent.reason:
            public_reason = 'other servers are on it'
            LOG.warning('Host %(host)s of reservation %(uuid)s: %(reason)s',
                        {'host': intent.host, 'uuid': uuid,
                         'reason': intent.reason})
        self._reservations.set_host(uuid, intent.host, intent.status,
                                    intent.reason, public_reason)

    def _start(self, _intent, view):
        self._lease_events.start(view.reservation.uuid)

    def _migrate(self, intent, _view):
        resident = self._reader.inventory.occupancy.get(intent.server)
        if resident is not None:
            self._reader.migration.move(resident)

    def _evict(self, intent, view):
        """Evict preemptible servers that are due."""
        try:
            self._ends.begin_all(
                view.records(intent.servers), requester_liveness.RESERVATION,
                f'host {intent.host} is reserved from '
                f'{view.reservation.start_at.isoformat()}Z on', leave=True,
                within_budgets=True,
                asked_by=requester_identity.of_reservation(view.reservation))
        except (decisions.AlreadyEnding, decisions.OverBudget) as exc:
            LOG.debug('On host %(host)s servers %(exc)s',
                      {'host': intent.host, 'exc': exc})

    def _leave(self, reservation):
        """Warn that a reservation does not begin, as they are disabled."""
        if self._is_near(reservation) and reservation.ready_at is None and (
                reservation.uuid not in self._left):
            self._left.add(reservation.uuid)
            LOG.warning('Reservation %s does not start: [reservation]enabled '
                        'is false.', reservation.uuid)

    def needs_hosts(self, reservation):
        """Return whether a reservation has begun, or is being prepared."""
        return self._is_enabled() and self._is_near(reservation)

    def _is_near(self, reservation):
        return reservation_controller.is_near(
            reservation, self._reader.leads_s(),
            reservation_model.to_us(self._clock()))
