# SPDX-License-Identifier: Apache-2.0
"""Starts and ends reservations, and cleans up their hosts afterwards."""

from collections.abc import Callable, Collection
import dataclasses

from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.reservation import cleanup_controller
from nova_preempt.core.reservation import lease_event_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.simulator import simulated_drain_executor
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.events import Alarm
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.reservation_book import ReservationBook
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState

#: How Nova's record of a server says what it is in the middle of.
_SHOWN = {
    State.BOOTING: ('building', 'spawning'),
    State.RUNNING: ('active', None),
    State.NOTICE: ('active', None),
    State.STOPPED: ('stopped', None),
}
_COMING = frozenset((State.WAITING,))
_TASKS = {'force_delete': 'deleting', 'shelve': 'shelving'}


class _View:
    """See the core's View."""

    #: Every cell can be read.
    dark = False

    def __init__(self, cloud: simulated_drain_executor.HostView,
                 reservation: reservation_model.Reservation) -> None:
        self._cloud = cloud
        self.reservation = reservation
        self.running = cloud.book.running

    @property
    def needed(self) -> frozenset[str]:
        """The names of hosts that other reservations need."""
        return cleanup_controller.needed(self._cloud.book.near())

    def servers(self, host: str) -> list[cleanup_controller.Server]:
        return [_server(server) for server in self._cloud.on_host(host)]

    def coming(self) -> list[cleanup_controller.Server]:
        return [_server(server) for host in self.reservation.hosts
                for server in self._cloud.on_host(host.host, _COMING)
                if server.boot.reservation == self.reservation.uuid]

    def homeless(self, coming: Collection[cleanup_controller.Server]
                 ) -> tuple[cleanup_controller.Server, ...]:
        """Return none: a scheduler has them, which waits for others."""
        return ()


def _server(server: Server) -> cleanup_controller.Server:
    return cleanup_controller.Server(
        server.boot.id, server.current_host.name, server.named,
        *_SHOWN.get(server.state, ('active', 'deleting')),
        preemptible=server.kind.terms is not None)


class ReservationCleanup:
    """Clears the hosts of reservations that are over.

    :param cloud: a simulated_drain_executor.HostView
    :param not_coming: called with a server that was being built, or coming
        back, and is not any more
    """

    def __init__(self, cloud: simulated_drain_executor.HostView,
                 not_coming: Callable[[Server], None]) -> None:
        self._cloud = cloud
        self._world = cloud.world
        self._book = cloud.book
        self._not_coming = not_coming
        self._memories: dict[str, cleanup_controller.Memory] = {}

    def begin(self, reservation: reservation_model.Reservation) -> None:
        """Clear the hosts of a reservation that is over."""
        self._book.ended[reservation.uuid] = reservation
        self._look(reservation.uuid)

    def _look(self, uuid: str) -> None:
        world = self._world
        step = cleanup_controller.step(
            _View(self._cloud, self._book.ended[uuid]),
            self._memories.get(uuid, cleanup_controller.Memory()),
            self._book.now_us())
        self._memories[uuid] = step.memory
        for intent in step.intents:
            if isinstance(intent, cleanup_controller.EndServer):
                self._end(world.servers[intent.server], intent.call)
            elif isinstance(intent, cleanup_controller.Release):
                self._book.close(uuid)
                del self._memories[uuid]
                if intent.left:
                    world.report.reservation('not cleared', uuid)
        if step.wake_at_us is not None:
            world.events.add(step.wake_at_us - simulated_servers.clock_us(0),
                             Phase.POLL, self._look, uuid)

    def _end(self, server: Server, call: str) -> None:
        # What has been stopped to give way holds nothing that it asked for.
        holds = server.state is not State.STOPPED
        if server.state is State.BOOTING:
            self._not_coming(server)
        self._cloud.evictions.end_server(server, call, self._is_cleared, call,
                                         holds)
        self._mark_busy(server, _TASKS[call])

    def _mark_busy(self, server: Server, task_state: str) -> None:
        """Set the server's task state, so that it is not touched."""
        host, uuid = server.current_host, server.boot.id
        record = host.servers.get(uuid)
        if record is not None:
            self._world.cloud.put(
                host, uuid, host.allocations[uuid],
                dataclasses.replace(record, task_state=task_state))

    def _is_cleared(self, server: Server, call: str, holds: bool) -> None:
        world = self._world
        if holds:
            world.report.hold(server, -1)
        world.cloud.take_away(server.current_host, server.boot.id)
        was_deleted = server.state is State.DELETED
        world.report.note('cleared', server, host=server.current_host.name)
        if was_deleted or call == 'force_delete':
            server.state = State.OVER
            world.report.mark(server, Kind.ENDED)
            world.forget(server)
        else:
            server.state = State.SHELVED
        # Somebody may have waited for it to give way.
        self._cloud.evictions.gone(server)


class LeaseEvents:
    """Steps the controller of lease events."""

    def __init__(self, world: SimulationState, book: ReservationBook,
                 cleanup: ReservationCleanup) -> None:
        self._report = world.report
        self._book = book
        self._cleanup = cleanup
        self._told = lease_event_controller.Memory()
        self._alarm = Alarm(world.events, Phase.END, self.run)

    def run(self) -> None:
        """Carry out due events, and schedule the next one."""
        step = lease_event_controller.step(tuple(self._book.opened.values()),
                                           self._told, self._book.now_us())
        self._told = step.memory
        for intent in step.intents:
            for uuid in intent.reservations:
                self._happen(intent.kind, uuid)
        if step.wake_at_us is not None:
            self._alarm.set(step.wake_at_us - simulated_servers.clock_us(0))

    def start(self, uuid: str) -> None:
        """Start a reservation if its time has come and it is ready."""
        self._happen(lease_event_controller.Kind.START, uuid)

    def _happen(self, kind: lease_event_controller.Kind, uuid: str) -> None:
        before = self._book.opened.get(uuid)
        if before is None:
            return
        now = self._book.now()
        changes = lease_event_controller.change(before, kind, now)
        found = dataclasses.replace(before, **changes)
        if found.status not in reservation_model.OPEN:
            self.finish(found, 'never started' if before.ready_at is None
                        else 'ended')
            return
        self._book.put(found)
        if found.ready_at != before.ready_at:
            self._report.started(found, (now - found.start_at).total_seconds())

    def finish(self, reservation: reservation_model.Reservation,
               event: str) -> None:
        """Note that a reservation is over, and clear its hosts."""
        self._book.put(reservation)
        self._report.reservation(event, reservation.uuid)
        self._cleanup.begin(reservation)
