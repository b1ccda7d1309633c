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
"""Our own reservations, read from our database."""

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt.db import reservations
from nova_preempt.reservation import snapshot

# A degraded one is pending or active; its start tells which.
_STATUSES = {
    reservations.PENDING: snapshot.PENDING,
    reservations.ACTIVE: snapshot.ACTIVE,
    reservations.DEGRADED: snapshot.ACTIVE,
}


class NativeLeases:
    """See nova_preempt.reservation.lease_service."""

    def __init__(self, conf):
        self._conf = conf
        self._reservations = None
        self._generation = None
        self._found = ()

    def _open(self):
        if self._reservations is None:
            self._reservations = reservations.Reservations(
                db.Database(self._conf))
        return self._reservations

    def fetch(self):
        # One number, as long as nothing has changed.
        if self._open().generation() != self._generation:
            found = self._open().snapshot()
            self._found = tuple(_lease(item) for item in found.reservations)
            self._generation = found.generation
        return self._found

    def get(self, lease_id):
        try:
            return _lease(self._open().get(lease_id))
        except exceptions.ReservationNotFound:
            return None


def _lease(item):
    """The Lease of a db.reservations.Reservation."""
    return snapshot.Lease(
        item.uuid, item.project_id,
        _STATUSES.get(item.status, snapshot.ENDED), item.start_s, item.end_s,
        frozenset(item.held))
