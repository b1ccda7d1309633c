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
"""A request for a normal server: scheduled anew while races are lost."""

import copy

from nova import exception
import nova.conf
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.cloud import placement as placement_api
from nova_preempt.cloud import request
from nova_preempt.core import refusals
from nova_preempt.core import retrying
from nova_preempt.core.scheduling import policy
from nova_preempt.db import database
from nova_preempt.db import decisions
from nova_preempt.handover import claim
from nova_preempt.handover import handover
from nova_preempt.scheduler import actuator
from nova_preempt.scheduler import cycle as cycles
from nova_preempt.scheduler import deadline
from nova_preempt.scheduler import releasing
from nova_preempt.scheduler import request_context

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# Who finds no host looks for room that nothing tells of, this often.
ROOM_AGE_S = 10

# Failures that Nova's conductor is told of as NoValidHost.
_FAILURES = (exception.NoValidHost, deadline.TimeIsUp,
             handover.VictimsStuck, handover.NotWanted,
             decisions.LostDecision, claim.ClaimLost,
             placement_api.PlacementError,
             *database.ERRORS, exceptions.Paused)


class Placing:
    """Schedules normal servers, with victims where needed.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param host_manager: Nova's HostManager
    :param observe: called with context, instance_uuids, cycle, selections
        and error after each request
    """

    def __init__(self, preemption, host_manager, observe):
        self._preemption = preemption
        self._host_manager = host_manager
        self._observe = observe

    def place(self, context, select, spec_obj, instance_uuids, patience,
              rank=policy.NORMAL):
        """What Nova's conductor is answered.

        :param select: given a RequestSpec, what Nova's scheduling answers
        :param patience: the nova_preempt.scheduler.deadline.Patience
        :param rank: of the request, see core.scheduling.policy
        :raises NoValidHost: there is none, whoever would end
        """
        left = self._preemption.process.options.max_attempts
        while True:
            # Nova changes the request that it works on; without preemptible
            # servers there is no second time to keep it for.
            again = (copy.deepcopy(spec_obj) if self._preemption.known.servers
                     else None)
            cycle = self.cycle(context, spec_obj, instance_uuids, patience,
                               rank)
            try:
                with cycle, request_context.working_on(
                        request_context.current_with(cycle=cycle)):
                    selections = select(spec_obj)
            except releasing.CapacityReleasing as exc:
                patience.waited |= exc.decision_uuids
                self._preemption.releasing.wait(exc, patience.limit)
                spec_obj = again or spec_obj
                continue
            except _FAILURES as exc:
                left -= 1
                if retrying.is_to_try_again(
                        _failure(exc), conflicts=cycle.taken.conflicts,
                        outdated=self._is_outdated(cycle, exc),
                        attempts_left=left, left_s=patience.limit.left_s()):
                    spec_obj = again or spec_obj
                    continue
                error = self._refused(context, instance_uuids, cycle, exc)
                if error is exc:
                    raise
                raise error from exc
            finally:
                self._preemption.handover.claims.active.difference_update(
                    cycle.taken.decisions)
            self._observe(context, instance_uuids, cycle, selections)
            return selections

    def _is_outdated(self, cycle, exc):
        """Whether hosts have more room than the decision went by."""
        if not isinstance(exc, exception.NoValidHost) or (
                self._why(cycle, exc) is not refusals.Why.NO_HOST):
            return False
        try:
            return self._preemption.known.providers.find_room(
                cycle.resources, CONF.scheduler.max_placement_results,
                ROOM_AGE_S)
        except placement_api.PlacementError:
            return False

    def cycle(self, context, spec_obj, instance_uuids, patience=None,
              rank=policy.NORMAL):
        """A SchedulingCycle of this request."""
        patience = patience or self._preemption.patience()
        return cycles.SchedulingCycle(
            self._preemption, self._host_manager, request_context.RequestInfo(
                context, spec_obj, list(instance_uuids),
                request.protected_servers(spec_obj)
                | self._preemption.handover.stuck(), rank,
                get_operation=request_context.current().get_operation),
            actuator.Actuator(self._preemption, patience))

    def _refused(self, context, instance_uuids, cycle, exc):
        """Keep why preemption could not help, where it was looked at.

        :returns: the NoValidHost that Nova's conductor gets: its owner reads
            the reason
        """
        why = self._why(cycle, exc)
        reason = (cycle.refusal or cycle.unanswered
                  or _DETAILS.get(why, str(exc)))
        is_stock = isinstance(exc, exception.NoValidHost)
        error = exc
        if why is not None:
            error = exception.NoValidHost(reason=refusals.join(
                exc.kwargs.get('reason', '') if is_stock else '',
                refusals.tell(why, cycle.refusal)))
        elif not is_stock:
            error = exception.NoValidHost(reason=str(exc))
        self._observe(context, instance_uuids, cycle, error=error)
        if why is not None:
            LOG.info('Preemption cannot help server %(server)s: %(reason)s',
                     {'server': instance_uuids[0], 'reason': reason})
            self._preemption.note_refusal(cycle, instance_uuids[0], reason)
        return error

    def _why(self, cycle, exc):
        """A core.refusals.Why, None if preemption was not looked at."""
        if isinstance(exc, handover.NotWanted):
            return None
        if not isinstance(exc, exception.NoValidHost):
            return _WHY.get(type(exc), refusals.Why.SERVICE)
        if cycle.refusal:
            return cycle.why
        servers = self._preemption.known.servers
        if not servers and not servers.had_any:
            return None           # as Nova: nobody uses preemptible servers
        if cycle.unanswered:
            return refusals.Why.SERVICE
        if not cycle.has_begun:
            return None
        if not servers:
            return refusals.Why.NOBODY
        if cycle.taken.conflicts:
            return (refusals.Why.TIME if cycle.patience.limit.is_over()
                    else refusals.Why.RACES)
        return (refusals.Why.BUSY if cycle.patience.is_refused
                else refusals.Why.NO_HOST)


def place_free(select, spec_obj):
    """What Nova answers to a request that never preempts.

    :param select: see Placing.place()
    :raises NoValidHost: and why nobody ends for it
    """
    try:
        return select(spec_obj)
    except exception.NoValidHost as exc:
        raise exception.NoValidHost(reason=refusals.join(
            exc.kwargs.get('reason', ''),
            refusals.tell(refusals.Why.FREE))) from exc


_WHY = {deadline.TimeIsUp: refusals.Why.TIME,
        handover.VictimsStuck: refusals.Why.STUCK,
        claim.ClaimLost: refusals.Why.RACES}

# For the record; of other cases it is what the exception says.
_DETAILS = {
    refusals.Why.NO_HOST: 'no host has room, even without its preemptible '
                          'servers that may end, and passes the filters',
    refusals.Why.NOBODY: 'no host has room, and there is no preemptible '
                         'server',
    refusals.Why.RACES: 'other requests were faster on each host, '
                        '[preemption]max_attempts times',
    refusals.Why.BUSY: 'as many requests wait as may, [preemption]'
                       'max_waiting_requests, and no host has room without '
                       'its preemptible servers whose notice is 0 s',
}


def _failure(exc):
    """The core's word for it."""
    if isinstance(exc, exception.NoValidHost):
        return retrying.Failure.NO_HOST
    return {handover.VictimsStuck: retrying.Failure.STUCK,
            decisions.LostDecision: retrying.Failure.LOST,
            claim.ClaimLost: retrying.Failure.LOST,
            }.get(type(exc), retrying.Failure.OTHER)
