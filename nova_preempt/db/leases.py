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
"""Open reservations as leases: as little of each as is needed, and fast."""

import sqlalchemy as sa

from nova_preempt.core.reservation import leases as core
from nova_preempt.db import models
from nova_preempt.db import reservation_rows as rows


def fetch(session, uuids=None):
    """The Leases that the open reservations are, in no order.

    :param uuids: of those of these uuids; of all if None
    """
    # Tables, not classes: of so many rows SQLAlchemy makes tuples faster.
    row = models.Reservation.__table__
    host = models.ReservationHost.__table__
    query = (sa.select(row.c.uuid, row.c.project_id, row.c.status,
                       row.c.ready_at, row.c.start_at, row.c.end_at,
                       host.c.host, host.c.status.label('how'))
             .outerjoin(host, (host.c.reservation_uuid == row.c.uuid)
                        & (host.c.status != rows.LOST))
             .where(row.c.status.in_(rows.OPEN)))
    queries = [query] if uuids is None else [
        query.where(row.c.uuid.in_(batch)) for batch in rows.batches(uuids)]
    found = {}
    for query in queries:
        for *values, name, how in session.execute(query):
            hosts = found.setdefault(values[0], (values, {}))[1]
            if name is not None:
                hosts[name] = how
    return [core.make(uuid, project_id, status, rows.to_s(start_at),
                      rows.to_s(end_at), hosts, ready=ready_at is not None)
            for (uuid, project_id, status, ready_at, start_at, end_at), hosts
            in found.values()]
