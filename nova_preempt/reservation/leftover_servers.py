# SPDX-License-Identifier: Apache-2.0
"""Cleans up servers of reservations that are over.

They are shelved and offloaded, or deleted, as the reservation says, until they
are gone. Other servers on its hosts are kept: their users knew of no
reservation.
"""

import dataclasses
import datetime

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.core.reservation import cleanup_controller
from nova_preempt.core.reservation import reservation_model

LOG = logging.getLogger(__name__)


class LeftoverServers:
    """Ends servers that remain after their reservation.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param events: a
        reservation_engine_tasks.ReservationNotifications
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, reservations, nova, inventory, events, clock):
        self._reservations = reservations
        self._nova = nova
        self._inventory = inventory
        self._events = events
        self._clock = clock
        self._memories = {}        # uuid of a reservation: its Memory
        self._warned = set()       # uuids of servers
        self._needed = frozenset()  # names of hosts

    def look(self, near):
        """Record which hosts other reservations need now.

        :param near: the Reservations that have begun, or are being prepared
        """
        self._needed = cleanup_controller.needed(near)

    def unfinished(self):
        """Return Reservations that are over and may not be cleaned up."""
        return self._reservations.list(
            statuses=(reservation_model.ENDED, reservation_model.CANCELLED),
            released=False)

    def lately(self):
        """Return Reservations that were cleaned up within LATE_S."""
        return self._reservations.list(
            statuses=(reservation_model.ENDED, reservation_model.CANCELLED),
            released_since=self._clock() - datetime.timedelta(
                seconds=cleanup_controller.LATE_S))

    def clear(self, reservation, hosts, running):
        """Do the next step for a reservation that is over.

        :param hosts: {name: core.reservation.observed_hosts.Host}
        :param running: {id: Reservation} of others that have started
        :returns: when to repeat it, in microseconds since the epoch, None if
            never
        """
        uuid = reservation.uuid
        step = cleanup_controller.step(
            _View(reservation, running, self._needed,
                  hosts, self._inventory, self._nova),
            self._memories.get(uuid, cleanup_controller.Memory()),
            reservation_model.to_us(self._clock()))
        self._memories[uuid] = step.memory
        for intent in step.intents:
            if isinstance(intent, cleanup_controller.EndServer):
                self._end(reservation, intent)
            elif isinstance(intent, cleanup_controller.ReportStranger):
                self._leave_alone(reservation, intent)
            else:
                self._release(reservation, intent.left)
        return step.wake_at_us

    def _leave_alone(self, reservation, intent):
        if intent.server not in self._warned:
            LOG.warning('Server %s on host %s does not belong to reservation '
                        '%s, which is over; it is kept.',
                        intent.server, intent.host, reservation.uuid)
        self._warned.add(intent.server)

    def _end(self, reservation, intent):
        """End a server, unless it has left its host since it was seen."""
        seen = self._inventory.occupancy.get(intent.server)
        try:
            now = self._nova.get(intent.server)
            if now is not None and (seen is None or now.host == seen.host):
                getattr(self._nova, intent.call)(intent.server)
        except nova_api.NovaError as exc:
            LOG.warning('Server %s of reservation %s cannot be ended yet: %s',
                        intent.server, reservation.uuid, exc)

    def _release(self, reservation, left):
        if self._reservations.update(
                reservation.uuid, from_status=reservation.status,
                released_at=self._clock().replace(microsecond=0),
                **cleanup_controller.outcome(reservation.status, left)):
            self._say(self._reservations.get(reservation.uuid), left)

    def _say(self, reservation, left):
        if left:
            LOG.error('Reservation %(uuid)s: %(reason)s',
                      {'uuid': reservation.uuid, 'reason': reservation.reason})
            self._events.error(reservation)
        else:
            LOG.info('The hosts of reservation %s are free of its servers.',
                     reservation.uuid)
            if (reservation.status == reservation_model.CANCELLED
                    and reservation.ready_at is not None):
                self._events.end(reservation)

    def forget(self, uuids):
        """Forget all reservations but these."""
        self._memories = {uuid: memory for uuid, memory
                          in self._memories.items() if uuid in uuids}
        self._warned = {uuid for uuid in self._warned
                        if self._inventory.occupancy.get(uuid) is not None}


@dataclasses.dataclass
class _View:
    """See core.reservation.cleanup_controller.EndedReservation."""

    reservation: reservation_model.Reservation
    running: dict
    needed: frozenset
    hosts: dict
    inventory: object
    nova: nova_api.NovaAPI

    @property
    def dark(self):
        return any(host.host in self.hosts and self.hosts[host.host].dark
                   for host in self.reservation.hosts)

    def servers(self, host):
        occupancy = self.inventory.occupancy
        return [cleanup_controller.Server(
            item.uuid, item.node, occupancy.reservations_of(item.uuid),
            item.vm_state, item.task_state,
            occupancy.is_preemptible(item.uuid), item.locked_by == 'admin')
            for item in occupancy.on_node(host)]

    def coming(self):
        occupancy = self.inventory.occupancy
        coming = []
        for host in self.reservation.hosts:
            if (host.host not in self.hosts
                    or host.status == reservation_model.LOST):
                continue
            known = {item.uuid for item in occupancy.on_node(host.host)}
            coming += [
                cleanup_controller.Server(uuid, host.host, (), 'building',
                                          None)
                for uuid in sorted(self.inventory.occupants(
                    self.hosts[host.host]) - known)
                if self.reservation.uuid in occupancy.reservations_of(uuid)]
        return coming

    def homeless(self, coming):
        """Yield servers on the way that have no host now."""
        for server in coming:
            try:
                found = self.nova.get(server.uuid)
            except nova_api.NovaError as exc:
                LOG.warning('Cannot read server %s, which is being built on '
                            'host %s: %s', server.uuid, server.host, exc)
                continue
            if found is not None and not found.host:
                yield dataclasses.replace(
                    server, vm_state=found.vm_state,
                    task_state=found.task_state,
                    is_kept=found.locked_by == 'admin')
