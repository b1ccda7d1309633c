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

from collections.abc import Mapping, Sequence

from nova_preempt.core import model as core_model
from nova_preempt.core.backlog import model as backlog_model
from nova_preempt.core.backlog.room import Room
from nova_preempt.core.batch import model
from nova_preempt.core.batch.choice import Placer


class Planner:
    """Places those that wait together (``core/backlog/planning.py``).

    Everybody by the first of its alternatives, into what is free. Left to
    the search one by one are: further alternatives, room that preemptible
    servers have to leave, and whom Nova places by more than amounts and
    traits, by a hint or an availability zone, which nobody here looks into.
    """

    def __init__(self, placer: Placer) -> None:
        self._placer = placer

    def plan(
        self,
        requests: Sequence[backlog_model.Request],
        rooms: Sequence[Room],
    ) -> Mapping[str, Mapping[str, int]]:
        """Return {uuid: {host: how many servers}}."""
        # Those that ask for the same are mostly of the same flavor.
        servers: dict[int, core_model.Request] = {}
        found = self._placer.place(
            [
                _request(number, request, servers)
                for number, request in enumerate(requests)
                if not _is_bound(request)
            ],
            [
                model.HostState(
                    room.host, room.free, room.capacity, traits=room.traits
                )
                for room in rooms
            ],
        )
        return found.placed


def _request(
    number: int,
    request: backlog_model.Request,
    servers: dict[int, core_model.Request],
) -> model.Request:
    first = request.alternatives[0]
    if id(first) not in servers:
        servers[id(first)] = core_model.Request.of(first.resources)
    return model.Request(
        request.uuid,
        number,
        servers[id(first)],
        backlog_model.missing(request),
        min(backlog_model.least(request), backlog_model.missing(request)),
        traits=frozenset(first.required),
        forbidden=frozenset(first.forbidden),
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
