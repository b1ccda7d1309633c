# SPDX-License-Identifier: Apache-2.0
"""Evictions: notices, ends of servers, and requests that wait for them."""

from collections.abc import Callable, Sequence
from typing import Any

from nova_preempt.core import eviction_actions
from nova_preempt.core import requester_liveness
from nova_preempt.core.classes.server_clocks import Kind
from nova_preempt.core.eviction import eviction_controller
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.core.eviction import eviction_values
from nova_preempt.core.eviction import expiry_controller
from nova_preempt.core.model import SECOND
from nova_preempt.core.observed_server import ObservedServer
from nova_preempt.core.scheduling import eviction_budgets
from nova_preempt.core.scheduling.preemption_plan import Plan
from nova_preempt.simulator import simulated_returns
from nova_preempt.simulator import simulated_servers
from nova_preempt.simulator.events import Phase
from nova_preempt.simulator.open_decisions import BudgetTracker
from nova_preempt.simulator.open_decisions import Decision
from nova_preempt.simulator.open_decisions import OpenDecisions
from nova_preempt.simulator.open_decisions import RequesterLiveness
from nova_preempt.simulator.simulated_servers import HostSearch
from nova_preempt.simulator.simulated_servers import Server
from nova_preempt.simulator.simulated_servers import State
from nova_preempt.simulator.simulation_state import SimulationState

#: As the engine names it.
MAXIMUM_RUNTIME = 'maximum_runtime'

#: {call of Nova's API: (what is drawn, Nova's task meanwhile, Nova's state
#: afterwards, ours)}
_CALLS = {
    'force_delete': ('delete', 'deleting', None, State.OVER),
    'shelve': ('shelve', 'shelving', 'shelved_offloaded', State.SHELVED),
    'stop': ('stop', 'powering-off', 'stopped', State.STOPPED)}


