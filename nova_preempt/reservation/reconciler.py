# SPDX-License-Identifier: Apache-2.0
"""Reconciles reservations with Nova and Placement, which takes time.

Each round acts on the state it observes: no memory of earlier rounds is
needed, whichever process ran them.
"""

import collections
import math

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import reservation_model
from nova_preempt.reservation import reservation_observer

LOG = logging.getLogger(__name__)

# Bounds of the time between two rounds.
BUSY_S = drain_rules.BUSY_S
IDLE_S = drain_rules.IDLE_S

# The gauge's label of ended reservations with servers left.
_LEAVING = 'leaving'


class Reconciler:
    """Drains hosts before reservations, and cleans up afterwards.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param keeper: a drain_executor.DrainExecutor
    :param migration: a nova_preempt.reservation.server_migrator.ServerMigrator
    :param healing: a nova_preempt.reservation.host_replacer.HostReplacer
    :param cleanup: a nova_preempt.reservation.leftover_servers.LeftoverServers
    :param retention: a nova_preempt.reservation.reservation_purge.RecordPurge
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, reservations, inventory, keeper, migration, healing,
                 cleanup, retention, clock):
        self._reservations = reservations
        self._inventory = inventory
        self._keeper = keeper
        self._migration = migration
        self._healing = healing
        self._cleanup = cleanup
        self._retention = retention
        self._clock = clock
        self._error = None         # the first unexpected exception

    def run(self):
        """Do the next step for each reservation.

        :returns: after how many seconds to repeat it
        :raises NovaError, PlacementError, DBError: a service is down
        :raises Exception: an unexpected error; the other reservations were
            processed nevertheless
        """
        self._error = None
        self._retention.run()
        # NOTE: statuses of hosts in a snapshot may be old.
        opened = self._reservations.snapshot().reservations
        over = self._cleanup.unfinished()
        lately = self._cleanup.lately()
        self._count(opened, over)
        # NOTE: a slow move may outlast its reservation.
        moves = self._migration.read()
        if not (opened or over or lately or moves):
            return IDLE_S
        # NOTE: read now, so that a server that has just come is neither
        # missed at an end nor left at a start.
        self._inventory.occupancy.refresh()
        self._migration.follow()
        hosts = self._inventory.hosts()
        running = {reservation.uuid: reservation for reservation
                   in (*opened, *over) if reservation.ready_at is not None}
        self._healing.look(opened, hosts)
        self._cleanup.look([reservation for reservation in opened
                            if self._keeper.needs_hosts(reservation)])
        wakes_us = [
            self._try(work, reservation, hosts, running)
            for work, reservations in ((self._cleanup.clear, (*over, *lately)),
                                       (self._keeper.keep, opened))
            for reservation in reservations]
        self._cleanup.forget({
            reservation.uuid for reservation in (*over, *lately)})
        self._keeper.forget({reservation.uuid for reservation in opened})
        if self._error is not None:
            raise self._error
        # NOTE: after IDLE_S the cloud is observed again in any case.
        wait_us = min((wake_us for wake_us in wakes_us if wake_us is not None),
                      default=math.inf) - reservation_model.to_us(
                          self._clock())
        return max(BUSY_S, min(IDLE_S, wait_us / SECOND))

    def _try(self, work, reservation, hosts, running):
        """Call work for a reservation, and keep failures from the others.

        :returns: when to repeat it, None if never
        """
        try:
            return work(reservation, hosts, running)
        except (exceptions.ReservationNotFound, exceptions.WrongState) as exc:
            LOG.debug('Meanwhile: %s', exc)
        except reservation_observer.AWAY as exc:
            LOG.warning('Reservation %(uuid)s has to wait: %(exc)s',
                        {'uuid': reservation.uuid, 'exc': exc})
        except (db_exc.DBError, exceptions.Paused):
            raise                  # it concerns all reservations
        except Exception as exc:  # noqa: BLE001 (run() raises it at the end)
            LOG.warning('Reservation %(uuid)s has to wait: %(exc)s',
                        {'uuid': reservation.uuid,
                         'exc': str(exc) or type(exc).__name__})
            self._error = self._error or exc
        return None

    @staticmethod
    def _count(opened, over):
        counts = collections.Counter(
            reservation.status for reservation in opened)
        counts[_LEAVING] = len(over)
        for status in (*reservation_model.OPEN, _LEAVING):
            metrics.RESERVATIONS.labels(status).set(counts[status])
