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
"""The calendar of reservations as it is read from the database."""

import bisect
import collections
import dataclasses
import json

import sqlalchemy as sa

from nova_preempt.core import calendar as core
from nova_preempt.db import booking
from nova_preempt.db import models

_NAME = 'calendar'


@dataclasses.dataclass(frozen=True)
class HostSettings:
    """What an administrator says of a host.

    reservable is None if nothing is said, extra {name of a property: value}.
    """

    host: str
    reservable: bool | None = None
    extra: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Calendar:
    """When hosts are taken by open reservations.

    :ivar busy: {host: ((start_s, end_s), ...)}, sorted, none overlaps
    :ivar settings: {host: HostSettings} of those of which something is said
    """

    generation: int
    busy: dict
    settings: dict

    def is_free(self, host, start_s, end_s):
        intervals = self.busy.get(host, ())
        after = bisect.bisect_left(intervals, (end_s,))
        return not after or intervals[after - 1][1] <= start_s

    def is_reservable(self, host, default):
        """Whether it may be reserved.

        :param default: [reservation]reservable_default
        """
        settings = self.settings.get(host)
        if settings is None or settings.reservable is None:
            return default
        return settings.reservable

    def with_busy(self, generation, hosts, start_s, end_s):
        """The same at a later generation, with these hosts taken too."""
        busy = dict(self.busy)
        for host in hosts:
            busy[host] = core.merged((*busy.get(host, ()), (start_s, end_s)))
        return Calendar(generation, busy, self.settings)


def get_generation(session):
    return session.execute(sa.select(models.Counter.value).where(
        models.Counter.name == _NAME)).scalar_one()


def raise_generation(session):
    """Raise and return the generation, and hold it until the commit.

    It has to be the first statement of a transaction: what a transaction
    sees is settled by its first read in some databases.
    """
    counter = models.Counter
    session.execute(sa.update(counter).where(counter.name == _NAME)
                    .values(value=counter.value + 1))
    return get_generation(session)


def load(session, generation):
    """The Calendar; generation is what was read before in the session."""
    # Tables, not classes: of so many rows SQLAlchemy makes tuples faster.
    row = models.ReservationHost.__table__.c
    reservation = models.Reservation.__table__
    intervals = collections.defaultdict(list)
    for host, start_at, end_at in session.execute(
            sa.select(row.host, row.start_at, row.end_at)
            .join_from(row.host.table, reservation,
                       reservation.c.uuid == row.reservation_uuid)
            .where(reservation.c.status.in_(booking.OPEN))
            .where(row.status != booking.LOST)):
        intervals[host].append(
            (booking.to_s(start_at), booking.to_s(end_at)))
    return Calendar(
        generation, {host: core.merged(found)
                     for host, found in intervals.items()},
        get_settings(session))


def get_settings(session):
    """{host: HostSettings} of those of which something is said."""
    return {row.host: HostSettings(row.host, row.reservable,
                                   json.loads(row.extra))
            for row in session.execute(
                sa.select(models.ReservableHost)).scalars()}
