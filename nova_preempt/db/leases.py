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
"""Open reservations as the scheduler reads them: often, and as little of each
as it needs.
"""

import itertools

import sqlalchemy as sa

from nova_preempt.db import booking
from nova_preempt.db import calendar
from nova_preempt.db import models


def generation(database):
    """The number that every change of what get_open() returns raises."""
    with database._reader() as session:
        return calendar.get_generation(session)


def get_open(database):
    """What is reserved.

    :returns: (generation, [(uuid, project id, status, start in seconds since
        the epoch, end likewise, frozenset of the hosts that it holds)]), by
        start
    """
    row, host = models.Reservation, models.ReservationHost
    query = (sa.select(row.uuid, row.project_id, row.status, row.start_at,
                       row.end_at, host.host)
             .outerjoin(host, (host.reservation_uuid == row.uuid)
                        & (host.status != booking.LOST))
             .where(row.status.in_(booking.OPEN))
             .order_by(row.start_at, row.uuid))
    with database._reader() as session:
        # Before what it counts: at worst this is read once more.
        number = calendar.get_generation(session)
        rows = [tuple(item) for item in session.execute(query)]
    found = []
    for (uuid, project_id, status, start_at, end_at), items in (
            itertools.groupby(rows, key=lambda item: item[:5])):
        hosts = frozenset(item[5] for item in items if item[5])
        found.append((uuid, project_id, status, booking.to_s(start_at),
                      booking.to_s(end_at), hosts))
    return number, found
