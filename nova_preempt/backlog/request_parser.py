# SPDX-License-Identifier: Apache-2.0

"""Requests as users ask for them, and complaints about their fields."""

import contextlib
import copy
import dataclasses

from nova_preempt import exceptions
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_rules

# Of Nova's body, what is ours to say: with each call it is something else.
_OURS = ('flavorRef', 'min_count', 'max_count', 'return_reservation_id')


@dataclasses.dataclass(frozen=True)
class ParsedRequest:
    """The content of a user's call that creates or changes a request.

    :ivar body: as Nova takes it
    :ivar flavors: ids, None for the one in the body
    :ivar ladder: the name of flavors of which one is chosen when its turn
        comes, '' for none
    :ivar wishes: others by the names of backlog_model.Request
    """

    body: dict
    compute_version: str
    count: int | None = None
    least_count: int | None = None
    flavors: tuple[str, ...] | None = None
    ladder: str = ''
    wishes: dict = dataclasses.field(default_factory=dict)


def without_flavor_and_counts(body):
    """A copy of Nova's body without flavor and counts."""
    found = {'server': {
        name: copy.deepcopy(value) for name, value in body['server'].items()
        if name not in _OURS}}
    found.update({name: copy.deepcopy(body[name]) for name in body
                  if name != 'server'})
    return found


def require_open(request):
    """Refuse to change a request that is over."""
    if request.state not in backlog_model.OPEN:
        raise exceptions.WrongState(
            f'Request {request.uuid} is {request.state}.')


def require_unstarted(request, what):
    """Refuse to change this of a request once Nova was asked for servers."""
    if request.boots:
        raise exceptions.WrongState(
            f'Servers of request {request.uuid} were started: {what} cannot '
            'be changed any more.')


def counts(request, values, max_count):
    """The changes to a request with both counts, where one is among them."""
    require_unstarted(request, 'how many it asks for')
    count = values.get('count', request.count)
    # Who wanted all or nothing wants that of another number, too.
    least = values.get('least_count', count if (
        request.least_count == request.count) else request.least_count)
    found = request_rules.counts(count, least, {}, max_count)
    request_rules.check_server(request.body['server'], found.most)
    return {**values, 'count': found.most, 'least_count': found.least}


def name(server):
    """A server's name, without what MySQL's utf8 has no place for."""
    return ''.join(char for char in server.get('name', '') if char <= '\uffff')


@contextlib.contextmanager
def naming_fields():
    """Let complaints name fields as those about the schema do."""
    try:
        yield
    except request_rules.Refused as exc:
        field = f'request.{exc.field}'
        raise exceptions.InvalidRequest(
            f'Invalid field {field!r}: {exc.text}.', field) from None
