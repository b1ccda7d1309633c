# SPDX-License-Identifier: Apache-2.0
"""Handlers of reservable hosts, their properties and project limits."""

import webob.exc

from nova_preempt.api import microversion
from nova_preempt.api import operation
from nova_preempt.api import pagination
from nova_preempt.api import policy
from nova_preempt.api import reservation_schemas as schemas
from nova_preempt.api import reservation_views
from nova_preempt.db import reservable_hosts


@operation.serves('GET', '/v1/properties', policy.PROPERTY_LIST,
                  schemas.PROPERTIES_ANSWER, errors=(503,), since='1.1')
def list_properties(call):
    """List the properties of hosts that a filter can name."""
    return {'properties': visible_properties(call)}


def visible_properties(call):
    """Return the properties that the caller may see, as JSON."""
    everything = call.allows(policy.PROPERTY_UPDATE)
    hidden = _hidden(call)
    found = call.services.engine.list_properties(call.context)
    return [reservation_views.property_(item, hidden) for item in found
            if everything or item['name'] not in hidden]


def _hidden(call):
    """Return the names of properties that users do not see."""
    return (reservable_hosts.get_hidden(call.services.database)
            | set(call.services.conf.reservation.hidden_properties))


@operation.serves('PATCH', '/v1/properties/{name}', policy.PROPERTY_UPDATE,
                  schemas.PROPERTY_ANSWER, body=schemas.CHANGE_PROPERTY,
                  errors=(503,), since='1.1')
def update_property(call):
    """Hide a property of hosts from users, or show it."""
    name = pagination.name(call, 'name', 'property')
    database = call.services.database
    found = {item['name']: item for item in
             call.services.engine.list_properties(call.context)}
    # A hidden property may no longer exist on any host.
    if name not in found and name not in reservable_hosts.get_hidden(database):
        raise webob.exc.HTTPNotFound(f'There is no property {name!r}.')
    if not call.body['property']['hidden'] and (
            name in call.services.conf.reservation.hidden_properties):
        raise webob.exc.HTTPConflict(
            f'The option [reservation]hidden_properties hides {name!r}; only '
            'the operator can change it.')
    reservable_hosts.set_hidden(database, name,
                                call.body['property']['hidden'])
    item = found.get(name, {'name': name, 'type': '', 'values': []})
    return {'property': reservation_views.property_(item, _hidden(call))}


@operation.serves('GET', '/v1/hosts', policy.HOST_LIST, schemas.HOSTS_ANSWER,
                  query=schemas.HOSTS_QUERY, errors=(503,), since='1.1')
def list_hosts(call):
    """List hosts and their reservations, perhaps only those of a period."""
    marker = call.query.get('marker', '')
    period = pagination.interval(call)
    if period and not microversion.has(call.request.environ, '1.10'):
        raise webob.exc.HTTPBadRequest(
            "The query parameters 'since' and 'until' need microversion 1.10.")
    hosts = [item for item in call.services.engine.list_hosts(call.context)
             if item['name'] > marker]
    view = _host_view(call, [
        item['name'] for item in hosts[:pagination.limit(call)]], **period)
    return pagination.page(call, 'hosts', hosts, view,
                           lambda item: item['name'])


@operation.serves('GET', '/v1/hosts/{name}', policy.HOST_SHOW,
                  schemas.HOST_ANSWER, errors=(503,), since='1.1')
def show_host(call):
    """Show a host and its reservations."""
    host = get_host(call)
    return {'host': _host_view(call, [host['name']])(host)}


@operation.serves('PATCH', '/v1/hosts/{name}', policy.HOST_UPDATE,
                  schemas.HOST_ANSWER, body=schemas.CHANGE_HOST, errors=(503,),
                  since='1.1')
def update_host(call):
    """Set whether a host can be reserved, and its properties."""
    reservable_hosts.set_host(call.services.database, get_host(call)['name'],
                              **call.body['host'])
    # Read again, since its properties have changed.
    return show_host(call)


def get_host(call):
    """Return the host of the engine that the path names.

    :raises HTTPNotFound:
    """
    name = pagination.name(call, 'name', 'host')
    for host in call.services.engine.list_hosts(call.context):
        if host['name'] == name:
            return host
    raise webob.exc.HTTPNotFound(
        f'There is no host {name!r} in Nova; "openstack hypervisor list" '
        'shows the names of hosts.')


def _host_view(call, names, **period):
    """Return a function from the engine's hosts to JSON.

    :param names: of the hosts that it is called with
    :param period: since and until, see db.reservations.Reservations
    """
    services = call.services
    settings = reservable_hosts.get_hosts(services.database)
    default = services.conf.reservation.reservable_default
    schedules = services.schedule.reservations.schedule_of(names, **period)
    return lambda host: reservation_views.host(
        host, settings.get(host['name']), default,
        schedules.get(host['name'], ()))


@operation.serves('GET', '/v1/reservation-limits/{project_id}',
                  policy.LIMITS_SHOW, schemas.LIMITS_ANSWER, since='1.1')
def show_reservation_limits(call):
    """Show how much a project may reserve."""
    project_id = pagination.name(call, 'project_id', 'project')
    if project_id != call.context.project_id:
        call.require(policy.LIMITS_SHOW_ALL, (project_id, ''))
    return _limits(call, project_id)


@operation.serves('PUT', '/v1/reservation-limits/{project_id}',
                  policy.LIMITS_UPDATE, schemas.LIMITS_ANSWER,
                  body=schemas.SET_LIMITS, since='1.1')
def set_reservation_limits(call):
    """Set limits of a project in place of the options."""
    project_id = _limited(call)
    reservable_hosts.set_limits(call.services.database, project_id,
                                call.body['reservation_limits'])
    return _limits(call, project_id)


@operation.serves('DELETE', '/v1/reservation-limits/{project_id}',
                  policy.LIMITS_UPDATE, since='1.1')
def delete_reservation_limits(call):
    """Unset the limits of a project."""
    reservable_hosts.set_limits(call.services.database, _limited(call), {})


def _limited(call):
    """Return the project of the path if its limits may be changed."""
    project_id = pagination.name(call, 'project_id', 'project')
    call.require(policy.LIMITS_UPDATE, (project_id, ''))
    return project_id


def _limits(call, project_id):
    own = reservable_hosts.get_limits(call.services.database, project_id)
    limits = {name: own.get(name, call.services.conf.reservation[name])
              for name in schemas.LIMITS}
    return {'reservation_limits': {
        'project_id': project_id, 'limits': limits, 'own': own}}
