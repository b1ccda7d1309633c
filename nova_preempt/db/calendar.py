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

import dataclasses
import json
import threading

import sqlalchemy as sa

from nova_preempt.core.reservation import leases as core
from nova_preempt.db import changes
from nova_preempt.db import leases
from nova_preempt.db import models
from nova_preempt.db import reservation_rows as rows


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

    :ivar mark: the changes.Mark up to which it is
    :ivar leases: the core Leases that they are
    :ivar settings: {host: HostSettings} of those of which something is said
    """

    mark: changes.Mark
    leases: core.Leases
    settings: dict

    @property
    def busy(self):
        """{host: ((start_s, end_s), ...)}, sorted, none overlaps."""
        return self.leases.busy

    def is_free(self, host, start_s, end_s):
        return self.leases.is_free(host, start_s, end_s)

    def is_reservable(self, host, default):
        """Whether it may be reserved.

        :param default: [reservation]reservable_default
        """
        settings = self.settings.get(host)
        if settings is None or settings.reservable is None:
            return default
        return settings.reservable


class CalendarCache:
    """Keeps the Calendar, and reads what has changed of it.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._db = database
        self._known = None
        # One that reads everything at a time; who comes meanwhile waits.
        self._loading = threading.Lock()

    def read(self):
        """The Calendar as it is; do not change it."""
        with self._db.reader() as session:
            calendar = self._updated(session)
        if calendar is not None:
            return calendar
        with self._loading, self._db.reader() as session:
            return self._updated(session) or self._load(session)

    def read_before(self, session, generation):
        """The Calendar as it was before a change.

        :param session: has raised the generation, and changed nothing yet
        :param generation: as it was raised to
        """
        return (self._updated(session, generation - 1)
                or self._load(session, generation - 1))

    def _load(self, session, generation=None):
        mark = changes.get_mark(session, generation)
        self._known = Calendar(mark, core.Leases(leases.fetch(session)),
                               get_settings(session))
        return self._known

    def _updated(self, session, generation=None):
        """The Calendar after what has changed; None if nobody knows that."""
        known = self._known
        new = known and changes.get_since(session, known.mark, generation)
        if new and new.mark != known.mark:
            known = Calendar(
                new.mark, _with_leases(session, known.leases,
                                       new.reservations),
                _with_settings(session, known.settings, new.hosts))
            self._known = known
        return new and known


def _with_leases(session, before, uuids):
    if not uuids:
        return before
    found = leases.fetch(session, uuids)
    return before.updated(found, uuids.difference(
        lease.id for lease in found))


def _with_settings(session, before, hosts):
    if not hosts:
        return before
    return {**{host: item for host, item in before.items()
               if host not in hosts},
            **get_settings(session, hosts)}


def get_settings(session, hosts=None):
    """{host: HostSettings} of those of which something is said.

    :param hosts: of these only, of all if None
    """
    # A table: see leases.
    row = models.ReservableHost.__table__
    query = sa.select(row.c.host, row.c.reservable, row.c.extra)
    queries = [query] if hosts is None else [
        query.where(row.c.host.in_(batch)) for batch in rows.batches(hosts)]
    return {host: HostSettings(host, reservable, json.loads(extra))
            for query in queries
            for host, reservable, extra in session.execute(query)}
