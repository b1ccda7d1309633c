# SPDX-License-Identifier: Apache-2.0

"""Identity of the caller in records, notifications and logs."""

# The identity of the engine where it acts by the operator's options.
ENGINE = {'service': 'nova-preempt-engine'}


def describe(context):
    """Return the identity of a caller as JSON.

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
    """Return the identity of a reservation's owner as JSON."""
    return {'user_id': reservation.user_id,
            'project_id': reservation.project_id,
            'reservation_id': reservation.uuid}


def text(asked_by):
    """Return an identity as one line of text."""
    return ' '.join(
        f'{name}={",".join(value) if isinstance(value, list) else value}'
        for name, value in asked_by.items()
        if value not in ('', [])) or 'nobody'
