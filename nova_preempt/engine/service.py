# SPDX-License-Identifier: Apache-2.0
"""The service around the tasks: who acts, how often, and what if it fails."""

from oslo_log import log as logging

from nova_preempt.db import connection
from nova_preempt.db import decision_owners
from nova_preempt.db import pauses
from nova_preempt.engine import evictions
from nova_preempt.engine import expiry
from nova_preempt.engine import headroom_task
from nova_preempt.engine import janitor
from nova_preempt.engine import periodic_tasks
from nova_preempt.engine import victim_returns
from nova_preempt.handover import allocation_audit
from nova_preempt.handover import process_owner
from nova_preempt.handover import service_context

LOG = logging.getLogger(__name__)

# A look at what has ended is cheap, but nobody is in a hurry.
CYCLES_S = 60
#: How often servers are compared with their allocations, in seconds. What
#: disagrees twice in a row is put right.
AUDIT_INTERVAL_S = 300


class Leadership:
    """Decides which of several engines acts: the leader in the database.

    A leader leads for as long as the lease of its owner lasts. Another engine
    takes over once that has run out, or was given up.

    :param database: a nova_preempt.db.Database
    :param owner: a nova_preempt.handover.process_owner.Owner, which is renewed
    """

    def __init__(self, database, owner):
        self._db = database
        self._owner = owner
        self._failing = False

    def holds(self):
        """Return whether it is this engine, now.

        False where the database is away: nobody acts rather than two.
        """
        try:
            holds = self._holds()
        except Exception as exc:  # noqa: BLE001 (whatever it is, go on)
            if not self._failing:
                LOG.warning('Cannot tell which engine acts: %s', exc)
            self._failing = True
            return False
        self._failing = False
        return holds

    def _holds(self):
        # Before the leader is read: a new name never leads already.
        me = self._owner.acquire()
        leader = decision_owners.get_leader(self._db)
        if leader == me:
            return self._owner.keeps([])
        if self._owner.get_leases().get(leader):
            return False
        taken = decision_owners.replace_leader(self._db, leader, me)
        if taken:
            LOG.info('Engine %s acts from now on.', me)
        return taken or decision_owners.get_leader(self._db) == me

    def close(self):
        """Let another engine act, which need not wait for the lease."""
        try:
            decision_owners.replace_leader(self._db, self._owner.name, '')
        except connection.ERRORS as exc:
            LOG.debug('While leaving: %s', exc)


class Engine:
    """Runs every task at its time.

    :param parts: a nova_preempt.handover.service_context.Parts
    :param options: [preemption_engine] of the configuration
    :param inventory: a nova_preempt.reservation.host_inventory.Inventory
    :param leadership: a Leadership
    :param make_lifecycle: given the nova_preempt.engine.evictions.Evictions
        of this engine, returns a
        nova_preempt.reservation.reservation_service.Lifecycle
    :param power: a nova_preempt.power.power_service.Power
    :param backlog: a nova_preempt.backlog.backlog_service.Backlog
    :param works: [(name, function)] of what else is to be done, see periodic
    """

    def __init__(self, parts, options, inventory, leadership,
                 make_lifecycle, power, backlog, works=(), returning=None):
        self.parts = parts
        self.inventory = inventory
        self._leadership = leadership
        self.health = periodic_tasks.Health()
        process, clients = parts.process, parts.clients
        known, handover = parts.known, parts.handover
        self.evictions = evictions.Evictions(
            process, handover, clients.placement, known.budgets,
            evictions.THREADS, known.providers.left)
        self.power = power
        self.backlog = backlog
        self.lifecycle = lifecycle = make_lifecycle(self.evictions)
        # Each in a thread of its own; the inventory of each engine is kept.
        self._timed = (
            periodic_tasks.PeriodicTasks([('inventory', inventory.keep, None)],
                                         self.health),
            *(periodic_tasks.PeriodicTasks([(name, work, None)], self.health,
                                           leadership)
              for name, work in (
                  ('reservations: moments',
                   self._unless_paused(lifecycle.lease_events.run)),
                  ('reservations: chores',
                   self._unless_paused(lifecycle.reconciler.run)),
                  *power.works, *backlog.works, *works)))
        old = expiry.Expiry(process, known.servers, clients, self.evictions,
                            leadership.holds)
        cleaner = janitor.Janitor(
            clients, known.servers, process.decisions, self.evictions,
            allocation_audit.Audit(clients.placement, known.servers,
                                   process.decisions, clients.get_cells,
                                   process_owner.INTENT_TIMEOUT_S))
        keeper = headroom_task.HeadroomKeeper(process, known, handover.stuck,
                                              self.evictions)
        returns = victim_returns.Restorer(
            process.decisions, clients, known.headroom, handover.events,
            options, returning=returning, wanted=backlog.coming_back)
        # Those with a pause of their own have it here, in seconds.
        self.rounds = periodic_tasks.PeriodicTasks([
            (work.__qualname__, work, pause_s) for work, pause_s in (
                (parts.repair, service_context.REPAIR_S),
                (known.refresh, 0),
                (old.end_old_servers, 0),
                (old.delete_stopped, 0),
                (keeper.keep, 0),
                (returns.restore, 0),
                (janitor.Cycles(process.db).look, CYCLES_S),
                # Last: it waits for a cell that hangs for a minute.
                (cleaner.clean, AUDIT_INTERVAL_S))
        ], self.health, leadership, options.interval_s)

    def _unless_paused(self, work):
        def run():
            if self.parts.process.pauses.why(pauses.RESERVATIONS):
                return periodic_tasks.RETRY_S
            return work()

        return run

    def run(self):
        """Until stop() is called."""
        for work in self._timed:
            work.start()
        self.rounds.run()
        for work in self._timed:
            work.stop()
        for part in (self._leadership, self.evictions, self.lifecycle,
                     self.power, self.backlog):
            part.close()

    def run_once(self):
        """Every task whose time has come, if it is this engine's turn."""
        self.rounds.run_once()

    def stop(self):
        self.rounds.stop()
