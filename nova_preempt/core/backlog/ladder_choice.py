# SPDX-License-Identifier: Apache-2.0
"""Chooses a request's flavor from a ladder.

The number of cores follows from what is idle and from who else waits (see
``core/classes/request_size.py``); a ladder has a flavor for each number, or
for some of them.
"""

from collections.abc import Callable, Iterable, Sequence

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.classes import request_size
from nova_preempt.core.model import Resources

#: Required traits of flavors for hosts of a category.
TRAITS = {
    category: f"CUSTOM_REPUTATION_{category.name}"
    for category in request_size.HostReputation}

#: The required and forbidden traits of hosts of a category.
_Category = tuple[tuple[str, ...], tuple[str, ...]]

_NONE = backlog_model.SlaPriorities()


def rungs(
    flavors: Iterable[backlog_model.Alternative],
    priorities: backlog_model.SlaPriorities
) -> tuple[backlog_model.Alternative, ...]:
    """Return the flavors of a ladder for a request, the largest first.

    These are the flavors for hosts of the category of its reputation; all
    flavors if the ladder knows no categories.
    """
    found = list(flavors)
    known = set(TRAITS.values())
    if any(known.intersection(item.required) for item in found):
        service = request_size.ServiceLevel(priorities.reputation)
        trait = TRAITS[request_size.CATEGORIES[service]]
        found = [item for item in found if trait in item.required]
    return tuple(
        sorted(found, key=lambda item: (-_cores(item.resources), item.name)))


def copies(priorities: backlog_model.SlaPriorities) -> int:
    """Return the number of servers of a request."""
    return request_size.COPIES[
        request_size.ServiceLevel(priorities.redundancy)]


class LadderFlavorChooser:
    """Chooses the flavor of each ladder; starts count from then on.

    :param rooms: the capacity of all hosts
    :param waiting: all waiting requests, with or without a ladder
    :param lead_s: see capacity_tracker.CapacityTracker
    """

    def __init__(self, rooms: Sequence[HostCapacity], waiting: Iterable[
            backlog_model.Request], lead_s: Callable[[
            backlog_model.Alternative], float] = lambda _: 0) -> None:
        self._rooms = rooms
        self._lead_s = lead_s
        smallest = min((_cores(room.capacity) for room in rooms), default=0)
        self._limits = request_size.bounds(max(1, smallest))
        self._idle: dict[_Category, int] = {}
        self._of_all: dict[_Category, int] = {}
        for request in waiting:
            if request.ladder:
                key = _category(request)
                self._of_all[key] = (
                    self._of_all.get(key, 0) + _priorities(request).cores)

    def alternatives(
        self, request: backlog_model.Request
    ) -> tuple[backlog_model.Alternative, ...]:
        """Return the flavor that its ladder gives it now, () if all too large.

        A request without a ladder has the alternatives that its user has
        chosen.
        """
        if not request.ladder:
            return request.alternatives
        cores = request_size.cores(
            _priorities(request).cores, self._of_all[_category(request)],
            self._idle_cores(request), self._limits, )
        of = {item.name: item for item in request.alternatives}
        name = request_size.rung(
            {name: _cores(item.resources) for name, item in of.items()}, cores)
        return () if name is None else (of[name],)

    def start(
        self, request: backlog_model.Request,
        alternative: backlog_model.Alternative, count: int, ) -> None:
        """Subtract the started servers, and the demand of their request."""
        if request.ladder:
            key = _category(request)
            self._idle[key] -= _cores(alternative.resources) * count
            self._of_all[key] -= _priorities(request).cores

    def _idle_cores(self, request: backlog_model.Request) -> int:
        """Return the idle cores of its category, less those just claimed."""
        key = _category(request)
        if key not in self._idle:
            first = request.alternatives[0]
            self._idle[key] = sum(
                max(0, _cores(room.free)) for room in self._rooms
                if room.is_for(first)
                and room.is_open(first, self._lead_s(first)))
        return self._idle[key]


def _priorities(request: backlog_model.Request) -> backlog_model.SlaPriorities:
    return request.priorities or _NONE


def _category(request: backlog_model.Request) -> _Category:
    first = request.alternatives[0]
    return first.required, first.forbidden


def _cores(resources: Resources) -> int:
    return resources.get("VCPU", 0) + resources.get("PCPU", 0)
