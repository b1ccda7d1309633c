# SPDX-License-Identifier: Apache-2.0

"""Identity of the caller in records, notifications and logs."""

# Nobody has asked: the engine does what the operator's options say.
ENGINE = {'service': 'nova-preempt-engine'}


def describe(context):
    """Who is behind a request, as JSON.

    :param context: a RequestContext
    :returns: {'user_id', 'project_id', 'request_id', 'roles', 'is_admin'}
    """
    return {
        'user_id': context.user_id or '',
        'project_id': context.project_id or '',
        'request_id': context.request_id or '',
        'roles': sorted(context.roles or ()),
        'is_admin': bool(context.is_admin)}


def of_reservation(reservation):
    """The same for what is done for a reservation: its owner."""
    return {'user_id': reservation.user_id,
            'project_id': reservation.project_id,
            'reservation_id': reservation.uuid}


def text(asked_by):
    """One of these for a log, on one line."""
    return ' '.join(
        f'{name}={",".join(value) if isinstance(value, list) else value}'
        for name, value in asked_by.items()
        if value not in ('', [])) or 'nobody'
