# SPDX-License-Identifier: Apache-2.0
"""Plans the hosts of many requests at once, in their order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
from typing import Any, Protocol

from nova_preempt.core import capacity
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog.capacity_tracker import CapacityTracker
from nova_preempt.core.backlog.group_placement import Group
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.backlog.host_capacity import capacity_key
from nova_preempt.core.backlog.host_capacity import combined

#: The most plans of a pass; later requests are placed one by one.
_MOST_PLANS = 16

# Why Nova chooses the hosts of a start.
LADDER = "Its flavor of the ladder depends on the requests that start before."
TAKEN = "Other requests used the hosts that were planned for it."


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedHosts:
    """The planned hosts of servers of a request.

    :param alternative: which of its flavors they get
    :param hosts: {host: how many}
    """

    alternative: backlog_model.Alternative
    hosts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedBoot:
    """Boot so many servers of this flavor for a request.

    :param hosts: where, {host: how many of them}, if that was planned, or
        hosts are kept for others, which Nova does not know of; otherwise it
        is for Nova to choose
    :param reason: why it was not, where others are planned
    """

    uuid: str
    flavor_id: str
    count: int
    hosts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    reason: str = ""


def host_usage(rooms: Sequence[HostCapacity], starts: Iterable[PlannedBoot],
        requests: Mapping[str, backlog_model.Request]) -> list[dict[str, Any]]:
    """Return the usage of hosts before and after starts, by name.

    Starts without chosen hosts are not counted: their hosts are unknown.

    :param requests: {uuid: request} of all starts
    """
    left = {room.host: room for room in rooms}
    for start in starts:
        of = {item.flavor_id: item
              for item in requests[start.uuid].alternatives}
        for host, count in start.hosts.items():
            left[host] = dataclasses.replace(
                left[host], free=capacity.subtract(left[host].free,
                combined(of[start.flavor_id], count).resources))
    return [
        {"name": room.host, "resources": {
            name: {"capacity": amount,
                   "used": amount - room.free.get(name, 0),
                   "used_after": amount - left[room.host].free.get(name, 0)}
            for name, amount in room.capacity.items()}}
        for room in sorted(rooms, key=lambda room: room.host)]


class BatchPlanner(Protocol):
    """Places many requests together (``core/batch/backlog_batch.py``).

    It may leave requests out, which are then placed one by one. It does not
    reorder them: a request that fits without those behind it is placed, and
    these are planned anew.
    """

    def plan(self, requests: Sequence[backlog_model.Request], rooms: Sequence[
            HostCapacity]) -> Mapping[str, PlannedHosts | str]:
        """Return the hosts of requests.

        :param requests: in order
        :param rooms: of which ``free`` may be claimed
        :returns: {uuid: PlannedHosts} for at least the servers that start
            together and at most the missing ones; or the reason why there are
            none
        """


class BatchPlans:
    """Plans for the requests whose turn has not come yet.

    :param tracker: the capacity without plans
    :param requests: the requests that may be planned, in order
    :param window: how many are planned at once
    :param group_of: returns the server group of a request, None for none
    :ivar unplanned: the capacity that the plans leave; None: there are no
        plans
    """

    def __init__(self, planner: BatchPlanner | None, tracker: CapacityTracker,
            requests: Sequence[backlog_model.Request], window: int,
            group_of: Callable[[backlog_model.Request],
            Group | None] = lambda _: None) -> None:
        self._planner = planner
        self._tracker = tracker
        self._requests = requests if planner is not None else ()
        self._window = window
        self._group_of = group_of
        self._at = {
            request.uuid: number
            for number, request in enumerate(self._requests)}
        self._places: dict[str, PlannedHosts] = {}
        self._why: dict[str, str] = {}
        # The number of the first request that is not planned.
        self._planned = 0
        self.unplanned: CapacityTracker | None = None
        self._plans = 0

    def place(self, request: backlog_model.Request) -> PlannedHosts | None:
        """Return the planned hosts of a request, None if it has no plan."""
        number = self._at.get(request.uuid)
        if number is None:
            return None
        if self.unplanned is None or number >= self._planned:
            self._plan(number)
        return self._places.pop(request.uuid, None)

    def why(self, request: backlog_model.Request) -> str:
        """Return why a request has no plan, '' if nothing is planned."""
        if self._planner is None:
            return ""
        if request.uuid not in self._at:
            return LADDER
        return self._why.get(request.uuid, TAKEN)

    def discard(self) -> None:
        """Discard all plans: their capacity was claimed or held."""
        self._places.clear()
        self.unplanned = None

    def _plan(self, number: int) -> None:
        self.discard()
        if self._planner is None or self._plans >= _MOST_PLANS:
            return
        self._plans += 1
        some = self._requests[number: number + self._window]
        self._planned = number + len(some)
        found = self._planner.plan(some, self._tracker.left({capacity_key(
            item): item
            for request in some for item in request.alternatives}.values()))
        self.unplanned = self._tracker.copy()
        for request in some:
            place = found.get(request.uuid)
            if isinstance(place, PlannedHosts):
                self._places[request.uuid] = place
                self.unplanned.take_at(
                    place.alternative, place.hosts, self._group_of(request))
            elif place:
                self._why[request.uuid] = place
