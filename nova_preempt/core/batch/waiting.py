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
"""Requests of the backlog as a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from nova_preempt.core import capacity
from nova_preempt.core import model as core_model
from nova_preempt.core.backlog import model as backlog_model
from nova_preempt.core.backlog.planning import Place
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.batch import model
from nova_preempt.core.batch.choice import Placer


class Planner:
    """Places those that wait together (``core/backlog/planning.py``).

    Everybody by the first of its alternatives, then who is left by the second
    into what is left then, and so on; all into what is free. Left to the
    search one by one are: room that preemptible servers have to leave, and
    whom Nova places by more than amounts and traits, by a hint or an
    availability zone, which nobody here looks into.

    :param next_placer: returns what places the next batch, None if there is
        no time left for one
    """

    def __init__(self, next_placer: Callable[[], Placer | None]) -> None:
        self._next_placer = next_placer

    def plan(
        self,
        requests: Sequence[backlog_model.Request],
        rooms: Sequence[Room],
    ) -> Mapping[str, Place]:
        """Return {uuid: where, and in which flavor}."""
        # Those that ask for the same are mostly of the same flavor.
        servers: dict[int, core_model.Request] = {}
        most = _most(rooms)
        free = {room.host: room.free for room in rooms}
        parts = frozenset[str]().union(*(room.parts for room in rooms))
        left = [
            item for item in requests
            if not _is_bound(item)
            and not any(
                parts.intersection(alternative.resources)
                for alternative in item.alternatives
            )
        ]
        planned: dict[str, Place] = {}
        number = 0
        while left:
            batch = {
                request.uuid: request
                for request in left
                # What no host has room for is not worth a solver's time, and
                # may be more than one can count.
                if capacity.fits(
                    request.alternatives[number].resources, most)
            }
            placer = self._next_placer() if batch else None
            if batch and placer is None:
                break
            if placer is not None:
                found = placer.place(
                    [
                        _request(order, request, number, servers)
                        for order, request in enumerate(batch.values())
                    ],
                    [
                        model.HostState(
                            room.host, free[room.host], room.capacity,
                            traits=room.traits,
                        )
                        for room in rooms
                    ],
                )
                for uuid, hosts in found.placed.items():
                    alternative = batch[uuid].alternatives[number]
                    planned[uuid] = Place(alternative, hosts)
                    _take(free, alternative, hosts)
            number += 1
            left = [
                request for request in left
                if request.uuid not in planned
                and len(request.alternatives) > number
            ]
        return planned


def _most(rooms: Iterable[Room]) -> dict[str, int]:
    """Return the most of each resource class that a host has free."""
    most: dict[str, int] = {}
    for room in rooms:
        for name, amount in room.free.items():
            most[name] = max(amount, most.get(name, 0))
    return most


def _take(
    free: dict[str, core_model.Resources],
    alternative: backlog_model.Alternative,
    hosts: Mapping[str, int],
) -> None:
    for host, count in hosts.items():
        free[host] = capacity.less(free[host], {
            name: amount * count
            for name, amount in alternative.resources.items()
        })


def _request(
    order: int,
    request: backlog_model.Request,
    number: int,
    servers: dict[int, core_model.Request],
) -> model.Request:
    wanted = request.alternatives[number]
    if id(wanted) not in servers:
        servers[id(wanted)] = core_model.Request.of(wanted.resources)
    return model.Request(
        request.uuid,
        order,
        servers[id(wanted)],
        backlog_model.missing(request),
        backlog_model.least(request),
        traits=frozenset(wanted.required),
        forbidden=frozenset(wanted.forbidden),
        apart=(model.Apart(request.uuid),) if request.apart else (),
    )


def _is_bound(request: backlog_model.Request) -> bool:
    server = request.body.get("server", {})
    return bool(
        request.body.get("os:scheduler_hints")
        or request.body.get("OS-SCH-HNT:scheduler_hints")
        or any(
            server.get(name)
            for name in ("availability_zone", "host", "hypervisor_hostname")
        )
    )
