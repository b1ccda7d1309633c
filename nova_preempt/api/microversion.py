# SPDX-License-Identifier: Apache-2.0
"""Negotiates microversions, as in OpenStack-API-Version: preemption 1.1."""

import microversion_parse
import webob.dec

from nova_preempt.api import http_errors

SERVICE_TYPE = 'preemption'
HEADER = 'OpenStack-API-Version'
# The key of the version in the WSGI environment of a request.
ENVIRON = 'nova_preempt.microversion'

#: All microversions, oldest first. 1.1 adds reservations and energy, 1.2
#: pauses, 1.3 requests for servers, 1.4 the plan of the next pass over them,
#: 1.5 classes of service, 1.6 reasons in the plan, 1.7 the status, 1.8 rates
#: of evictions, 1.9 webhooks, 1.10 the period of reservations in a list of
#: hosts. A request without a version gets the oldest.
VERSIONS = ('1.0', '1.1', '1.2', '1.3', '1.4', '1.5', '1.6', '1.7', '1.8',
            '1.9', '1.10')


@webob.dec.wsgify.middleware
def middleware(request, app):
    try:
        version = microversion_parse.extract_version(
            request.headers, SERVICE_TYPE, VERSIONS)
    except ValueError:
        return _refuse(406, 'The requested version is not supported; those '
                            f'from {VERSIONS[0]} to {VERSIONS[-1]} are.')
    except TypeError:
        return _refuse(400, f'The header {HEADER} must be "{SERVICE_TYPE} '
                            f'X.Y" or "{SERVICE_TYPE} latest".')
    request.environ[ENVIRON] = str(version)
    answer = request.get_response(app)
    answer.headers[HEADER] = f'{SERVICE_TYPE} {version}'
    answer.headers['Vary'] = HEADER
    return answer


def has(environ, since):
    """Return whether the version of a request is at least this one."""
    return VERSIONS.index(environ[ENVIRON]) >= VERSIONS.index(since)


def _refuse(code, message):
    return http_errors.response(code, message, {'Vary': HEADER},
                                min_version=VERSIONS[0],
                                max_version=VERSIONS[-1])
