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

"""All open reservations at once, of which only what changes is read again."""

import bisect
import dataclasses
import operator

import sqlalchemy as sa

from nova_preempt.db import changes
from nova_preempt.db import models
from nova_preempt.db import reservation_rows as rows


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """What is reserved: the open reservations, by start and uuid.

    What Reservations.update() and set_host() change without raising the
    generation may be as it was when the reservation was read.

    :ivar mark: the changes.Mark up to which it is
    """

    mark: changes.Mark
    reservations: tuple[rows.Reservation, ...]

    @property
    def generation(self):
        return self.mark.generation


class Snapshots:
    """What was read last.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._db = database
        self._last = None

    def read(self):
        """The Snapshot as it is; what has not changed is the same object."""
        with self._db.reader() as session:
            before = self._last
            new = before and changes.get_since(session, before.mark)
            if new is None:
                self._last = _read(session)
            elif new.mark != before.mark:
                self._last = _update(session, before, new)
            return self._last


def _read(session):
    # Before what it counts: at worst some of it is read once more.
    mark = changes.get_mark(session)
    found = _fetch_open(session)
    return Snapshot(mark, tuple(sorted(found, key=_by_start)))


def _update(session, before, new):
    """The Snapshot with the Changes, and with nothing else read."""
    found = list(before.reservations)
    if new.reservations:
        found = [item for item in found if item.uuid not in new.reservations]
        for batch in rows.batches(new.reservations):
            for item in _fetch_open(session, batch):
                bisect.insort(found, item, key=_by_start)
    return Snapshot(new.mark, tuple(found))


_by_start = operator.attrgetter('start_at', 'uuid')


def _fetch_open(session, uuids=None):
    row = models.Reservation
    query = sa.select(row).where(row.status.in_(rows.OPEN))
    if uuids is not None:
        query = query.where(row.uuid.in_(uuids))
    return rows.fetch(session, query)
