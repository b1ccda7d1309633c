# SPDX-License-Identifier: Apache-2.0
"""Unclaimed capacity that running evictions release.

Until the victims of a decision are evicted they keep the allocations that were
not claimed. A host where these suffice is chosen like any other, see
nova_preempt.core.scheduling.pending_evictions; the request then waits for the
end of the evictions and is scheduled again.
"""

import threading
import time

from oslo_utils import timeutils

from nova_preempt.cloud import awaited_servers
from nova_preempt.core import eviction_actions as core_actions
from nova_preempt.core import poll_timing
from nova_preempt.core.scheduling import pending_evictions
from nova_preempt.db import decisions as db_decisions
from nova_preempt.handover import allocation_claim


class CapacityReleasing(Exception):
    """There will be capacity once these decisions are closed.

    :param plan: a nova_preempt.core.scheduling.preemption_plan.Plan that joins
        them
    :param resources: {class: amount} that is asked for there
    """

    def __init__(self, plan, resources):
        super().__init__(f'host {plan.host.name} is releasing capacity')
        self.decision_uuids = frozenset(plan.joins)
        self.provider_uuid = plan.host.uuid
        self.resources = resources


class ReleaseWaiter:
    """Finds capacity that is being released, and waits for it.

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
        """Return {provider uuid: core Releasing} of open decisions.

        :param decisions: the open db.Decisions
        :param waited: uuids of decisions that the request has waited for
            before, which are excluded
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
        """Return {provider uuid: PendingEviction}."""
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
        """Return the resources of this process's requests that wait there."""
        with self._lock:
            return tuple(self._taken.get(provider_uuid, ()))

    def join(self, plan, resources):
        """Register a request that waits for the plan's capacity.

        :param plan: a nova_preempt.core.scheduling.preemption_plan.Plan that
            joins
        :param resources: {class: amount} that is asked for
        :returns: False if another request was faster
        :raises CapacityReleasing: wait for it without any lock, see wait()
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
        """Wait until the decisions are closed or the deadline has passed.

        :param deadline: the request's
            nova_preempt.scheduler.request_deadline.Deadline
        """
        options = self._options
        wait = poll_timing.BoundedWait(
            self._monotonic(),
            options.maximum_notice_s + options.termination_timeout_s,
            awaited_servers.POLL_INTERVAL_S)
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
        """Return whether a decision is open, by a reading since then.

        All waiting requests share one query per interval.
        """
        with self._reading:
            now = self._monotonic()
            if (self._read_at < since or now - self._read_at
                    >= awaited_servers.POLL_INTERVAL_S):
                self._open = self._decisions.get_claimed_uuids()
                self._read_at = now
            return bool(uuids & self._open)
