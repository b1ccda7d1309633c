# SPDX-License-Identifier: Apache-2.0
"""Resources of reservations, hosts, properties and limits."""

from typing import Any, Self

from keystoneauth1 import adapter
from openstack import resource

from nova_preempt.sdk.v1 import _base


class Reservation(_base.Resource):
    """A reservation of hosts for a project and a period."""

    resource_key = 'reservation'
    resources_key = 'reservations'
    base_path = '/reservations'

    allow_create = True
    allow_fetch = True
    allow_list = True
    allow_commit = True
    allow_delete = True

    _query_mapping = resource.QueryParameters(
        'status', 'name', 'since', 'until', 'host', 'project_id',
        'all_projects')

    #: The request: a filter of hosts as a list, the number of hosts, the
    #: duration in seconds, the earliest start and the latest end.
    host_properties = resource.Body('host_properties')
    quantity = resource.Body('quantity')
    duration = resource.Body('duration')
    start_time = resource.Body('start_time')
    end_time = resource.Body('end_time')
    #: These can be changed.
    name = resource.Body('name')
    end_action = resource.Body('end_action')
    before_end_s = resource.Body('before_end_s')
    end_at = resource.Body('end_at')
    #: The service sets these and the following.
    start_at = resource.Body('start_at')
    project_id = resource.Body('project_id')
    user_id = resource.Body('user_id')
    #: pending, active, degraded, ended, cancelled or error.
    status = resource.Body('status')
    #: The reason that it is degraded or in error.
    reason = resource.Body('reason')
    created_at = resource.Body('created_at')
    updated_at = resource.Body('updated_at')
    #: The time when all hosts were free of other servers, and the time when
    #: the servers of the ended reservation were gone.
    ready_at = resource.Body('ready_at')
    released_at = resource.Body('released_at')
    #: A dict for each host.
    hosts = resource.Body('hosts', type=list)


class Preview(_base.Resource):
    """The times and hosts that a reservation would get."""

    resource_key = 'preview'
    base_path = '/reservations/preview'

    possible = resource.Body('possible', type=bool)
    start_at = resource.Body('start_at')
    end_at = resource.Body('end_at')
    #: Names of hosts.
    hosts = resource.Body('hosts', type=list)

    def ask(self, session: adapter.Adapter, **values: Any) -> Self:
        """Get the times and hosts that a reservation would get.

        :param values: of the request, see Reservation
        """
        return self._ask(session, self.base_path, {'reservation': values})


class Host(_base.Resource):
    """A compute host with its reservations."""

    resource_key = 'host'
    resources_key = 'hosts'
    base_path = '/hosts'
    _max_microversion = '1.10'
    _least_microversion = '1.1'

    _query_mapping = resource.QueryParameters('since', 'until')

    allow_fetch = True
    allow_list = True
    allow_commit = True

    name = resource.Body('name', alternate_id=True)
    service_host = resource.Body('service_host')
    state = resource.Body('state')
    status = resource.Body('status')
    reservable = resource.Body('reservable')
    #: Whether no servers but preemptible ones run on the host.
    vacant = resource.Body('vacant')
    running_servers = resource.Body('running_servers')
    flops_per_watt = resource.Body('flops_per_watt')
    #: All properties as a dict, and those that an administrator has set.
    properties = resource.Body('properties')
    extra = resource.Body('extra')
    #: A dict for each open reservation.
    reservations = resource.Body('reservations', type=list)


class Property(_base.Resource):
    """A property of hosts that filters can name."""

    resource_key = 'property'
    resources_key = 'properties'
    base_path = '/properties'

    allow_list = True
    allow_commit = True

    _query_mapping = resource.QueryParameters(
        include_pagination_defaults=False)

    name = resource.Body('name', alternate_id=True)
    #: number, text, boolean or list.
    type = resource.Body('type')
    #: Examples of values. Not "values", a method of resources.
    known_values = resource.Body('values')
    #: Whether only administrators can read and request it.
    hidden = resource.Body('hidden')


class ReservationLimits(_base.Resource):
    """Limits of the reservations of a project."""

    resource_key = 'reservation_limits'
    base_path = '/reservation-limits'

    allow_fetch = True
    allow_commit = True
    allow_delete = True
    commit_method = 'PUT'

    project_id = resource.Body('project_id', alternate_id=True)
    #: The limits in force, and the own limits of the project, as dicts.
    limits = resource.Body('limits', type=dict)
    own = resource.Body('own', type=dict)
