# SPDX-License-Identifier: Apache-2.0
"""Handlers of preemptions, explanations, simulations and statistics.

A handler takes a router.ApiCall and returns the JSON of the response, None for
an empty response, or raises an error of webob.exc.
"""

import contextlib

import webob.exc

from nova_preempt import exceptions
from nova_preempt.api import microversion
from nova_preempt.api import operation
from nova_preempt.api import pagination
from nova_preempt.api import policy
from nova_preempt.api import request_validation
from nova_preempt.api import schemas
from nova_preempt.api import views
from nova_preempt.db import decisions
from nova_preempt.db import preemption_queries


@operation.serves('GET', '/', None, schemas.VERSIONS_ANSWER)
def versions(call):
    """List versions."""
    return {'versions': [_version(call)]}


@operation.serves('GET', '/v1', None, schemas.VERSION_ANSWER)
def version(call):
    """Show the version."""
    return {'version': _version(call)}


def _version(call):
    # Some proxies mount the application at a path that ends with a slash.
    url = call.request.application_url.rstrip('/')
    return {
        'id': 'v1.0',
        'status': 'CURRENT',
        'min_version': microversion.VERSIONS[0],
        'max_version': microversion.VERSIONS[-1],
        'links': [{'rel': 'self', 'href': f'{url}/v1/'}],
    }


@operation.serves('GET', '/v1/preemptions', policy.LIST,
                  schemas.PREEMPTIONS_ANSWER, query=schemas.LIST_QUERY)
def list_preemptions(call):
    """List preemptions, newest first."""
    query = call.query
    project_id = pagination.listed_project(
        call, policy.ALL_PROJECTS, 'host',
        *(['status'] if query.get('status') == 'refused' else []))
    owner = query.get('project_id') and (query['project_id'], '')
    viewer = (None if call.allows(policy.ALL_PROJECTS, owner) else project_id)
    found = preemption_queries.get_preemptions(
        call.services.database, project_id=project_id,
        server_uuid=query.get('server_id'),
        victim_uuid=query.get('victim_id'), flavor=query.get('flavor'),
        host=query.get('host'), status=query.get('status'),
        marker=_marker(call, viewer), limit=pagination.limit(call) + 1,
        **pagination.interval(call))
    return pagination.page(call, 'preemptions', found,
                           lambda item: views.preemption(item, viewer),
                           lambda item: item.uuid)


def _marker(call, viewer):
    uuid = call.query.get('marker')
    if uuid is None:
        return None
    marker = preemption_queries.get_preemption(call.services.database, uuid,
                                               viewer)
    if marker is None:
        raise pagination.unknown_marker('preemption', uuid)
    return marker


@operation.serves('GET', '/v1/preemptions/{preemption_id}', policy.SHOW,
                  schemas.PREEMPTION_ANSWER, errors=(404,))
def show_preemption(call):
    """Show a preemption with its decision record."""
    uuid = call.path['preemption_id']
    found = (request_validation.is_uuid(uuid)
             and preemption_queries.get_preemption(call.services.database,
                                                   uuid))
    sees_all = found and call.sees_all(policy.ALL_PROJECTS, _sides(found))
    if not found or sees_all is None or (
            found.status == decisions.REFUSED and not sees_all):
        raise webob.exc.HTTPNotFound(f'There is no preemption {uuid!r:.80}.')
    return {'preemption': views.preemption(
        found, None if sees_all else call.context.project_id, record=True)}


def _sides(item):
    """Return [(project id, user id)] of the servers of a preemption."""
    placed = [(item.project_id, item.user_id)] if item.project_id else []
    return placed + [(victim.project_id, victim.user_id)
                     for victim in item.victims] or [('', '')]


@operation.serves('POST', '/v1/explain', policy.EXPLAIN,
                  schemas.EXPLAIN_ANSWER, body=schemas.EXPLAIN,
                  errors=(429, 503), read_only=True)
def explain(call):
    """Show which servers a new one would evict; none is evicted."""
    wanted = call.body['explain']
    if 'host' in wanted:
        call.require(policy.EXPLAIN_DETAILS)
    with _naming("field 'explain.flavor'"):
        answer = call.services.scheduler.explain(
            call.context, wanted['flavor'], call.context.project_id,
            call.context.user_id,
            availability_zone=wanted.get('availability_zone'),
            host=wanted.get('host'),
            is_bounded=not call.allows(policy.EXPLAIN_DETAILS))
    return {'explain': views.explanation(
        answer, call.viewer(policy.EXPLAIN_DETAILS))}


@contextlib.contextmanager
def _naming(field):
    """Name the field of an invalid flavor."""
    try:
        yield
    except exceptions.FlavorNotFound as exc:
        raise webob.exc.HTTPBadRequest(
            f'Invalid {field}: {exc.args[0]}') from None


@operation.serves('POST', '/v1/simulate', policy.SIMULATE,
                  schemas.SIMULATE_ANSWER, body=schemas.SIMULATE, success=202,
                  errors=(404, 409, 503))
def simulate(call):
    """Evict a preemptible server as a preemption would."""
    wanted = call.body['simulate']
    return {'preemption': {'id': call.services.engine.simulate(
        call.context, wanted['server_id'],
        call.viewer(policy.SIMULATE_ALL_PROJECTS), wanted.get('reason', ''))}}


@operation.serves('GET', '/v1/placement-chances', policy.CHANCES,
                  schemas.CHANCES_ANSWER, query=schemas.CHANCES_QUERY,
                  errors=(429, 503))
def placement_chances(call):
    """Show how many servers of flavors would find space now."""
    with _naming("query parameter 'flavor'"):
        answer = call.services.scheduler.placement_chances(
            call.context, call.query['flavor'], call.context.project_id,
            availability_zone=call.query.get('availability_zone'),
            is_bounded=not call.allows(policy.EXPLAIN_DETAILS))
    return {'placement_chances': chances(answer)}


def chances(answer):
    """Return chances that the scheduler has counted as JSON."""
    return [{name: item[name] for name in schemas.CHANCE['required']}
            for item in answer]


@operation.serves('GET', '/v1/statistics', policy.STATISTICS,
                  schemas.STATISTICS_ANSWER, query=schemas.PERIOD_QUERY)
def statistics(call):
    """Count preemptions and victims by flavor of the victims."""
    interval = pagination.interval(call)
    flavors, total = preemption_queries.get_statistics(
        call.services.database,
        project_id=call.viewer(policy.ALL_PROJECTS), **interval)
    return {'statistics': {
        'since': views.time(interval.get('since')),
        'until': views.time(interval.get('until')),
        'total': views.numbers(total),
        'flavors': [{'flavor': item.flavor, **views.numbers(item)}
                    for item in flavors],
    }}
