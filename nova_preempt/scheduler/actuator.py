# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Carries out what was decided for one request."""

import dataclasses

from oslo_db import exception as db_exc

from nova_preempt import metrics
from nova_preempt.cloud import placement
from nova_preempt.db import decisions
from nova_preempt.handover import claim
from nova_preempt.scheduler import deadline


@dataclasses.dataclass
class ClaimsMade:
    """Claims of one pass, and those that failed.

    :ivar claims: db.Decisions that took victims
    :ivar decisions: uuids of all of them, claimed or not
    :ivar lost: uuids of those that may be claimed, or not
    :ivar free: uuids of servers that needed no victims
    :ivar conflicts: how many claims failed: somebody else was faster, or
        Placement did not answer
    """

    claims: list = dataclasses.field(default_factory=list)
    decisions: list = dataclasses.field(default_factory=list)
    lost: list = dataclasses.field(default_factory=list)
    free: list = dataclasses.field(default_factory=list)
    conflicts: int = 0


class Actuator:
    """Claims hosts, with victims or without.

    :param preemption: a nova_preempt.scheduler.preemption.Preemption
    :param patience: the request's nova_preempt.scheduler.deadline.Patience
    """

    def __init__(self, preemption, patience):
        self.patience = patience
        self._preemption = preemption
        self._turn = None

    def begin_choosing(self):
        """Let no other thread of this process choose the same victims."""
        if self._turn is None:
            self._turn = self._preemption.turns.begin()

    def stop_choosing(self):
        """Let others choose."""
        if self._turn is not None:
            self._preemption.turns.end(self._turn)
            self._turn = None

    def join(self, state, plan, resources):
        """Wait for room that is coming; see ReleaseWaiter.join()."""
        return self._preemption.releasing.join(plan, resources)

    def take_room(self, state, real_claim):
        """Take a host that needs no victims, as Nova does.

        :param state: Nova's HostState, None if we have not seen it
        :returns: whether nobody else was faster
        """
        return real_claim()

    def take(self, cycle, state, plan, server_uuid, project_id, user_id,
             alloc_request):
        """Take a host for a server, with the victims of a core Plan.

        :param cycle: a nova_preempt.scheduler.cycle.SchedulingCycle
        :param alloc_request: what the server gets, as Placement offers it
        :returns: the db.Decision, CLAIMED
        :raises placement.Conflict: somebody was faster
        :raises placement.PlacementError: it failed; nothing is claimed
        :raises OutcomeUnknown: it failed; something may be claimed
        :raises TimeIsUp: who asked would not wait until they have ended
        """
        preemption = self._preemption
        decision = preemption.records.decision(cycle, state, plan,
                                               server_uuid, project_id,
                                               user_id)
        if self.patience.limit.longest_notice_s() < max(
                victim.notice_s for victim in decision.victims):
            raise deadline.TimeIsUp('end preemptible servers')
        cycle.taken.decisions.append(decision.uuid)
        try:
            with metrics.PHASES.labels('claim').time():
                claimed = preemption.handover.claims.claim(
                    plan, decision, alloc_request['allocations'])
        except claim.OutcomeUnknown as exc:
            cycle.taken.lost.append(decision.uuid)
            if not preemption.handover.recovery.take_back(decision.uuid,
                                                          str(exc)):
                raise
            cycle.taken.lost.remove(decision.uuid)
            raise placement.PlacementError(str(exc)) from exc
        except (decisions.LostDecision, db_exc.DBError):
            cycle.taken.lost.append(decision.uuid)
            raise
        preemption.records.log(claimed)
        preemption.handover.events.start(claimed)
        return claimed
