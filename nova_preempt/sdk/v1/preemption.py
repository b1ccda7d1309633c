# SPDX-License-Identifier: Apache-2.0
"""Resources of preemptions, explanations, statistics and pauses."""

from typing import Any, Self

from keystoneauth1 import adapter
from openstack import resource

from nova_preempt.sdk.v1 import _base


class Preemption(_base.Resource):
    """A preemption: a placed server and its victims."""

    resource_key = 'preemption'
    resources_key = 'preemptions'
    base_path = '/preemptions'
    _max_microversion = '1.0'

    allow_fetch = True
    allow_list = True

    _query_mapping = resource.QueryParameters(
        'server_id', 'victim_id', 'flavor', 'status', 'since', 'until',
        'host', 'project_id', 'all_projects')

    #: ISO 8601, UTC.
    created_at = resource.Body('created_at')
    updated_at = resource.Body('updated_at')
    #: intent, claimed, rolling_back, done, rolled_back, aborted or refused.
    status = resource.Body('status')
    #: The purpose: create, resize, ..., or maximum_runtime, simulate, ...
    operation = resource.Body('operation')
    #: A dict of the placed server; None if no server was placed, or it belongs
    #: to another project.
    server = resource.Body('server', type=dict)
    #: A dict for each victim.
    victims = resource.Body('victims', type=list)
    request_id = resource.Body('request_id')
    #: For administrators.
    host = resource.Body('host')
    #: In microseconds; for administrators.
    cost_us = resource.Body('cost_us')
    #: For administrators.
    reason = resource.Body('reason')
    #: The decision record as a dict; not in lists.
    record = resource.Body('record', type=dict)

    def simulate(self, session: adapter.Adapter, **values: Any) -> Self:
        """Evict a server as a preemption would.

        :param values: server_id, and optionally reason
        """
        return self._ask(session, '/simulate', {'simulate': values})


class Explanation(_base.Resource):
    """The victims of a new server."""

    resource_key = 'explain'
    base_path = '/explain'
    _max_microversion = '1.0'

    allow_create = True

    #: free, preempts or no_valid_host.
    outcome = resource.Body('outcome')
    #: The number of victims.
    victim_count = resource.Body('victim_count')
    #: A dict for each victim of the project.
    victims = resource.Body('victims', type=list)
    #: The following are for administrators.
    host = resource.Body('host')
    cost_us = resource.Body('cost_us')
    reason = resource.Body('reason')
    considered = resource.Body('considered', type=list)


class PlacementChance(_base.Resource):
    """Number of servers of a flavor that fit into an availability zone."""

    resources_key = 'placement_chances'
    base_path = '/placement-chances'
    _max_microversion = '1.0'

    allow_list = True

    _query_mapping = resource.QueryParameters(
        'flavor', 'availability_zone', include_pagination_defaults=False)

    #: The id or name of the request.
    flavor = resource.Body('flavor')
    availability_zone = resource.Body('availability_zone')
    #: Numbers of preemptible and of normal servers that fit; None if the
    #: resources of the flavor are unknown.
    preemptible = resource.Body('preemptible')
    normal = resource.Body('normal')


class Statistics(_base.SingletonResource):
    """Numbers of preemptions by flavor."""

    resource_key = 'statistics'
    base_path = '/statistics'
    _max_microversion = '1.0'

    _query_mapping = resource.QueryParameters(
        'since', 'until', include_pagination_defaults=False)

    since = resource.Body('since')
    until = resource.Body('until')
    #: Numbers of all preemptions, as a dict.
    total = resource.Body('total', type=dict)
    #: A dict of the same numbers for each flavor.
    flavors = resource.Body('flavors', type=list)


class EvictionRate(_base.Resource):
    """How often servers of a flavor are evicted in an availability zone."""

    resources_key = 'eviction_rates'
    base_path = '/eviction-rates'
    _max_microversion = '1.8'

    allow_list = True

    _query_mapping = resource.QueryParameters(
        'flavor', 'availability_zone', include_pagination_defaults=False)

    flavor = resource.Body('flavor')
    #: None if it is unknown.
    availability_zone = resource.Body('availability_zone')
    #: The length of the period before now: 24 or 720.
    hours = resource.Body('hours')
    #: Ranges such as "5-10%" and "1-6h", of the share of the hours of servers
    #: in which they were evicted, and of the median life of those that were.
    evicted_share = resource.Body('evicted_share')
    median_life = resource.Body('median_life')
    #: The following are for administrators.
    exact_share = resource.Body('exact_share')
    median_life_s = resource.Body('median_life_s')
    evictions = resource.Body('evictions')
    server_hours = resource.Body('server_hours')


class Status(_base.SingletonResource):
    """The leading engine, pauses, waiting requests and free capacity."""

    resource_key = 'status'
    base_path = '/status'
    _max_microversion = '1.7'

    _query_mapping = resource.QueryParameters(
        'flavor', include_pagination_defaults=False)

    #: Host of the engine that acts; None if none does.
    leader = resource.Body('leader')
    #: Host of each scheduler and engine that runs.
    processes = resource.Body('processes', type=list)
    #: A dict for each pause.
    pauses = resource.Body('pauses', type=list)
    #: A dict for each flavor and zone, as PlacementChance; or why there is
    #: none.
    room = resource.Body('room', type=list)
    room_reason = resource.Body('room_reason')
    requests_waiting = resource.Body('requests_waiting')
    preemptions_open = resource.Body('preemptions_open')
    victims_today = resource.Body('victims_today')


class Pause(_base.Resource):
    """A paused subsystem."""

    resource_key = 'pause'
    resources_key = 'pauses'
    base_path = '/pauses'
    _max_microversion = '1.2'

    allow_list = True
    allow_commit = True
    allow_delete = True
    commit_method = 'PUT'

    #: preemption, reservations, power or backlog.
    what = resource.Body('what', alternate_id=True)
    since = resource.Body('since')
    reason = resource.Body('reason')
    #: The user who requested it, and the project and id of the API request.
    user_id = resource.Body('user_id')
    project_id = resource.Body('project_id')
    request_id = resource.Body('request_id')
