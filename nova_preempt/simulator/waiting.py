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
"""The backlog: who waits until there is room, and whose turn it is.

Nobody is refused here. A pass over all that wait is made every so often, and
the core's passes say who starts, in which order, and for whom hosts are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import dataclasses
import datetime
from typing import Any

from nova_preempt.core import actions
from nova_preempt.core import capacity
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import order as orders
from nova_preempt.core.backlog import places as core_places
from nova_preempt.core.backlog import turns as core_turns
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.model import SECOND
from nova_preempt.core.model import Server as Record
from nova_preempt.core.reservation import hints
from nova_preempt.simulator import servers
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.servers import Server
from nova_preempt.simulator.servers import State
from nova_preempt.simulator.setting import Backlog

#: In these Nova's record of a server says that it is in the middle of nothing.
_ABLE = frozenset((State.RUNNING, State.NOTICE))


class Waiting:
    """Those that wait.

    :param parts: a run.Parts
    :param backlog: what an operator has set
    :param start: called with a server and the name of its host, '' where any
        will do; tells whether it has got one
    :param places: tells what a core Places is now, None without reservations
    :param power: tells what Cloud.rooms() is told of hosts that are off
    """

    def __init__(self, parts: Any, backlog: Backlog,
                 start: Callable[[Server, str], bool],
                 places: Callable[[], core_places.Places | None],
                 power: Callable[[], Mapping[str, Any]] = dict) -> None:
        self._parts = parts
        self._backlog = backlog
        self._start = start
        self._places = places
        self._power = power
        self._stays = ExpectedDepartures(parts.options.maximum_runtime_s,
                                         parts.options.policy.notice)
        # In order of their requests.
        self._waiting: dict[str, tuple[Server, model.Request]] = {}
        self._started: dict[str, Server] = {}
        self._asking: Server | None = None
        self._is_looking = False
        self._turns: Mapping[str, core_turns.Turn] = {}

    def add(self, server: Server) -> None:
        """One is asked for."""
        self._waiting[server.boot.id] = (
            server, _request(server, self._now()))
        self._parts.report.note('queued', server)
        self._look_soon()

    def again(self, server: Server) -> bool:
        """Tell whether one for which there is no host goes on waiting."""
        if server is self._asking:
            return True
        if self._started.pop(server.boot.id, None) is None:
            return False
        self.add(server)
        return True

    def remove(self, server: Server) -> None:
        """The owner of one wants it no more."""
        self._waiting.pop(server.boot.id, None)

    def _now(self) -> datetime.datetime:
        """The time as the backlog has it."""
        now = servers.at(self._parts.events.now_us)
        return now.replace(microsecond=0, tzinfo=None)

    def _look_soon(self) -> None:
        if self._is_looking:
            return
        self._is_looking = True
        interval_us = self._backlog.interval_s * SECOND
        now_us = self._parts.events.now_us
        self._parts.events.add((now_us // interval_us + 1) * interval_us,
                               Turn.LOOK, self._look)

    def _look(self) -> None:
        self._is_looking = False
        if not self._waiting:
            return
        parts, now = self._parts, self._now()
        ranked = self._backlog.order.rank(
            [request for _, request in self._waiting.values()], now,
            self._shares())
        places = self._places()
        rooms = parts.cloud.rooms(
            *(() if places is None else (places.free_s,)),
            ends_in_s=self._ends_in_s, may_end=self._may_end,
            **self._power(),
            frees=lambda record, resources: actions.freed(
                resources, parts.options.policy.action(record)))
        decided = dispatch.decide(
            ranked, rooms, now, self._backlog.passes,
            planner=self._backlog.planner, places=places,
            stays=self._stays, turns=self._turns)
        self._turns = decided.turns
        for uuid, note in decided.notes.items():
            server, request = self._waiting[uuid]
            if note.waits_for != request.waits_for:
                self._waiting[uuid] = server, dataclasses.replace(
                    request, waits_for=note.waits_for)
        for start in decided.starts:
            self._place(start, now)
        if self._waiting:
            self._look_soon()

    def _ends_in_s(self, record: Record) -> int | None:
        parts = self._parts
        return self._stays.left_s(
            record, parts.options.policy.action, lambda record:
            parts.events.now_us - parts.servers[record.uuid].launched_us)

    def _may_end(self, record: Record) -> bool:
        """Whether it may give way now, and does not already."""
        parts = self._parts
        return (parts.options.enabled
                and parts.servers[record.uuid].state in _ABLE
                and parts.options.policy.may_give_way(
                    record, servers.at(parts.events.now_us)))

    def _place(self, start: dispatch.Start, now: datetime.datetime) -> None:
        server, request = self._waiting.pop(start.uuid)
        (host,) = start.hosts or ('',)
        self._asking = server
        is_started = self._start(server, host)
        self._asking = None
        if is_started:
            self._started[start.uuid] = server
            return
        self._waiting[start.uuid] = (server, dataclasses.replace(
            request, **boot_outcome.in_vain(
                request, boot_outcome.NO_HOST, '', now,
                self._backlog.answers)))

    def _shares(self) -> orders.Shares:
        """What servers of the backlog use, by project."""
        self._started = {uuid: server for uuid, server
                         in self._started.items()
                         if server.state is not State.OVER}
        used: dict[str, list[Mapping[str, int]]] = {}
        for server in self._started.values():
            if server.state in servers.ON_HOST:
                used.setdefault(server.boot.project, []).append(
                    server.kind.resources)
        return orders.Shares(
            {project: capacity.total(each) for project, each
             in used.items()}, self._parts.cloud.total())


def _request(server: Server, now: datetime.datetime) -> model.Request:
    """What the API would have written down for one that is asked for."""
    boot = server.boot
    alternative = model.Alternative(
        boot.class_name, boot.class_name, server.kind.resources)
    terms = server.kind.terms
    if terms is not None:
        alternative = dataclasses.replace(
            alternative, preemptible=True, run_s=terms.maximum_runtime_s,
            minimum_run_s=terms.minimum_runtime_s, notice_s=terms.notice_s,
            class_name=terms.class_name)
    body = {core_places.HINTS[0]: {hints.HINT: boot.reservation}} if (
        boot.reservation) else {}
    return model.Request(
        boot.id, boot.project, '', '', body, '', 1, 1, (alternative,), now,
        now, class_name=terms.class_name if terms else '')
