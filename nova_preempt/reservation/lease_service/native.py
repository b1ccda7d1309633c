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

import itertools

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt.db import booking
from nova_preempt.db import leases as db_leases
from nova_preempt.db import reservations
from nova_preempt.reservation import snapshot

# A degraded one is pending or active; its start tells which.
_STATUSES = {
    booking.PENDING: snapshot.PENDING,
    booking.ACTIVE: snapshot.ACTIVE,
    booking.DEGRADED: snapshot.ACTIVE,
}


class NativeLeases:
    """See nova_preempt.reservation.lease_service."""

    def __init__(self, conf):
        self._conf = conf
        self._database = None
        self._generation = None
        self._found = ()

    def _open(self):
        if self._database is None:
            self._database = db.Database(self._conf)
        return self._database

    def fetch(self):
        # One number, as long as nothing has changed.
        if db_leases.generation(self._open()) != self._generation:
            self._generation, found = db_leases.get_open(self._open())
            self._found = tuple(itertools.starmap(_lease, found))
        return self._found

    def get(self, lease_id):
        try:
            item = reservations.Reservations(self._open()).get(lease_id)
        except exceptions.ReservationNotFound:
            return None
        return _lease(item.uuid, item.project_id, item.status, item.start_s,
                      item.end_s, frozenset(item.held))


def _lease(uuid, project_id, status, start_s, end_s, hosts):
    return snapshot.Lease(uuid, project_id,
                          _STATUSES.get(status, snapshot.ENDED), start_s,
                          end_s, hosts)
