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
"""Nova's Placement client, as the request of this thread sees it."""

from nova_preempt.scheduler import request_context


class PlacementClient:
    """Nova's SchedulerReportClient with two calls that know of requests.

    Nova's scheduling asks its client for candidates and claims through it;
    standing in for the client in these two calls leaves all of Nova's
    scheduling as it is. Everything else goes to Nova's client.

    :param client: Nova's
    """

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def get_allocation_candidates(self, context, resources):
        offered = self._client.get_allocation_candidates(context, resources)
        cycle = request_context.current().cycle
        if cycle is None or offered is None:
            return offered
        return cycle.offer(resources, offered)

    def claim_resources(self, context, consumer_uuid, alloc_request,
                        project_id, user_id, *args, **kwargs):
        request = request_context.current()

        def real_claim():
            return self._client.claim_resources(
                context, consumer_uuid, alloc_request,
                request.project_id or project_id, user_id, *args, **kwargs)

        if request.cycle is not None:
            return request.cycle.claim(real_claim, consumer_uuid,
                                       alloc_request, project_id, user_id)
        if request.headroom is not None:
            return request.headroom.claim(alloc_request['allocations'],
                                          real_claim)
        return real_claim()
