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
"""Normal servers that wait for hosts to wake, see [energy]demand_wakes."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

from nova_preempt.core import capacity
from nova_preempt.core import retrying
from nova_preempt.core.energy import demand
from nova_preempt.core.energy import steps
from nova_preempt.core.model import SECOND, Host
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.servers import Server
from nova_preempt.simulator.servers import State


@dataclasses.dataclass(eq=False, slots=True)
class _Wait:
    """Of one server: for how long, for which hosts, and which were in vain."""

    server: Server
    limit: retrying.Wait
    hosts: list[str] = dataclasses.field(default_factory=list)
    tried: set[str] = dataclasses.field(default_factory=set)
    is_asked: bool = False


class Waking:
    """Promises them hosts, and tells when those are there.

    :param parts: a run.Parts
    :param fleet: a power.Power
    :param again: called with a server that is to be decided anew
    :param give_up: called with one for which nothing has come of it
    """

    def __init__(self, parts: Any, fleet: Any,
                 again: Callable[[Server], None],
                 give_up: Callable[[Server], None]) -> None:
        self._parts = parts
        self._fleet = fleet
        self._again = again
        self._give_up = give_up
        self._waits: dict[str, _Wait] = {}
        self._promises: dict[str, tuple[int, list[demand.Promise]]] = {}

    def __len__(self) -> int:
        """How many wait."""
        return sum(each.server.state is State.WAKING
                   for each in self._waits.values())

    def wait(self, server: Server, where: Any, *, may_wait: bool) -> bool:
        """Have a server wait for which there is no host; whether it does.

        :param where: a mask of the hosts that it may go to, None for all
        """
        options = self._parts.options.power
        if server.kind.terms is not None or not options.demand_wakes:
            return False
        if server.why_not:
            # No host would be any good to it.
            self.over(server)
            return False
        uuid = server.boot.id
        wait = self._waits.get(uuid)
        if wait is None:
            wait = _Wait(server, retrying.Wait(
                self._parts.events.now_us / SECOND, options.demand_wait_s,
                1))
        now_s = self._parts.events.now_us / SECOND
        names = self._promised(wait, where)
        if not names or not may_wait or wait.limit.is_over(now_s):
            self.over(server)
            return False
        self._waits[uuid] = wait
        wait.hosts = names
        server.state = State.WAKING
        if not wait.is_asked:
            wait.is_asked = True
            self._parts.report.note('woken', server)
            self._parts.events.add(
                self._parts.events.now_us
                + options.demand_wait_s * SECOND, Turn.LOOK, self._is_late,
                wait)
        return True

    def _promised(self, wait: _Wait, where: Any) -> list[str]:
        """Names of hosts that will be on for it; they begin to wake."""
        sleepers = [
            demand.Sleeper(host.name, room, host.state == steps.WAKING,
                           bool(self._fleet.off(host.name).why_late),
                           host.efficiency)
            for host, room in self._candidates(wait, where)]
        uuid = wait.server.boot.id
        promised = [item for other in self._recent() for item in other]
        found = demand.promise(uuid, 1, sleepers, promised)
        self._promises[uuid] = self._parts.events.now_us, [
            *found, *demand.kept(uuid, promised, self._fleet.is_on)]
        names = [item.host for item in found]
        self._fleet.wake_some(names, 'a request finds no other host')
        return names

    def _candidates(self, wait: _Wait, where: Any) -> Any:
        request = wait.server.kind.request
        for host in self._fleet.coming():
            if host.name not in wait.tried and (
                    self._parts.cloud.is_among(host.host.uuid, where)):
                room = capacity.count(request, Host(
                    host.name, host.host.providers), {})
                if room:
                    yield host, room

    def _recent(self) -> list[list[demand.Promise]]:
        since_us = (self._parts.events.now_us
                    - self._parts.options.power.promised_s * SECOND)
        self._promises = {uuid: item for uuid, item
                          in self._promises.items() if item[0] >= since_us}
        return [found for _, found in self._promises.values()]

    def promised_hosts(self) -> list[str]:
        """Return them in the order in which they are to wake."""
        return list(dict.fromkeys(item.host for found in self._recent()
                                  for item in found))

    def forget(self, names: frozenset[str]) -> None:
        """Nobody waits for these any more: they are of no use."""
        self._promises = {
            uuid: (at_us, left) for uuid, (at_us, found)
            in self._promises.items()
            if (left := [item for item in found if item.host not in names])}

    def look(self) -> None:
        """Decide those anew whose hosts are up, or are not coming."""
        for wait in list(self._waits.values()):
            if wait.server.state is State.WAKING and not any(
                    self._fleet.is_coming(name) for name in wait.hosts):
                self._end(wait)

    def _is_late(self, wait: _Wait) -> None:
        if wait.server.state is State.WAKING and (
                self._waits.get(wait.server.boot.id) is wait):
            self._end(wait)

    def _end(self, wait: _Wait) -> None:
        up = {name for name in wait.hosts if self._fleet.is_on(name)}
        if not up and wait.limit.is_over(self._parts.events.now_us / SECOND):
            self.over(wait.server)
            self._give_up(wait.server)
            return
        # What is up and did not help the request is not asked again.
        wait.tried |= up
        self._again(wait.server)

    def over(self, server: Server) -> None:
        """One waits no more.

        What is promised to it is kept for a time, for whoever asks again.
        """
        self._waits.pop(server.boot.id, None)

    def served(self, server: Server) -> None:
        """One has got a host; how long that took is told."""
        wait = self._waits.get(server.boot.id)
        self._promises.pop(server.boot.id, None)
        if wait is not None:
            self.over(server)
            waited_s = (self._parts.events.now_us / SECOND
                        - wait.limit.began)
            self._parts.report.delayed(server, waited_s)
