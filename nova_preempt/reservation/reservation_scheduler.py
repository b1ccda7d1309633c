# SPDX-License-Identifier: Apache-2.0
"""Finds times and hosts for reservations, and grants them.

The inventory tells which hosts match, before anything is locked; the calendar
in the database tells when they are free.
"""

import dataclasses
import datetime
import functools

from oslo_utils import timeutils
from oslo_utils import uuidutils

from nova_preempt import exceptions
from nova_preempt import plugins
from nova_preempt.core.reservation import admission
from nova_preempt.core.reservation import reservation_limits
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservable_hosts
from nova_preempt.db import reservations
from nova_preempt.reservation import reservation_request

LIMITS = reservation_limits.LIMITS
Request = reservation_request.ReservationRequest


# How often cancel() retries where the reservation changes meanwhile.
_TRIES = 5


@dataclasses.dataclass(frozen=True)
class Preview:
    """Times, naive and in UTC, and hosts that would be granted."""

    start_at: datetime.datetime
    end_at: datetime.datetime
    hosts: tuple[str, ...]


class ReservationScheduler:
    """Finds, grants and changes reservations. Safe for many threads.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :param database: a db.Database
    :param inventory: has find_hosts(context, host_properties), see
        rpc.EngineClient
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, conf, database, inventory, clock=timeutils.utcnow):
        self._conf = conf
        self._options = conf.reservation
        self._db = database
        self._inventory = inventory
        self._clock = clock
        self._ranking = load_ranking(self._options.ranking)
        self.reservations = reservations.Reservations(database, clock)

    def _now_s(self):
        return reservation_model.to_s(self._clock())

    def preview(self, context, project_id, request):
        """Return when and where a Request could be granted.

        :returns: a Preview, None if it could not
        :raises ReservationsDisabled: [reservation]enabled is false
        :raises InvalidReservation: the request is invalid
        :raises ReservationLimit: a limit of the project is exceeded
        :raises NoAnswer: the inventory does not answer
        """
        _, search = self._search(context, project_id, request)
        found = search.find(self._hosts(search, self.reservations.calendar()))
        if found is None:
            return None
        search.check(found, self.reservations.list(
            project_id=project_id, statuses=reservation_model.OPEN))
        return Preview(reservation_model.from_s(found.start_s),
                       reservation_model.from_s(found.end_s), found.hosts)

    def create(self, context, project_id, user_id, request, details=True):
        """Grant a Request.

        :param details: whether a refusal may tell times of other projects
        :returns: a core.reservation.reservation_model.Reservation
        :raises: as preview()
        :raises NoHostsForReservation: too few hosts are free
        """
        wanted, search = self._search(context, project_id, request)
        window = wanted.window

        def choose(calendar):
            hosts = self._hosts(search, calendar)
            found = search.find(hosts)
            if found is None:
                raise exceptions.NoHostsForReservation(
                    _explain(search, hosts, details))
            return found

        return self.reservations.grant(reservation_model.Reservation(
            uuid=uuidutils.generate_uuid(), project_id=project_id,
            user_id=user_id, name=wanted.name,
            host_properties=wanted.host_properties,
            quantity=wanted.quantity, duration_s=window.duration_s,
            window_start=reservation_model.from_s(window.start_s),
            window_end=(None if window.end_s is None
                        else reservation_model.from_s(window.end_s)),
            end_action=wanted.end_action, before_end_s=wanted.before_end_s),
            choose, search.check, search.check_created)

    def _search(self, context, project_id, request):
        """Return the ValidRequest of a Request, and an admission.Search."""
        self._check_enabled('created')
        now_s = self._now_s()
        wanted = reservation_request.validate(request, self._options, now_s)
        window = wanted.window
        of_project = ProjectLimits.load(self._conf, self._db, project_id)
        of_project.check_request(wanted.quantity, window.duration_s,
                                 window.start_s - now_s)
        hosts = self._inventory.find_hosts(context, wanted.host_properties)
        return wanted, admission.Search(window, wanted.quantity, [
            admission.MatchingHost(host['name'], host['flops_per_watt'], host[
            'vacant']) for host in hosts], of_project, self._ranking, now_s,
            now_s + self._options.evacuation_lead_s)

    def _hosts(self, search, calendar):
        """Return hosts that can be reserved, with their busy times."""
        default = self._options.reservable_default
        return search.hosts(calendar.busy, lambda name: (
            calendar.is_reservable(name, default)))

    def change(self, uuid, project_id=None, *, end_at=None, **changes):
        """Change an open reservation.

        :param project_id: of its project; any if None
        :param end_at: the new end, naive and in UTC: after now and after its
            start; a later end only while its hosts are free
        :param changes: name, end_action, before_end_s
        :returns: the changed Reservation
        :raises ReservationNotFound, InvalidReservation:
        :raises WrongState: it is over
        :raises ReservationLimit: a limit of the project is exceeded
        :raises NoHostsForReservation: a host is not free until then
        :raises ReservationsDisabled: the end is later, and
            [reservation]enabled is false
        """
        reservation_request.check_changes(**changes)
        reservation = self.reservations.get(uuid, project_id)
        _check_open(reservation)
        if end_at is not None:
            end_s = reservation_request.to_s('end_at', end_at)
            of_project = ProjectLimits.load(
                self._conf, self._db, reservation.project_id)
            self.reservations.set_end(
                uuid, reservation_model.from_s(end_s),
                functools.partial(self._check_end, end_s, of_project))
        if changes and not self.reservations.update(
                uuid, from_status=reservation_model.OPEN, **changes):
            _check_open(self.reservations.get(uuid))
        return self.reservations.get(uuid)

    def _check_end(self, end_s, of_project, reservation, others):
        found = admission.new_end(reservation, end_s, self._now_s())
        if found is admission.NewEnd.OVER:
            raise exceptions.WrongState(
                f'Reservation {reservation.uuid} is over.')
        for wrong, what in ((admission.NewEnd.PAST, 'now'),
                            (admission.NewEnd.BEFORE_START, 'the start')):
            if found is wrong:
                raise exceptions.InvalidReservation(
                    f'end_at: it must be after {what}')
        if found is not admission.NewEnd.LATER:
            return
        self._check_enabled('extended')
        of_project.check('max_duration_s', end_s - reservation.start_s)
        of_project.check_hosts(
            reservation.quantity, reservation.end_s, end_s,
            [each for each in others if each.uuid != reservation.uuid])

    def _check_enabled(self, what):
        if not self._options.enabled:
            raise exceptions.ReservationsDisabled(
                f'No reservation can be {what}: the operator has disabled '
                'them, [reservation]enabled is false.')

    def cancel(self, uuid, project_id=None):
        """Cancel a reservation: it ends now, or never starts.

        :param project_id: of its project; any if None
        :returns: the changed Reservation
        :raises ReservationNotFound:
        :raises WrongState: it is over
        """
        for _attempt in range(_TRIES):
            reservation = self.reservations.get(uuid, project_id)
            _check_open(reservation)
            now = self._clock().replace(microsecond=0)
            found = admission.cancel(reservation, reservation_model.to_s(now))
            if found is admission.CancelEffect.NEVER_STARTS:
                if self.reservations.update(
                        uuid, from_status=reservation.status,
                        status=reservation_model.CANCELLED):
                    break
            else:
                if found is admission.CancelEffect.ENDS_NOW:
                    self.reservations.set_end(uuid, now)
                break
        return self.reservations.get(uuid)


class ProjectLimits(reservation_limits.Limits):
    """Limits on what one project may reserve.

    Its checks raise ReservationLimit.
    """

    @classmethod
    def load(cls, conf, database, project_id):
        """Read the project's limits, the options where it has none."""
        own = reservable_hosts.get_limits(database, project_id)
        return cls({name: own.get(name, conf.reservation[name])
                    for name in LIMITS})

    def check(self, name, asked, used=0):
        try:
            super().check(name, asked, used)
        except reservation_limits.LimitExceeded as exc:
            raise exceptions.ReservationLimit(str(exc)) from None


