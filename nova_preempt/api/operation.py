# SPDX-License-Identifier: Apache-2.0
"""Declares the method and the path that a handler serves."""

from collections.abc import Callable
import dataclasses
import re

from nova_preempt.api import schemas
from nova_preempt.db import pauses

#: {parameter of a path: its schema}; other parameters are uuids.
_PARAMETERS = {'name': schemas.TEXT, 'project_id': schemas.TEXT,
               'what': {'type': 'string', 'enum': list(pauses.ALL)}}


@dataclasses.dataclass(frozen=True)
class Operation:
    """Describes a method of a path.

    :param name: of the operation in the OpenAPI document
    :param handler: a function, see preemption_handlers
    :param rule: the policy rule it requires, None if it needs no token
    :param answer: the schema of a successful response, None without a body
    :param query: the schema of the query parameters
    :param body: the schema of the body, None if there is none
    :param errors: status codes beyond those that all operations have
    :param since: the microversion that introduced it, None for the first
    :param read_only: whether a POST changes nothing
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Callable
    rule: str | None
    answer: dict | None
    query: dict = dataclasses.field(
        default_factory=lambda: {'type': 'object', 'properties': {}})
    body: dict | None = None
    success: int = 200
    errors: tuple[int, ...] = ()
    since: str | None = None
    read_only: bool = False

    @property
    def changes(self):
        """Return whether the operation changes anything."""
        return self.method not in ('GET', 'HEAD') and not self.read_only

    @property
    def path_parameters(self):
        """Return {name: schema} of the parameters of the path."""
        return schemas.described({
            name: _PARAMETERS.get(name, schemas.UUID)
            for name in re.findall(r'{(\w+)}', self.path)}, 'path')


def serves(method, path, rule, answer=None, **more):
    """Declare which Operation a handler serves.

    The operation gets the name of the handler, and the first line of its
    docstring as summary. For the parameters see Operation.
    """
    if method == 'DELETE':
        more['success'] = 204

    def declare(handler):
        summary, _, _ = handler.__doc__.partition('\n')
        handler.operation = Operation(
            method, path, handler.__name__, summary.rstrip('.'), handler, rule,
            answer, **more)
        return handler
    return declare
