# SPDX-License-Identifier: Apache-2.0
"""The backlog in a simulation: servers that wait for capacity.

The core's controller decides, as it does for the engine; here it is told what
became of the servers that it started.
"""

from collections.abc import Callable, Iterator
import dataclasses
import datetime
import math

from nova_preempt.core import eviction_status
from nova_preempt.core import times
from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.backlog.expected_departures import ExpectedDepartures
from nova_preempt.core.backlog.host_capacity import HostCapacity
from nova_preempt.core.eviction_actions import freed
from nova_preempt.core.model import SECOND, PreemptibleServer
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.reservation import reservation_model
from nova_preempt.simulator import simulated_power
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.events import Alarm
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_settings import BacklogOptions
from nova_preempt.simulator.simulation_state import SimulationState

#: In these Nova's record of a server says that it is in the middle of nothing.
_ABLE = frozenset((State.RUNNING, State.NOTICE))
#: What Nova has of a server as its vm_state; of those that are over: nothing.
_VM_STATES = {
    State.ASKED: 'error', State.WAITING: 'building',
    State.WAKING: 'building', State.BOOTING: 'building',
    State.RUNNING: 'active', State.NOTICE: 'active', State.ENDING: 'active',
    State.SHELVED: 'shelved_offloaded', State.STOPPED: 'stopped'}
_VICTIMS = {State.SHELVED: eviction_status.SHELVED,
            State.STOPPED: eviction_status.STOPPED}
_NO_HOST = 'No valid host was found.'


