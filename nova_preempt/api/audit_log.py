# SPDX-License-Identifier: Apache-2.0

"""The audit log: a line of JSON for each change that somebody asks for.

Refused changes are logged as well. keystonemiddleware's audit, see auth, tells
the bus of every request; this log is there without it.
"""

import json

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import requester
from nova_preempt.api import http_errors
from nova_preempt.core.backlog import redaction

LOG = logging.getLogger(__name__)

# Characters of a request's body.
_MAX_SHOWN = 500


def log(call, operation, answer=None, refusal=None):
    """Log who has changed what, or was refused.

    json.dumps escapes line breaks and all that is not ASCII, so no value of a
    user can look like a line of its own.

    :param call: a router.Call
    :param operation: an operation.Operation
    :param answer: its JSON, if it has any
    :param refusal: the exception instead
    """
    line = {'operation': operation.name, 'method': call.request.method,
            'path': call.request.path}
    if refusal is None:
        line.update(status=operation.success, **_made(answer))
    else:
        line.update(_refused(refusal))
    line['asked_by'] = requester.describe(call.context)
    if call.body is not None:
        line['body'] = _shown(call.body)
    LOG.info('%s', json.dumps(line))


def _refused(refusal):
    """Status and reason; without any value where the body was invalid."""
    status = http_errors.status_of(refusal)
    if status is None:
        return {'status': 500, 'failed': type(refusal).__name__}
    if isinstance(refusal, exceptions.InvalidRequest):
        return {'status': status, 'invalid_field': refusal.field}
    return {'status': status, 'refused': http_errors.message_of(refusal)}


def _made(answer):
    """The id of what was made or changed, if it has one."""
    for item in (answer or {}).values():
        if isinstance(item, dict) and 'id' in item:
            return {'id': item['id']}
    return {}


def _shown(body):
    """The body as far as it is logged; a text if it is too long."""
    request = body.get('request') if isinstance(body, dict) else None
    if isinstance(request, dict) and 'body' in request:
        body = {**body, 'request': {
            **request, 'body': redaction.outline(request['body'])}}
    text = json.dumps(body)
    return body if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}...'
