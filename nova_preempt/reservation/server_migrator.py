# SPDX-License-Identifier: Apache-2.0
"""Moves normal servers off a host."""

import collections
import datetime

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservation_moves

LOG = logging.getLogger(__name__)

# States in which Nova live-migrates a server, and cold-migrates it.
_LIVE = frozenset(('active', 'paused'))
_COLD = frozenset(('stopped',))
_RESIZED = 'resized'

# Nova accepts a migration before it looks for another host. A server that is
# still on its node after so long, without a task, was refused; one with a task
# is being migrated.
_DECIDED_WITHIN = datetime.timedelta(seconds=10)

# A server that is still on its node after so long, without a task, was not
# migrated. Its move is forgotten: a later resize is its owner's to confirm.
_BEGINS_WITHIN = datetime.timedelta(minutes=2)


def is_movable(resident):
    """Return whether Nova can move a server in its state, or soon.

    :param resident: a core.observed_server.ObservedServer
    """
    return (resident.task_state is not None
            or resident.vm_state in _LIVE | _COLD)


class ServerMigrator:
    """Asks Nova to move servers; the scheduler chooses the target.

    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param occupancy: a nova_preempt.reservation.host_occupancy.HostOccupancy
    :param store: a nova_preempt.db.reservation_moves.ReservationMoves, by
        which another engine completes the moves
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, nova, occupancy, store, clock):
        self._store = store
        self._nova = nova
        self._occupancy = occupancy
        self._clock = clock
        # {uuid: reservation_moves.Move}, as read last
        self._moves = {}
        self._refused = collections.defaultdict(str)   # uuid: why

    def read(self):
        """Read the requested moves; return whether there are any.

        Each time, as another engine may have acted meanwhile.
        """
        self._moves = self._store.get()
        return bool(self._moves)

    def move(self, resident):
        """Move a server, unless its task or state prevents it now."""
        if resident.task_state is not None or not is_movable(resident):
            return
        cold = resident.vm_state in _COLD
        move = reservation_moves.Move(
            resident.node, self._clock().replace(microsecond=0), cold)
        # NOTE: first: after a crash in between, the move is only tracked.
        self._store.add(resident.uuid, move)
        self._moves[resident.uuid] = move
        LOG.info('Server %(uuid)s is migrated off host %(host)s, which is '
                 'reserved.', {'uuid': resident.uuid, 'host': resident.node})
        try:
            now = self._nova.get(resident.uuid)
            # It was seen a while ago: the database may have been slow.
            if now is None or (now.host, now.vm_state, now.task_state) != (
                    resident.host, resident.vm_state, None):
                self._store.remove(resident.uuid)
                del self._moves[resident.uuid]
            elif cold:
                self._nova.cold_migrate(resident.uuid)
            else:
                self._nova.live_migrate(resident.uuid)
        except nova_api.NovaError as exc:
            self._refuse(resident.uuid, str(exc))

    def _refuse(self, uuid, reason):
        if self._refused[uuid] != reason:
            LOG.warning('Server %s cannot be migrated: %s', uuid, reason)
        self._refused[uuid] = reason

    def asked_us(self, resident):
        """Return when the move of a server was requested, None if not."""
        move = self._moves.get(resident.uuid)
        return reservation_model.to_us(move.asked_at) if (
            move and move.node == resident.node) else None

    def why_not(self, uuid):
        """Return why a server could not be moved, '' without a reason."""
        return self._refused.get(uuid, '')

    def follow(self):
        """Confirm cold migrations, and see which moves have failed.

        Completed moves are forgotten, and failed ones that are not retried.
        """
        for uuid, move in list(self._moves.items()):
            resident = self._occupancy.get(uuid)
            age = self._clock() - move.asked_at
            if resident.task_state if resident else self._occupancy.dark:
                # It goes on, or its cell cannot be read.
                if resident and age >= _DECIDED_WITHIN:
                    self._refused.pop(uuid, None)
            # NOTE: Nova writes the new node first, and the state later.
            elif resident and resident.vm_state == _RESIZED:
                if move.cold:
                    self._confirm(uuid)
            elif not resident or resident.node != move.node or (
                    age > _BEGINS_WITHIN):
                self._store.remove(uuid)
                del self._moves[uuid]
                self._refused.pop(uuid, None)
            elif age >= _DECIDED_WITHIN and not self.why_not(uuid):
                self._refuse(uuid, 'Nova gave up its migration')

    def _confirm(self, uuid):
        try:
            self._nova.confirm_resize(uuid)
        except nova_api.NovaError as exc:
            # Nova may still be writing the state; the next round retries.
            LOG.info('Server %s has been moved, but its move cannot be '
                     'confirmed yet: %s', uuid, exc)
