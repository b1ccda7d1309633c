# SPDX-License-Identifier: Apache-2.0
"""Nova's Placement client, as the request of this thread sees it."""

from nova_preempt.scheduler import request_context


class PlacementClient:
    """Nova's SchedulerReportClient with two calls that know of requests.

    Nova's scheduling asks its client for candidates and claims through it;
    standing in for the client in these two calls leaves all of Nova's
    scheduling as it is. Everything else goes to Nova's client.

    :param client: Nova's
    :param find_providers: see Placement.list_providers
    """

    def __init__(self, client, find_providers=None):
        self._client = client
        self._find_providers = find_providers

    def __getattr__(self, name):
        return getattr(self._client, name)

    def get_allocation_candidates(self, context, resources):
        def ask(wanted):
            return self._client.get_allocation_candidates(context, wanted)

        offered = ask(resources)
        current = request_context.current()
        if offered is not None and current.chosen is not None:
            offered = current.chosen.offer(offered, ask, resources,
                                           self._find_providers)
        if current.cycle is None:
            return offered
        return current.cycle.offer(resources, offered)

    def claim_resources(self, context, consumer_uuid, alloc_request,
                        project_id, user_id, *args, **kwargs):
        request = request_context.current()

        def real_claim():
            return self._client.claim_resources(
                context, consumer_uuid, alloc_request,
                request.project_id or project_id, user_id, *args, **kwargs)

        def claim_room():
            if request.headroom is not None:
                # It has to be asked before each of several servers.
                return request.headroom.claim(alloc_request['allocations'],
                                              real_claim)
            if request.chosen is not None:
                return request.chosen.claim(
                    real_claim, consumer_uuid, alloc_request,
                    request.project_id or project_id, user_id)
            return real_claim()

        if request.cycle is not None:
            return request.cycle.claim(claim_room, consumer_uuid,
                                       alloc_request, project_id, user_id)
        return claim_room()
