# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Servers that give way: their notice, their end, and who waits for that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
import itertools
from typing import Any

from nova_preempt.core import actions
from nova_preempt.core import ending
from nova_preempt.core import terms as core_terms
from nova_preempt.core import wanted as core_wanted
from nova_preempt.core.classes.clocks import Kind
from nova_preempt.core.eviction import controller
from nova_preempt.core.eviction import expiry
from nova_preempt.core.model import SECOND
from nova_preempt.core.scheduling import budgets as core_budgets
from nova_preempt.core.scheduling.joining import Releasing
from nova_preempt.core.scheduling.plan import Plan
from nova_preempt.simulator import budgets
from nova_preempt.simulator import memory
from nova_preempt.simulator import servers
from nova_preempt.simulator import stopped
from nova_preempt.simulator import wanted
from nova_preempt.simulator.decisions import Decision
from nova_preempt.simulator.decisions import Leaving
from nova_preempt.simulator.decisions import releasing
from nova_preempt.simulator.events import Turn
from nova_preempt.simulator.servers import Server
from nova_preempt.simulator.servers import State

#: As the engine names it.
MAXIMUM_RUNTIME = 'maximum_runtime'

#: What the core's step says has become of a victim.
_STATES = {ending.SHELVED: State.SHELVED, ending.STOPPED: State.STOPPED,
           ending.GONE: State.OVER}


