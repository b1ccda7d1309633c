# SPDX-License-Identifier: Apache-2.0
"""Reads and checks a user's request for a reservation."""

import dataclasses
import datetime
import json

from nova_preempt import exceptions
from nova_preempt.conf import reservation as conf_reservation
from nova_preempt.core.reservation import admission
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import reservation_model

_MAX = 2 ** 31 - 1
_MAX_NAME = 255
# The latest time that every database can store.
_LAST = datetime.datetime.fromisoformat('9000-01-01')


@dataclasses.dataclass(frozen=True)
class ReservationRequest:
    """A request of the API; see there for its defaults.

    :ivar host_properties: a query, see core.reservation.host_query
    :ivar start_time: the earliest start, naive and in UTC
    :ivar end_time: the latest end, naive and in UTC
    """

    host_properties: object = None
    quantity: int = 1
    duration_s: int | None = None
    start_time: datetime.datetime | None = None
    end_time: datetime.datetime | None = None
    name: str = ''
    end_action: str | None = None
    before_end_s: int | None = None


@dataclasses.dataclass(frozen=True)
class ValidRequest:
    """A request with defaults applied and values checked."""

    host_properties: list
    quantity: int
    window: admission.RequestedWindow
    name: str
    end_action: str
    before_end_s: int


def validate(request, options, now_s):
    """Return the ValidRequest of a ReservationRequest.

    :param options: [reservation] of the configuration
    :raises InvalidReservation: a value is invalid
    """
    check_number('quantity', request.quantity, 1)
    if request.duration_s is not None:
        check_number('duration', request.duration_s, 1)
    window = _window(request, now_s)
    check_number('duration', window.duration_s, 1)
    end_action, before_end_s = request.end_action, request.before_end_s
    if end_action is None:
        end_action = options.end_action
    if before_end_s is None:
        before_end_s = options.before_end_s
    check_changes(name=request.name, end_action=end_action,
                  before_end_s=before_end_s)
    return ValidRequest(_properties(request.host_properties), request.quantity,
                  window, request.name, end_action, before_end_s)


def _window(request, now_s):
    """Return a core RequestedWindow."""
    start_s, end_s = (
        None if time is None else to_s(field, time) for field, time in (
            ('start_time', request.start_time),
            ('end_time', request.end_time)))
    try:
        return admission.requested_window(now_s, start_s, end_s,
                                      request.duration_s)
    except admission.BadWindow as exc:
        raise exceptions.InvalidReservation(str(exc)) from None


def to_s(field, time):
    """Return seconds since the epoch of a naive UTC datetime."""
    if time >= _LAST:
        raise exceptions.InvalidReservation(
            f'{field}: it must be before {_LAST.isoformat()}Z')
    return reservation_model.to_s(time)


def check_changes(**values):
    """Check values that can be changed later, too.

    :raises InvalidReservation:
    """
    name = values.get('name', '')
    if not isinstance(name, str) or len(name) > _MAX_NAME:
        raise exceptions.InvalidReservation(
            f'name: it must be a string of at most {_MAX_NAME} characters')
    known = conf_reservation.END_ACTIONS
    if values.get('end_action', known[0]) not in known:
        raise exceptions.InvalidReservation(
            f'end_action: it must be one of {", ".join(known)}')
    check_number('before_end_s', values.get('before_end_s', 0), 0)


def check_number(field, value, least):
    if isinstance(value, bool) or not isinstance(value, int) or (
            not least <= value <= _MAX):
        raise exceptions.InvalidReservation(
            f'{field}: it must be an integer from {least} to {_MAX}')


def _properties(query):
    try:
        host_query.parse(query)
        loaded = host_query.load(query)
    except host_query.InvalidQuery as exc:
        raise exceptions.InvalidReservation(str(exc)) from None
    # NOTE: as JSON has it, without tuples.
    return json.loads(json.dumps(loaded))
