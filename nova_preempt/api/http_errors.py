# SPDX-License-Identifier: Apache-2.0
"""Formats all errors as {"error": {"code", "title", "message"}}."""

import http
import json

from oslo_db import exception as db_exc
from oslo_log import log as logging
import webob
import webob.dec
import webob.exc

from nova_preempt import exceptions
from nova_preempt.db import connection

LOG = logging.getLogger(__name__)

JSON = 'application/json'

_CODES = {
    exceptions.AlreadyEnding: 409,
    exceptions.BacklogDisabled: 403,
    exceptions.CannotEnd: 409,
    exceptions.InvalidRequest: 400,
    exceptions.InvalidReservation: 400,
    exceptions.NoAnswer: 503,
    exceptions.NoHostsForReservation: 409,
    exceptions.NoTrust: 403,
    exceptions.NotPreemptible: 409,
    exceptions.Paused: 409,
    exceptions.RequestLimit: 403,
    exceptions.RequestNotFound: 404,
    exceptions.ReservationLimit: 403,
    exceptions.ReservationNotFound: 404,
    exceptions.ReservationsDisabled: 403,
    exceptions.ServerNotFound: 404,
    exceptions.TooManyQuestions: 429,
    exceptions.WrongState: 409,
}


def status_of(exc):
    """Return the HTTP status of a refusal, None for other exceptions."""
    if isinstance(exc, webob.exc.HTTPError):
        return exc.status_int
    # Exceptions from RPC have classes of their own, derived from ours.
    return next((code for kind, code in _CODES.items()
                 if isinstance(exc, kind)), None)


def message_of(exc):
    """Return the text of a refusal, '' if it has none."""
    if isinstance(exc, webob.exc.HTTPError):
        return exc.detail or ''
    return exc.args[0]


def headers_of(exc):
    """Return the headers of a refusal that its response keeps."""
    if isinstance(exc, exceptions.TooManyQuestions):
        return {'Retry-After': str(exc.args[1])}
    found = getattr(exc, 'headers', {})
    return {'Allow': found['Allow']} if 'Allow' in found else {}


def response(code, message='', headers=(), **more):
    """Return a webob.Response for an error.

    :param more: further members of "error"
    """
    status = http.HTTPStatus(code)
    error = {'code': code, 'title': status.phrase,
             'message': message or f'{status.description or status.phrase}.',
             **more}
    answer = webob.Response(status=code, content_type=JSON,
                            body=json.dumps({'error': error}).encode())
    answer.headers.update(headers)
    return answer


@webob.dec.wsgify.middleware
def middleware(request, app):
    """Format all errors, and hide details of internal errors."""
    try:
        answer = request.get_response(app)
    except (db_exc.DBConnectionError, db_exc.DBNonExistentTable,
            connection.PoolExhausted):
        LOG.exception('The database cannot be read.')
        return response(503, 'The database cannot be read.')
    except Exception:
        LOG.exception('The API request %s %r failed.', request.method,
                      request.environ.get('PATH_INFO'))
        return response(500, 'An unexpected error occurred; its cause is in '
                             'the log of nova-preempt-api.')
    if answer.status_int >= 400 and answer.content_type != JSON:
        kept = {name: value for name, value in answer.headers.items()
                if name.lower() not in ('content-type', 'content-length')}
        return response(answer.status_int, headers=kept)
    return answer
