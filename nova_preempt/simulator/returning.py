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
"""Servers that were shelved to give way, and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import heapq
import math
from typing import Any

from nova_preempt.core import returns
from nova_preempt.core.model import SECOND, Resources
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.servers import Kind
from nova_preempt.simulator.servers import Server
from nova_preempt.simulator.servers import State


class Returns:
    """Those that wait for that.

    :param parts: a run.Parts
    :param unshelve: called with a server; tells whether it has got a host
    :param may_come: tells whether there is space to spare for so much
    :param known: classes.Classes, None without classes
    :param promised: a classes.Returning, which chooses among those of a class
    """

    def __init__(self, parts: Any, unshelve: Callable[[Server], bool],
                 may_come: Callable[[Resources], bool] = lambda _: True,
                 known: Any = None, promised: Any = None) -> None:
        self._may_come = may_come
        self._known = known
        self._promised = promised
        self._parts = parts
        self._unshelve = unshelve
        # By what they need, in order of their end.
        self._waiting: dict[Any, tuple[Kind, dict[str, Server]]] = {}
        self._of_class: dict[str, Server] = {}
        self._coming: dict[str, Server] = {}
        self._is_looking = False

    def add(self, server: Server) -> None:
        """One has given way."""
        server.tries = 0
        server.next_try_us = self._parts.events.now_us
        if self._known is not None and self._known.has(server):
            self._of_class[server.boot.id] = server
            self._look_soon()
            return
        key = server.kind.request.kind
        _, waiting = self._waiting.setdefault(key, (server.kind, {}))
        waiting[server.boot.id] = server
        self._parts.events.add(
            self._parts.events.now_us
            + self._parts.options.restore_timeout_s * SECOND, Turn.LOOK,
            self._is_too_late, server, server.epoch)
        self._look_soon()

    def keep(self, server: Server) -> None:
        """One that was asked to come has found no host after all."""
        self._coming.pop(server.boot.id, None)
        if self._known is not None and self._known.has(server):
            self._of_class[server.boot.id] = server
        else:
            _, waiting = self._waiting.setdefault(
                server.kind.request.kind, (server.kind, {}))
            waiting[server.boot.id] = server
        self._look_soon()

    def remove(self, server: Server) -> None:
        """One is deleted, or comes no more."""
        if self._of_class.pop(server.boot.id, None) is not None:
            return
        _, waiting = self._waiting.get(server.kind.request.kind, (None, {}))
        waiting.pop(server.boot.id, None)

    def is_back(self, server: Server) -> None:
        """One is on its way no more: it runs, or was deleted."""
        self._coming.pop(server.boot.id, None)

    def _look_soon(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            interval_us = self._parts.options.interval_s * SECOND
            now_us = self._parts.events.now_us
            self._parts.events.add((now_us // interval_us + 1) * interval_us,
                                   Turn.LOOK, self._look)

    def _look(self) -> None:
        self._is_looking = False
        self._waiting = {key: item for key, item in self._waiting.items()
                         if item[1]}
        if not self._waiting and not self._of_class:
            return
        most = self._parts.options.restore_at_once
        if self._of_class:
            self._ask_promised(most)
        if len(self._coming) < most:
            self._ask(most)
        self._look_soon()

    def _ask_promised(self, most: int) -> None:
        """Those of a class come first."""
        ready = list(self._in_turn(self._of_class))
        for server in self._promised.choose(ready,
                                            most - len(self._coming)):
            self._try(server)

    def _ask(self, most: int) -> None:
        room: dict[str, dict[str, int]] = {}
        fitting = []
        for kind, waiting in self._waiting.values():
            # Each that comes takes a host at most.
            found = self._parts.cloud.room(kind.request, most)
            if found and self._may_come(kind.resources):
                room.update(found)
                fitting.append(self._in_turn(waiting))
        if not fitting:
            return
        # Those on their way hold what they need.
        coming = [returns.Shelved(uuid, {}) for uuid in self._coming]
        chosen = returns.choose(
            (returns.Shelved(server.boot.id, server.kind.resources)
             for server in heapq.merge(*fitting, key=_ended)),
            coming, room, most)
        for uuid in chosen:
            self._try(self._parts.servers[uuid])

    def _try(self, server: Server) -> None:
        """Ask one to come."""
        is_promised = server.boot.id in self._of_class
        server.next_try_us = self._parts.events.now_us + SECOND * (
            self._pause_s(server, is_promised=is_promised))
        server.tries += 1
        if self._unshelve(server):
            self.remove(server)
            self._coming[server.boot.id] = server

    def _pause_s(self, server: Server, *, is_promised: bool) -> float:
        """How long after one was asked it is asked again."""
        if is_promised:
            return self._parts.options.classes.table.pass_period_s
        return returns.pause_s(self._parts.options.restore_interval_s,
                               server.tries)

    def _in_turn(self, waiting: dict[str, Server]) -> Iterator[Server]:
        for server in waiting.values():
            if self._turn(server) is returns.Turn.NOW:
                yield server

    def _turn(self, server: Server) -> returns.Turn:
        now_us = self._parts.events.now_us
        return returns.turn(
            server.tries, (server.next_try_us - now_us) / SECOND,
            (now_us - server.since_us) / SECOND,
            math.inf if server.boot.id in self._of_class
            else self._parts.options.restore_timeout_s)

    def _is_too_late(self, server: Server, epoch: int) -> None:
        """It is left to its owner."""
        if server.state is State.SHELVED and server.epoch == epoch:
            self.remove(server)
            self._parts.report.note('left', server)


def _ended(server: Server) -> tuple[int, str]:
    return server.since_us, server.boot.id
