# SPDX-License-Identifier: Apache-2.0
"""Resources of reservations, hosts, properties and limits."""

from typing import Any, Self

from keystoneauth1 import adapter
from openstack import resource

from nova_preempt.sdk.v1 import _base


class Reservation(_base.Resource):
    """Hosts that are reserved for a project for some time."""

    resource_key = 'reservation'
    resources_key = 'reservations'
    base_path = '/reservations'
    _max_microversion = '1.1'

    allow_create = True
    allow_fetch = True
    allow_list = True
    allow_commit = True
    allow_delete = True

    _query_mapping = resource.QueryParameters(
        'status', 'name', 'since', 'until', 'host', 'project_id',
        all_projects={'type': _base.flag})

    #: What was asked for: a filter as a list, how many hosts, for how many
    #: seconds, not before and not after.
    host_properties = resource.Body('host_properties')
    quantity = resource.Body('quantity')
    duration = resource.Body('duration')
    start_time = resource.Body('start_time')
    end_time = resource.Body('end_time')
    #: What can be changed; the end of one that is granted, too.
    name = resource.Body('name')
    end_action = resource.Body('end_action')
    before_end_s = resource.Body('before_end_s')
    end_at = resource.Body('end_at')
    #: What became of it.
    start_at = resource.Body('start_at')
    project_id = resource.Body('project_id')
    user_id = resource.Body('user_id')
    #: pending, active, degraded, ended, cancelled or error.
    status = resource.Body('status')
    #: Why it is degraded or in error.
    reason = resource.Body('reason')
    created_at = resource.Body('created_at')
    updated_at = resource.Body('updated_at')
    #: When its hosts were empty, and its servers gone after its end.
    ready_at = resource.Body('ready_at')
    released_at = resource.Body('released_at')
    #: A dict for each host.
    hosts = resource.Body('hosts', type=list)


class Preview(_base.Resource):
    """When and where hosts could be reserved."""

    resource_key = 'preview'
    base_path = '/reservations/preview'
    _max_microversion = '1.1'

    possible = resource.Body('possible', type=bool)
    start_at = resource.Body('start_at')
    end_at = resource.Body('end_at')
    #: Names.
    hosts = resource.Body('hosts', type=list)

    def ask(self, session: adapter.Adapter, **values: Any) -> Self:
        """Ask when and where hosts could be reserved."""
        return self._ask(session, self.base_path, {'reservation': values})


class Host(_base.Resource):
    """A host with its reservations, and whether it is reservable."""

    resource_key = 'host'
    resources_key = 'hosts'
    base_path = '/hosts'
    _max_microversion = '1.1'

    allow_fetch = True
    allow_list = True
    allow_commit = True

    name = resource.Body('name', alternate_id=True)
    service_host = resource.Body('service_host')
    state = resource.Body('state')
    status = resource.Body('status')
    reservable = resource.Body('reservable')
    #: Whether nothing but preemptible servers runs there.
    vacant = resource.Body('vacant')
    running_servers = resource.Body('running_servers')
    flops_per_watt = resource.Body('flops_per_watt')
    #: What can be asked for, as a dict, and what of it was set by hand.
    properties = resource.Body('properties')
    extra = resource.Body('extra')
    #: A dict for each one that is open.
    reservations = resource.Body('reservations', type=list)


class Property(_base.Resource):
    """A property of hosts that filters can name."""

    resource_key = 'property'
    resources_key = 'properties'
    base_path = '/properties'
    _max_microversion = '1.1'

    allow_list = True
    allow_commit = True

    _query_mapping = resource.QueryParameters(
        include_pagination_defaults=False)

    name = resource.Body('name', alternate_id=True)
    #: number, text, boolean or list.
    type = resource.Body('type')
    #: Some that hosts have. A resource is a dict, which has values().
    known_values = resource.Body('values')
    #: From all but administrators.
    hidden = resource.Body('hidden')


class ReservationLimits(_base.Resource):
    """How much a project may reserve."""

    resource_key = 'reservation_limits'
    base_path = '/reservation-limits'
    _max_microversion = '1.1'

    allow_fetch = True
    allow_commit = True
    allow_delete = True
    commit_method = 'PUT'

    project_id = resource.Body('project_id', alternate_id=True)
    #: Those that hold, and those that are the project's own, as dicts.
    limits = resource.Body('limits', type=dict)
    own = resource.Body('own', type=dict)
