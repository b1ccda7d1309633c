# SPDX-License-Identifier: Apache-2.0
"""Shared state of a simulation."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import typing
from typing import Any

from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation_report
from nova_preempt.simulator.events import EventQueue
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulation_settings import Options

if typing.TYPE_CHECKING:
    # It needs numpy, and who only starts a command may do without.
    from nova_preempt.simulator import indexed_cloud


@dataclasses.dataclass(frozen=True)
class SimulationState:
    """Shared state of a simulation.

    :ivar servers: {id: Server} of those that are not over
    :ivar groups: {id: its server groups} of those that have one
    :ivar preemptions: {id: how often it has been preempted}
    """

    events: EventQueue
    cloud: indexed_cloud.IndexedCloud
    options: Options
    sampler: delays.DelaySampler
    report: simulation_report.Report
    servers: dict[str, Server] = dataclasses.field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict)
    preemptions: dict[str, int] = dataclasses.field(default_factory=dict)

    def later(self, server: Server, in_us: int, phase: Phase,
              happen: Callable[..., None], *arguments: Any) -> None:
        """Have something happen to a server, unless its epoch is over then."""
        self.events.add(self.events.now_us + in_us, phase, self._happen,
                        server, server.epoch, happen, arguments)

    @staticmethod
    def _happen(server: Server, epoch: int, happen: Callable[..., None],
                arguments: tuple[Any, ...]) -> None:
        if server.epoch == epoch:
            happen(server, *arguments)

    def forget(self, server: Server) -> None:
        """Forget a server that is over."""
        self.servers.pop(server.boot.id, None)
        self.groups.pop(server.boot.id, None)
