# SPDX-License-Identifier: Apache-2.0
"""Hosts kept free for waiting requests: which, how many, how long.

A large request would wait for ever behind small ones, each of which takes
what becomes free. So hosts are kept for it (a reserved start, as in EASY
backfilling: Lifka, JSSPP 1995), within bounds, so that the rest goes on:

1. A request may have hosts kept when it has waited for ``hold_after_s``, and
   its servers would fit if hosts were empty. It may not while its project's
   quota is used up, nor if Nova's last answer to it was another one than that
   there is no host.
2. ``most_holds`` requests are chosen, in every order of the backlog, and half
   as many of one project: those of projects that have their turn (4), then
   those of projects whose last turn began earliest, or that never had one. Of
   these, requests that have waited longest come first, and those last that
   Nova found no host for more than three times: Placement does not know why.
3. Where a request that was chosen finds no room, the hosts that are nearest to
   having room are kept: for all of its servers that have to start together,
   or none. For all requests at most a quarter of the hosts in use is kept, for
   those of one project half of that; and no more of the hosts that have the
   traits and resource classes that the request asks for. A request that needs
   more is not chosen. Quarters and halves are rounded up. Hosts of a
   reservation that the request names do not count, as nobody else may have
   them.
4. Projects have turns and rest between them, see ``turns.py``. Where one host
   alone has these traits and resource classes, it rests as well: it is not
   kept for others while the project rests for which it was.
5. At first hosts are kept from requests that rank behind. When they have been
   kept for a request for ``hold_after_s``, it comes before all others, in
   every order, as long as it is chosen.
"""

import collections
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import datetime
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import request_checks
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.dispatch_values import Cloud
from nova_preempt.core.backlog.dispatch_values import Options
from nova_preempt.core.backlog.host_capacity import KeptHosts
from nova_preempt.core.backlog.kept_host_turns import ProjectTurn
from nova_preempt.core.backlog.kept_host_turns import ProjectTurns
from nova_preempt.core.backlog.suitable_hosts import fewest_hosts

#: The hosts in use divided by HOSTS_PER_KEPT may be kept in all; these, and
#: ``most_holds``, divided by KEPT_PER_PROJECT for one project.
HOSTS_PER_KEPT = 4
KEPT_PER_PROJECT = 2

#: After more tries without a host in Nova, although Placement has capacity, a
#: request ranks last.
MOST_TRIES = 3

#: The most trials of a pass to keep hosts: each evaluates all hosts.
_MOST_TRIALS = 100

#: Keys in waits_for of kept hosts, and of Nova's last refusal.
KEPT = "kept"
REFUSED = "refused"

_RESTS = "hosts are kept free for other projects until {}Z."
_UNKNOWN_QUOTA = "the quota of its user has not been read from Nova yet."
_TOO_MANY = "it needs more hosts than can be kept free for one project."

#: Returns how many of the suitable hosts of a flavor may be kept.
HostLimit = Callable[[frozenset[str]], int]


class TrialHolds:
    """Tries for which requests hosts can be kept, on a copy of the capacity.

    :param tracker: the remaining capacity
    :param cloud: as the pass sees it
    """

    def __init__(self, tracker: CapacityTracker, cloud: Cloud,
            now: datetime.datetime) -> None:
        self._tracker = tracker.copy()
        self._cloud = cloud
        self._now = now
        self._left = _MOST_TRIALS

    def could(self, request: backlog_model.Request, most: HostLimit) -> bool:
        """Tell whether so many hosts would be enough if they were empty."""
        return self._left > 0 and any(self._fitting(request, most))

    def hold(self, request: backlog_model.Request,
             most: HostLimit) -> Collection[str]:
        """Return the hosts that would be kept besides the earlier ones."""
        count, group = backlog_model.least(request), self._cloud.group(request)
        for item, hosts in self._fitting(request, most):
            if not self._left:
                break
            self._left -= 1
            kept = self._tracker.hold(item, count, group, hosts)
            if kept is not None:
                return kept.hosts
        return ()

    def is_too_many(self, request: backlog_model.Request,
            most: HostLimit) -> bool:
        """Tell whether each flavor needs more hosts than may be kept."""
        found = self._fewest(request, most)
        return bool(found) and all(
            needed > hosts for _item, needed, hosts in found)

    def _fitting(
        self, request: backlog_model.Request, most: HostLimit
    ) -> Iterator[tuple[backlog_model.Alternative, int]]:
        """Iterate over the flavors for which empty hosts would be enough.

        :returns: each with how many hosts may be kept
        """
        if self._cloud.why_not_yet(request, self._now) is not None:
            return
        count, group = backlog_model.least(request), self._cloud.group(request)
        for item, needed, hosts in self._fewest(request, most):
            if needed <= hosts and self._tracker.fits_if_empty(item, count,
                group):
                yield item, hosts

    def _fewest(self, request: backlog_model.Request, most: HostLimit) -> list[
            tuple[backlog_model.Alternative, int, int]]:
        """Return the flavors that fit on enough empty hosts.

        :returns: each with how many hosts it needs, and how many may be kept
        """
        count, group = backlog_model.least(request), self._cloud.group(request)
        suitable = self._tracker.suitable
        return [(item, found, most(suitable(item).names))
            for item in self._cloud.alternatives(request) if (
            found := fewest_hosts(suitable(item).largest_open, count, group))]


