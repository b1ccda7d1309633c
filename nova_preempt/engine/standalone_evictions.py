# SPDX-License-Identifier: Apache-2.0
"""Evicts servers without a requester that takes their capacity.

Reasons are a maximum run time, headroom, a repair or a simulation. Each
eviction is a decision with a record, whose server_uuid is empty.
"""

import concurrent.futures
import dataclasses
import sched
import threading
import time
import uuid

from oslo_log import log as logging
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt import pause_reader
from nova_preempt import requester_identity
from nova_preempt.cloud import parallel_calls
from nova_preempt.core.eviction import eviction_steps
from nova_preempt.db import decisions
from nova_preempt.handover import eviction_policy

LOG = logging.getLogger(__name__)

# With so many open decisions the interval between two polls doubles.
_OFTEN = 100

SIMULATE = 'simulate'

#: How many decisions are stepped at once, which bounds the load on Nova's API.
#: Decisions that wait need no thread.
THREADS = 64


class Evictions:
    """Evicts servers in steps, any number at once with few threads.

    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param handover: a nova_preempt.handover.handover.Handover
    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param budgets: a nova_preempt.handover.budget_reader.BudgetReader
    :param threads: how many decisions are stepped at once
    :param left: called with the names of the nodes that servers have left,
        before their decision is closed
    """

    def __init__(self, process, handover, placement, budgets, threads,
                 left=lambda nodes: None):
        self._process = process
        self._handover = handover
        self._placement = placement
        self._budgets = budgets
        self._left = left
        self._open = set()        # uuids of the decisions
        self._stepper = TimedStepPool(threads, 'ends')

    def begin(self, server, operation, reason, **options):
        """Give notice to a server; see begin_all()."""
        return self.begin_all([server], operation, reason, **options)

    def begin_all(self, servers, operation, reason, restore=True, cost_us=0,
                  within_budgets=False, leave=False,
                  asked_by=requester_identity.ENGINE):
        """Give notice to servers of one host in one decision, and evict them.

        :param servers: core.model.PreemptibleServers
        :param operation: why, in one word
        :param restore: False if they must not come back
        :param within_budgets: whether they may only end if the budgets of
            their projects and of their server groups allow it
        :param leave: whether the host must be vacated: a server that its own
            action would keep there (stop), or that cannot end by it in its
            state, is shelved if possible, and else deleted
        :param asked_by: the caller's identity, see requester
        :returns: the uuid of the decision
        :raises AlreadyEnding: a server is being evicted already
        :raises Paused: an operator has paused it
        :raises OverBudget: the budgets do not allow it
        """
        process, handover = self._process, self._handover
        process.pauses.check(pause_reader.of_operation(operation))
        decision = decisions.Decision(
            uuid=str(uuid.uuid4()), server_uuid='', operation=operation,
            status=decisions.CLAIMED, owner=process.owner.acquire(),
            host=servers[0].host, cost_us=cost_us, reason=reason,
            request_id=asked_by.get('request_id', ''),
            victims=tuple(parallel_calls.call(
                lambda server: self._make_victim(
                    server, operation, cost_us, restore, leave), servers)),
            record={'operation': operation, 'why': reason,
                    'node': servers[0].node, 'asked_by': asked_by,
                    'one_time': eviction_policy.one_time(servers)})
        handover.claims.active.add(decision.uuid)
        try:
            process.decisions.create_decision(
                decision, **(self._budgets.guard(decision.victims)
                             if within_budgets else {}))
        except Exception:
            handover.claims.active.discard(decision.uuid)
            raise
        # Quoted: the reason may be a user's text.
        LOG.info('Server %s on host %s ends: %r (%s %s; asked by %s)',
                 ', '.join(server.uuid for server in servers), decision.host,
                 reason, operation, decision.uuid,
                 requester_identity.text(asked_by))
        handover.events.start(decision)
        nodes = {server.node for server in servers}
        self._stepper.add(_Eviction(handover, decision, self._open,
                               lambda: self._left(nodes)).step)
        return decision.uuid

    def _make_victim(self, server, operation, cost_us, restore, leave):
        options = self._process.options
        victim = eviction_policy.make_victim(server, options, cost_us)
        action, resort = victim.action, victim.last_resort
        if leave:
            action = resort = eviction_policy.vacating_action(server, options)
        elif operation in eviction_steps.FOR_GOOD:
            action = resort
        consumer = self._placement.get_consumer(server.uuid)
        return dataclasses.replace(
            victim, action=action, last_resort=resort,
            allocations=consumer.allocations,
            consumer_project_id=consumer.project_id,
            consumer_user_id=consumer.user_id,
            restore=restore and server.restore and resort == 'shelve')

    def ending(self):
        """Return the db.Victims whose eviction frees capacity for nobody."""
        stored = self._process.decisions
        return stored.get_leaving() + [
            victim for decision in stored.get_decisions(
                statuses=[decisions.CLAIMED]) if not decision.server_uuid
            for victim in decision.victims]

    def why_not(self, server):
        """Return why a server cannot be evicted now, '' if it can."""
        return eviction_policy.why_not(server, self._process.options)

    def close(self):
        """Stop stepping; the next engine repairs open decisions."""
        self._stepper.close()


