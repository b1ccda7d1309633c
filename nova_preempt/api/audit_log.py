# SPDX-License-Identifier: Apache-2.0

"""The audit log: a line of JSON for each requested change.

Refused changes are logged as well. Independent of keystonemiddleware's audit,
see auth, which sends an event for each request to the bus.
"""

import json

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import requester_identity
from nova_preempt.api import http_errors
from nova_preempt.core import webhook_targets
from nova_preempt.core.backlog import redaction

LOG = logging.getLogger(__name__)

# The most characters of a request's body that are logged.
_MAX_SHOWN = 500


def log(call, operation, answer=None, refusal=None):
    """Log a change or its refusal.

    json.dumps escapes line breaks and all that is not ASCII, so that values
    cannot forge log lines.

    :param call: a router.ApiCall
    :param operation: an operation.Operation
    :param answer: its response as JSON, None without one
    :param refusal: the exception, None for a success
    """
    line = {'operation': operation.name, 'method': call.request.method,
            'path': call.request.path}
    if refusal is None:
        line.update(status=operation.success, **_made(answer))
    else:
        line.update(_refused(refusal))
    line['asked_by'] = requester_identity.describe(call.context)
    if call.body is not None:
        line['body'] = _shown(call.body)
    LOG.info('%s', json.dumps(line))


def _refused(refusal):
    """Return status and reason, without values of an invalid body."""
    status = http_errors.status_of(refusal)
    if status is None:
        return {'status': 500, 'failed': type(refusal).__name__}
    if isinstance(refusal, exceptions.InvalidRequest):
        return {'status': status, 'invalid_field': refusal.field}
    return {'status': status, 'refused': http_errors.message_of(refusal)}


def _made(answer):
    """Return the id of the created or changed object, if it has one."""
    for item in (answer or {}).values():
        if isinstance(item, dict) and 'id' in item:
            return {'id': item['id']}
    return {}


def _shown(body):
    """Return the redacted body; a shortened text if it is too long."""
    if isinstance(body, dict) and 'webhook' in body:
        # Its secret, and a path that may be one.
        body = {'webhook': webhook_targets.origin(body['webhook']['url'])}
    request = body.get('request') if isinstance(body, dict) else None
    if isinstance(request, dict) and 'body' in request:
        body = {**body, 'request': {
            **request, 'body': redaction.for_log(request['body'])}}
    text = json.dumps(body)
    return body if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}...'
