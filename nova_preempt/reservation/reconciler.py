# SPDX-License-Identifier: Apache-2.0
"""Does for reservations what takes time: Nova and Placement are asked.

Done again and again, each time by what is true then: nothing that was done
before has to be remembered, in whatever process it was done.
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
from nova_preempt.reservation import reservation_reader

LOG = logging.getLogger(__name__)

# How soon to look again.
BUSY_S = drain_rules.BUSY_S
IDLE_S = drain_rules.IDLE_S

# What the gauge shows beside the open ones.
_LEAVING = 'leaving'


class Reconciler:
    """Empties hosts before reservations, and clears them afterwards.

    :param reservations: a nova_preempt.db.reservations.Reservations
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param keeper: a reservation_executor.ReservationExecutor
    :param migration: a nova_preempt.reservation.migration.Migration
    :param healing: a nova_preempt.reservation.healing.Healing
    :param cleanup: a nova_preempt.reservation.reservation_cleanup.Cleanup
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
        self._cleanup.look([reservation for reservation in opened
                            if self._keeper.needs_hosts(reservation)])
        wakes_us = [
            self._try(work, reservation, hosts, running)
            for work, reservations in ((self._cleanup.clear, (*over, *lately)),
                                       (self._keeper.keep, opened))
            for reservation in reservations]
        self._migration.follow()
        self._cleanup.forget({
            reservation.uuid for reservation in (*over, *lately)})
        self._keeper.forget({reservation.uuid for reservation in opened})
        if self._error is not None:
            raise self._error
        # Sooner than IDLE_S, when the cloud is looked at anew in any case.
        wait_us = min((wake_us for wake_us in wakes_us if wake_us is not None),
                      default=math.inf) - reservation_model.to_us(
                          self._clock())
        return max(BUSY_S, min(IDLE_S, wait_us / SECOND))

    def _try(self, work, reservation, hosts, running):
        """Let what fails for one reservation not keep the others waiting.

        :returns: when it has to be looked at again, None if never
        """
        try:
            return work(reservation, hosts, running)
        except (exceptions.ReservationNotFound, exceptions.WrongState) as exc:
            LOG.debug('Meanwhile: %s', exc)
        except reservation_reader.AWAY as exc:
            LOG.warning('Reservation %(uuid)s has to wait: %(exc)s',
                        {'uuid': reservation.uuid, 'exc': exc})
        except (db_exc.DBError, exceptions.Paused):
            raise                  # it is the same for all
        except Exception as exc:  # noqa: BLE001 (it is raised in the end)
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
