# SPDX-License-Identifier: Apache-2.0
"""A simulation: a trace comes to a cloud, and the core decides.

Time jumps from event to event. Equal settings, options, traces and seeds give
equal results, to the microsecond.
"""

from collections.abc import Callable, Iterable
import dataclasses
import math
from typing import Any

from nova_preempt.core import poll_timing
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.model import SECOND
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.core.scheduling import scheduling_cycle
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.simulator import delays
from nova_preempt.simulator import events
from nova_preempt.simulator import indexed_cloud
from nova_preempt.simulator import memory_cloud
from nova_preempt.simulator import simulated_backlog
from nova_preempt.simulator import simulated_classes
from nova_preempt.simulator import simulated_evictions
from nova_preempt.simulator import simulated_headroom
from nova_preempt.simulator import simulated_power
from nova_preempt.simulator import simulated_reservations
from nova_preempt.simulator import simulated_returns
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator import simulation_report
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.simulated_cloud_view import SimulatedCloudView
from nova_preempt.simulator.simulated_servers import HostSearch
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_settings import CloudSetting
from nova_preempt.simulator.simulation_settings import Options
from nova_preempt.simulator.simulation_state import SimulationState
from nova_preempt.simulator.time_series import Series
from nova_preempt.simulator.traces import trace_model

SimulationError = simulated_servers.SimulationError


