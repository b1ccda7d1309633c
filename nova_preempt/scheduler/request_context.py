# SPDX-License-Identifier: Apache-2.0
"""Context of the request that a thread schedules, for the hooks into Nova."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import contextvars
import copy
import dataclasses
import typing

from nova_preempt.cloud import request_specs
from nova_preempt.core.scheduling import cloud_view
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.handover import eviction_policy

if typing.TYPE_CHECKING:
    from nova_preempt import headroom
    from nova_preempt.scheduler import multi_create_claim
    from nova_preempt.scheduler import request_deadline


@dataclasses.dataclass(frozen=True)
class RequestContext:
    """A request for servers. By default one that preemption is no part of.

    :ivar context, spec_obj: of Nova
    :ivar server_uuids: the servers that it is for
    :ivar rank: see nova_preempt.core.scheduling.preemption_policy
    :ivar deadline: until when it must be answered
    :ivar cycle: of a request that may preempt, while it is scheduled
    :ivar headroom: what a preemptible request leaves free, None if nothing
    :ivar project_id: the project that it claims for, '' for the server's
    :ivar chosen: what carries out which hosts were chosen for it, None if
        none were
    :ivar get_operation: returns the operation, which it looks up once; without
        it that of a request that only asks how it would be
    """

    context: object = None
    spec_obj: object = None
    server_uuids: tuple[str, ...] = ()
    rank: preemption_policy.PreemptionRight = preemption_policy.NORMAL
    deadline: request_deadline.Deadline | None = None
    cycle: cycle.SchedulingCycle | None = None
    headroom: headroom.Headroom | None = None
    project_id: str = ''
    chosen: multi_create_claim.MultiCreateClaim | None = None
    get_operation: Callable[[], str] = lambda: 'create'

    @property
    def operation(self):
        return self.get_operation()

    def copy(self):
        """Return a copy of this with a copy of Nova's request.

        Nova changes the one that it works on.
        """
        return dataclasses.replace(self, spec_obj=copy.deepcopy(self.spec_obj))

    def may_preempt(self, options):
        """Return whether the operator allows the request to preempt.

        :param options: [preemption] of the configuration
        """
        return not eviction_policy.why_not_allowed(options, self.get_operation)


_CURRENT = contextvars.ContextVar(
    'nova_preempt_request',
    default=RequestContext())  # noqa: B039 (nobody can change it)


def current():
    """The RequestContext of this thread."""
    return _CURRENT.get()


@contextlib.contextmanager
def working_on(context):
    """Within, this thread works on the request of this RequestContext."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def _claimed_rank(preemption, asked):
    """The rank of a preemptible request, with a claim where it may preempt."""
    promised = preemption.known.promised
    if promised is None or not asked.may_preempt(preemption.process.options):
        return preemption_policy.PREEMPTIBLE
    return request_specs.rank(asked.spec_obj, asked.server_uuids[0], promised,
                              asked.get_operation)


def read_headroom(preemption):
    """Refresh the headroom, which preemptible servers must leave free."""
    known = preemption.known
    if known.headroom:
        # It tells where space was freed, which Placement does not.
        known.servers.refresh(cloud_view.MAX_AGE_S)
    known.headroom.refresh(cloud_view.MAX_AGE_S)


def with_terms(preemption, asked, project_id=''):
    """Return a RequestContext with the terms on which it is placed.

    Whoever only asks how it would be asks here, too. For a preemptible one
    read_headroom() comes before.

    :param preemption: a scheduler_context.SchedulerContext
    :param asked: the RequestContext as it came
    :param project_id: the project that preemptible ones claim for, '' for
        the server's own
    """
    if not request_specs.is_preemptible(asked.spec_obj):
        return asked
    return dataclasses.replace(
        asked, rank=_claimed_rank(preemption, asked),
        headroom=preemption.known.headroom or None, project_id=project_id)


class ReportClientProxy:
    """Proxy of Nova's SchedulerReportClient that applies the current request.

    It overrides the calls for allocation candidates and for claims, so that
    none of Nova's scheduling has to change. All other attributes are those
    of Nova's client.

    :param client: Nova's SchedulerReportClient
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
        this = current()
        if offered is not None and this.chosen is not None:
            offered = this.chosen.offer(offered, ask, resources,
                                        self._find_providers)
        if this.cycle is None:
            return offered
        return this.cycle.offer(resources, offered)

    def claim_resources(self, context, consumer_uuid, alloc_request,
                        project_id, user_id, *args, **kwargs):
        request = current()

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
