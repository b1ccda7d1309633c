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

"""What a scheduler is asked for."""

from collections.abc import Callable
import dataclasses
import time

from nova_preempt.cloud import request
from nova_preempt.core.scheduling import policy
from nova_preempt.handover import eviction_policy
from nova_preempt.scheduler import request_context


@dataclasses.dataclass
class Asked:
    """A request for servers, some others of which may end for it.

    :ivar context, spec_obj: of Nova
    :ivar server_uuids: the servers that it is for
    :ivar excluded: uuids of servers that must not be victims
    :ivar rank: see nova_preempt.core.scheduling.policy
    :ivar since: the monotonic time when it was
    :ivar get_operation: returns which one it is; without it that of one who
        only asks how it would be
    """

    context: object
    spec_obj: object
    server_uuids: list
    excluded: frozenset = frozenset()
    rank: policy.Rank = policy.NORMAL
    since: float = dataclasses.field(default_factory=time.monotonic)
    get_operation: Callable[[], str] = lambda: 'create'

    @property
    def operation(self):
        return self.get_operation()


def may_preempt(options):
    """Whether the operator lets the current request end servers.

    :param options: [preemption] of the configuration
    """
    return not eviction_policy.why_not_allowed(
        options, request_context.current().get_operation)


def _claimed_rank(preemption, spec_obj, server_uuids):
    """The rank of a preemptible request, with a claim where it may preempt."""
    promised = preemption.known.promised
    if promised is None or not may_preempt(preemption.process.options):
        return policy.PREEMPTIBLE
    return request.rank(spec_obj, server_uuids[0], promised,
                        request_context.current().get_operation)


def read_headroom(preemption):
    """Know what has to stay free of preemptible servers."""
    max_age_s = preemption.process.options.max_age_s
    known = preemption.known
    if known.headroom:
        # It tells where space was freed, which Placement does not.
        known.servers.refresh(max_age_s)
    known.headroom.refresh(max_age_s)


def terms(preemption, spec_obj, server_uuids, project_id=''):
    """On which terms a request is placed: (its Rank, its RequestContext).

    Whoever only asks how it would be asks here, too. For a preemptible one
    read_headroom() comes before.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param project_id: the project that preemptible ones claim for, '' for
        the server's own
    """
    if not request.is_preemptible(spec_obj):
        return policy.NORMAL, request_context.current()
    return (_claimed_rank(preemption, spec_obj, server_uuids),
            request_context.current_with(
                headroom=preemption.known.headroom or None,
                project_id=project_id))
