# SPDX-License-Identifier: Apache-2.0
"""Decides which waiting requests start in a pass (backfilling).

Requests are evaluated in the order of a plugin (``queue_order.py``). A request
that does not fit is overtaken by later requests until it has waited for long:
then the hosts with the smallest shortfall are kept free for it, see
``kept_hosts.py``.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import group_placement
from nova_preempt.core.backlog import kept_hosts
from nova_preempt.core.backlog import ladder_choice
from nova_preempt.core.backlog import retry_check
from nova_preempt.core.backlog import shortfalls
from nova_preempt.core.backlog.batch_plans import BatchPlans
from nova_preempt.core.backlog.batch_plans import PlannedBoot
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.dispatch_values import Cloud
from nova_preempt.core.backlog.dispatch_values import Options
from nova_preempt.core.backlog.dispatch_values import PassResult
from nova_preempt.core.backlog.dispatch_values import WaitNote
from nova_preempt.core.backlog.kept_host_turns import ProjectTurn
from nova_preempt.core.backlog.request_servers import PendingServers
from nova_preempt.core.backlog.wait_estimate import seconds_until

# Reasons to wait, besides those of dispatch_values.py, shortfalls.py and
# pause_reader.py.
TURN = "turn"  # others are started first
ROOM_UNKNOWN = "room_unknown"  # the capacity is unknown
FAULT = "fault"  # its evaluation raised an exception


def decide(ranked: Sequence[backlog_model.Request], cloud: Cloud,
        now: datetime.datetime, options: Options, pending: Iterable[
        PendingServers] = (), unseen: Collection[str] = (), turns: Mapping[str,
        ProjectTurn] | None = None) -> PassResult:
    """Decide which requests start.

    :param ranked: the requests with servers to start, in order
    :param now: naive, in UTC
    :param pending: servers that are booting and have no allocations yet, see
        request_servers.unallocated()
    :param unseen: the uuids of requests that the last pass did not reach; they
        are evaluated first now
    :param turns: the turns of projects after the last pass
    """
    return _Pass(
        ranked, cloud, now, options, pending, turns or {}).decide(unseen)


def unknown_capacity(
    waiting: Iterable[backlog_model.Request], now: datetime.datetime
) -> dict[str, WaitNote]:
    """Return the Notes of requests while capacity is unknown.

    Only for requests that could start now: a request that is not to start yet
    waits for that. Positions stay as they were.
    """
    return {request.uuid: WaitNote(request.position, {**_UNKNOWN,
        **kept_hosts.remembered(request)}, None) for request in waiting
        if not seconds_until(request.not_before, now) and not seconds_until(
        request.next_try_at, now)}


class _Pass:
    """A running pass.

    :ivar faults: {uuid: exception} of requests that raised one
    """

    def __init__(self, requests: Sequence[backlog_model.Request], cloud: Cloud,
            now: datetime.datetime, options: Options, pending: Iterable[
            PendingServers], turns: Mapping[str, ProjectTurn]) -> None:
        lead_s = cloud.places.lead_s if cloud.places else lambda _: 0.0
        # The choice for a request depends on earlier starts in this pass.
        self._cloud = cloud = dataclasses.replace(
            cloud,
            ladders=ladder_choice.LadderFlavorChooser(cloud.rooms, requests,
                                                      lead_s))
        self._now = now
        self._options = options
        self._starts: list[PlannedBoot] = []
        self._of_project: dict[str, int] = {}
        self.faults: dict[str, Exception] = {}
        tracker = CapacityTracker(cloud.rooms, lead_s, cloud.departures)
        self._tracker = tracker
        for alternative, count, hosts, key in pending:
            tracker.expect(
                alternative, count, hosts, cloud.known_groups.get(key))
        self._pauses = retry_check.RetryCheck(tracker, cloud, now)
        for request in requests:
            self._call(request, self.check)
        self._requests = [request for request in requests
                          if request.uuid not in self.faults]
        self.keeping = kept_hosts.HoldChooser(
            self._requests, cloud, now, options, tracker, turns)
        self._shortfalls = shortfalls.ShortfallExplainer(tracker, self.keeping)

    def decide(self, unseen: Collection[str]) -> PassResult:
        """Evaluate all requests, or as many as there is time for."""
        ranked = self.keeping.ranked(self._requests, unseen)
        self._plans = self._plan(ranked)
        notes: dict[str, WaitNote] = {}
        chosen: dict[str, WaitNote] = {}
        ahead: dict[str, int] = {}
        left: list[str] = []
        for number, request in enumerate(ranked):
            if number and (left or self._cloud.is_over()):
                left.append(request.uuid)
                waits_for: Mapping[str, Any] | None = (
                    request.waits_for or _UNSEEN)
            else:
                waits_for = self._call(request, self.look)
            if request.uuid in self.faults:
                continue
            position = len(notes) + len(chosen) + 1
            if waits_for is None:
                chosen[request.uuid] = WaitNote(
                    position, request.waits_for, request.estimate_s)
            else:
                notes[request.uuid] = WaitNote(
                    position, waits_for,
                    self._estimate_s(request, waits_for, ahead))
        notes.update(dict.fromkeys(self.faults, WaitNote(None, _FAULT, None)))
        return PassResult(tuple(self._starts), notes, self.keeping.held,
            frozenset(left), self.faults, chosen, self.keeping.turns.known,
            tuple(self.keeping.quotas))

    def _call(
        self, request: backlog_model.Request,
        look: Callable[[backlog_model.Request], Mapping[str, Any] | None],
    ) -> Mapping[str, Any] | None:
        """Return the result of look(), or record its exception as a fault.

        So no request makes a whole pass fail.
        """
        try:
            return look(request)
        except Exception as exc:  # noqa: BLE001 (whoever decides logs it)
            self.faults[request.uuid] = exc
            return None

    def _estimate_s(
        self, request: backlog_model.Request, waits_for: Mapping[str, Any],
        ahead: dict[str, int], ) -> int | None:
        """Estimate the wait of a request, and add its demand to ``ahead``.

        A request that can never start delays none of the later ones.
        """
        if waits_for.get("code") in shortfalls.NEVER:
            return None
        missing, pace = backlog_model.missing(request), self._cloud.pace
        wanted = request.alternatives[0].resources
        for name, amount in wanted.items():
            ahead[name] = ahead.get(name, 0) + amount * missing
        wait_s = None if pace is None else pace.wait_s(
            {name: ahead[name] for name in wanted})
        return None if wait_s is None else max(
            wait_s, seconds_until(request.not_before, self._now))

    def _plan(self, ranked: Sequence[backlog_model.Request]) -> BatchPlans:
        """Plan requests together where that is possible.

        Requests with a ladder are left out: their flavor depends on earlier
        starts.
        """
        return BatchPlans(self._cloud.planner, self._tracker,
            [] if self._cloud.planner is None else [
            request for request in ranked if not request.ladder
            and self._cloud.why_not_yet(request, self._now) is None
            and not seconds_until(request.next_try_at, self._now)],
            self._options.most_starts, self._cloud.group)

    def check(self, request: backlog_model.Request) -> None:
        """Evaluate everything that is read of a request before its turn."""
        self._cloud.why_not_yet(request, self._now)
        self._cloud.alternatives(request)
        self._cloud.group(request)

    def look(self, request: backlog_model.Request) -> Mapping[str, Any] | None:
        """Start a request, or return the reason that it waits."""
        waits_for, seen = self._cloud.why_not_yet(request, self._now), None
        if waits_for is None and seconds_until(request.next_try_at, self._now):
            waits_for, seen = self._pauses.why(request)
        if waits_for is None:
            waits_for = self._start(request)
        if waits_for is None:
            return None
        found = {**{name: value for name, value in waits_for.items()
                    if name not in (kept_hosts.KEPT, retry_check.SEEN)},
                 **self.keeping.remembered(request)}
        if seen is not None:
            found[retry_check.SEEN] = seen
        if found["code"] in boot_outcome.CODES:
            found.pop(kept_hosts.REFUSED, None)
        return found

    def _start(self, request: backlog_model.Request) -> Mapping[str,
                                                                Any] | None:
        group = self._cloud.group(request)
        if self._tracker.group_hosts.is_host_unknown(group):
            return {"code": shortfalls.GROUP,
                "text": group_placement.HOST_UNKNOWN}
        start = self._find(request, group)
        if start is None:
            waits_for = self._shortfalls.why(
                request, self._cloud.alternatives(request), group)
            if request.uuid in self.keeping.held:
                self._plans.discard()
            if self._cloud.answer(request) is None:
                return waits_for
            return {**waits_for, "text": waits_for["text"] + _RESERVED}
        started = self._of_project.get(request.project_id, 0)
        if (
            len(self._starts) >= self._options.most_starts
            or started >= self._options.most_of_project):
            # Its claim stays, so that no later request gets that capacity.
            return _TURN
        self._of_project[request.project_id] = started + 1
        self._starts.append(start)
        return None

    def _find(
        self, request: backlog_model.Request,
        group: group_placement.Group | None) -> PlannedBoot | None:
        """Claim capacity for as many servers of a request as fit."""
        place = self._plans.place(request)
        if place is not None:
            self._tracker.take_at(place.alternative, place.hosts, group)
            count = sum(place.hosts.values())
            self._cloud.start(request, place.alternative, count)
            return PlannedBoot(request.uuid, place.alternative.flavor_id,
                               count, place.hosts)
        for alternative in self._cloud.alternatives(request):
            hosts = self._take(request, alternative, group)
            if hosts:
                count = sum(hosts.values())
                self._cloud.start(request, alternative, count)
                return PlannedBoot(request.uuid, alternative.flavor_id, count,
                                   hosts if self.keeping.held else {},
                                   self._plans.why(request))
        return None

    def _take(
        self, request: backlog_model.Request,
        alternative: backlog_model.Alternative,
        group: group_placement.Group | None, ) -> Mapping[str, int]:
        """Claim capacity for servers of a flavor: {host: for how many}.

        Where plans for later requests leave too little, it takes the planned
        capacity: the earlier request comes first.
        """
        missing, least = backlog_model.missing(request), backlog_model.least(
            request)
        count = self._tracker.count(alternative, missing, group, least)
        if not count:
            return {}
        unplanned = self._plans.unplanned
        if (unplanned is None or unplanned.count(alternative, missing,
                group) < count):
            hosts = self._tracker.take(alternative, count, group)
            self._plans.discard()
        else:
            hosts = unplanned.take(alternative, count, group)
            self._tracker.take_at(alternative, hosts, group, is_sure=False)
        return hosts


_RESERVED = " It can only use hosts of its reservation."
_TURN = {"code": TURN, "text": "This pass starts earlier requests first."}
_UNSEEN = {"code": TURN, "text": "The last pass ended before its turn."}
_UNKNOWN: Mapping[str, Any] = {
    "code": ROOM_UNKNOWN,
    "text": "The free capacity is unknown, as Nova, Placement or a cell does "
    "not answer. No request starts until they answer.",
}
_FAULT: Mapping[str, Any] = {
    "code": FAULT,
    "text": "The request could not be evaluated; the log of "
    "nova-preempt-engine has the error. The next pass retries it.",
}
