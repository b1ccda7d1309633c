# SPDX-License-Identifier: Apache-2.0
"""Normal servers are moved away from a host."""

import collections

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import requested_moves

LOG = logging.getLogger(__name__)

# What Nova moves while it runs, and what it only moves while it does not.
_LIVE = frozenset(('active', 'paused'))
_COLD = frozenset(('stopped',))
_RESIZED = 'resized'


def is_movable(resident):
    """Whether Nova moves a server in its state, now or when it is done.

    :param resident: a core.observed_server.ObservedServer
    """
    return (resident.task_state is not None
            or resident.vm_state in _LIVE | _COLD)


class Migration:
    """Asks Nova for moves; the scheduler chooses where to.

    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param occupancy: a nova_preempt.reservation.host_occupancy.HostOccupancy
    :param store: a nova_preempt.db.requested_moves.Moves: what an engine has
        begun, the next one brings to its end
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, nova, occupancy, store, clock):
        self._store = store
        self._nova = nova
        self._occupancy = occupancy
        self._clock = clock
        # {uuid: requested_moves.Move}, as it was read last
        self._moves = {}
        self._refused = collections.defaultdict(str)   # uuid: why

    def read(self):
        """Read what is under way; whether anything is.

        Each time, for another engine may have acted meanwhile.
        """
        self._moves = self._store.get()
        return bool(self._moves)

    def move(self, resident):
        """Have a server moved; does nothing while something is under way."""
        if resident.task_state is not None:
            return
        cold = resident.vm_state in _COLD
        if not cold and resident.vm_state not in _LIVE:
            self._refuse(resident.uuid, f'it is {resident.vm_state}')
            return
        move = requested_moves.Move(resident.node,
                                    self._clock().replace(microsecond=0), cold)
        # First: a crash in between only looks after what did not happen.
        self._store.add(resident.uuid, move)
        self._moves[resident.uuid] = move
        LOG.info('Server %(uuid)s is moved away from host %(host)s, which is '
                 'reserved.', {'uuid': resident.uuid, 'host': resident.node})
        try:
            if cold:
                self._nova.cold_migrate(resident.uuid)
            else:
                self._nova.live_migrate(resident.uuid)
        except nova_api.NovaError as exc:
            self._refuse(resident.uuid, str(exc))
        else:
            self._refused.pop(resident.uuid, None)

    def _refuse(self, uuid, reason):
        if self._refused[uuid] != reason:
            LOG.warning('Server %(uuid)s cannot be moved: %(reason)s',
                        {'uuid': uuid, 'reason': reason})
        self._refused[uuid] = reason

    def asked_us(self, resident):
        """When a server was asked to leave its node, None if it was not."""
        move = self._moves.get(resident.uuid)
        if move is None or move.node != resident.node:
            return None
        return reservation_model.to_us(move.asked_at)

    def why_not(self, uuid):
        """Why a server could not be moved, '' if nothing was said."""
        return self._refused.get(uuid, '')

    def follow(self):
        """Let go of what stopped servers have left; forget what is done."""
        for uuid, move in list(self._moves.items()):
            resident = self._occupancy.get(uuid)
            if resident is None and self._occupancy.dark:
                continue           # who knows
            # Nova writes the new node first, and the state later.
            if resident is None or (resident.node != move.node
                                    and resident.task_state is None
                                    and resident.vm_state != _RESIZED):
                self._store.remove(uuid)
                del self._moves[uuid]
                self._refused.pop(uuid, None)
            elif (move.cold and resident.vm_state == _RESIZED
                  and resident.task_state is None):
                self._confirm(uuid)

    def _confirm(self, uuid):
        try:
            self._nova.confirm_resize(uuid)
        except nova_api.NovaError as exc:
            # Nova may still be writing that it can be; it is tried again.
            LOG.info('Server %(uuid)s has been moved, but cannot let go of '
                     'where it was yet: %(exc)s', {'uuid': uuid, 'exc': exc})
