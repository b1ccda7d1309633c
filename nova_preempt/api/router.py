# SPDX-License-Identifier: Apache-2.0
"""Routes requests to operations."""

import dataclasses
import json
import math
from typing import Any

import routes
import webob
import webob.dec
import webob.exc

from nova_preempt.api import audit_log
from nova_preempt.api import http_errors
from nova_preempt.api import microversion
from nova_preempt.api import request_validation


@dataclasses.dataclass(frozen=True)
class HandlerServices:
    """The configuration and services that handlers use."""

    conf: Any
    database: Any
    policy: Any
    scheduler: Any
    engine: Any
    schedule: Any
    figures: Any      # a nova_preempt.power.efficiency_cache.EfficiencyCache
    submissions: Any  # a nova_preempt.backlog.request_intake.RequestIntake
    #: What nova_preempt.handover.eviction_policy.load_classes() returned.
    classes: Any = None


@dataclasses.dataclass(frozen=True)
class ApiCall:
    """A validated request.

    :ivar rule: the policy rule of its operation
    """

    services: HandlerServices
    request: webob.Request
    path: dict
    query: dict
    body: Any = None
    rule: str | None = None

    @property
    def context(self):
        return self.request.environ['nova_preempt.context']

    def allows(self, rule, owner=None):
        return self.services.policy.allows(self.context, rule, owner)

    def require(self, rule, owner=None):
        self.services.policy.require(self.context, rule, owner)

    def sees_all(self, everywhere, owners):
        """Check the operation's rule for an object.

        :param everywhere: the rule for objects of other projects
        :param owners: [(project id, user id)] of the object, at least one
        :returns: True if all of it may be seen, False if only the side of
            the caller's project, None if its existence must not be revealed
        :raises HTTPForbidden: it may be seen, but the operation is refused
        """
        if all(self.allows(everywhere, owner) for owner in owners):
            return True
        own = [owner for owner in owners
               if owner[0] == self.context.project_id]
        if not own:
            return None
        if not any(self.allows(self.rule, owner) for owner in own):
            self.require(self.rule, own[0])
        return False

    def viewer(self, rule):
        """Return the project whose side is shown, None for all."""
        return None if self.allows(rule) else self.context.project_id


class Router:
    """A WSGI application that serves operations."""

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
        """Return (path, {parameter: value}), None for unknown paths."""
        path = environ.get('PATH_INFO') or '/'
        if path.endswith('\n'):
            # Its patterns would match what comes before.
            return None
        found = self._mapper.match(path)
        return found and (found.pop('known_as'), found)

    @webob.dec.wsgify
    def __call__(self, request):
        try:
            return self._logged(request)
        except Exception as exc:
            code = http_errors.status_of(exc)
            if code is None:
                raise
            return http_errors.response(code, http_errors.message_of(exc),
                                        http_errors.headers_of(exc))

    def _logged(self, request):
        """Respond, and log changes and refused changes."""
        found = self.match(request.environ)
        if found is None:
            raise webob.exc.HTTPNotFound('The path is unknown.')
        operation = self._operation(request, self._methods(request, found[0]))
        call = ApiCall(
            self._services, request, found[1],
            request_validation.query(operation.query, request.query_string),
            _body(operation, request), operation.rule)
        if not operation.changes:
            return self._answer(operation, call)
        try:
            answer = self._answer(operation, call)
        except Exception as exc:
            audit_log.log(call, operation, refusal=exc)
            raise
        audit_log.log(call, operation, answer.json if answer.body else None)
        return answer

    @staticmethod
    def _answer(operation, call):
        if operation.rule is not None:
            call.require(operation.rule)
        answer = operation.handler(call)
        if answer is None:
            return webob.Response(status=operation.success, content_type=None)
        return webob.Response(
            status=operation.success, content_type=http_errors.JSON,
            body=_json(answer))

    def _methods(self, request, path):
        """Return {method: operation} of a path in the request's version."""
        methods = self._paths[path]
        known = {method: operation for method, operation in methods.items()
                 if operation.since is None or
                 microversion.has(request.environ, operation.since)}
        if not known:
            since = min(operation.since for operation in methods.values())
            raise webob.exc.HTTPNotFound(
                'This resource needs the header "'
                f'{microversion.HEADER}: {microversion.SERVICE_TYPE} '
                f'{since}" or a later microversion.')
        return known

    @staticmethod
    def _operation(request, methods):
        method = 'GET' if request.method == 'HEAD' else request.method
        if method not in methods:
            allowed = {*methods, *(['HEAD'] if 'GET' in methods else [])}
            raise webob.exc.HTTPMethodNotAllowed(
                f'The method {request.method} is not allowed; allowed are '
                f'{", ".join(sorted(allowed))}.',
                headers={'Allow': ', '.join(sorted(allowed))})
        return methods[method]


def _body(operation, request):
    if operation.body is None:
        return None
    if request.content_type != http_errors.JSON:
        raise webob.exc.HTTPUnsupportedMediaType(
            f'The Content-Type of the body must be {http_errors.JSON}.')
    try:
        raw = request.body
    except OSError:
        # The client disconnected, or announced a longer body.
        raise webob.exc.HTTPBadRequest(
            'The body is shorter than its Content-Length.') from None
    return request_validation.body(operation.body, raw)


def _json(answer):
    try:
        return json.dumps(answer, allow_nan=False).encode()
    except ValueError:
        # JSON has neither infinity nor NaN.
        return json.dumps(_finite(answer), allow_nan=False).encode()


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
