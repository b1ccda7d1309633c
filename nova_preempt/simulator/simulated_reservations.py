# SPDX-License-Identifier: Apache-2.0
"""Reservations of hosts in a simulation.

The core decides on hosts, times and limits. simulated_drain_executor empties
the hosts in time; simulated_lease_events cleans up after the end.
"""

import collections
from collections.abc import Callable
import dataclasses

from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import admission
from nova_preempt.core.reservation import host_query
from nova_preempt.core.reservation import leases
from nova_preempt.core.reservation import reservation_limits
from nova_preempt.core.reservation import reservation_model
from nova_preempt.simulator import reservation_book
from nova_preempt.simulator import simulated_drain_executor
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulated_lease_events
from nova_preempt.simulator import simulated_migration
from nova_preempt.simulator import simulated_power
from nova_preempt.simulator.cost_bound_index import Mask
from nova_preempt.simulator.reservation_book import BEGIN_S
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulation_settings import CloudSetting
from nova_preempt.simulator.simulation_state import SimulationState
from nova_preempt.simulator.traces.trace_model import Reserve

_DAY_US = 86400 * SECOND


class Refused(Exception):
    """The reservation is refused; the message has the reason."""


def _absolute_s(time_s: int | None) -> int | None:
    return None if time_s is None else BEGIN_S + time_s


