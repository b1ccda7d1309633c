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
"""Decisions that are being carried out, and what they give up."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses
from typing import Any

from nova_preempt.core import actions
from nova_preempt.core import wanted
from nova_preempt.core.model import SECOND, Resources
from nova_preempt.core.scheduling.joining import Ending
from nova_preempt.core.scheduling.joining import Releasing
from nova_preempt.simulator import memory
from nova_preempt.simulator.servers import Server


@dataclasses.dataclass(eq=False, slots=True)
class Decision:
    """Victims that end together.

    :ivar operation: why, as in the engine; '' for the sake of a request
    :ivar server: for whom, None if for no request
    :ivar reservation: the id of the one that needs the host empty
    :ivar open: those that have not given way yet, {uuid: (Server, when its
        notice is over)}
    :ivar attempts_left: how often another host is looked for
    :ivar excluded: uuids of those that have not given way for it before
    """

    uuid: str
    host: memory.MemoryHost
    server: Server | None
    operation: str = ''
    reservation: str = ''
    attempts_left: int = 0
    excluded: Collection[str] = ()
    open: dict[str, tuple[Server, int]] = dataclasses.field(
        default_factory=dict)
    waiters: list[tuple[Server, set[str], Collection[str]]] = (
        dataclasses.field(default_factory=list))

    def purpose(self) -> wanted.Purpose:
        """Return the request that needs the space of the victims."""
        return wanted.Purpose(
            self.operation, '' if self.server is None else self.server.boot.id,
            self.reservation, self.host.name, (self.host.uuid,))


def releasing(decisions: Iterable[Decision], joined: Iterable[Resources],
              allowed: Collection[str], now_us: int) -> Releasing:
    """Return what the decisions of one host give up, and who waits for it.

    :param joined: the sizes of the servers that wait
    :param allowed: the actions that the operator allows
    """
    return Releasing(
        tuple(Ending(
            each.uuid,
            {victim: actions.choose(server.kind.terms.action, allowed)
             for victim, (server, _) in each.open.items()},
            max(0, max(until_us for _, until_us
                       in each.open.values()) - now_us) / SECOND)
            for each in decisions), tuple(joined))


class Leaving(Mapping[str, Releasing]):
    """What is given up, worked out of the hosts that are asked after.

    :param by_host: {uuid of a host: {uuid: Decision}}
    :param of: makes a Releasing of those of a host
    :param waited: uuids that do not count
    """

    def __init__(self, by_host: Mapping[str, Mapping[str, Decision]],
                 of: Callable[[Sequence[Decision]], Releasing],
                 waited: Collection[str]) -> None:
        self._by_host = by_host
        self._of = of
        self._waited = waited

    def _count(self, host: Any) -> list[Decision]:
        return [each for uuid, each
                in self._by_host.get(host, {}).items()
                if uuid not in self._waited]

    def __contains__(self, host: object) -> bool:
        return bool(self._count(host))

    def __getitem__(self, host: str) -> Releasing:
        found = self._count(host)
        if not found:
            raise KeyError(host)
        return self._of(found)

    def __iter__(self) -> Iterator[str]:
        return (host for host in self._by_host if host in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