class Evictions:
    """Carries out the evictions that are under way.

    :param served: called with a server whose host is free of its victims
    :param again: called with a server that is to be decided anew, and the
        HostSearch that this is
    :param shelved: called with a victim that returns
    :ivar ending: {uuid of a victim that has not given way yet: Server}
    :ivar decisions: an open_decisions.OpenDecisions
    :ivar stopped: those that were stopped
    :ivar requests: an open_decisions.RequesterLiveness
    """

    def __init__(self, world: SimulationState,
                 served: Callable[[Server], None], again: Callable[..., None],
                 shelved: Callable[[Server], None]) -> None:
        self.ending: dict[str, Server] = {}
        self.decisions = OpenDecisions(world)
        self.requests = RequesterLiveness(world)
        self._world = world
        self._served = served
        self._again = again
        self._shelved = shelved
        self._budgets = BudgetTracker(world)
        self.stopped = simulated_returns.StoppedVictims(world)

    # -- how it begins -----------------------------------------------------

    def begin(self, plan: Plan, server: Server, attempt: HostSearch) -> None:
        """Begin evictions; victims lose their allocations at once."""
        world = self._world
        host = world.cloud.hosts[plan.host.uuid]
        decision = self.decisions.add(host, server, attempt)
        for uuid, kept in plan.retained().items():
            world.cloud.put(host, uuid, {
                name: amount for (_, name), amount in kept.items()},
                host.servers[uuid])
        world.report.decisions['preemptions'] += 1
        world.report.decisions['cost_us'] += plan.cost_us
        self._notify(decision, [world.servers[victim.uuid]
                                for victim in plan.victims])

    def expire(self, server: Server) -> None:
        """End a server that has run for as long as it may."""
        if server.state is not State.RUNNING:
            return
        world = self._world
        now_us = simulated_servers.clock_us(world.events.now_us)
        step = expiry_controller.step(
            expiry_controller.Observed((
                server.current_host.servers[server.boot.id],),
                                       world.options.maximum_runtime_s,
                                       world.options.policy.action),
            None, now_us)
        if step.wake_at_us is not None:
            world.later(server, step.wake_at_us - now_us, Phase.POLL,
                        self.expire)
        for _ in step.intents:
            world.report.note('expired', server)
            self.end(server, MAXIMUM_RUNTIME)

    def end(self, server: Server, operation: str) -> None:
        """End a server that runs, for the sake of no request."""
        self._notify(self.decisions.add(
            server.current_host, operation=operation), [server])

    def end_all(self, victims: Sequence[Server], reservation: str) -> None:
        """End servers of one host, which leave nothing behind there.

        :param reservation: the id of the one that needs the host empty
        """
        self._notify(self.decisions.add(
            victims[0].current_host, operation=requester_liveness.RESERVATION,
            reservation=reservation), victims)

    def budgets(self) -> eviction_budgets.EvictionBudgets | None:
        """Return the remaining budgets, None without any."""
        return self._budgets.left(self.ending)

    def _notify(self, decision: Decision, victims: Sequence[Server]) -> None:
        for victim in victims:
            decision.victims[victim.boot.id] = victim
            decision.terms[victim.boot.id] = self._victim(decision, victim)
        decision.memory = eviction_controller.begin(decision.terms.values(),
                                                    self._world.events.now_us)
        self._step(decision)

    def _victim(self, decision: Decision,
                victim: Server) -> eviction_values.Victim:
        """Return the terms on which a server ends."""
        options = self._world.options
        policy, operation = options.policy, decision.purpose.operation
        terms = victim.terms
        action = eviction_actions.choose(terms.action, policy.actions)
        if operation == requester_liveness.RESERVATION:
            action = eviction_actions.vacating(
                terms, action, 'stopped' if victim.state is State.STOPPED
                else 'active')
        return eviction_values.Victim(
            victim.boot.id, decision.uuid,
            eviction_steps.VictimTerms(
                decision.host.name, action, policy.actions,
                for_good=operation in eviction_steps.FOR_GOOD,
                timeout_s=options.termination_timeout_s),
            policy.notice.length_s(terms.notice_s))

    # -- step by step ------------------------------------------------------

    def _step(self, decision: Decision) -> None:
        """Carry out due steps, and schedule the next one."""
        if decision.uuid not in self.decisions.open:
            return
        now_us = self._world.events.now_us
        before = [decision.victims[uuid] for uuid in decision.memory.pending]
        step = eviction_controller.step(
            decision.observed(requester_liveness.why_unneeded(
                decision.purpose, self.requests,
                simulated_servers.at(now_us).replace(tzinfo=None))),
                decision.memory, now_us)
        decision.memory = step.memory
        for intent in step.intents:
            self._carry_out(decision, intent)
        memory = decision.memory
        if not memory.pending and not memory.is_over:
            self._step(decision)
        elif not memory.is_over:
            if step.wake_at_us is not None:
                self._world.events.add(step.wake_at_us, Phase.STEP,
                                       self._step, decision)
        elif memory.unwanted:
            self._roll_back(decision, before)
        elif memory.stuck:
            self._abandon(decision)
        else:
            self._complete(decision)

    def _carry_out(self, decision: Decision,
                   intent: eviction_values.Intent) -> None:
        if isinstance(intent, eviction_values.GiveNotice):
            for uuid in intent.victims:
                self._give_notice(decision, decision.victims[uuid])
        elif isinstance(intent, eviction_values.CallNova):
            self._ask(decision, decision.victims[intent.victim], intent.method)
        elif isinstance(intent, eviction_values.CloseVictim):
            self.ending.pop(intent.victim, None)
            decision.memory = decision.memory.close(intent.victim)

    def _give_notice(self, decision: Decision, victim: Server) -> None:
        self.ending[victim.boot.id] = victim
        # Of one that was stopped nobody runs who could know of it.
        if victim.state is not State.STOPPED:
            victim.state = State.NOTICE
            self._world.report.note('notice', victim, decision=decision.uuid)

    def _ask(self, decision: Decision, victim: Server, method: str) -> None:
        """Schedule the effect of a call to Nova after its delay."""
        uuid = victim.boot.id
        decision.memory = decision.memory.note(
            uuid, asked=method, asked_us=self._world.events.now_us)
        decision.shown[uuid] = ObservedServer(
            uuid, 'stopped' if victim.state is State.STOPPED else 'active',
            _CALLS[method][1], victim.current_host.name)
        self.end_server(victim, method, self._has_ended, decision, method)

    def end_server(self, server: Server, method: str,
                   done: Callable[..., None], *arguments: Any) -> None:
        """End a server, and call ``done`` in the time that this takes.

        What it had to do is left.
        """
        now_us = self._world.events.now_us
        if server.state is not State.STOPPED:
            self._world.report.mark(server, Kind.EVICTED)
        if server.state not in (State.STOPPED, State.BOOTING):
            ran_us = now_us - server.since_us
            server.ran_us += ran_us
            if server.left_us is not None:
                server.left_us = max(0, server.left_us - ran_us)
            server.since_us = now_us
        server.epoch += 1
        server.state = State.ENDING
        delay_us = self._world.sampler.draw_us(_CALLS[method][0])
        self._world.later(server, delay_us, Phase.END, done, *arguments)

    def _has_ended(self, victim: Server, decision: Decision, method: str
                   ) -> None:
        """Note that a call of Nova's API has done its work."""
        uuid = victim.boot.id
        before = decision.shown[uuid]
        was_stopped = before is not None and before.vm_state == 'stopped'
        _, _, vm_state, state = _CALLS[method]
        decision.shown[uuid] = None if vm_state is None else ObservedServer(
            uuid, vm_state, None,
            victim.current_host.name if state is State.STOPPED else None)
        if was_stopped:
            self._offload(victim)
        else:
            self._release(victim, state,
                          for_good=decision.terms[uuid].terms.for_good)
        self.ending.pop(uuid, None)
        if uuid in decision.memory.pending:
            # The time that was drawn for a stop is that for its lock, too.
            decision.memory = decision.memory.note(
                uuid, locked_us=-round(eviction_steps.LOCKED_S * SECOND))
        self._step(decision)

    def _release(self, victim: Server, state: State, *, for_good: bool
                 ) -> None:
        world = self._world
        uuid = victim.boot.id
        host = victim.current_host
        report = world.report
        report.hold(victim, -1)
        world.cloud.take_away(host, uuid)
        self._budgets.ended(victim)
        was_deleted = victim.state is State.DELETED
        victim.state = State.OVER if was_deleted else state
        if victim.state is State.OVER:
            report.mark(victim, Kind.ENDED)
            world.forget(victim)
            if not was_deleted:
                report.note('deleted', victim, host=host.name)
                report.lost(victim, victim.ran_us)
            return
        report.note(state.value, victim, host=host.name)
        world.preemptions[uuid] = world.preemptions.get(uuid, 0) + 1
        if state is State.STOPPED:
            self.stopped.keep(victim)
        elif victim.terms.restore and not for_good:
            self._shelved(victim)

    def _offload(self, victim: Server) -> None:
        """Take a stopped victim off its host for good."""
        if victim.state is State.DELETED:
            self.stopped.forget(victim)
            return
        self._world.cloud.take_away(victim.current_host, victim.boot.id)
        victim.state = State.SHELVED
        self._world.report.note('shelved', victim,
                                host=victim.current_host.name)
        if victim.terms.restore:
            self._shelved(victim)

    def _complete(self, decision: Decision) -> None:
        """Give the space to the server once all victims have left."""
        self.decisions.close(decision)
        if decision.server is not None:
            self._served(decision.server)
        for waiter in self.decisions.released(decision):
            self._again(*waiter)

    # -- what comes between ------------------------------------------------

    def gone(self, victim: Server) -> None:
        """Handle a server that is gone, perhaps a victim."""
        self.ending.pop(victim.boot.id, None)
        for decision in list(self.decisions.open.values()):
            if decision.is_open(victim):
                self._step(decision)

    def cancel(self, server: Server) -> None:
        """The owner of one that waits has deleted it."""
        if not self.decisions.leave(server):
            for decision in list(self.decisions.open.values()):
                if decision.server is server:
                    self._step(decision)

    def _abandon(self, decision: Decision) -> None:
        """Search another host, as a victim has not ended in time."""
        stuck = decision.memory.stuck
        self._roll_back(decision, [victim for uuid, victim
                                   in decision.victims.items()
                                   if uuid in stuck])
        if decision.server is not None:
            self._world.report.decisions['given_up'] += 1
            attempt = decision.attempt
            self._again(decision.server, HostSearch(
                attempt.left - 1, {*attempt.excluded, *stuck}, is_stuck=True))

    def _roll_back(self, decision: Decision, victims: Sequence[Server]
                   ) -> None:
        """Restore the victims that have not begun to end."""
        self.decisions.close(decision)
        if decision.server is not None:
            self._restore_allocations(decision.server, victims)
        for victim in victims:
            if victim.state in (State.NOTICE, State.STOPPED):
                self.ending.pop(victim.boot.id, None)
            if victim.state is State.NOTICE:
                victim.state = State.RUNNING
                # Its time may have come meanwhile.
                self._world.later(victim, 0, Phase.POLL, self.expire)
                self._world.report.note('kept', victim)
        for waiter in self.decisions.released(decision):
            self._again(*waiter)

    def _restore_allocations(self, server: Server, victims: Sequence[Server]
                             ) -> None:
        """Move the space back from a server to its victims."""
        cloud = self._world.cloud
        self._world.report.hold(server, -1)
        cloud.take_away(server.current_host, server.boot.id)
        server.host = None
        self._world.report.mark(server, Kind.QUEUED)
        for victim in victims:
            if victim.state in _THERE:
                host, uuid = victim.current_host, victim.boot.id
                cloud.put(host, uuid, victim.kind.resources,
                          host.servers[uuid])


#: In these a victim has not given way.
_THERE = frozenset((State.NOTICE, State.ENDING, State.DELETED))