class Reservations:
    """Grants, starts and ends reservations.

    :param decide: called with a Server that needs a host
    :param not_coming: called with a server that was being built, or coming
        back, and is not any more
    :param power: returns a simulated_power.SimulatedPower, None if all hosts
        are always on
    :ivar migration: what moves servers for them
    """

    def __init__(self, world: SimulationState, setup: CloudSetting,
                 evictions: simulated_evictions.Evictions,
                 decide: Callable[[Server], None],
                 not_coming: Callable[[Server], None],
                 power: Callable[[], simulated_power.SimulatedPower | None]
                 ) -> None:
        self._world = world
        self._options = world.options.reservations
        self._book = reservation_book.ReservationBook(world, setup)
        self.migration = simulated_migration.ServerMigrator(
            world, self._book, decide, evictions.cancel)
        self._cloud = simulated_drain_executor.HostView(
            world, self._book, evictions, self.migration, power)
        self._events = simulated_lease_events.LeaseEvents(
            world, self._book,
            simulated_lease_events.ReservationCleanup(self._cloud, not_coming))
        self._executor = simulated_drain_executor.DrainExecutor(
            self._cloud, self._events)
        world.report.reserved = self._book.hold
        evictions.requests.reserved = self._book.find
        self._ids: set[str] = set()
        self._made: dict[str, collections.deque[int]] = {}
        # lead: (leases, until when, mask)
        self._masks: dict[float, tuple[leases.Leases, float, Mask]] = {}

    # -- what users do -----------------------------------------------------

    def request(self, event: Reserve) -> None:
        """Grant one, or refuse it."""
        report = self._world.report
        self._ids.add(event.id)
        report.reservation('asked', event.id, hosts=event.hosts)
        try:
            found = self._grant(event)
        except (Refused, admission.BadWindow,
                reservation_limits.LimitExceeded) as exc:
            report.reservation('refused', event.id, why=str(exc))
            return
        report.reservation(
            'granted', event.id, hosts=len(found.hosts),
            start=found.start_s - BEGIN_S, end=found.end_s - BEGIN_S,
            on=list(found.held))
        self._book.put(found)
        self._events.run()
        self._executor.watch(found.uuid)

    def _grant(self, event: Reserve) -> reservation_model.Reservation:
        """Grant a reservation like the API."""
        options = self._options
        if options is None:
            raise Refused('[reservation]enabled is false')
        now_s = self._book.now_s()
        window = admission.requested_window(now_s, _absolute_s(event.start_s),
            _absolute_s(event.end_s), event.duration_s)
        allowed = reservation_limits.Limits(options.limits)
        allowed.check_request(event.hosts, window.duration_s,
                              window.start_s - now_s)
        matches = host_query.parse(event.query).matches
        search = admission.Search(window, event.hosts, [admission.MatchingHost(
            host.name, host.flops_per_watt, self._cloud.is_vacant(host.name))
            for host in self._book.hosts.values() if self._cloud.is_usable(
            host.name) and matches(host.properties)], allowed, options.ranking,
            now_s, now_s + options.evacuation_lead_s)
        made = self._made.setdefault(event.project, collections.deque())
        while made and made[0] <= self._world.events.now_us - _DAY_US:
            made.popleft()
        search.check_created(len(made))
        hosts = search.hosts(self._book.leases.busy,
                             lambda name: self._book.hosts[name].reservable)
        found = search.find(hosts)
        if found is None:
            raise Refused(
                f'no {event.hosts} of {len(hosts)} matching hosts are free '
                f'for {window.duration_s} s')
        search.check(found, [each for each in self._book.opened.values()
                             if each.project_id == event.project])
        made.append(self._world.events.now_us)
        start_at, end_at = map(reservation_model.from_s,
                               (found.start_s, found.end_s))
        return reservation_model.Reservation(
            event.id, event.project, event.hosts, window.duration_s,
            reservation_model.from_s(window.start_s),
            event.end_action or options.end_action, 0,
            host_properties=event.query, start_at=start_at, end_at=end_at,
            hosts=tuple(reservation_model.Assignment(host, start_at, end_at)
                        for host in sorted(found.hosts)))

    def cancel(self, uuid: str) -> None:
        """Cancel a reservation for its owner."""
        reservation = self._book.opened.get(uuid)
        if reservation is None:
            return
        now = self._book.now().replace(microsecond=0)
        found = admission.cancel(reservation, reservation_model.to_s(now))
        if found is admission.CancelEffect.NEVER_STARTS:
            self._events.finish(dataclasses.replace(
                reservation, status=reservation_model.CANCELLED), 'cancelled')
        elif found is admission.CancelEffect.ENDS_NOW:
            self._book.put(dataclasses.replace(reservation, end_at=now))
            self._events.run()

    def has(self, uuid: str) -> bool:
        """Return whether a reservation of this id was requested."""
        return uuid in self._ids

    # -- where servers may go ----------------------------------------------

    def where(self, server: Server) -> tuple[Mask | None, str]:
        """Return (a mask of the hosts that a server may go to, why none).

        The mask is None if it may go to all.
        """
        boot = server.boot
        if server.named:
            answer = self._book.view().answer(server.named, boot.project)
            exists = bool(server.tries) or server.moves is not None
            if not (exists and answer.is_void):
                return self._world.cloud.mask(answer.hosts), answer.reason
        if server.moves is not None:
            # Nowhere but elsewhere.
            here = self._world.cloud.mask([server.moves.current_host.name])
            return self._unreserved(server) & ~here, ''
        if not self._book.leases.busy:
            return None, ''
        return self._unreserved(server), ''

    def _unreserved(self, server: Server) -> Mask:
        """A mask of the hosts that it may have for as long as it must."""
        terms = server.kind.terms
        options = self._world.options.reservation_options
        return self._open_for(options.guard.lead_s(
            terms is not None, terms.minimum_runtime_s if terms else 0,
            terms.notice_s if terms else None))

    def _open_for(self, lead_s: float) -> Mask:
        """Return a mask of hosts without reservation for a time."""
        book = self._book
        now_s = book.now_s()
        known = self._masks.get(lead_s)
        if known is not None and known[0] is book.leases and now_s < known[1]:
            return known[2]
        view = book.view()
        closed = []
        until_s = float('inf')
        for name, busy in book.leases.busy.items():
            if view.may_take(name, lead_s):
                until_s = min(until_s, now_s + view.free_s(name) - lead_s)
            else:
                closed.append(name)
                until_s = min(until_s, next(
                    (end_s for _, end_s in busy if end_s > now_s), until_s))
        mask = ~self._world.cloud.mask(closed)
        if known is not None and known[0] is not book.leases:
            self._masks = {}
        self._masks[lead_s] = (book.leases, until_s, mask)
        return mask

    def places(self) -> reservation_rules.ReservationRules | None:
        """Return the backlog's view, None without reservations."""
        if self._options is None:
            return None
        return reservation_rules.ReservationRules(self._book.view(),
            self._options.guard)

    def needed(self, within_s: float) -> dict[str, float]:
        """Return {host: in how many seconds it is needed}, 0 for now."""
        now_s = self._book.now_s()
        return {name: max(0.0, start_s - now_s) for name, start_s
                in self._book.leases.needed(
                    now_s, now_s + int(within_s)).items()}
