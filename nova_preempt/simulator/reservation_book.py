# SPDX-License-Identifier: Apache-2.0
"""Current reservations of a simulation and their hosts."""

from __future__ import annotations

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
from nova_preempt.simulator.simulation_settings import HostKind
from nova_preempt.simulator.simulation_settings import Setting
from nova_preempt.simulator.simulation_state import SimulationState

#: When a simulation begins, in seconds since the epoch.
BEGIN_S = reservation_model.to_s(simulated_servers.EPOCH.replace(tzinfo=None))


class ReservationBook:
    """Reservations and the hosts that they hold.

    :ivar opened: {id: Reservation} of the open reservations
    :ivar ended: {id: Reservation} of ended reservations until their cleanup
        is done
    :ivar leases: the leases that the scheduler and the backlog see
    """

    def __init__(self, world: SimulationState, setup: Setting) -> None:
        self._world = world
        self.opened: dict[str, reservation_model.Reservation] = {}
        self.ended: dict[str, reservation_model.Reservation] = {}
        self.leases = leases.Leases()
        self._setup = setup
        #: {id: Reservation} from its start until its cleanup is done.
        self.running: dict[str, reservation_model.Reservation] = {}
        #: Called with the id of a reservation when a server that does not
        #: belong to it takes a place on its host.
        self.on_foreign_server: Callable[[str], None] = lambda uuid: None
        # {host held by a started reservation: its id}
        self._taken: dict[str, str] = {}
        # {id of a begun reservation: number of its hosts}, {(id, host): its
        # own servers there}
        self._begun: dict[str, int] = {}
        self._own: dict[tuple[str, str], frozenset[str]] = {}

    @functools.cached_property
    def hosts(self) -> dict[str, observed_hosts.Host]:
        """Return {name: Host} of all hosts, as if powered on."""
        options = self._world.options.reservation_options
        return {
            host.name: observed_hosts.Host(
                host.name, properties=_properties(host.name, kind),
                reservable=options.reservable_default
                if kind.reservable is None else kind.reservable,
                flops_per_watt=kind.figures.flops_per_watt)
            for kind in self._setup.hosts for host in kind.hosts()}

    def now(self) -> datetime.datetime:
        """Return the time as a naive datetime in UTC."""
        return simulated_servers.at(self._world.events.now_us).replace(
            tzinfo=None)

    def now_us(self) -> int:
        return simulated_servers.clock_us(self._world.events.now_us)

    def now_s(self) -> int:
        return self.now_us() // SECOND

    def put(self, reservation: reservation_model.Reservation) -> None:
        """Store the new state of a reservation."""
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
        """Forget a reservation whose cleanup is done."""
        del self.ended[uuid]
        self.running.pop(uuid, None)

    def near(self) -> Iterator[reservation_model.Reservation]:
        """Yield the reservations that have begun or are being prepared."""
        options = self._world.options.reservation_options
        return (each for each in self.opened.values()
                if reservation_controller.is_near(
                    each, options.leads_s(), self.now_us()))

    def find(self, uuid: str) -> reservation_model.Reservation | None:
        """Return an open or ended reservation, None after its cleanup."""
        return self.opened.get(uuid) or self.ended.get(uuid)

    def view(self) -> leases.LeaseView:
        """Return the leases as a scheduling request sees them."""
        return leases.LeaseView(self.leases, True, False, self.now_s())

    # -- hosts reserved and used -------------------------------------------

    def _count_hosts(self, reservation: reservation_model.Reservation) -> None:
        """Count the hosts of a reservation from its start to its end."""
        held = len(reservation.held) if (
            reservation.status in reservation_model.OPEN
            and reservation.start_s <= self.now_s()) else 0
        change = held - self._begun.get(reservation.uuid, 0)
        self._begun[reservation.uuid] = held
        if change:
            self._world.report.level('hosts reserved', change)

    def hold(self, server: Server, sign: int) -> None:
        """Count a server that claims (1) or releases (-1) a host."""
        key = uuid, host = server.boot.reservation, server.current_host.name
        if sign > 0 and self._taken.get(host, uuid) != uuid:
            self.on_foreign_server(self._taken[host])
        if not uuid:
            return
        own = self._own.get(key, frozenset())
        if sign > 0:
            reservation = self.opened.get(uuid)
            # A returning server does not count once the reservation is over.
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
    """Return the properties of a host that queries match."""
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
