# SPDX-License-Identifier: Apache-2.0

"""Parses requests of users, and names their fields in errors."""

import contextlib
import copy
import dataclasses

from nova_preempt import exceptions
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_checks

# Members of Nova's body that differ in each boot, and are set by Launcher.
_OURS = ('flavorRef', 'min_count', 'max_count', 'return_reservation_id')


@dataclasses.dataclass(frozen=True)
class ParsedRequest:
    """The content of a user's call that creates or changes a request.

    :ivar body: of Nova's POST /servers
    :ivar flavors: ids, None for the flavor of the body
    :ivar ladder: the name of a ladder, of which dispatch chooses a flavor; ''
        for none
    :ivar wishes: further values by their names in backlog_model.Request
    """

    body: dict
    compute_version: str
    count: int | None = None
    least_count: int | None = None
    flavors: tuple[str, ...] | None = None
    ladder: str = ''
    wishes: dict = dataclasses.field(default_factory=dict)


def without_flavor_and_counts(body):
    """Return a copy of Nova's body without flavor and counts."""
    found = {'server': {
        name: copy.deepcopy(value) for name, value in body['server'].items()
        if name not in _OURS}}
    found.update({name: copy.deepcopy(body[name]) for name in body
                  if name != 'server'})
    return found


def require_open(request):
    """Raise WrongState for a request that is closed."""
    if request.state not in backlog_model.OPEN:
        raise exceptions.WrongState(
            f'Request {request.uuid} is {request.state}.')


def require_unstarted(request, what):
    """Raise WrongState once servers of a request were booted."""
    if request.boots:
        raise exceptions.WrongState(
            f'{what} of request {request.uuid} cannot be changed after '
            'servers were started.')


def counts(request, values, max_count):
    """Return the changes with both counts, if either is changed."""
    require_unstarted(request, 'count')
    count = values.get('count', request.count)
    # NOTE: all-or-nothing stays all-or-nothing with another count.
    least = values.get('least_count', count if (
        request.least_count == request.count) else request.least_count)
    found = request_checks.counts(count, least, {}, max_count)
    request_checks.check_server(request.body['server'], found.most)
    return {**values, 'count': found.most, 'least_count': found.least}


def name(server):
    """Return a server's name without characters that MySQL's utf8 lacks."""
    return ''.join(char for char in server.get('name', '') if char <= '\uffff')


@contextlib.contextmanager
def naming_fields():
    """Name fields in errors as the schema's errors do."""
    try:
        yield
    except request_checks.InvalidRequest as exc:
        field = f'request.{exc.field}'
        raise exceptions.InvalidRequest(
            f'Invalid field {field!r}: {exc.text}.', field) from None
