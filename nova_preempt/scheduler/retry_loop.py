# SPDX-License-Identifier: Apache-2.0
"""Schedules requests, and retries them after lost races."""

import dataclasses
import functools

from nova import exception
import nova.conf
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import request_specs
from nova_preempt.core import poll_timing
from nova_preempt.core import refusal_texts
from nova_preempt.core.refusal_texts import Reason
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import connection
from nova_preempt.db import decisions
from nova_preempt.db import preemptible_hints
from nova_preempt.db import quota_claims
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import handover
from nova_preempt.scheduler import allocation_project_corrector
from nova_preempt.scheduler import decision_records
from nova_preempt.scheduler import preemption_quotas
from nova_preempt.scheduler import release_waiter
from nova_preempt.scheduler import request_context
from nova_preempt.scheduler import request_deadline
from nova_preempt.scheduler import scheduling_pass
from nova_preempt.scheduler import wake_on_demand

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# How often a request without a host looks for unreported free capacity.
ROOM_AGE_S = 10

# Failures that are reported to Nova's conductor as NoValidHost.
_FAILURES = (exception.NoValidHost, request_deadline.TimeIsUp,
             handover.VictimsStuck, handover.ServersNotWanted,
             decisions.LostDecision, allocation_claim.ClaimLost,
             placement_api.PlacementError,
             *connection.ERRORS, exceptions.Paused)


