# SPDX-License-Identifier: Apache-2.0

"""Handlers of requests for servers that wait for capacity."""

import dataclasses

import microversion_parse
import webob.exc

from nova_preempt import exceptions
from nova_preempt.api import backlog_schemas as schemas
from nova_preempt.api import microversion
from nova_preempt.api import operation
from nova_preempt.api import pagination
from nova_preempt.api import policy
from nova_preempt.api import request_validation
from nova_preempt.api import service_class_handlers
from nova_preempt.api import views
from nova_preempt.backlog import request_parser
from nova_preempt.cloud import boot_schema
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import redaction
from nova_preempt.db import backlog_store

#: The largest body of a request, the default of
#: [oslo_middleware]max_request_body_size, which may be higher.
MOST_BODY_BYTES = 114688

# Fields that backlog_model.Request names or types differently.
_NAMES = {'class': 'class_name'}
_TIMES = ('not_before', 'not_after', 'back_until')
_APART = ('body', 'compute_version', 'flavors', 'count', 'least_count',
          'ladder')
# Members of waits_for that users see. The others are about hosts.
_PLAIN = ('code', 'text')


@operation.serves('GET', '/v1/requests', policy.BACKLOG_LIST,
                  schemas.REQUESTS_ANSWER, query=schemas.LIST_QUERY,
                  since='1.3')
def list_requests(call):
    """List requests for servers, newest first."""
    project_id = pagination.listed_project(call, policy.BACKLOG_ALL_PROJECTS)
    status = call.query.get('status')
    found = backlog_store.find(
        call.services.database, states=status and [status],
        project_id=project_id, user_id=call.query.get('user_id'),
        marker=_marker(call, project_id), limit=pagination.limit(call) + 1,
        newest_first=True, with_bodies=False)
    details = call.allows(policy.BACKLOG_DETAILS)
    return pagination.page(call, 'requests', found,
                           lambda item: _listed(item, details),
                           lambda item: item.uuid)


def _marker(call, project_id):
    marker = call.query.get('marker')
    if marker is None:
        return None
    found = backlog_store.get(call.services.database, marker, project_id)
    if found is None:
        raise pagination.unknown_marker('request', marker)
    return found


@operation.serves('GET', '/v1/requests/{request_id}', policy.BACKLOG_SHOW,
                  schemas.REQUEST_ANSWER, since='1.3')
def show_request(call):
    """Show a request with its servers, and why it waits."""
    return _shown(call, _get(call))


@operation.serves('POST', '/v1/requests', policy.BACKLOG_CREATE,
                  schemas.REQUEST_ANSWER, body=schemas.CREATE, success=201,
                  errors=(503,), since='1.3')
def create_request(call):
    """Create a request for servers, which waits for space."""
    _check_size(call)
    wanted = call.body['request']
    flavors = wanted.get('flavors')
    return _shown(call, call.services.submissions.submit(
        call.context, call.request.headers.get('X-Auth-Token'),
        request_parser.ParsedRequest(
            body=wanted['body'],
            compute_version=wanted.get('compute_version') or _version(call),
            count=wanted.get('count'), least_count=wanted.get('least_count'),
            flavors=flavors and tuple(flavors),
            ladder=wanted.get('ladder', ''), wishes=_wishes(wanted)),
        call.allows(policy.BACKLOG_ANY_CLASS)))


@operation.serves('PATCH', '/v1/requests/{request_id}', policy.BACKLOG_UPDATE,
                  schemas.REQUEST_ANSWER, body=schemas.CHANGE, errors=(409,),
                  since='1.3')
def update_request(call):
    """Change a request."""
    item = _get(call)
    wanted = call.body['request']
    counts = {name: wanted[name] for name in ('count', 'least_count')
              if name in wanted}
    return _shown(call, call.services.submissions.change(
        call.context, call.request.headers.get('X-Auth-Token'), item,
        {**_wishes(wanted), **counts}, call.allows(policy.BACKLOG_ANY_CLASS)))


@operation.serves('DELETE', '/v1/requests/{request_id}', policy.BACKLOG_DELETE,
                  query=schemas.DELETE_QUERY, errors=(409,), since='1.3')
def delete_request(call):
    """Cancel a request, and delete its servers if asked to."""
    item = _get(call)
    call.services.submissions.cancel(item, call.query.get('servers', False))


def _shown(call, item):
    history = backlog_store.history(call.services.database, item.uuid)
    shown = view(item, history, call.allows(policy.BACKLOG_DETAILS))
    if microversion.has(call.request.environ, service_class_handlers.SINCE):
        shown.update(service_class_handlers.class_members(call, item, history,
                                          shown['servers']))
    return {'request': shown}


def _get(call):
    """Return the request of the path if the operation is allowed on it.

    :raises RequestNotFound: it does not exist, or must not be seen
    """
    uuid = call.path['request_id']
    found = request_validation.is_uuid(uuid) and backlog_store.get(
        call.services.database, uuid)
    if not found or call.sees_all(
            policy.BACKLOG_ALL_PROJECTS,
            [(found.project_id, found.user_id)]) is None:
        raise exceptions.RequestNotFound(f'There is no request {uuid!r:.80}.')
    return found


def _check_size(call):
    if len(call.request.body) > MOST_BODY_BYTES:
        raise webob.exc.HTTPRequestEntityTooLarge(
            f'The body has {len(call.request.body)} bytes; it must have at '
            f'most {MOST_BODY_BYTES}.')


def _version(call):
    """Return the microversion of Nova in the header, or a default."""
    try:
        found = microversion_parse.get_version(call.request.headers, 'compute')
    except TypeError:
        found = None
    return found or boot_schema.DEFAULT


def _wishes(wanted):
    """Return {field of backlog_model.Request: value} of the body."""
    found = {_NAMES.get(name, name): value for name, value in wanted.items()
             if name not in _APART}
    for name in _TIMES:
        if found.get(name) is not None:
            found[name] = request_validation.parse_time(found[name]).replace(
                microsecond=0)
    if (levels := found.get('priorities')) is not None:
        found['priorities'] = backlog_model.SlaPriorities(**levels)
    return found


def _listed(item, details=False):
    """Return a backlog_model.Request as JSON, with the fields of lists.

    :param details: whether waits_for has numbers of hosts
    """
    in_order = item.state in backlog_model.IN_ORDER
    return views.render(
        item, schemas.LISTED,
        {'id': 'uuid', 'status': 'state', 'class': 'class_name'},
        flavors=[views.render(flavor, schemas.FLAVOR, {'id': 'flavor_id'},
                             resources=dict(flavor.resources))
                 for flavor in item.alternatives],
        priorities=item.priorities and dataclasses.asdict(item.priorities),
        waits_for={name: value for name, value in item.waits_for.items()
                   if in_order and (details or name in _PLAIN)},
        position=item.position if in_order else None,
        estimate_s=item.estimate_s if in_order else None,
        servers=[views.render(server, schemas.SERVER,
                             {'id': 'uuid', 'status': 'state'})
                 for server in item.servers])


def view(item, history, details=False):
    """Return a backlog_model.Request as JSON, with all fields.

    :param history: [backlog_model.StateChange]
    """
    return {**_listed(item, details),
            'body': redaction.without_secrets(item.body),
            'history': [views.render(change, schemas.CHANGED,
                                    {'status': 'state'})
                        for change in history]}