def _explain(search, hosts, details):
    """Return why no hosts are found."""
    window, quantity, matching = search.window, search.quantity, len(hosts)
    if matching < quantity:
        return (f'{quantity} hosts are requested, but only {matching} '
                'matching hosts are reservable.')
    start, end = (time_s if time_s is None else _iso(time_s) for time_s
                  in (window.start_s, window.end_s))
    when = ('now' if window.immediate else f'after {start}'
            if end is None else f'between {start} and {end}')
    text = (f'Fewer than {quantity} of {matching} matching hosts are free for '
            f'{window.duration_s} s {when}')
    if not details:
        return f'{text}. A preview with a later end_time may find a time.'
    later = search.find(hosts, at_any_time=True)
    return text + (f'; {_iso(later.start_s)} is the earliest time.'
                   if later else '.')


def _iso(time_s):
    return reservation_model.from_s(time_s).isoformat() + 'Z'


def _check_open(reservation):
    if reservation.status not in reservation_model.OPEN:
        raise exceptions.WrongState(
            f'Reservation {reservation.uuid} is {reservation.status}.')


@functools.cache
def load_ranking(name):
    """Return a ranking by name; see nova_preempt.core.reservation.calendar.

    :raises InvalidConfiguration: it does not exist
    """
    return plugins.load('nova_preempt.reservation_ranking', name,
                        '[reservation]ranking is')