class RetryLoop:
    """Serves requests: quotas, hints, retries and reasons of refusals.

    :param preemption: a scheduler_context.SchedulerContext
    :param observers: called with a dict after each request, see
        make_report()
    :ivar corrector: an allocation_project_corrector.ProjectCorrector, once it
        has started
    """

    def __init__(self, preemption, observers=()):
        self._preemption = preemption
        self._observers = observers

    def start(self):
        """Set up quotas, wake-on-demand and the allocation project."""
        preemption = self._preemption
        self._wake_on_demand = wake_on_demand.WakeOnDemand(
            CONF, preemption, rpc.EngineClient(rpc.get_transport(CONF)))
        preemption_quotas.check(CONF.preemption_quota)
        self._quotas = preemption_quotas.QuotaEnforcer(
            CONF.preemption_quota, preemption_quotas.ProjectServerReader(
                preemption.clients.get_cells,
                functools.partial(preemptible_hints.get,
                                  preemption.process.db),
                preemption.known.servers.last_seen),
            quota_claims.QuotaClaims(preemption.process.db), self._over_quota)
        self.corrector = allocation_project_corrector.ProjectCorrector(
            CONF.preemption_quota.allocation_project_id,
            preemption.clients.placement, preemption.known.servers)

    def serve(self, asked, select):
        """Place the servers of a request.

        :param asked: their RequestContext
        :param select: given a RequestContext, returns Nova's selections
        :raises NoValidHost: there is no host, or the quota is exceeded
        """
        if request_specs.is_preemptible(asked.spec_obj):
            return self._place_preemptible(asked, select)
        with asked.deadline, self._quotas.admitted(asked, preemptible=False):
            return self._wake_on_demand.serve(
                asked, functools.partial(self.place, select=select)
                if asked.may_preempt(self._preemption.process.options)
                else select)

    def _place_preemptible(self, asked, select):
        """Place a preemptible request on free capacity.

        It never preempts, unless it has a class of service.
        """
        preemption = self._preemption
        request_context.read_headroom(preemption)
        database = preemption.process.db
        hinted = request_specs.is_hinted(asked.spec_obj)
        if hinted:
            # Before the server is built: without the hint it would never be
            # evicted.
            preemptible_hints.add(database, asked.server_uuids)
        try:
            with self._quotas.admitted(asked, preemptible=True):
                asked = request_context.with_terms(
                    preemption, asked,
                    CONF.preemption_quota.allocation_project_id)
                if asked.rank.claim is not None:
                    with asked.deadline:
                        return self.place(asked, select)
                selections = place_free(asked, select)
        except exception.NoValidHost as exc:
            if hinted and asked.operation == 'create':
                # The server was never placed.
                preemptible_hints.remove(database, asked.server_uuids)
            if asked.rank.claim is None:
                self._observe(asked, None, error=exc)
            raise
        self._observe(asked, None, selections)
        return selections

    def _over_quota(self, asked, reason):
        decision_records.keep_refusal(
            scheduling_pass.SchedulingPass(self._preemption, asked),
            asked.server_uuids[0], reason)

    def _observe(self, asked, cycle, selections=None, error=None):
        for observe in self._observers:
            observe(make_report(asked, cycle, selections, error))

    def place(self, asked, select):
        """Place servers on free capacity or by preemption; see serve().

        :returns: Nova's selections
        :raises NoValidHost: there is no host, even with preemption
        """
        left = preemption_policy.MAX_ATTEMPTS
        while True:
            # Without preemptible servers there is no second time to keep the
            # request for.
            again = asked.copy() if self._preemption.known.servers else asked
            cycle = scheduling_pass.SchedulingPass(self._preemption, asked)
            try:
                with cycle:
                    selections = select(
                        dataclasses.replace(asked, cycle=cycle))
            except release_waiter.CapacityReleasing as exc:
                asked.deadline.waited |= exc.decision_uuids
                self._preemption.releasing.wait(exc, asked.deadline)
                asked = again
                continue
            except _FAILURES as exc:
                left -= 1
                if poll_timing.should_retry(
                        _failure(exc), conflicts=cycle.made.conflicts,
                        outdated=self._is_outdated(cycle, exc),
                        attempts_left=left, left_s=asked.deadline.left_s()):
                    asked = again
                    continue
                error = self._refused(cycle, exc)
                if error is exc:
                    raise
                raise error from exc
            finally:
                self._preemption.handover.claims.active.difference_update(
                    cycle.made.decisions)
            self._observe(asked, cycle, selections)
            return selections

    def _is_outdated(self, cycle, exc):
        """Return whether hosts have more free capacity than was known."""
        if not isinstance(exc, exception.NoValidHost) or (
                self._why(cycle, exc) is not Reason.NO_HOST):
            return False
        try:
            return self._preemption.known.providers.find_room(
                cycle.resources, CONF.scheduler.max_placement_results,
                ROOM_AGE_S)
        except placement_api.PlacementError:
            return False

    def _refused(self, cycle, exc):
        """Record why preemption could not help, if it was tried.

        :returns: the NoValidHost for Nova's conductor; the server's owner
            reads its reason
        """
        why = self._why(cycle, exc)
        reason = (cycle.refusal or cycle.unanswered
                  or _DETAILS.get(why, str(exc)))
        is_stock = isinstance(exc, exception.NoValidHost)
        error = exc
        if why is not None:
            error = exception.NoValidHost(reason=refusal_texts.join_sentences(
                exc.kwargs.get('reason', '') if is_stock else '',
                refusal_texts.message(why, cycle.refusal)))
        elif not is_stock:
            error = exception.NoValidHost(reason=str(exc))
        self._observe(cycle.asked, cycle, error=error)
        if why is not None:
            server_uuid = cycle.asked.server_uuids[0]
            LOG.info('Preemption cannot help server %(server)s: %(reason)s',
                     {'server': server_uuid, 'reason': reason})
            decision_records.keep_refusal(cycle, server_uuid, reason)
        return error

    def _why(self, cycle, exc):
        """A refusal_texts.Reason, None if preemption was not looked at."""
        if isinstance(exc, handover.ServersNotWanted):
            return None
        if not isinstance(exc, exception.NoValidHost):
            return _KINDS.get(type(exc), _OTHER)[1]
        if cycle.refusal:
            return cycle.decision.why
        servers = self._preemption.known.servers
        if not servers and not servers.had_any:
            return None           # as Nova: nobody uses preemptible servers
        if cycle.unanswered:
            return Reason.SERVICE
        if not cycle.has_begun:
            return None
        if not servers:
            return Reason.NOBODY
        if cycle.made.conflicts:
            return (Reason.TIME if cycle.asked.deadline.is_over()
                    else Reason.RACES)
        return (Reason.BUSY if cycle.asked.deadline.is_refused
                else Reason.NO_HOST)


