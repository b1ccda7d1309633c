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
"""How a preemptible request leaves the headroom free.

Hosts without space to spare are left out before Nova filters them. What is
left is looked at again where Nova claims, for other requests may have been
faster meanwhile.
"""

import contextlib
import contextvars

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_CURRENT = contextvars.ContextVar('nova_preempt_headroom', default=None)


@contextlib.contextmanager
def leaving(headroom):
    """Within, this thread's request leaves the headroom free.

    :param headroom: a nova_preempt.headroom.Headroom
    """
    token = _CURRENT.set(headroom or None)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def outside_headroom(host_states):
    """The hosts that this thread's request may take."""
    headroom = _CURRENT.get()
    if headroom is None:
        return host_states
    hosts, closed = [], []
    for state in host_states:
        (closed if headroom.is_closed(state.uuid, claimed(state))
         else hosts).append(state)
    if closed:
        LOG.info('Closed to preemptible servers, to keep headroom free: %s',
                 ', '.join(state.nodename for state in closed))
    return hosts


def claimed(host_state):
    """{class: amount} that a server of the request takes on a host."""
    for claim_request in host_state.allocation_candidates[:1]:
        item = claim_request['allocations'].get(host_state.uuid)
        if item is not None:
            return item['resources']
    return {}


def client(placement_client):
    """Nova's Placement client, as this thread's request shall see it."""
    headroom = _CURRENT.get()
    if headroom is None:
        return placement_client
    return _Client(placement_client, headroom)


class _Client:
    """Nova's SchedulerReportClient that claims only what can be spared."""

    def __init__(self, placement_client, headroom):
        self._client = placement_client
        self._headroom = headroom

    def __getattr__(self, name):
        return getattr(self._client, name)

    def claim_resources(self, context, consumer_uuid, alloc_request, *args,
                        **kwargs):
        return self._headroom.claim(
            alloc_request['allocations'],
            lambda: self._client.claim_resources(
                context, consumer_uuid, alloc_request, *args, **kwargs))
