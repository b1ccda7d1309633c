# SPDX-License-Identifier: Apache-2.0
"""Room that is coming: what ending victims hold that nobody has claimed.

Until the victims of a decision are gone they hold what was not taken from
them. A host on which that suffices is chosen like any other, see
nova_preempt.core.scheduling.pending_evictions; whoever is given it waits for
the end and then finds room.
"""

import threading
import time

from oslo_utils import timeutils

from nova_preempt.cloud import instance_poller
from nova_preempt.core import actions as core_actions
from nova_preempt.core import poll_backoff
from nova_preempt.core.scheduling import pending_evictions
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import allocation_claim


class CapacityReleasing(Exception):
    """There will be room once these decisions are done.

    :param plan: a nova_preempt.core.scheduling.plan.Plan that joins them
    :param resources: {class: amount} that is asked for there
    """

    def __init__(self, plan, resources):
        super().__init__(f'room is coming on host {plan.host.name}')
        self.decision_uuids = frozenset(plan.joins)
        self.provider_uuid = plan.host.uuid
        self.resources = resources


class ReleaseWaiter:
    """Finds what is given up, and waits for it.

    :param decisions: a nova_preempt.db.Decisions
    :param options: [preemption] of the configuration
    :param monotonic, sleep: the clock to wait by
    """

    def __init__(self, decisions, options, monotonic=time.monotonic,
                 sleep=time.sleep):
        self._decisions = decisions
        self._options = options
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._open = set()   # uuids of decisions, when they were read last
        self._read_at = -1.0     # before any time
        self._taken = {}     # provider uuid: [resources] of who waits there

    def releasing(self, decisions, waited=()):
        """{provider uuid: what is released there, a core Releasing}.

        :param decisions: the open db.Decisions
        :param waited: uuids of those that were waited for before; nobody
            waits for the same one twice
        """
        found = {}
        for decision in decisions:
            if decision.status == db_decisions.CLAIMED and (
                    decision.uuid not in waited):
                for uuid, item in self._endings(decision).items():
                    found.setdefault(uuid, []).append(item)
        return {uuid: pending_evictions.ReleasingHost(tuple(endings),
                                                      self.waiting(uuid))
                for uuid, endings in found.items()}

    def _endings(self, decision):
        """{provider uuid: pending_evictions.PendingEviction}."""
        actions = self._options.actions
        victims = [victim for victim in decision.victims
                   if victim.status not in db_decisions.ENDED]
        now = timeutils.utcnow()
        notice_s = max((
            victim.notice_s if victim.deadline is None
            else (victim.deadline - now).total_seconds()
            for victim in victims), default=0)
        by_provider = {}
        for victim in victims:
            for uuid in ([decision.provider_uuid] if decision.provider_uuid
                         else victim.allocations):
                by_provider.setdefault(uuid, {})[victim.server_uuid] = (
                    victim.last_resort or core_actions.last_resort(
                        victim.action, actions))
        return {uuid: pending_evictions.PendingEviction(
                    decision.uuid, servers, max(0, notice_s),
                    allocation_claim.stand_ins(decision))
                for uuid, servers in by_provider.items()}

    def waiting(self, provider_uuid):
        """[resources] of the requests of this process that wait there."""
        with self._lock:
            return tuple(self._taken.get(provider_uuid, ()))

    def join(self, plan, resources):
        """Wait with the others for what the plan needs.

        :param plan: a nova_preempt.core.scheduling.plan.Plan that joins
        :param resources: {class: amount} that is asked for
        :returns: False if somebody else was faster
        :raises RoomComing: wait for it outside of all locks, see wait()
        """
        coming = CapacityReleasing(plan, resources)
        with self._lock:
            others = self._taken.get(coming.provider_uuid, [])
            new = list(others)
            for waiting in plan.waiting:
                if waiting in new:
                    new.remove(waiting)
            if new:
                return False
            self._taken[coming.provider_uuid] = [*others, resources]
        raise coming

    def wait(self, coming, deadline):
        """Wait until the decisions are closed, however, or time is up.

        :param deadline: the request's
            nova_preempt.scheduler.request_deadline.Deadline
        """
        options = self._options
        wait = poll_backoff.Wait(
            self._monotonic(),
            options.maximum_notice_s + options.termination_timeout_s,
            instance_poller.POLL_INTERVAL_S)
        try:
            while self._is_coming(coming.decision_uuids, wait.began):
                pause_s = wait.pause_s(self._monotonic(), deadline.left_s())
                if not pause_s:
                    return
                self._sleep(pause_s)
        finally:
            with self._lock:
                others = self._taken[coming.provider_uuid]
                others.remove(coming.resources)
                if not others:
                    del self._taken[coming.provider_uuid]

    def _is_coming(self, uuids, since):
        """Whether one of the decisions is open, as read since then.

        All who wait share one query in each interval.
        """
        with self._reading:
            now = self._monotonic()
            if (self._read_at < since or now - self._read_at
                    >= instance_poller.POLL_INTERVAL_S):
                self._open = self._decisions.get_claimed_uuids()
                self._read_at = now
            return bool(uuids & self._open)
