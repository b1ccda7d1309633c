# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Who has asked for something, as records, notifications and logs say it."""

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
        'is_admin': bool(context.is_admin),
    }


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
