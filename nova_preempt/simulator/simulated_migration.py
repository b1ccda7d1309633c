# SPDX-License-Identifier: Apache-2.0
"""Migrates normal servers away from reserved hosts.

A server claims the target host at once, and releases the source host when it
has arrived; meanwhile it runs.
"""

from __future__ import annotations

from collections.abc import Callable

from nova_preempt.simulator import reservation_book
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState


class Migration:
    """Migrates servers, and tracks their migrations.

    :param decide: called with a Server to schedule
    :param cancel: called with a waiting Server whose migration is aborted
    """

    def __init__(self, world: SimulationState,
                 book: reservation_book.ReservationBook,
                 decide: Callable[[Server], None],
                 cancel: Callable[[Server], None]) -> None:
        self._world = world
        self._book = book
        self._decide = decide
        self._cancel = cancel
        # {uuid: stand-in that claims the target host for the server}
        self._moves: dict[str, Server] = {}
        self._asked_us: dict[str, int] = {}

    def has(self, server: Server) -> bool:
        """Tell whether a server is being migrated."""
        return server.boot.id in self._moves

    def has_failed(self, server: Server) -> bool:
        """Tell whether the last migration of a server was refused."""
        return server.boot.id in self._asked_us and not self.has(server)

    def asked_us(self, server: Server) -> int | None:
        """Return when a migration was requested, None if it was not."""
        return self._asked_us.get(server.boot.id)

    def move(self, server: Server) -> None:
        """Request the migration of a running server."""
        uuid = server.boot.id
        shadow = Server(server.boot, server.kind, moves=server)
        self._moves[uuid] = shadow
        self._asked_us[uuid] = self._book.now_us()
        self._decide(shadow)

    def refused(self, shadow: Server) -> None:
        """Record that no host was found for a migration."""
        shadow.state = State.OVER
        del self._moves[shadow.boot.id]
        self._world.report.note('not moved', shadow.moves)

    def begin(self, shadow: Server) -> None:
        """Start a migration whose target host has been claimed."""
        shadow.state = State.BOOTING
        self._world.later(shadow, self._world.sampler.draw_us('migrate'),
                          Phase.STEP, self._is_there)

    def _is_there(self, shadow: Server) -> None:
        server = shadow.moves
        assert server is not None
        self._forget(server)
        world = self._world
        world.report.hold(server, -1)
        world.cloud.take_away(server.current_host, server.boot.id)
        server.host = shadow.host
        shadow.state = State.OVER
        world.report.note('moved', server, host=server.current_host.name)

    def over(self, server: Server) -> None:
        """Abort the migration of a server that no longer exists."""
        shadow = self._moves.get(server.boot.id)
        self._forget(server)
        if shadow is None:
            return
        waits = shadow.state is State.WAITING
        shadow.state = State.OVER
        shadow.epoch += 1
        if waits:
            self._cancel(shadow)
        if shadow.host is not None:
            self._world.report.hold(shadow, -1)
            self._world.cloud.take_away(shadow.host, shadow.boot.id)

    def _forget(self, server: Server) -> None:
        self._moves.pop(server.boot.id, None)
        self._asked_us.pop(server.boot.id, None)