class SimulatedBacklog:
    """Servers with a request in the backlog.

    :param backlog: what an operator has set
    :param start: called with a server and the name of its host, '' where any
        will do
    :param places: tells what a core Places is now, None without reservations
    :param power: switches hosts, None if all are always on
    """

    def __init__(self, world: SimulationState, backlog: BacklogOptions,
                 start: Callable[[Server, str], None],
                 places: Callable[
                     [], reservation_rules.ReservationRules | None],
                 power: simulated_power.SimulatedPower | None = None) -> None:
        self._world = world
        self._backlog = backlog
        self._start = start
        self._places = places
        self._power = power
        self._departures = ExpectedDepartures(
            world.options.maximum_runtime_s, world.options.policy.notice)
        # By id, in order of their requests.
        self._servers: dict[str, Server] = {}
        self._open: dict[str, backlog_model.Request] = {}
        # What was seen of servers last.
        self._seen: dict[str, tuple[State, int, str]] = {}
        self._memory = backlog_controller.Memory()
        self._alarm = Alarm(world.events, Phase.POLL, self._look)
        self._wakes_us = 0

    def add(self, server: Server) -> None:
        """Add the request for a server."""
        self._servers[server.boot.id] = server
        self._open[server.boot.id] = _request(server, self._now())
        self._world.report.note('queued', server)
        self._look_soon()

    def has(self, server: Server) -> bool:
        """Return whether a server without host keeps waiting."""
        return server.boot.id in self._open

    def remove(self, server: Server) -> None:
        """The owner of one wants it no more."""
        for known in (self._servers, self._open, self._seen):
            known.pop(server.boot.id, None)

    def _now(self) -> datetime.datetime:
        """The time as the backlog has it."""
        return simulated_servers.at(self._world.events.now_us).replace(
            microsecond=0, tzinfo=None)

    def _look_soon(self) -> None:
        interval_us = self._backlog.options.interval_s * SECOND
        next_us = (self._world.events.now_us // interval_us + 1) * interval_us
        self._alarm.set(max(self._wakes_us, next_us))

    def _look(self) -> None:
        now_us = times.microseconds(self._now())
        followed = backlog_controller.follow(
            tuple(self._open.values()), (), self._observe(), now_us,
            self._backlog.options.boots)
        for record in followed.records:
            after = boot_outcome.with_verdict(record.request, record.verdict)
            self._open[after.uuid] = after
            if after.state in backlog_model.CLOSED:
                self.remove(self._servers[after.uuid])
        cloud = self._cloud() if followed.waiting else None
        step = backlog_controller.step(backlog_controller.Observed(
            self._backlog.options, self._backlog.order.rank(
                followed.waiting, self._now(), queue_order.shares(
                    followed.requests, cloud.rooms if cloud else ())),
            followed.requests, cloud), self._memory, now_us)
        self._memory = step.memory
        self._wakes_us = (
            step.wake_at_us or 0) - times.microseconds(simulated_servers.EPOCH)
        for intent in step.intents:
            self._carry_out(intent)
        # Those that run are looked at as soon as others wait.
        if any(request.state in (backlog_model.WAITING, backlog_model.PLACING)
               for request in self._open.values()):
            self._look_soon()

    def _observe(self) -> dict[str, request_servers.FoundServers]:
        """Return the changes of the started servers."""
        found = {}
        for uuid, request in self._open.items():
            for boot in request.boots[-1:]:
                server = self._servers[uuid]
                seen = server.state, boot.number, boot.state
                if self._seen.get(uuid) != seen:
                    self._seen[uuid] = seen
                    found[uuid] = _seen(server, boot)
        return found

    def _cloud(self) -> dispatch_values.Cloud:
        places = self._places()
        return dispatch_values.Cloud(
            list(self._rooms(places)), places=places,
            departures=self._departures, planner=self._backlog.planner)

    def _rooms(self,
            places: reservation_rules.ReservationRules | None) -> Iterator[
                HostCapacity]:
        """Yield the capacity of hosts that are on in time."""
        power = self._power
        for host, free, has in self._world.cloud.amounts():
            found = host_capacity.with_departures(HostCapacity(host.name, free,
                free, has, consumers=frozenset(host.allocations),
                free_s=math.inf if places is None else places.free_s(
                host.name)), None if power is None else power.off(host.name),
                power is not None and power.options.demand_wakes, (
                host_capacity.Departure(self._ends_in_s(record), freed(
                host.allocations[record.uuid],
                self._world.options.policy.action(record)), self._may_end(
                record)) for record in host.servers.values()))
            if found is not None:
                yield found

    def _ends_in_s(self, record: PreemptibleServer) -> int | None:
        known, now_us = self._world.servers, self._world.events.now_us
        return self._departures.left_s(
            record, self._world.options.policy.action,
            lambda record: now_us - known[record.uuid].launched_us)

    def _may_end(self, record: PreemptibleServer) -> bool:
        """Return whether a server may be evicted, and is not yet."""
        world = self._world
        return (world.options.enabled
                and world.servers[record.uuid].state in _ABLE
                and world.options.policy.may_be_victim(
                    record, simulated_servers.at(world.events.now_us)))

    def _carry_out(self, intent: backlog_controller.Intent) -> None:
        request = self._open[intent.request.uuid]
        if isinstance(intent, backlog_controller.RecordWaitReason):
            self._open[request.uuid] = dataclasses.replace(
                request, waits_for=intent.note.waits_for,
                position=intent.note.position)
        elif isinstance(intent, backlog_controller.Launch):
            # Nova accepts it, and then decides.
            start, now = intent.start, self._now()
            boot = request_servers.next_boot(
                request, start.flavor_id, start.count, now)
            begun = boot_outcome.with_boot(request, boot)
            self._open[request.uuid] = boot_outcome.with_verdict(
                begun, boot_outcome.judge_answer(
                    begun, boot, boot_outcome.BootAnswer.ACCEPTED, '',
                    request.uuid, now, self._backlog.options.boots))
            (host,) = start.hosts or ('',)
            self._start(self._servers[request.uuid], host)
        elif isinstance(intent, backlog_controller.LogException):
            raise intent.exception


def _seen(server: Server,
        boot: backlog_model.SentBoot) -> request_servers.FoundServers:
    """Return a booted server as Nova's record would show it."""
    uuid, state = server.boot.id, _VM_STATES.get(server.state)
    is_refused = server.state is State.ASKED
    if state is None or (
            is_refused and boot.state not in request_servers.OPEN_BOOTS):
        return request_servers.FoundServers()
    return request_servers.FoundServers((ObservedServer(uuid, state, tags=(
        boot.tag,), fault=_NO_HOST if is_refused else '',
        launched_at=None if is_refused else boot.asked_at),), {uuid: _VICTIMS[
        server.state]} if server.state in _VICTIMS else {})


def _request(server: Server, now: datetime.datetime) -> backlog_model.Request:
    """Return the record that the API would store for a server."""
    boot = server.boot
    alternative = backlog_model.Alternative(
        boot.class_name, boot.class_name, server.kind.resources)
    terms = server.kind.terms
    if terms is not None:
        alternative = dataclasses.replace(
            alternative, preemptible=True, run_s=terms.maximum_runtime_s,
            minimum_run_s=terms.minimum_runtime_s, notice_s=terms.notice_s,
            class_name=terms.class_name)
    body = {
        reservation_rules.HINTS[0]: {
            reservation_model.HINT: boot.reservation}} if (
            boot.reservation) else {}
    return backlog_model.Request(
        boot.id, boot.project, '', '', body, '', 1, 1, (alternative,), now,
        now, class_name=terms.class_name if terms else '')