class HoldChooser:
    """Chooses the requests of a pass for which hosts are kept.

    :param requests: all waiting requests
    :param cloud: as the pass sees it
    :param now: naive, in UTC
    :param tracker: the remaining capacity
    :param turns: the last turn of each project
    :ivar turns: the ProjectTurns of this pass
    :ivar quotas: the uuids of requests that are chosen if their quota, which
        the next pass knows, allows it
    """

    def __init__(self, requests: Collection[backlog_model.Request],
            cloud: Cloud, now: datetime.datetime, options: Options,
            tracker: CapacityTracker, turns: Mapping[str, ProjectTurn]):
        self._now = now
        self._options = options
        waiting = {request.uuid for request in requests}
        self.turns = ProjectTurns(turns, waiting, now)
        # By uuid: the number of hosts of chosen requests, the chosen requests
        # that name a reservation, and why none are kept for other requests
        # that have waited for long enough.
        self._chosen: dict[str, int] = {}
        self.quotas: list[str] = []
        self._own: set[str] = set()
        self._reasons: dict[str, str] = {}
        self._given = _KeptHosts(len(cloud.rooms))
        self._choose(requests, cloud, TrialHolds(tracker, cloud, now))
        # From now on hosts that are kept, not those of trials.
        self._given = _KeptHosts(len(cloud.rooms))
        self._kept: dict[str, int] = {}

    @property
    def held(self) -> tuple[str, ...]:
        """The uuids of the requests for which hosts are kept."""
        return tuple(self._kept)

    def ranked(
        self, requests: Sequence[backlog_model.Request],
        unseen: Collection[str] = ()) -> list[backlog_model.Request]:
        """Return requests in the order in which they are evaluated.

        :param requests: in the operator's order
        :param unseen: the uuids of requests that the last pass did not reach
        """
        return sorted(requests, key=lambda request: (
            not self._is_first(request), request.uuid not in unseen))

    def is_chosen(self, request: backlog_model.Request) -> bool:
        """Tell whether hosts may be kept for a request."""
        return request.uuid in self._chosen

    def most(self, request: backlog_model.Request,
             hosts: frozenset[str]) -> int:
        """Return how many hosts may be kept for a chosen request.

        :param hosts: the suitable hosts of its flavor
        """
        most = self._chosen[request.uuid]
        if request.uuid in self._own:
            return most
        return min(most, self._given.left(request.project_id, hosts))

    def why_none(self, request: backlog_model.Request) -> str:
        """Return why no hosts are kept, '' if it waits too short."""
        return self._reasons.get(request.uuid, "")

    def keep(self, request: backlog_model.Request,
             kept: KeptHosts) -> None:
        """Record that hosts are kept for a request."""
        self._kept[request.uuid] = len(kept.hosts)
        if is_shared := request.uuid not in self._own:
            self._given.add(request.project_id, kept.hosts)
        self.turns.keep(request.project_id, request.uuid, kept, is_shared,
                        list(self._chosen).index(request.uuid))

    def remembered(self, request: backlog_model.Request) -> dict[str, Any]:
        """Return what waits_for tells the next pass of a request."""
        found: dict[str, Any] = {}
        since = self.turns.since(request.project_id)
        if since is not None:
            found[KEPT] = {"since": since.isoformat(),
                           "hosts": self._kept.get(request.uuid, 0)}
            held = _held_since(request)
            if request.uuid in self._kept:
                held = held or self._now
            elif request.next_try_at is None or (
                request.next_try_at <= self._now):
                held = None  # it does not back off
            if held is not None:
                found[KEPT]["held_since"] = held.isoformat()
        refused = boot_outcome.refused(request)
        if refused:
            found[REFUSED] = refused
        return found

    def _choose(self, requests: Collection[backlog_model.Request],
            cloud: Cloud, trial: TrialHolds) -> None:
        of_project: collections.Counter[str] = collections.Counter()
        most_of_project = _part(self._options.most_holds, KEPT_PER_PROJECT)
        for request in sorted(
            filter(self._has_waited, requests),
            key=lambda item: (
                self.turns.rank(item.project_id),
                item.tries > MOST_TRIES, _begun(item), item.serial, item.uuid),
        ):
            if of_project.total() >= self._options.most_holds:
                return
            project = request.project_id
            # The number of hosts of the named reservation, if any.
            own = next((
                len(item.hosts) for item in cloud.alternatives(request)
                if item.hosts is not None), None)
            most = self._most(project, own)
            if of_project[project] >= most_of_project or not most:
                continue
            until = self.turns.rests_until(project)
            reason = "" if until is None else _RESTS.format(until)
            quota: Mapping[str, int] | None = {}
            if cloud.quotas is not None and not reason and (
                    trial.could(request, most)):
                self.quotas.append(request.uuid)
                quota = cloud.quotas.get((project, request.user_id))
                reason = request_checks.why_over_quota(request, quota or {})
            hosts = () if reason else trial.hold(request, most)
            if hosts:
                of_project[project] += 1
                if quota is None and _held_since(request) is None:
                    # It is chosen, and gets hosts once the quota is known.
                    reason = _UNKNOWN_QUOTA
                else:
                    self._chosen[request.uuid] = len(hosts)
                if own is None:
                    self._given.add(project, hosts)
                else:
                    self._own.add(request.uuid)
            elif not reason and own is None and trial.is_too_many(
                request, lambda hosts: self._given.shares(len(hosts))[1]):
                reason = _TOO_MANY
            if reason:
                self._reasons[request.uuid] = (
                    f" No hosts are kept free for it: {reason}")

    def _most(self, project: str, own: int | None) -> HostLimit | None:
        """Return the function that limits the hosts for one more request.

        :param own: the number of hosts of the reservation that it names, None:
            it names none
        :returns: None if no host may be kept
        """
        if own is not None:
            return (lambda _: own) if own else None
        if not self._given.left(project):
            return None

        def most(hosts: frozenset[str]) -> int:
            # A single host that is always kept would starve others.
            if len(hosts) == 1 and not self.turns.is_on(
                project) and self.turns.are_resting(hosts):
                return 0
            return self._given.left(project, hosts)

        return most

    def _is_first(self, request: backlog_model.Request) -> bool:
        held = _held_since(request)
        return (
            held is not None and request.uuid in self._chosen
            and _age_s(held, self._now) >= self._options.hold_after_s)

    def _has_waited(self, request: backlog_model.Request) -> bool:
        waited_s = _age_s(_begun(request), self._now)
        return waited_s >= self._options.hold_after_s and boot_outcome.refused(
            request) in ("", boot_outcome.NO_HOST)