class _Eviction:
    """Carries out one decision, from notice to the end of its victims.

    :param among: the uuids of open decisions; holds this one while it is open
    :param left: called once the victims have left their host
    """

    def __init__(self, handover, decision, among, left):
        self._handover = handover
        self._decision = decision
        self._work = None
        self._among = among
        self._left = left
        among.add(decision.uuid)

    def step(self):
        """Do the next step; see TimedStepPool.add()."""
        try:
            wait_s = self._step()
        except Exception as exc:  # noqa: BLE001 (whatever it is, go back)
            LOG.warning('The eviction of %s failed: %s', ', '.join(
                item.server_uuid for item in self._decision.victims), exc)
            try:
                self._handover.roll_back([self._decision], str(exc))
            finally:
                self._close()
            return None
        if wait_s is None:
            self._close()
        return wait_s

    def _step(self):
        if self._work is None:
            # All victims get notice first, since the notice takes time.
            self._work = self._handover.terminator.begin([self._decision])
            return 0
        if not self._work.step():
            # Polling all decisions takes longer the more there are.
            return self._work.pause_s() * (1 + len(self._among) / _OFTEN)
        # NOTE: before the decision is closed: afterwards the servers would
        # count as using what they have left, and more would be evicted.
        self._left()
        self._handover.settle([self._decision], self._work.memory)
        return None

    def _close(self):
        if self._work is not None:
            self._work.close()
        self._among.discard(self._decision.uuid)
        self._handover.claims.active.discard(self._decision.uuid)


class TimedStepPool:
    """Runs many long tasks with few threads, since no step waits.

    Steps run in the order in which they are due.

    :param threads: how many steps run at once
    """

    def __init__(self, threads, name, monotonic=time.monotonic):
        self._pool = concurrent.futures.ThreadPoolExecutor(
            threads, thread_name_prefix=name)
        self._due = sched.scheduler(monotonic)
        self._changed = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name,
                                        daemon=True)
        self._thread.start()

    def add(self, step, wait_s=0):
        """Start a task as soon as a thread is free.

        :param step: does what is due without waiting; returns after how many
            seconds to call it again, None when it is done
        """
        self._due.enter(wait_s, 0, self._pool.submit, (self._take, step))
        self._changed.set()

    def _run(self):
        while not self._stopped:
            wait_s = self._due.run(blocking=False)
            self._changed.wait(wait_s)
            self._changed.clear()

    def _take(self, step):
        try:
            wait_s = step()
        except Exception:
            LOG.exception('A step failed; its task is dropped.')
            return
        if wait_s is not None:
            self.add(step, wait_s)

    def close(self):
        """Start no more steps, without waiting for those that run."""
        self._stopped = True
        self._changed.set()
        self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)


class EvictionEndpoint:
    """RPC endpoint that evicts a server on request; served by every engine.

    :param servers: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    :param ends: an Evictions
    """

    target = messaging.Target(version='1.0')

    def __init__(self, servers, ends):
        self._servers = servers
        self._ends = ends

    @messaging.expected_exceptions(exceptions.PreemptError)
    def simulate(self, context, server_uuid, project_id, reason):
        """Evict a server; see nova_preempt.rpc.EngineClient."""
        self._servers.refresh()
        server = self._servers.get(server_uuid)
        if server is None:
            self._refuse_unknown(server_uuid, project_id)
        if project_id not in (None, server.project_id):
            raise exceptions.ServerNotFound(
                f'There is no server {server_uuid}.')
        if why_not := self._ends.why_not(server):
            raise exceptions.CannotEnd(
                f'Server {server_uuid} cannot be evicted now: {why_not}.')
        try:
            return self._ends.begin(
                server, SIMULATE,
                reason or ('its owner requested it' if context.project_id
                           == server.project_id else
                           'an administrator requested it'),
                asked_by=requester_identity.describe(context))
        except decisions.AlreadyEnding:
            raise exceptions.AlreadyEnding(
                f'Server {server_uuid} is already being evicted.') from None

    def _refuse_unknown(self, uuid, project_id):
        """Raise the reason why no preemptible server has this uuid."""
        found = self._servers.find(uuid)
        if found is None or project_id not in (None, found.project_id):
            raise exceptions.ServerNotFound(f'There is no server {uuid}.')
        if not found.host:
            raise exceptions.CannotEnd(f'Server {uuid} is not on any host.')
        raise exceptions.NotPreemptible(f'Server {uuid} is not preemptible.')