class Endings:
    """Those that are under way.

    :param parts: a run.Parts
    :param served: called with a server whose host is free of its victims
    :param again: called with a server that is to be decided anew, uuids that
        must not end for it, decisions that it has waited for, and how many
        attempts it has left
    :param shelved: called with a victim that returns
    :ivar ending: {uuid of a victim that has not given way yet: Server}
    :ivar open: {uuid: Decision}
    :ivar stopped: those that were stopped
    :ivar others: tells how many wait in schedulers for other things
    :ivar requests: a wanted.Requests
    """

    def __init__(self, parts: Any, served: Callable[[Server], None],
                 again: Callable[..., None],
                 shelved: Callable[[Server], None]) -> None:
        self.ending: dict[str, Server] = {}
        self.open: dict[str, Decision] = {}
        self.others: Callable[[], int] = lambda: 0
        self.requests = wanted.Requests(parts)
        # The open ones by the uuid of their host.
        self._by_host: dict[str, dict[str, Decision]] = {}
        self._for_requests = 0
        self._parts = parts
        self._served = served
        self._again = again
        self._shelved = shelved
        self._joined: dict[str, tuple[Server, str]] = {}
        self._serial = itertools.count(1)
        self._budgets = budgets.Budgets(parts)
        self.stopped = stopped.Stopped(parts)

    @property
    def waiting(self) -> int:
        """How many requests wait for somebody's end, or for hosts."""
        return self.others() + len(self._joined) + self._for_requests

    def releasing(self, waited: Collection[str] = ()
                  ) -> Mapping[str, Releasing]:
        """Return what is given up, by host.

        :param waited: decisions that were waited for before
        """
        return Leaving(self._by_host, self._release_of, waited)

    def _release_of(self, decisions: Sequence[Decision]) -> Releasing:
        host = decisions[0].host.uuid
        return releasing(
            decisions, (server.kind.resources for server, waits_on
                        in self._joined.values() if waits_on == host),
            self._parts.options.policy.actions, self._parts.events.now_us)

    # -- how it begins -----------------------------------------------------

    def begin(self, plan: Plan, server: Server, excluded: Collection[str],
              attempts_left: int) -> None:
        """Have victims give way; they lose at once what is missing."""
        parts = self._parts
        host = parts.cloud.hosts[plan.host.uuid]
        decision = self._add(host, server, attempts_left, excluded)
        for uuid, kept in plan.retained().items():
            parts.cloud.put(host, uuid, {
                name: amount for (_, name), amount in kept.items()},
                host.servers[uuid])
        parts.report.decisions['preemptions'] += 1
        parts.report.decisions['cost_us'] += plan.cost_us
        self._notify(decision, [parts.servers[victim.uuid]
                                for victim in plan.victims])

    def expire(self, server: Server, epoch: int) -> None:
        """End a server that has run for as long as it may."""
        if server.epoch != epoch or server.state is not State.RUNNING:
            return
        parts = self._parts
        step = expiry.step(
            expiry.Observed((server.host.servers[server.boot.id],),
                            parts.options.maximum_runtime_s,
                            parts.options.policy.action),
            None, servers.clock_us(parts.events.now_us))
        if step.wake_at_us is not None:
            parts.events.add(step.wake_at_us - servers.clock_us(0), Turn.LOOK,
                             self.expire, server, epoch)
        for _ in step.intents:
            parts.report.note('expired', server)
            self.end(server, MAXIMUM_RUNTIME)

    def end(self, server: Server, operation: str) -> None:
        """End a server that runs, for the sake of no request."""
        self._notify(self._add(server.host, operation=operation), [server])

    def end_all(self, victims: Sequence[Server], reservation: str) -> None:
        """End servers of one host, which leave nothing behind there.

        :param reservation: the id of the one that needs the host empty
        """
        decision = self._add(victims[0].host, None, 0, (),
                             core_wanted.RESERVATION, reservation)
        for victim in victims:
            if victim.state is State.STOPPED:
                self._offload(decision, victim)
        self._notify(decision, [victim for victim in victims
                                if victim.boot.id not in decision.open])

    def _offload(self, decision: Decision, victim: Server) -> None:
        """Nobody needs a notice of one that has been stopped."""
        decision.open[victim.boot.id] = (victim, self._parts.events.now_us)
        self.ending[victim.boot.id] = victim
        self.stopped.offload(victim, self._is_offloaded, decision)

    def _is_offloaded(self, decision: Decision, victim: Server,
                      returns: bool) -> None:
        if returns:
            self._shelved(victim)
        self._gave_way(decision, victim)

    def ending_for_none(self) -> list[Server]:
        """Return those that end now, for no server in their place."""
        return [victim for decision in self.open.values()
                if decision.server is None
                for victim, _ in decision.open.values()]

    def budgets(self) -> core_budgets.Budgets | None:
        """Return what is left of them, None where none is set."""
        return self._budgets.left(self.ending)

    def join(self, server: Server, plan: Plan, excluded: Collection[str],
             waited: Collection[str], attempts_left: int) -> None:
        """Have a server wait for ends that are under way."""
        server.state = State.WAITING
        self._joined[server.boot.id] = (server, plan.host.uuid)
        joins = {uuid for uuid in plan.joins if uuid in self.open}
        waiter = (server, joins, (excluded, {*waited, *joins},
                                  attempts_left))
        for uuid in sorted(joins):
            self.open[uuid].waiters.append(waiter)
        self._parts.report.note('joined', server)

    def _add(self, host: memory.MemoryHost, server: Server | None = None,
             attempts_left: int = 0, excluded: Collection[str] = (),
             operation: str = '', reservation: str = '') -> Decision:
        decision = Decision(f'd{next(self._serial)}', host, server, operation,
                            reservation, attempts_left, excluded)
        self.open[decision.uuid] = decision
        self._by_host.setdefault(host.uuid, {})[decision.uuid] = decision
        self._for_requests += server is not None
        return decision

    def _close(self, decision: Decision) -> bool:
        """It is open no more; whether it was."""
        if self.open.pop(decision.uuid, None) is None:
            return False
        there = self._by_host[decision.host.uuid]
        del there[decision.uuid]
        if not there:
            del self._by_host[decision.host.uuid]
        self._for_requests -= decision.server is not None
        return True

    def _notify(self, decision: Decision, victims: Sequence[Server]) -> None:
        parts = self._parts
        until_us = []
        for victim in victims:
            record = victim.host.servers[victim.boot.id]
            notice_s = parts.options.policy.notice_s(record)
            until_us.append(parts.events.now_us + notice_s * SECOND)
            victim.state = State.NOTICE
            decision.open[victim.boot.id] = (victim, until_us[-1])
            self.ending[victim.boot.id] = victim
            parts.report.note('notice', victim, decision=decision.uuid)
        for victim in victims:
            parts.events.add(controller.begin_at(until_us), Turn.STEP,
                             self._act, decision, victim)

    # -- step by step ------------------------------------------------------

    def _act(self, decision: Decision, victim: Server) -> None:
        """The notice of a victim is over."""
        known = decision.open.get(victim.boot.id)
        if (known is None or known[0] is not victim
                or victim.state is not State.NOTICE):
            return
        parts = self._parts
        now_us = parts.events.now_us
        if core_wanted.why_not(decision.purpose(), self.requests,
                               servers.at(now_us).replace(tzinfo=None)):
            self._take_back(decision)
            return
        record = victim.host.servers[victim.boot.id]
        terms = core_terms.of(record, parts.options.policy.actions,
                              parts.options.policy.notice)
        if decision.operation == core_wanted.RESERVATION:
            action = actions.vacating(record, terms.action, 'active')
            terms = dataclasses.replace(
                terms, action=action,
                restore=record.restore and action == actions.SHELVE)
        step = ending.next_step(
            ending.Seen('active', None, victim.host.name),
            self._terms(decision, terms.action),
            ending.Progress(now_us / SECOND, now_us / SECOND),
            now_us / SECOND, host_up=True)
        took_us = parts.drawn.us(_KINDS[step.detail])
        self.suspend(victim)
        victim.state = State.ENDING
        parts.events.add(now_us + took_us, Turn.END, self._has_ended,
                         decision, victim, terms, victim.epoch)
        timeout_us = parts.options.termination_timeout_s * SECOND
        if took_us >= timeout_us and decision.server is not None:
            parts.events.add(now_us + timeout_us, Turn.STEP, self._give_up,
                             decision)

    def suspend(self, server: Server) -> None:
        """A server runs no more; what it had to do is left."""
        self._parts.report.mark(server, Kind.EVICTED)
        ran_us = self._parts.events.now_us - server.since_us
        server.ran_us += ran_us
        if server.left_us is not None:
            server.left_us = max(0, server.left_us - ran_us)
        server.since_us = self._parts.events.now_us
        server.epoch += 1

    def _terms(self, decision: Decision, action: str) -> ending.Terms:
        options = self._parts.options
        return ending.Terms(decision.host.name, action,
                            options.policy.actions,
                            for_good=decision.operation in ending.FOR_GOOD,
                            timeout_s=options.termination_timeout_s)

    def _has_ended(self, decision: Decision, victim: Server,
                   terms: core_terms.Terms, epoch: int) -> None:
        """What was asked for has been done."""
        if victim.epoch != epoch:
            return
        seen = {actions.DELETE: None,
                actions.SHELVE: ending.Seen('shelved_offloaded', None, None),
                actions.STOP: ending.Seen('stopped', None,
                                          victim.host.name)}[terms.action]
        now_s = self._parts.events.now_us / SECOND
        step = ending.next_step(
            seen, self._terms(decision, terms.action),
            ending.Progress(now_s, acting_since=now_s), now_s, holds=False)
        self._leave(victim, _STATES[step.detail],
                    returns=terms.restore
                    and decision.operation not in ending.FOR_GOOD)
        self._gave_way(decision, victim)

    def _leave(self, victim: Server, state: State, *, returns: bool) -> None:
        parts = self._parts
        uuid = victim.boot.id
        host = victim.host
        report = parts.report
        report.hold(victim, -1)
        parts.cloud.take_away(host, uuid)
        self._budgets.ended(victim)
        was_deleted = victim.state is State.DELETED
        victim.state = State.OVER if was_deleted else state
        if victim.state is State.OVER:
            report.mark(victim, Kind.ENDED)
            parts.forget(victim)
            if not was_deleted:
                report.note('deleted', victim, host=host.name)
                report.lost(victim, victim.ran_us)
            return
        report.note(state.value, victim, host=host.name)
        preemptions = parts.options.policy.preemptions
        preemptions[uuid] = preemptions.get(uuid, 0) + 1
        if state is State.STOPPED:
            self.stopped.keep(victim)
        elif returns:
            self._shelved(victim)

    def _gave_way(self, decision: Decision, victim: Server) -> None:
        self.ending.pop(victim.boot.id, None)
        decision.open.pop(victim.boot.id, None)
        if decision.open or not self._close(decision):
            return
        if decision.server is not None:
            self._served(decision.server)
        self._release(decision)

    def _release(self, decision: Decision) -> None:
        """Decide those anew who have waited for the last of their ends."""
        for server, joins, (excluded, waited, left) in decision.waiters:
            joins.discard(decision.uuid)
            if not joins and self._joined.pop(server.boot.id, None):
                self._again(server, excluded, waited, left)

    # -- what comes between ------------------------------------------------

    def left(self, victim: Server) -> None:
        """Somebody is gone otherwise; it may have been about to give way."""
        self.ending.pop(victim.boot.id, None)
        decision = self._decision_of(victim)
        if decision is not None:
            self._gave_way(decision, victim)

    def not_wanted(self, server: Server) -> None:
        """The owner of one that waits has deleted it."""
        if self._joined.pop(server.boot.id, None) is None:
            for decision in list(self.open.values()):
                if decision.server is server:
                    self._take_back(decision)

    def _decision_of(self, victim: Server) -> Decision | None:
        return next((each for each in self.open.values()
                     if victim.boot.id in each.open), None)

    def _give_up(self, decision: Decision) -> None:
        """Somebody has not given way in time: look for another host."""
        if decision.uuid not in self.open:
            return
        stuck = {uuid for uuid, (victim, _) in decision.open.items()
                 if victim.state is not State.NOTICE}
        self._parts.report.decisions['given_up'] += 1
        self._take_back(decision)
        self._again(decision.server, {*decision.excluded, *stuck}, (),
                    decision.attempts_left - 1, is_stuck=True)

    def _take_back(self, decision: Decision) -> None:
        """Give victims back what was taken; who ends already goes on."""
        self._close(decision)
        if decision.server is not None:
            self._roll_back(decision)
        for uuid, (victim, _) in list(decision.open.items()):
            if victim.state is State.NOTICE:
                victim.state = State.RUNNING
                self.ending.pop(uuid, None)
                # So that the end of this notice is nobody's.
                del decision.open[uuid]
                # Its time may have come meanwhile.
                self._parts.events.add(
                    self._parts.events.now_us, Turn.LOOK, self.expire,
                    victim, victim.epoch)
                self._parts.report.note('kept', victim)
        self._release(decision)

    def _roll_back(self, decision: Decision) -> None:
        """Move the space back from a server to its victims."""
        cloud, server = self._parts.cloud, decision.server
        self._parts.report.hold(server, -1)
        cloud.take_away(server.host, server.boot.id)
        server.host = None
        self._parts.report.mark(server, Kind.QUEUED)
        for uuid, (victim, _) in decision.open.items():
            cloud.put(victim.host, uuid, victim.kind.resources,
                      victim.host.servers[uuid])


#: What is drawn where Nova is asked for something.
_KINDS = {'force_delete': 'delete', 'shelve': 'shelve', 'stop': 'stop'}
