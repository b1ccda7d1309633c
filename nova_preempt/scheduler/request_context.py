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
"""The request that this thread works on, for the hooks into Nova."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import contextvars
import dataclasses
import time
import typing

from nova_preempt.cloud import request
from nova_preempt.core.scheduling import policy
from nova_preempt.handover import eviction_policy

if typing.TYPE_CHECKING:
    from nova_preempt import headroom
    from nova_preempt.scheduler import carrying
    from nova_preempt.scheduler import cycle


@dataclasses.dataclass(frozen=True)
class RequestContext:
    """What a request is. By default one that is none of our business.

    :ivar cycle: of a request that may preempt, while it is scheduled
    :ivar headroom: what a preemptible request leaves free, None if nothing
    :ivar project_id: the project that it claims for, '' for the server's
    :ivar chosen: what carries out which hosts were chosen for it, None if
        none were
    :ivar get_operation: returns which one it is, and looks that up once; it
        makes nothing our business
    """

    cycle: cycle.SchedulingCycle | None = None
    headroom: headroom.Headroom | None = None
    project_id: str = ''
    chosen: carrying.Carrying | None = None
    get_operation: Callable[[], str] = dataclasses.field(
        default=lambda: 'create', compare=False)


_CURRENT = contextvars.ContextVar(
    'nova_preempt_request',
    default=RequestContext())  # noqa: B039 (nobody can change it)


def current():
    """The RequestContext of this thread."""
    return _CURRENT.get()


def current_with(**known):
    """The same, with this known of it, too."""
    return dataclasses.replace(_CURRENT.get(), **known)


@contextlib.contextmanager
def working_on(context):
    """Within, this thread works on the request of this RequestContext."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@dataclasses.dataclass
class RequestInfo:
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
        options, current().get_operation)


def _claimed_rank(preemption, spec_obj, server_uuids):
    """The rank of a preemptible request, with a claim where it may preempt."""
    promised = preemption.known.promised
    if promised is None or not may_preempt(preemption.process.options):
        return policy.PREEMPTIBLE
    return request.rank(spec_obj, server_uuids[0], promised,
                        current().get_operation)


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
        return policy.NORMAL, current()
    return (_claimed_rank(preemption, spec_obj, server_uuids),
            current_with(
                headroom=preemption.known.headroom or None,
                project_id=project_id))