class Simulation:
    """Runs a simulation.

    :param seed: of all that is drawn
    :param write: takes the record of each event, see simulation_report.Report
    :param series: grows with what happens, None if nobody wants it
    """

    def __init__(self, setting: CloudSetting, options: Options, seed: int = 0,
                 write: Callable[[dict[str, Any]], None] | None = None,
                 series: Series | None = None) -> None:
        clock = events.EventQueue()
        # What servers have been through counts for this simulation alone.
        preemptions: dict[str, int] = {}
        options = dataclasses.replace(options, policy=dataclasses.replace(
            options.policy, preemptions=preemptions, first_batch=1))
        self._world = SimulationState(
            clock, indexed_cloud.IndexedCloud(
                (host for kind in setting.hosts for host in kind.hosts()),
                setting.spread),
            options, delays.DelaySampler(setting.delays, seed),
            simulation_report.Report(lambda: clock.now_us, write, series),
            preemptions=preemptions)
        self._setting = setting
        self._kinds = simulated_servers.ServerKinds(setting, options)
        self._evictions = simulated_evictions.Evictions(
            self._world, self._start, self._decide_again,
            lambda victim: self._returns.add(victim))
        self._headroom = simulated_headroom.Headroom(self._world,
                                                     self._evictions)
        self._classes: simulated_classes.SimulatedClasses | None = None
        if options.classes is not None:
            self._classes = simulated_classes.SimulatedClasses(self._world,
                                                               options.classes,
                                                               self._evictions)
            self._world.report.marked = self._classes.note
            if options.classes.claims is not None:
                options.classes.claims.bind(self._classes)
        self._returns = simulated_returns.Returns(
            self._world, self._decide_again, self._headroom.has_room,
            self._classes)
        self._reservations = simulated_reservations.Reservations(
            self._world, setting, self._evictions, self._decide,
            self._returns.is_back, lambda: self._power)
        self._moves = self._reservations.migration
        self._power = simulated_power.make(
            self._world, setting, self._decide_again, self._refuse,
            lambda within_s: self._reservations.needed(within_s))
        if self._power is not None:
            self._evictions.decisions.others = self._power.waking.__len__
        self._backlog = None if options.backlog is None else (
            simulated_backlog.SimulatedBacklog(
                self._world, options.backlog, self._begin,
                self._reservations.places, self._power))

    def run(self, trace: Iterable[trace_model.Event],
            until_us: int | None = None) -> dict[str, Any]:
        """Run all events; return the summary.

        :param trace: in order of time
        :param until_us: when it ends, with the last event by default
        :raises SimulationError: the trace names what the setting has not
        """
        clock = self._world.events
        for event in trace:
            if until_us is not None and event.at_us > until_us:
                break
            if isinstance(event, trace_model.Boot):
                clock.run(event.at_us, Phase.BOOT)
                self._boot(event)
            elif isinstance(event, trace_model.Reserve):
                clock.run(event.at_us, Phase.BOOT)
                self._reserve(event)
            else:
                clock.run(event.at_us, Phase.END)
                self._delete(event)
        clock.run(clock.now_us if until_us is None else until_us)
        return self.summary()

    def summary(self) -> dict[str, Any]:
        """Return the figures up to now, see Report.summary()."""
        if self._classes is not None:
            self._classes.tell()
        return self._world.report.summary(self._world.cloud.total())

    # -- what users do -----------------------------------------------------

    def _reserve(self, event: trace_model.Reserve) -> None:
        if self._is_taken(event.id):
            raise SimulationError(
                f'reservation {event.id}, requested at '
                f'{event.at_us / SECOND:g} s, has an id that is in use')
        self._reservations.request(event)

    def _is_taken(self, uuid: str) -> bool:
        return uuid in self._world.servers or self._reservations.has(uuid)

    def _boot(self, boot: trace_model.Boot) -> None:
        if self._is_taken(boot.id):
            raise SimulationError(
                f'server {boot.id}, requested at {boot.at_us / SECOND:g} s, '
                'has an id that is in use')
        server = Server(boot, self._kinds.of(boot), left_us=boot.duration_us)
        self._world.servers[boot.id] = server
        if boot.group:
            self._world.groups[boot.id] = (boot.group,)
        self._world.report.note('asked', server)
        self._world.report.mark(server, Kind.QUEUED)
        if self._backlog is not None and (
                boot.class_name in self._setting.waiting):
            self._backlog.add(server)
            return
        self._decide(server)

    def _begin(self, server: Server, host: str) -> None:
        """Start one that has waited, if there is a host for it."""
        found = self._world.cloud.by_name().get(host)
        if found is not None and self._may_take(found, server):
            self._place(server, found)
        else:
            # As if none had been chosen.
            self._decide(server)

    def _may_take(self, host: memory_cloud.MemoryHost, server: Server) -> bool:
        """Return whether Nova would place a server without victims."""
        cloud = self._world.cloud
        where, _ = self._reservations.where(server)
        return host.has_room(server.kind.request) and (
            cloud.is_open(host) and cloud.is_among(host.uuid, where)
            and not (server.kind.terms is not None
                     and self._headroom.is_closed(server.kind.resources)))

    def _delete(self, event: trace_model.End) -> None:
        server = self._world.servers.get(event.id)
        if server is None:
            # It is a reservation, has never been there, or is gone.
            self._reservations.cancel(event.id)
            return
        self._over(server, 'ended')

    def _over(self, server: Server, event: str) -> None:
        world = self._world
        state = server.state
        if state is State.DELETED:
            return
        world.report.note(event, server)
        world.report.mark(server, Kind.ENDED)
        if state is State.ENDING:
            server.state = State.DELETED
            return
        if state is State.STOPPED:
            self._evictions.stopped.forget(server)
            return
        server.epoch += 1
        server.state = State.OVER
        if state is State.WAITING:
            self._evictions.cancel(server)
        elif state is State.SHELVED:
            self._returns.remove(server)
        elif state is State.WAKING and self._power is not None:
            self._power.waking.over(server)
        elif state is State.ASKED and self._backlog is not None:
            self._backlog.remove(server)
        self._returns.is_back(server)
        self._moves.over(server)
        if server.host is not None and state in simulated_servers.ON_HOST:
            world.report.hold(server, -1)
            world.cloud.take_away(server.current_host, server.boot.id)
        world.forget(server)
        if state is State.NOTICE:
            self._evictions.gone(server)

    # -- what is decided ---------------------------------------------------

    def _find(self, server: Server, attempt: HostSearch
              ) -> tuple[str, Plan | None] | None:
        """Return (uuid of a host, plan of its victims) from the core."""
        world = self._world
        kind = server.kind
        policy = world.options.policy
        rank = (preemption_policy.NORMAL if kind.terms is None
                else preemption_policy.PREEMPTIBLE)
        if self._classes is not None:
            policy = self._classes.policy(policy)
            if rank.is_preemptible:
                rank = self._classes.rank(server)
        is_closed = rank.is_preemptible and (
            self._headroom.is_closed(kind.resources))
        where, server.why_not = self._reservations.where(server)
        if server.why_not:
            return None
        answers = SimulatedCloudView(
            world, self._evictions, kind.request, attempt.waited,
            is_closed=is_closed, where=where, enabled=world.options.may_migrate
            if server.moves is not None else world.options.enabled)
        cycle = scheduling_cycle.SchedulingCycle(
            answers, kind.request, policy,
            simulated_servers.at(world.events.now_us), rank, attempt.excluded,
            memo=world.cloud.memo)
        if not is_closed:
            world.cloud.begin(cycle, where)
        found = cycle.place(world.cloud.offered(cycle), lambda *_plan: True)
        return None if found is None else found[0]

    def _decide(self, server: Server,
                attempt: HostSearch | None = None) -> None:
        world = self._world
        attempt = attempt or HostSearch(world.options.max_attempts)
        found = self._find(server, attempt)
        if found is None:
            if self._power is None or not self._power.waking.wait(
                    server, self._reservations.where(server)[0],
                    is_busy=self._evictions.decisions.waiting
                    >= world.options.max_waiting_requests):
                self._refuse(server)
            return
        uuid, plan = found
        if plan is not None and plan.joins:
            self._evictions.decisions.join(server, plan, attempt)
            return
        host = world.cloud.hosts[uuid]
        if plan is None or not plan.victims:
            self._place(server, host)
            return
        self._evictions.begin(plan, server, attempt)
        self._take(server, host)
        server.state = State.WAITING
        world.report.note('preempted' if server.moves is None else 'moving',
                          server, host=host.name,
                          victims=[each.uuid for each in plan.victims])

    def _refuse(self, server: Server) -> None:
        """Refuse a server without host, unless it may wait."""
        if server.moves is not None:
            self._moves.refused(server)
            return
        if server.tries:
            # It has been there before, and will be asked to come again.
            server.state = State.SHELVED
            self._world.report.mark(server, Kind.EVICTED)
            self._returns.keep(server)
            return
        if self._backlog is not None and self._backlog.has(server):
            return
        self._world.report.note('refused', server, **(
            {'why': server.why_not} if server.why_not else {}))
        self._world.report.mark(server, Kind.ENDED)
        server.state = State.OVER
        self._world.forget(server)

    def _place(self, server: Server, host: memory_cloud.MemoryHost) -> None:
        self._take(server, host)
        self._headroom.placed(server)
        if server.moves is not None:
            self._world.report.note('moving', server, host=host.name)
        elif not server.tries:
            self._world.report.note('placed', server, host=host.name)
        self._start(server)

    def _decide_again(self, server: Server, attempt: HostSearch | None = None
                      ) -> None:
        if server.state is State.OVER:
            return
        server.state = State.ASKED
        if attempt is not None and attempt.is_stuck and (
                not poll_timing.should_retry(
                    poll_timing.AttemptFailure.STUCK, conflicts=0,
                    attempts_left=attempt.left, left_s=math.inf)):
            self._refuse(server)
            return
        self._decide(server, attempt)

    def _take(self, server: Server, host: memory_cloud.MemoryHost) -> None:
        """A server takes its room."""
        server.host = host
        if not server.tries:
            server.launched_us = self._world.events.now_us
        record = None
        if server.kind.terms is not None:
            record = server.record(self._world.events.now_us, is_active=False)
        self._world.cloud.put(host, server.boot.id, server.kind.resources,
                              record)
        self._world.report.mark(server, Kind.ALLOCATING)
        if self._power is not None:
            self._power.waking.served(server)
        self._world.report.hold(server, 1)

    # -- what follows ------------------------------------------------------

    def _start(self, server: Server) -> None:
        if server.moves is not None:
            self._moves.begin(server)
            return
        kind = 'unshelve' if server.tries else 'boot'
        server.state = State.BOOTING
        self._world.later(server, self._world.sampler.draw_us(kind),
                          Phase.STEP, self._is_active)

    def _is_active(self, server: Server) -> None:
        world = self._world
        clock = world.events
        was_shelved = bool(server.tries)
        server.state = State.RUNNING
        server.since_us = server.launched_us = clock.now_us
        world.report.mark(server, Kind.RUNNING)
        world.report.note('back' if was_shelved else 'active', server)
        if was_shelved:
            self._returns.is_back(server)
            server.tries = 0
        else:
            world.report.waited(server, clock.now_us - server.boot.at_us)
        if server.kind.terms is not None:
            record = server.record(clock.now_us, is_active=True)
            world.cloud.put(server.current_host, server.boot.id,
                            server.kind.resources, record)
            self._evictions.expire(server)
        if server.left_us is not None:
            world.later(server, server.left_us, Phase.END, self._over,
                        'finished')
