# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""From a request to its operation."""

import dataclasses
import json
from typing import Any

import routes
import webob
import webob.dec
import webob.exc

from nova_preempt import exceptions
from nova_preempt.api import errors
from nova_preempt.api import microversion
from nova_preempt.api import validation

# What these mean to whoever asks.
_CODES = {
    exceptions.InvalidReservation: 400,
    exceptions.NoAnswer: 503,
    exceptions.NoHostsForReservation: 409,
    exceptions.ReservationLimit: 403,
    exceptions.ReservationNotFound: 404,
    exceptions.WrongState: 409,
}


@dataclasses.dataclass(frozen=True)
class Services:
    """What handlers need: the configuration and whom they ask."""

    conf: Any
    database: Any
    policy: Any
    scheduler: Any
    engine: Any
    schedule: Any
    figures: Any      # a nova_preempt.power.table.Table


@dataclasses.dataclass(frozen=True)
class Call:
    """A request that was found valid."""

    services: Services
    request: webob.Request
    path: dict
    query: dict
    body: Any = None

    @property
    def context(self):
        return self.request.environ['nova_preempt.context']

    def allows(self, rule):
        return self.services.policy.allows(self.context, rule)

    def require(self, rule):
        self.services.policy.require(self.context, rule)

    def viewer(self, rule):
        """The project whose side is shown, None if that is everything."""
        return None if self.allows(rule) else self.context.project_id


class Router:
    """A WSGI application of these operations."""

    def __init__(self, services, operations):
        self._services = services
        self._paths = {}
        self._mapper = routes.Mapper(register=False)
        self._mapper.minimization = False
        for operation in operations:
            methods = self._paths.setdefault(operation.path, {})
            methods[operation.method] = operation
        for path in self._paths:
            # With and without a slash at the end.
            for spelling in {path, f'{path.rstrip("/")}/'}:
                self._mapper.connect(spelling, known_as=path)

    def match(self, environ):
        """(path, {parameter: value}), None if there is no such path."""
        found = self._mapper.match(environ.get('PATH_INFO') or '/')
        return found and (found.pop('known_as'), found)

    @webob.dec.wsgify
    def __call__(self, request):
        try:
            return self._answer(request)
        except tuple(_CODES) as exc:
            # One that came over RPC is of a class of its own.
            code = next(code for kind, code in _CODES.items()
                        if isinstance(exc, kind))
            return errors.response(code, exc.args[0])
        except webob.exc.HTTPError as exc:
            return errors.response(
                exc.status_int, exc.detail or '',
                {'Allow': exc.headers['Allow']} if 'Allow' in exc.headers
                else {})

    def _answer(self, request):
        found = self.match(request.environ)
        if found is None:
            raise webob.exc.HTTPNotFound('There is no such resource.')
        operation = self._operation(request, self._methods(request, found[0]))
        call = Call(
            self._services, request, found[1],
            validation.query(operation.query, request.query_string),
            _body(operation, request))
        answer = operation.handler(call)
        if answer is None:
            return webob.Response(status=operation.success,
                                  content_type=None)
        return webob.Response(
            status=operation.success, content_type=errors.JSON,
            body=json.dumps(answer).encode())

    def _methods(self, request, path):
        """{method: operation} of the path in the version of the request."""
        methods = self._paths[path]
        known = {method: operation for method, operation in methods.items()
                 if operation.since is None or
                 microversion.has(request.environ, operation.since)}
        if not known:
            since = min(operation.since for operation in methods.values())
            raise webob.exc.HTTPNotFound(
                f'This needs {microversion.HEADER}: '
                f'{microversion.SERVICE_TYPE} {since} or later.')
        return known

    @staticmethod
    def _operation(request, methods):
        method = 'GET' if request.method == 'HEAD' else request.method
        if method not in methods:
            allowed = {*methods, *(['HEAD'] if 'GET' in methods else [])}
            raise webob.exc.HTTPMethodNotAllowed(
                f'{request.method} is not possible here.',
                headers={'Allow': ', '.join(sorted(allowed))})
        return methods[method]


def _body(operation, request):
    if operation.body is None:
        return None
    if request.content_type != errors.JSON:
        raise webob.exc.HTTPUnsupportedMediaType(
            f'The body must be {errors.JSON}.')
    return validation.body(operation.body, request.body)
