# SPDX-License-Identifier: Apache-2.0
"""Normal servers that are moved away from hosts that are reserved.

One that is moved takes its place on the other host at once, and gives up the
old one once it is there; meanwhile it runs.
"""

from collections.abc import Callable

from nova_preempt.simulator import reservation_book
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState


class ServerMigrator:
    """Migrates servers and tracks running migrations.

    :param decide: called with a Server that needs a host
    :param cancel: called with one that waits, and needs it no more
    """

    def __init__(self, world: SimulationState,
                 book: reservation_book.ReservationBook,
                 decide: Callable[[Server], None],
                 cancel: Callable[[Server], None]) -> None:
        self._world = world
        self._book = book
        self._decide = decide
        self._cancel = cancel
        # Uuid: what asks for a host in its name, and takes it.
        self._moves: dict[str, Server] = {}
        self._asked_us: dict[str, int] = {}

    def has(self, server: Server) -> bool:
        """Return whether a server is being moved."""
        return server.boot.id in self._moves

    def has_failed(self, server: Server) -> bool:
        """Return whether the last attempt to move a server failed."""
        return server.boot.id in self._asked_us and not self.has(server)

    def asked_us(self, server: Server) -> int | None:
        """Return when a server's migration began, None if it has not."""
        return self._asked_us.get(server.boot.id)

    def move(self, server: Server) -> None:
        """Request another host for a running server."""
        uuid = server.boot.id
        shadow = Server(server.boot, server.kind, moves=server)
        self._moves[uuid] = shadow
        self._asked_us[uuid] = self._book.now_us()
        self._decide(shadow)

    def refused(self, shadow: Server) -> None:
        """There is no host for it now."""
        shadow.state = State.OVER
        del self._moves[shadow.boot.id]
        self._world.report.note('not moved', shadow.moves)

    def begin(self, shadow: Server) -> None:
        """Move a server to its new host, which is free for it."""
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
        """Stop the move of a server that is over."""
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