class _KeptHosts:
    """Hosts that are kept, by project.

    :param hosts: the number of hosts in use
    """

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._of: dict[str, set[str]] = {}

    def add(self, project: str, hosts: Collection[str]) -> None:
        """Record that these hosts are kept for a project."""
        self._of.setdefault(project, set()).update(hosts)

    def left(self, project: str, hosts: frozenset[str] | None = None) -> int:
        """Return how many more hosts may be kept for a project.

        :param hosts: of these, None: of all
        """
        own, all_ = self._of.get(project, set()), set().union(
            *self._of.values())
        of_all, of_project = self.shares(self._hosts)
        left = min(of_all - len(all_), of_project - len(own))
        if hosts is None:
            return left
        of_all, of_project = self.shares(len(hosts))
        return min(left, of_all - len(all_ & hosts),
                   of_project - len(own & hosts))

    def shares(self, hosts: int) -> tuple[int, int]:
        """Return how many hosts may be kept: in all, and for one project."""
        most = _part(min(hosts, self._hosts), HOSTS_PER_KEPT)
        return most, _part(most, KEPT_PER_PROJECT)


def remembered(request: backlog_model.Request) -> dict[str, Any]:
    """Return the same while capacity is unknown: unchanged."""
    found = {name: request.waits_for[name] for name in (KEPT, REFUSED)
             if name in request.waits_for}
    refused = boot_outcome.refused(request)
    return {**found, **({REFUSED: refused} if refused else {})}


def _begun(request: backlog_model.Request) -> datetime.datetime:
    return request.waits_since or request.created_at


def _held_since(request: backlog_model.Request) -> datetime.datetime | None:
    """Return since when hosts are kept for a request, None if they are not."""
    at = request.waits_for.get(KEPT, {}).get("held_since")
    return None if at is None else datetime.datetime.fromisoformat(at)


def _age_s(at: datetime.datetime, now: datetime.datetime) -> float:
    return (now - at).total_seconds()


def _part(number: int, of: int) -> int:
    return -(-number // of)  # rounded up
