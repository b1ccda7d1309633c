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

import dataclasses
import functools
import time

from nova_preempt.cloud import request
from nova_preempt.conf.preemption import OPERATIONS
from nova_preempt.core.scheduling import policy


@dataclasses.dataclass
class Asked:
    """A request for servers, some others of which may end for it.

    :ivar context, spec_obj: of Nova
    :ivar server_uuids: the servers that it is for
    :ivar excluded: uuids of servers that must not be victims
    :ivar rank: see nova_preempt.core.scheduling.policy
    :ivar since: the monotonic time when it was
    """

    context: object
    spec_obj: object
    server_uuids: list
    excluded: frozenset = frozenset()
    rank: policy.Rank = policy.NORMAL
    since: float = dataclasses.field(default_factory=time.monotonic)

    @functools.cached_property
    def operation(self):
        """Which one this is; it is looked up when somebody wants to know."""
        return request.get_operation(self.context, self.spec_obj,
                                     self.server_uuids[0])


def may_preempt(options, context, spec_obj, server_uuids):
    """Whether the operator lets such a request end servers.

    :param options: [preemption] of the configuration
    """
    if not options.enabled or not options.preempting_operations:
        return False
    if set(options.preempting_operations) >= set(OPERATIONS):
        return True
    return request.get_operation(
        context, spec_obj, server_uuids[0]) in options.preempting_operations


def claimed_rank(preemption, context, spec_obj, server_uuids):
    """The rank of a preemptible request, with a claim where it may preempt.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    """
    promised = preemption.known.promised
    if promised is None or not may_preempt(
            preemption.process.options, context, spec_obj, server_uuids):
        return policy.PREEMPTIBLE
    return request.rank(
        spec_obj, server_uuids[0], promised,
        lambda: request.get_operation(context, spec_obj, server_uuids[0]))


class AskedHow(Asked):
    """One that only asks how it would be."""

    operation = 'create'
