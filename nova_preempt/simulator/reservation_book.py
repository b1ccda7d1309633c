# SPDX-License-Identifier: Apache-2.0
"""Current reservations of a simulation and their hosts."""

from collections.abc import Callable, Iterator
import datetime
import functools
from typing import Any

from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import host_properties
from nova_preempt.core.reservation import leases
from nova_preempt.core.reservation import observed_hosts
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.core.reservation import reservation_model
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulation_settings import CloudSetting
from nova_preempt.simulator.simulation_settings import HostKind
from nova_preempt.simulator.simulation_state import SimulationState

#: When a simulation begins, in seconds since the epoch.
BEGIN_S = reservation_model.to_s(simulated_servers.EPOCH.replace(tzinfo=None))


class ReservationBook:
    """The current reservations and their hosts.

    :ivar opened: {id: Reservation} of those that are not over
    :ivar over: those whose servers are still to be cleared away
    :ivar leases: what others are told of them
    """

    def __init__(self, world: SimulationState, setup: CloudSetting) -> None:
        self._world = world
        self.opened: dict[str, reservation_model.Reservation] = {}
        self.ended: dict[str, reservation_model.Reservation] = {}
        self.leases = leases.Leases()
        self._setup = setup
        #: Those that have started, until they have left no server.
        self.running: dict[str, reservation_model.Reservation] = {}
        #: Called with the id of one on whose host a server of others is.
        self.on_foreign_server: Callable[[str], None] = lambda uuid: None
        # A host that a reservation has for itself: the id of that.
        self._taken: dict[str, str] = {}
        # A reservation that has begun: its hosts; a host: its own servers.
        self._begun: dict[str, int] = {}
        self._own: dict[tuple[str, str], frozenset[str]] = {}

    @functools.cached_property
    def hosts(self) -> dict[str, observed_hosts.Host]:
        """Return the hosts by name, as they are when they are on."""
        options = self._world.options.reservation_options
        return {
            host.name: observed_hosts.Host(
                host.name, properties=_properties(host.name, kind),
                reservable=options.reservable_default
                if kind.reservable is None else kind.reservable,
                flops_per_watt=kind.figures.flops_per_watt)
            for kind in self._setup.hosts for host in kind.hosts()}

    def now(self) -> datetime.datetime:
        """Return the time as reservations have it."""
        return simulated_servers.at(self._world.events.now_us).replace(
            tzinfo=None)

    def now_us(self) -> int:
        return simulated_servers.clock_us(self._world.events.now_us)

    def now_s(self) -> int:
        return self.now_us() // SECOND

    def put(self, reservation: reservation_model.Reservation) -> None:
        """Record the new state of a reservation."""
        uuid = reservation.uuid
        if reservation.status in reservation_model.OPEN:
            self.opened[uuid] = reservation
            self.leases = self.leases.updated([leases.of(reservation)])
        elif self.opened.pop(uuid, None) is not None:
            self.leases = self.leases.updated((), [uuid])
        self._count_hosts(reservation)
        if reservation.ready_at is not None:
            self.running[uuid] = reservation
            self._take(reservation)

    def _take(self, reservation: reservation_model.Reservation) -> None:
        held = (reservation.held
                if reservation.status in reservation_model.OPEN else ())
        for host in reservation.hosts:
            if host.host in held:
                self._taken[host.host] = reservation.uuid
            elif self._taken.get(host.host) == reservation.uuid:
                del self._taken[host.host]

    def close(self, uuid: str) -> None:
        """Close a reservation that has left no server."""
        del self.ended[uuid]
        self.running.pop(uuid, None)

    def near(self) -> Iterator[reservation_model.Reservation]:
        """Yield the reservations that have begun or are prepared."""
        options = self._world.options.reservation_options
        return (each for each in self.opened.values()
                if reservation_controller.is_near(
                    each, options.leads_s(), self.now_us()))

    def find(self, uuid: str) -> reservation_model.Reservation | None:
        """Return one that was granted, None once it has left no server."""
        return self.opened.get(uuid) or self.ended.get(uuid)

    def view(self) -> leases.LeaseView:
        """Return the reservations as a request sees them."""
        return leases.LeaseView(self.leases, True, False, self.now_s())

    # -- how much is reserved, and used ------------------------------------

    def _count_hosts(self, reservation: reservation_model.Reservation) -> None:
        """Count its hosts from its start until it is over."""
        held = len(reservation.held) if (
            reservation.status in reservation_model.OPEN
            and reservation.start_s <= self.now_s()) else 0
        change = held - self._begun.get(reservation.uuid, 0)
        self._begun[reservation.uuid] = held
        if change:
            self._world.report.level('hosts reserved', change)

    def hold(self, server: Server, sign: int) -> None:
        """A server takes its place, or leaves."""
        key = uuid, host = server.boot.reservation, server.current_host.name
        if sign > 0 and self._taken.get(host, uuid) != uuid:
            self.on_foreign_server(self._taken[host])
        if not uuid:
            return
        own = self._own.get(key, frozenset())
        if sign > 0:
            reservation = self.opened.get(uuid)
            # One that has been there before goes on without it.
            is_own = reservation is not None and host in reservation.held
            left = own | {server.boot.id} if is_own else own
        else:
            left = own - {server.boot.id}
        self._own[key] = left
        if not left:
            del self._own[key]
        if bool(left) != bool(own):
            self._world.report.level('hosts reserved and used', sign)


def _properties(name: str, kind: HostKind) -> dict[str, Any]:
    """Return the properties of a host that queries see."""
    totals = {resource_class: inventory.total for resource_class, inventory
              in kind.inventories.items()}
    found = host_properties.of_host({
        'hypervisor_hostname': name, 'state': 'up', 'status': 'enabled',
        'service': {'host': name}, 'vcpus': totals.get('VCPU'),
        'memory_mb': totals.get('MEMORY_MB'),
        'local_gb': totals.get('DISK_GB')}, None, (), totals, ())
    if kind.figures.flops_per_watt is not None:
        found[host_properties.FLOPS_PER_WATT] = kind.figures.flops_per_watt
    return found
