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
"""What each operation does.

A handler takes a router.Call and returns what is sent as JSON, None if that is
nothing, or raises an error of webob.exc.
"""

import webob.exc

from nova_preempt import exceptions
from nova_preempt.api import microversion
from nova_preempt.api import pages
from nova_preempt.api import policy
from nova_preempt.api import validation
from nova_preempt.api import views
from nova_preempt.db import decisions
from nova_preempt.db import queries


def versions(call):
    return {'versions': [_version(call)]}


def version(call):
    return {'version': _version(call)}


def _version(call):
    # Some proxies say that we are mounted at a path with a slash at its end.
    url = call.request.application_url.rstrip('/')
    return {
        'id': 'v1.0',
        'status': 'CURRENT',
        'min_version': microversion.VERSIONS[0],
        'max_version': microversion.VERSIONS[-1],
        'links': [{'rel': 'self', 'href': f'{url}/v1/'}],
    }


def list_preemptions(call):
    """A page of preemptions, newest first."""
    call.require(policy.LIST)
    query = dict(call.query)
    project_id = query.get('project_id')
    # That of one project is asked for that one.
    owner = project_id and (project_id, '')
    sees_all = call.allows(policy.ALL_PROJECTS, owner)
    if (query.keys() & {'host', 'project_id'} or query.get('all_projects') or
            query.get('status') == 'refused'):
        call.require(policy.ALL_PROJECTS, owner)
    if project_id is None and not query.get('all_projects'):
        project_id = call.context.project_id
    viewer = None if sees_all else project_id
    found = queries.get_preemptions(
        call.services.database, project_id=project_id,
        server_uuid=query.get('server_id'),
        victim_uuid=query.get('victim_id'), flavor=query.get('flavor'),
        host=query.get('host'), status=query.get('status'),
        marker=_marker(call, viewer), limit=pages.limit(call) + 1,
        **pages.interval(call))
    return pages.page(call, 'preemptions', found,
                      lambda item: views.preemption(item, viewer),
                      lambda item: item.uuid)


def _marker(call, viewer):
    uuid = call.query.get('marker')
    if uuid is None:
        return None
    marker = queries.get_preemption(call.services.database, uuid, viewer)
    if marker is None:
        raise webob.exc.HTTPBadRequest(
            f"Invalid query parameter 'marker': there is no {uuid}.")
    return marker


def show_preemption(call):
    """One preemption with its record; 404 if it is not the project's."""
    call.require(policy.SHOW)
    uuid = call.path['preemption_id']
    found = validation.is_uuid(uuid) and queries.get_preemption(
        call.services.database, uuid)
    sees_all = found and call.sees_all(
        policy.SHOW, policy.ALL_PROJECTS, _sides(found))
    if not found or sees_all is None or (
            found.status == decisions.REFUSED and not sees_all):
        raise webob.exc.HTTPNotFound('There is no such preemption.')
    return {'preemption': views.preemption(
        found, None if sees_all else call.context.project_id, record=True)}


def _sides(item):
    """[(project id, user id)] of the servers of a preemption."""
    placed = [(item.project_id, item.user_id)] if item.project_id else []
    return placed + [(victim.project_id, victim.user_id)
                     for victim in item.victims] or [('', '')]


def explain(call):
    """Who would end for a new server."""
    call.require(policy.EXPLAIN)
    wanted = call.body['explain']
    if 'host' in wanted:
        call.require(policy.EXPLAIN_DETAILS)
    try:
        answer = call.services.scheduler.explain(
            call.context, wanted['flavor'], call.context.project_id,
            call.context.user_id,
            availability_zone=wanted.get('availability_zone'),
            host=wanted.get('host'),
            is_bounded=not call.allows(policy.EXPLAIN_DETAILS))
    except exceptions.FlavorNotFound:
        raise webob.exc.HTTPBadRequest(
            "Invalid field 'explain.flavor': there is no such flavor."
        ) from None
    return {'explain': views.explanation(
        answer, call.viewer(policy.EXPLAIN_DETAILS))}


def simulate(call):
    """End a preemptible server as a preemption would."""
    call.require(policy.SIMULATE)
    wanted = call.body['simulate']
    try:
        uuid = call.services.engine.simulate(
            call.context, wanted['server_id'],
            call.viewer(policy.SIMULATE_ALL_PROJECTS),
            wanted.get('reason', ''))
    except exceptions.ServerNotFound:
        raise webob.exc.HTTPNotFound('There is no such server.') from None
    except exceptions.NotPreemptible:
        raise webob.exc.HTTPConflict(
            'The server is not preemptible.') from None
    except exceptions.AlreadyEnding:
        raise webob.exc.HTTPConflict(
            'The server is already ending.') from None
    except exceptions.Paused:
        raise webob.exc.HTTPConflict(
            'The operator has paused preemption.') from None
    return {'preemption': {'id': uuid}}


def placement_chances(call):
    """How many servers would find room now."""
    call.require(policy.CHANCES)
    try:
        answer = call.services.scheduler.placement_chances(
            call.context, call.query['flavor'], call.context.project_id,
            availability_zone=call.query.get('availability_zone'),
            is_bounded=not call.allows(policy.EXPLAIN_DETAILS))
    except exceptions.FlavorNotFound:
        raise webob.exc.HTTPBadRequest(
            "Invalid query parameter 'flavor': there is no such flavor."
        ) from None
    names = ('flavor', 'availability_zone', 'preemptible', 'normal')
    return {'placement_chances': [
        {name: item[name] for name in names} for item in answer]}


def statistics(call):
    """Numbers of preemptions by flavor of the victims."""
    call.require(policy.STATISTICS)
    interval = pages.interval(call)
    flavors, total = queries.get_statistics(
        call.services.database,
        project_id=call.viewer(policy.ALL_PROJECTS), **interval)
    return {'statistics': {
        'since': views.time(interval.get('since')),
        'until': views.time(interval.get('until')),
        'total': views.numbers(total),
        'flavors': [{'flavor': item.flavor, **views.numbers(item)}
                    for item in flavors],
    }}
