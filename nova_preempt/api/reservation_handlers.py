# SPDX-License-Identifier: Apache-2.0
"""Handlers of reservations: whole hosts of a project for some time."""

import contextlib
import functools

from nova_preempt import exceptions
from nova_preempt.api import operation
from nova_preempt.api import pagination
from nova_preempt.api import policy
from nova_preempt.api import request_validation
from nova_preempt.api import reservable_host_handlers
from nova_preempt.api import reservation_schemas as schemas
from nova_preempt.api import reservation_views as views
from nova_preempt.core.reservation import host_query
from nova_preempt.reservation import reservation_scheduler

# The most characters of an unknown name that are shown.
_MAX_SHOWN = 100


@operation.serves('GET', '/v1/reservations', policy.RESERVATION_LIST,
                  schemas.RESERVATIONS_ANSWER, query=schemas.LIST_QUERY,
                  since='1.1')
def list_reservations(call):
    """List reservations, newest first."""
    query = call.query
    status = query.get('status')
    found = call.services.schedule.reservations.list(
        project_id=pagination.listed_project(
            call, policy.RESERVATION_ALL_PROJECTS, 'host'),
        name=query.get('name'), host=query.get('host'),
        statuses=status and [status],
        marker=_marker(call), limit=pagination.limit(call) + 1,
        **pagination.interval(call))
    return pagination.page(call, 'reservations', found, _view(call),
                           lambda item: item.uuid)


def _view(call):
    """Return a function from Reservations to JSON for the caller."""
    return functools.partial(
        views.reservation, everything=call.allows(policy.RESERVATION_DETAILS))


def _marker(call):
    marker = call.query.get('marker')
    if marker is None:
        return None
    try:
        return call.services.schedule.reservations.get(
            marker, call.viewer(policy.RESERVATION_ALL_PROJECTS))
    except exceptions.ReservationNotFound:
        raise pagination.unknown_marker('reservation', marker) from None


@operation.serves('GET', '/v1/reservations/{reservation_id}',
                  policy.RESERVATION_SHOW, schemas.RESERVATION_ANSWER,
                  since='1.1')
def show_reservation(call):
    """Show a reservation with its hosts."""
    return {'reservation': _view(call)(_get(call))}


def _get(call):
    """Return the reservation of the path if the operation is allowed on it.

    :raises ReservationNotFound: it does not exist, or must not be seen
    """
    uuid = call.path['reservation_id']
    if not request_validation.is_uuid(uuid):
        raise exceptions.ReservationNotFound(
            f'There is no reservation {uuid!r:.80}.')
    item = call.services.schedule.reservations.get(uuid)
    if call.sees_all(policy.RESERVATION_ALL_PROJECTS,
                     [(item.project_id, item.user_id)]) is None:
        raise exceptions.ReservationNotFound(
            f'There is no reservation {item.uuid}.')
    return item


@operation.serves('POST', '/v1/reservations', policy.RESERVATION_CREATE,
                  schemas.RESERVATION_ANSWER, body=schemas.CREATE, success=201,
                  errors=(409, 503), since='1.1')
def create_reservation(call):
    """Reserve hosts at the earliest time that is possible."""
    with _naming_fields():
        return {'reservation': _view(call)(call.services.schedule.create(
            call.context, call.context.project_id, call.context.user_id,
            _requested(call), call.allows(policy.RESERVATION_DETAILS)))}


@operation.serves('POST', '/v1/reservations/preview',
                  policy.RESERVATION_PREVIEW, schemas.PREVIEW_ANSWER,
                  body=schemas.CREATE, errors=(503,), since='1.1',
                  read_only=True)
def preview_reservation(call):
    """Show when and where hosts could be reserved."""
    with _naming_fields():
        return {'preview': views.preview(call.services.schedule.preview(
            call.context, call.context.project_id, _requested(call)),
            call.context.project_id, call.allows(policy.RESERVATION_DETAILS))}


def _requested(call):
    wanted = call.body['reservation']
    properties = wanted.get('host_properties')
    _check_properties(call, properties)
    return reservation_scheduler.Request(
        host_properties=properties, quantity=wanted.get('quantity', 1),
        duration_s=wanted.get('duration'),
        start_time=_time(wanted, 'start_time'),
        end_time=_time(wanted, 'end_time'), name=wanted.get('name', ''),
        end_action=wanted.get('end_action'),
        before_end_s=wanted.get('before_end_s'))


def _time(values, name):
    return request_validation.parse_time(
        values[name]) if name in values else None


def _check_properties(call, properties):
    """Refuse a filter that names unknown or hidden properties."""
    try:
        names = host_query.parse(properties).names
    except host_query.InvalidQuery as exc:
        raise exceptions.InvalidReservation(str(exc)) from None
    if not names:
        return
    found = reservable_host_handlers.visible_properties(call)
    unknown = sorted(names - {item['name'] for item in found})
    if unknown:
        raise exceptions.InvalidReservation(
            'host_properties: no host has the property '
            f'"{unknown[0][:_MAX_SHOWN]}"')


@contextlib.contextmanager
def _naming_fields():
    """Make errors name fields as errors of the schema do."""
    try:
        yield
    except exceptions.InvalidReservation as exc:
        field, _, text = exc.args[0].partition(': ')
        raise exceptions.InvalidReservation(
            f"Invalid field 'reservation.{field}': {text}.") from None


@operation.serves('PATCH', '/v1/reservations/{reservation_id}',
                  policy.RESERVATION_UPDATE, schemas.RESERVATION_ANSWER,
                  body=schemas.CHANGE, errors=(409,), since='1.1')
def update_reservation(call):
    """Change a reservation, also when it ends."""
    item = _get(call)
    changes = dict(call.body['reservation'])
    end_at = _time(changes, 'end_at')
    changes.pop('end_at', None)
    with _naming_fields():
        return {'reservation': _view(call)(call.services.schedule.change(
            item.uuid, item.project_id, end_at=end_at, **changes))}


@operation.serves('DELETE', '/v1/reservations/{reservation_id}',
                  policy.RESERVATION_DELETE, errors=(409,), since='1.1')
def delete_reservation(call):
    """Cancel a reservation, or end it if it has started."""
    item = _get(call)
    call.services.schedule.cancel(item.uuid, item.project_id)
