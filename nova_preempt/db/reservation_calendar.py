# SPDX-License-Identifier: Apache-2.0
"""Caches the calendar of reservations and reads only its changes."""

import bisect
import dataclasses
import operator
import threading

import sqlalchemy as sa

from nova_preempt.core.reservation import leases as core
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import models
from nova_preempt.db import reservation_rows
from nova_preempt.db import row_schemas

HostSettings = row_schemas.HostSettings


@dataclasses.dataclass(frozen=True)
class Calendar:
    """Times at which open reservations hold hosts.

    :ivar mark: the calendar_changes.Mark of the last change it includes
    :ivar leases: the core Leases of the reservations
    :ivar settings: {host: HostSettings} of hosts with settings
    """

    mark: calendar_changes.Mark
    leases: core.Leases
    settings: dict

    @property
    def busy(self):
        """{host: ((start_s, end_s), ...)}, sorted, without overlaps."""
        return self.leases.busy

    def is_free(self, host, start_s, end_s):
        return self.leases.is_free(host, start_s, end_s)

    def is_reservable(self, host, default):
        """Return whether a host may be reserved.

        :param default: [reservation]reservable_default
        """
        settings = self.settings.get(host)
        if settings is None or settings.reservable is None:
            return default
        return settings.reservable


class CalendarCache:
    """Keeps the Calendar and reads its changes.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._db = database
        self._known = None
        # One thread loads the calendar at a time; others wait for it.
        self._loading = threading.Lock()

    def read(self):
        """Return the current Calendar; do not modify it."""
        with self._db.reader() as session:
            calendar = self._updated(session)
        if calendar is not None:
            return calendar
        with self._loading, self._db.reader() as session:
            return self._updated(session) or self._load(session)

    def read_before(self, session, generation):
        """Return the Calendar before a change.

        :param session: has raised the generation, and changed nothing yet
        :param generation: the raised generation
        """
        return (self._updated(session, generation - 1)
                or self._load(session, generation - 1))

    def _load(self, session, generation=None):
        mark = calendar_changes.get_mark(session, generation)
        self._known = Calendar(mark, core.Leases(get_leases(session)),
                               get_settings(session))
        return self._known

    def _updated(self, session, generation=None):
        """Return the updated Calendar; None if the log lacks the changes."""
        known = self._known
        new = known and calendar_changes.get_since(
            session, known.mark, generation)
        if new and new.mark != known.mark:
            known = Calendar(new.mark, _with_leases(
                session, known.leases, new.reservations),
                _with_settings(session, known.settings, new.hosts))
            self._known = known
        return new and known


def _with_leases(session, before, uuids):
    if not uuids:
        return before
    found = get_leases(session, uuids)
    return before.updated(found, uuids.difference(lease.id for lease in found))


def _with_settings(session, before, hosts):
    if not hosts:
        return before
    return {**{host: item for host, item in before.items()
               if host not in hosts}, **get_settings(session, hosts)}


def get_settings(session, hosts=None):
    """Return {host: HostSettings} of hosts with settings.

    :param hosts: only these hosts; None for all
    """
    row = models.ReservableHost
    query = row_schemas.select(row, HostSettings)
    return {host: HostSettings(host, *values)
            for some in _in_batches(query, row.host, hosts)
            for host, *values in session.execute(some)}


def get_leases(session, uuids=None):
    """Return the core Leases of open reservations, unordered.

    :param uuids: only of these reservations; None for all
    """
    # Tables, not classes: SQLAlchemy makes many tuples faster than objects.
    row = models.Reservation.__table__
    host = models.ReservationHost.__table__
    query = (sa.select(row.c.uuid, row.c.project_id, row.c.status,
                       row.c.ready_at, row.c.start_at, row.c.end_at,
                       host.c.host, host.c.status.label('how'))
             .outerjoin(host, (host.c.reservation_uuid == row.c.uuid)
                        & (host.c.status != reservation_model.LOST))
             .where(row.c.status.in_(reservation_model.OPEN)))
    found = {}
    for some in _in_batches(query, row.c.uuid, uuids):
        for *values, name, how in session.execute(some):
            hosts = found.setdefault(values[0], (values, {}))[1]
            if name is not None:
                hosts[name] = how
    to_s = reservation_model.to_s
    return [core.make(uuid, project_id, status, to_s(start_at), to_s(end_at),
                      hosts, ready=ready_at is not None)
            for (uuid, project_id, status, ready_at, start_at, end_at), hosts
            in found.values()]


def _in_batches(query, column, values):
    """Return the queries for rows with these values; [query] if None."""
    return [query] if values is None else [
        query.where(column.in_(some)) for some in row_schemas.batches(values)]


@dataclasses.dataclass(frozen=True)
class OpenReservations:
    """Open reservations, sorted by start and uuid.

    Fields that Reservations.update() and set_host() change without raising
    the generation may be stale.

    :ivar mark: the calendar_changes.Mark of the last change it includes
    """

    mark: calendar_changes.Mark
    reservations: tuple[reservation_model.Reservation, ...]

    @property
    def generation(self):
        return self.mark.generation


class OpenReservationsCache:
    """Keeps the last OpenReservations and reads its changes.

    :param database: a db.Database
    """

    def __init__(self, database):
        self._db = database
        self._last = None

    def read(self):
        """Return the OpenReservations now; unchanged members are the same."""
        with self._db.reader() as session:
            before = self._last
            new = before and calendar_changes.get_since(session, before.mark)
            if new is None:
                self._last = _read_open(session)
            elif new.mark != before.mark:
                self._last = _update_open(session, before, new)
            return self._last


def _read_open(session):
    # Before the reservations: at worst a change is read twice.
    mark = calendar_changes.get_mark(session)
    found = reservation_rows.fetch_open(session)
    return OpenReservations(mark, tuple(sorted(found, key=_by_start)))


def _update_open(session, before, new):
    """Return the OpenReservations with the Changes, reading nothing else."""
    found = list(before.reservations)
    if new.reservations:
        found = [item for item in found if item.uuid not in new.reservations]
        for batch in row_schemas.batches(new.reservations):
            for item in reservation_rows.fetch_open(session, batch):
                bisect.insort(found, item, key=_by_start)
    return OpenReservations(new.mark, tuple(found))


_by_start = operator.attrgetter('start_at', 'uuid')
