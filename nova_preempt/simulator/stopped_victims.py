# SPDX-License-Identifier: Apache-2.0
"""Servers that were stopped to give way, and what they keep on their hosts."""

from __future__ import annotations

from nova_preempt.core import actions
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.eviction import retention_controller
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import Parts


class Stopped:
    """Keeps the servers that were stopped, until they are deleted."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def keep(self, victim: Server) -> None:
        """Keep the disk of a server that was stopped, for a while."""
        parts = self._parts
        # It is on its host, even if it holds nothing there.
        parts.cloud.put(victim.current_host, victim.boot.id, actions.kept(
            victim.kind.resources, actions.STOP))
        victim.since_us = parts.events.now_us
        self._look(victim)

    def _look(self, victim: Server) -> None:
        if victim.state is not State.STOPPED:
            return
        parts = self._parts
        step = retention_controller.step(
            retention_controller.Observed(
                ObservedServer(victim.boot.id, 'stopped', None,
                               victim.current_host.name),
                victim.since_us, parts.options.stop_retention_s),
            None, parts.events.now_us)
        if step.wake_at_us is not None:
            parts.later(victim, step.wake_at_us - parts.events.now_us,
                        Turn.LOOK, self._look)
        if retention_controller.Intent.DELETE in step.intents:
            self.forget(victim)
            parts.report.note('deleted', victim)
            parts.report.lost(victim, victim.ran_us)

    def forget(self, victim: Server) -> None:
        """Delete a stopped server; what it had kept is free."""
        self._parts.cloud.take_away(victim.current_host, victim.boot.id)
        victim.state = State.OVER
        self._parts.report.mark(victim, Kind.ENDED)
        self._parts.forget(victim)
