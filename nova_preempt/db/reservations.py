# SPDX-License-Identifier: Apache-2.0
"""Stores reservations, and caches the calendar of their hosts.

Changes of the calendar are serialized across processes, and readers read only
changes since their last reading, see calendar_changes.
"""

import collections
import dataclasses
import datetime
import operator

from oslo_utils import timeutils
import sqlalchemy as sa
from sqlalchemy.sql import operators as sql_operators

from nova_preempt import exceptions
from nova_preempt.core.reservation import calendar as core
from nova_preempt.core.reservation import host_replacement
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import models
from nova_preempt.db import reservation_calendar
from nova_preempt.db import reservation_rows as rows
from nova_preempt.db import transaction_retries

_DAY = datetime.timedelta(days=1)


@dataclasses.dataclass(frozen=True)
class Booking:
    """A host that an open reservation holds during [start_at, end_at)."""

    host: str
    reservation_uuid: str
    project_id: str
    status: str
    start_at: datetime.datetime
    end_at: datetime.datetime


class Reservations:
    """Store of reservations.

    :param database: a db.Database
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, database, clock=timeutils.utcnow):
        self._db = database
        self._clock = clock
        self._calendar = reservation_calendar.CalendarCache(database)
        self._open = reservation_calendar.OpenReservationsCache(database)

    def _now(self):
        return self._clock().replace(microsecond=0)

    # -- reading ---------------------------------------------------------

    def generation(self):
        """Return the generation, which every change of the calendar raises."""
        with self._db.reader() as session:
            return calendar_changes.get_generation(session)

    def calendar(self):
        """Return the current reservation_calendar.Calendar; do not modify it.
        """
        return self._calendar.read()

    def snapshot(self):
        """Return the OpenReservations now; unchanged members are the same."""
        return self._open.read()

    def get(self, uuid, project_id=None):
        """Return a Reservation.

        :param project_id: the project it must belong to; None for any
        :raises ReservationNotFound: there is none
        """
        with self._db.reader() as session:
            return _get(session, uuid, project_id)

    def list(self, *, project_id=None, user_id=None, name=None, host=None,
             statuses=None, released=None, released_since=None, since=None,
             until=None, marker=None, limit=None):
        """Return Reservations, newest first.

        :param host: a current or former host
        :param statuses: the allowed statuses
        :param released: whether released_at is set; None for either
        :param released_since: released_at is later than this
        :param since: the end is later than this, naive and in UTC
        :param until: the start is earlier than this
        :param marker: the Reservation after which the page begins
        """
        row = models.Reservation
        query = rows.ALL
        for column, relation, value in (
                (row.project_id, operator.eq, project_id),
                (row.user_id, operator.eq, user_id),
                (row.name, operator.eq, name),
                (row.status, sql_operators.in_op, statuses),
                (row.end_at, operator.gt, since),
                (row.released_at, operator.gt, released_since),
                (row.start_at, operator.lt, until)):
            if value is not None:
                query = query.where(relation(column, value))
        if released is not None:
            query = query.where(row.released_at.is_not(None) if released
                                else row.released_at.is_(None))
        if host is not None:
            query = query.where(sa.exists().where(
                models.ReservationHost.reservation_uuid == row.uuid,
                models.ReservationHost.host == host))
        if marker is not None:
            query = query.where(
                (row.created_at < marker.created_at) |
                ((row.created_at == marker.created_at) &
                 (row.uuid < marker.uuid)))
        query = query.order_by(
            row.created_at.desc(), row.uuid.desc()).limit(limit)
        with self._db.reader() as session:
            return rows.fetch(session, query)

    def schedule_of(self, names, since=None, until=None):
        """Return {host: [Booking]} of hosts, by start.

        :param names: of the hosts, at most some thousand
        :param since, until: only what overlaps this period, see list()
        """
        hosts, row = models.ReservationHost, models.Reservation
        query = (sa.select(hosts.host, row.uuid, row.project_id, row.status,
                           hosts.start_at, hosts.end_at)
                 .join(row, row.uuid == hosts.reservation_uuid)
                 .where(row.status.in_(reservation_model.OPEN))
                 .where(hosts.status != reservation_model.LOST)
                 .where(hosts.host.in_(names))
                 .where((hosts.end_at > since) if since else sa.true())
                 .where((hosts.start_at < until) if until else sa.true())
                 .order_by(hosts.host, hosts.start_at))
        found = collections.defaultdict(list)
        for values in self._db.read(query):
            found[values[0]].append(Booking(*values))
        return dict(found)

    # -- granting and changing -------------------------------------------

    @transaction_retries.retried
    def grant(self, reservation, choose, check=None, check_created=None):
        """Insert a new reservation with the hosts chosen for it.

        Grants are serialized across processes.

        :param reservation: a Reservation without times and hosts
        :param choose: called with the db.reservation_calendar.Calendar,
            returns a core.reservation.calendar.FoundWindow, None if there is
            none
        :param check: called with the FoundWindow and the open Reservations of
            the project, raises if limits forbid it
        :param check_created: called with the number of reservations that the
            project created within 24 hours, raises if limits forbid it
        :returns: the Reservation as granted
        :raises NoHostsForReservation: choose returned None
        """
        now = self._now()
        # Updates the cache before the lock is taken.
        self._calendar.read()
        with self._db.writer() as session:
            generation = calendar_changes.raise_generation(
                session, reservations=(reservation.uuid,))
            if earlier := rows.fetch_many(session, (reservation.uuid,)):
                # This call committed before and its answer was lost.
                return earlier[0]
            if check_created is not None:
                check_created(_count_created(
                    session, reservation.project_id, now - _DAY))
            calendar = self._calendar.read_before(session, generation)
            found = choose(calendar)
            if found is None:
                raise exceptions.NoHostsForReservation(
                    f'Fewer than {reservation.quantity} matching hosts are '
                    f'free for {reservation.duration_s} s.')
            if check is not None:
                check(found, _of_project(session, reservation.project_id))
            granted = _granted(reservation, found, now)
            rows.insert(session, granted)
        return granted

    @transaction_retries.retried
    def update(self, uuid, *, from_status=None, **values):
        """Change columns of a reservation, except its hosts and times.

        :param from_status: the status, or statuses, that it must have
        :returns: False if it has another status or does not exist
        """
        query = (sa.update(models.Reservation)
                 .where(models.Reservation.uuid == uuid)
                 .values(updated_at=self._now(), **values))
        if from_status is not None:
            if isinstance(from_status, str):
                from_status = (from_status,)
            query = query.where(models.Reservation.status.in_(from_status))
        with self._db.writer() as session:
            # Columns that make processes act at a certain time.
            if 'status' in values or 'before_end_s' in values:
                calendar_changes.raise_generation(session, reservations=[uuid])
            return session.execute(query).rowcount == 1

    @transaction_retries.retried
    def set_host(self, uuid, host, status, reason='', public_reason=''):
        """Set the status of a host of a reservation.

        :param status: ASSIGNED, EMPTYING or READY; see replace_host()
        :param reason: why it is not empty though it has been
        :param public_reason: the same for its owner
        :returns: False if the reservation does not hold this host
        """
        told = status == reservation_model.READY and self._has_started(uuid)
        with self._db.writer() as session:
            # From now on servers of the reservation may be placed there.
            if told:
                calendar_changes.raise_generation(session, reservations=[uuid])
            return _change_host(
                session, uuid, host,
                models.ReservationHost.status != reservation_model.LOST,
                status=status, reason=reason, public_reason=public_reason) == 1

    def _has_started(self, uuid):
        # Not from a replica, which may lag. It is never unset.
        with self._db.writer() as session:
            return session.scalar(
                sa.select(models.Reservation.ready_at).where(
                    models.Reservation.uuid == uuid)) is not None

    @transaction_retries.retried
    def replace_host(self, uuid, old, new=None, reason='', public_reason=''):
        """Replace a host of an open reservation.

        The new host is held from now on, or from the start. A reservation
        with fewer hosts than requested is DEGRADED until it has all.

        :param old: the host that is LOST, None to only add a host
        :param new: the host that is added, None if there is none
        :param reason: why the old host is lost
        :param public_reason: the same for its owner
        :returns: the changed Reservation
        :raises NoHostsForReservation: the new host is not free; nothing has
            changed
        :raises ReservationNotFound, WrongState:
        """
        with self._db.writer() as session:
            generation = calendar_changes.raise_generation(
                session, reservations=(uuid,))
            reservation = _get_open(session, uuid)
            now = self._now()
            since = max(reservation.start_at, now)
            if since >= reservation.end_at:
                raise exceptions.WrongState(f'Reservation {uuid} ends now.')
            held = (None, *reservation.held)
            if old not in reservation.held and new in held:
                # This call committed before and its answer was lost.
                return reservation
            if old not in held:
                raise exceptions.WrongState(
                    f'Reservation {uuid} does not have the host {old}.')
            if new is not None:
                self._check_free(session, generation, (new,), since,
                                 reservation.end_at)
            for item in host_replacement.exchange(reservation, old, new, now,
                                                  reason, public_reason):
                values = dataclasses.asdict(item)
                if not _change_host(session, uuid, **values):
                    session.add(models.ReservationHost(
                        reservation_uuid=uuid, **values))
            session.flush()
            self._set_degraded(session, _get(session, uuid), reason,
                               public_reason)
            return _get(session, uuid)

    def _set_degraded(self, session, reservation, reason, public_reason):
        session.execute(sa.update(models.Reservation).where(
            models.Reservation.uuid == reservation.uuid).values(
                updated_at=self._now(), **host_replacement.status_after(
                    reservation, reason, public_reason)))

    @transaction_retries.retried
    def set_end(self, uuid, end_at, check=None):
        """Change the end of an open reservation.

        The notice before the end is sent again if it ends later.

        :param end_at: a time after its start
        :param check: called with the Reservation and the open Reservations of
            its project, raises if limits forbid it
        :returns: the changed Reservation
        :raises NoHostsForReservation: a host is not free until the new end
        :raises ReservationNotFound, WrongState:
        """
        with self._db.writer() as session:
            generation = calendar_changes.raise_generation(
                session, reservations=(uuid,))
            reservation = _get_open(session, uuid)
            values = {'end_at': end_at, 'updated_at': self._now(),
                      'duration_s': reservation_model.to_s(end_at)
                      - reservation.start_s}
            if check is not None:
                check(reservation,
                      _of_project(session, reservation.project_id))
            if end_at > reservation.end_at:
                self._check_free(session, generation, reservation.held,
                                 reservation.end_at, end_at)
                values['noticed_at'] = None
            session.execute(sa.update(models.Reservation)
                            .where(models.Reservation.uuid == uuid)
                            .values(**values))
            row = models.ReservationHost
            session.execute(
                sa.update(row).where(row.reservation_uuid == uuid)
                .where(row.status
                       != reservation_model.LOST).values(end_at=end_at))
            return _get(session, uuid)

    def _check_free(self, session, generation, hosts, start_at, end_at):
        calendar = self._calendar.read_before(session, generation)
        start_s, end_s = map(reservation_model.to_s, (start_at, end_at))
        taken = [host for host in hosts
                 if not calendar.is_free(host, start_s, end_s)]
        if taken:
            raise exceptions.NoHostsForReservation(
                f'{len(taken)} of {len(hosts)} hosts are not free from '
                f'{start_at.isoformat()}Z to {end_at.isoformat()}Z.')


def _granted(reservation, found: core.FoundWindow, now):
    start_at = reservation_model.from_s(found.start_s)
    end_at = reservation_model.from_s(found.end_s)
    return dataclasses.replace(
        reservation, created_at=now, updated_at=now, start_at=start_at,
        end_at=end_at, hosts=tuple(
            reservation_model.Assignment(host, start_at, end_at)
            for host in sorted(found.hosts)))


def _change_host(session, uuid, host, *conditions, **values):
    row = models.ReservationHost
    return session.execute(
        sa.update(row).where(row.reservation_uuid == uuid)
        .where(row.host == host, *conditions).values(**values)).rowcount


def _get(session, uuid, project_id=None):
    found = rows.fetch_many(session, (uuid,))
    if not found or project_id not in (None, found[0].project_id):
        raise exceptions.ReservationNotFound(
            f'There is no reservation {uuid}.')
    return found[0]


def _get_open(session, uuid):
    reservation = _get(session, uuid)
    if reservation.status not in reservation_model.OPEN:
        raise exceptions.WrongState(
            f'Reservation {uuid} is {reservation.status}.')
    return reservation


def _of_project(session, project_id):
    return rows.fetch_open(session, project_id=project_id)


def _count_created(session, project_id, since):
    row = models.Reservation
    return session.execute(
        sa.select(sa.func.count()).select_from(row)
        .where(row.project_id == project_id)
        .where(row.created_at > since)).scalar_one()