def place_free(asked, select):
    """Return Nova's selections for a request that never preempts.

    For the parameters see RetryLoop.serve().

    :raises NoValidHost: with the reason why it does not preempt
    """
    try:
        return select(asked)
    except exception.NoValidHost as exc:
        raise exception.NoValidHost(reason=refusal_texts.join_sentences(
            exc.kwargs.get('reason', ''),
            refusal_texts.message(Reason.FREE))) from exc


# {failure: the core's word for it, and for what the request is told}
_KINDS = {
    request_deadline.TimeIsUp: (poll_timing.AttemptFailure.OTHER, Reason.TIME),
    handover.VictimsStuck: (poll_timing.AttemptFailure.STUCK, Reason.STUCK),
    decisions.LostDecision: (poll_timing.AttemptFailure.LOST, Reason.SERVICE),
    allocation_claim.ClaimLost: (poll_timing.AttemptFailure.LOST,
                                 Reason.RACES)}
_OTHER = poll_timing.AttemptFailure.OTHER, Reason.SERVICE

# For the record; of other cases it is what the exception says.
_DETAILS = {
    Reason.NO_HOST: 'no host that passes the filters has capacity, even '
                          'without its preemptible servers',
    Reason.NOBODY: 'no host has capacity, and there is no preemptible '
                         'server',
    Reason.RACES: 'other requests claimed each chosen host first, '
                        f'{preemption_policy.MAX_ATTEMPTS} times',
    Reason.BUSY: '[preemption]max_waiting_requests requests wait already, '
                       'and no host has capacity without its preemptible '
                       'servers whose notice is 0 s',
}


def _failure(exc):
    """Return the poll_timing.AttemptFailure of an exception."""
    return (poll_timing.AttemptFailure.NO_HOST
            if isinstance(exc, exception.NoValidHost)
            else _KINDS.get(type(exc), _OTHER)[0])


def make_report(asked, cycle, selections, error):
    """Return the report on a request, for observers.

    :param asked: its RequestContext
    :param cycle: the SchedulingPass; None if the request may not preempt
    :param selections: what Nova's select_destinations returned, if it did
    :param error: the NoValidHost that it raised, if it did
    :returns: {request_id, server_uuids, preemptible, outcome, reason,
        placements: [{server_uuid, host, victims: [{server_uuid, cost_us}],
        cost_us}], considered: [{host, node, victims, cost_us}]}
    """
    claims = {} if cycle is None else {
        decision.server_uuid: decision for decision in cycle.made.claims}
    placements = []
    for server_uuid, selection in zip(asked.server_uuids, selections or (),
                                      strict=False):
        decision = claims.get(server_uuid)
        placements.append({
            'server_uuid': server_uuid, 'host': _host(selection),
            'victims': [{'server_uuid': victim.server_uuid,
                         'cost_us': victim.cost_us}
                        for victim in decision.victims] if decision else [],
            'cost_us': decision.cost_us if decision else 0,
            'decision': decision.uuid if decision else None})
    return {
        'request_id': asked.context.request_id,
        'server_uuids': list(asked.server_uuids),
        'preemptible': cycle is None,
        'outcome': 'no_valid_host' if error else 'placed',
        'reason': error.format_message() if error else '',
        'placements': placements,
        'considered': decision_records.get_considered(cycle) if cycle else [],
    }


def _host(selection):
    """Return the host of a selection in either of Nova's forms."""
    if isinstance(selection, dict):
        return selection['host']
    return selection[0].service_host
