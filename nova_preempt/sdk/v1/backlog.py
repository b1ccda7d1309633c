# SPDX-License-Identifier: Apache-2.0

"""Resources of waiting requests, their statistics and classes."""

from keystoneauth1 import adapter
from openstack import exceptions
from openstack import resource

from nova_preempt.sdk.v1 import _base


class BacklogRequest(_base.Resource):
    """A request for servers that waits for capacity."""

    resource_key = 'request'
    resources_key = 'requests'
    base_path = '/requests'
    _least_microversion = '1.3'
    _max_microversion = '1.5'

    allow_create = True
    allow_fetch = True
    allow_list = True
    allow_commit = True
    allow_delete = True

    _query_mapping = resource.QueryParameters(
        'status', 'user_id', 'project_id', 'all_projects')

    #: Body of Nova's POST /servers, and the microversion of Nova for it.
    body = resource.Body('body', type=dict)
    compute_version = resource.Body('compute_version')
    #: Ids in a request, dicts in an answer.
    flavors = resource.Body('flavors', type=list)
    #: Name of a ladder of flavors, in place of flavors and counts.
    ladder = resource.Body('ladder')
    count = resource.Body('count')
    least_count = resource.Body('least_count')
    #: These and the counts can be changed while the request is open.
    name = resource.Body('name')
    class_name = resource.Body('class')
    priorities = resource.Body('priorities', type=dict)
    not_before = resource.Body('not_before')
    not_after = resource.Body('not_after')
    longest_wait_s = resource.Body('longest_wait_s')
    comes_back = resource.Body('comes_back')
    back_until = resource.Body('back_until')
    most_returns = resource.Body('most_returns')
    #: The service sets these and the following.
    project_id = resource.Body('project_id')
    user_id = resource.Body('user_id')
    #: waiting, placing, active, partly_active, evicted, done, failed,
    #: cancelled or expired, and the reason.
    status = resource.Body('status')
    reason = resource.Body('reason')
    created_at = resource.Body('created_at')
    updated_at = resource.Body('updated_at')
    returns = resource.Body('returns')
    #: While it waits: the time since when, the reason as a dict, the position
    #: in the queue, and the estimated rest of the wait, None if unknown.
    waits_since = resource.Body('waits_since')
    waits_for = resource.Body('waits_for', type=dict)
    position = resource.Body('position')
    estimate_s = resource.Body('estimate_s')
    #: A dict for each server.
    servers = resource.Body('servers', type=list)
    #: A dict for each change, the oldest first; not in lists.
    history = resource.Body('history', type=list)
    #: Run, wait and start times as a dict, and the availability that its class
    #: promises; from microversion 1.5, and not in lists.
    availability = resource.Body('availability', type=dict)
    promised_availability = resource.Body('promised_availability')

    def cancel(self, session: adapter.Adapter, servers: bool = False) -> None:
        """Cancel the request.

        :param servers: whether its servers are deleted, too
        """
        request = self._prepare_request()
        exceptions.raise_from_response(session.delete(
            request.url, params={'servers': 'true'} if servers else {},
            microversion=self._get_microversion(session)))


class BacklogStatistics(_base.SingletonResource):
    """Numbers of requests, and statistics of their waits."""

    resource_key = 'requests_statistics'
    base_path = '/requests-statistics'
    _max_microversion = '1.3'

    _query_mapping = resource.QueryParameters(
        'hours', include_pagination_defaults=False)

    hours = resource.Body('hours')
    since = resource.Body('since')
    #: Statistics of all requests as a dict, and a dict for each class.
    total = resource.Body('total', type=dict)
    classes = resource.Body('classes', type=list)


class BacklogReport(_base.SingletonResource):
    """Run times of requests over time, by class."""

    resource_key = 'requests_report'
    base_path = '/requests-report'
    _max_microversion = '1.3'

    _query_mapping = resource.QueryParameters(
        'since', 'until', include_pagination_defaults=False)

    since = resource.Body('since')
    until = resource.Body('until')
    #: A dict for each class, with a "series" of points.
    classes = resource.Body('classes', type=list)


class BacklogPlan(_base.SingletonResource):
    """The plan of the next pass over waiting requests."""

    resource_key = 'backlog_plan'
    base_path = '/backlog-plan'
    _max_microversion = '1.6'

    at = resource.Body('at')
    #: off, greedy or exact; off starts requests one by one.
    mode = resource.Body('mode')
    #: The reason that no request is started, '' if requests are started.
    stopped = resource.Body('stopped')
    requests_waiting = resource.Body('requests_waiting')
    #: A dict for each request, with "hosts", [] if Nova chooses them, and from
    #: microversion 1.6 "reason", why Nova chooses them.
    starts = resource.Body('starts', type=list)
    #: A dict for each host, by name, with its use before and after the starts.
    hosts = resource.Body('hosts', type=list)


class BacklogClass(_base.Resource):
    """A class of service, with its promise."""

    resources_key = 'classes'
    base_path = '/classes'
    _max_microversion = '1.5'

    allow_list = True

    name = resource.Body('name', alternate_id=True)
    #: 1 is the most important.
    importance = resource.Body('importance')
    #: The share of time that its servers are promised to run.
    availability = resource.Body('availability')
    safety_margin_s = resource.Body('safety_margin_s')
    overhead_limit = resource.Body('overhead_limit')
    least_run_s = resource.Body('least_run_s')
    #: Whether any user may ask for it.
    open = resource.Body('open')
