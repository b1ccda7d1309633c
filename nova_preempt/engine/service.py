# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-engine: leader election, and the schedule of its tasks."""

from oslo_log import log as logging

from nova_preempt.advice import eviction_sampler
from nova_preempt.advice import recommender
from nova_preempt.db import connection
from nova_preempt.db import decision_owners
from nova_preempt.db import pauses
from nova_preempt.engine import headroom_task
from nova_preempt.engine import periodic_tasks
from nova_preempt.engine import repairs
from nova_preempt.engine import server_expiry
from nova_preempt.engine import standalone_evictions
from nova_preempt.engine import victim_unshelving
from nova_preempt.handover import allocation_audit
from nova_preempt.handover import process_lease
from nova_preempt.handover import service_context

LOG = logging.getLogger(__name__)

# Eviction loops last for hours: checking them more often gains nothing.
CYCLES_S = 60
#: How often servers are compared with their allocations, in seconds. What
#: disagrees twice in a row is repaired.
AUDIT_INTERVAL_S = 300

#: How far the clock of the leader may be from the database's: a clock that is
#: ahead ends retentions, maximum run times and reservations early, for good.
CLOCK_S = 30


class Leadership:
    """Elects the engine that acts, by a row of the database.

    The leader leads while the lease of its owner is renewed. Another engine
    takes over once the lease has expired or was released. An engine whose
    clock is wrong resigns.

    :param database: a nova_preempt.db.Database
    :param owner: a nova_preempt.handover.process_lease.Lease
    """

    def __init__(self, database, owner):
        self._db = database
        self._owner = owner
        self._failing = False

    def holds(self):
        """Return whether this engine is the leader now.

        False where the database cannot be read: no leader rather than two.
        """
        try:
            holds = self._holds()
        except Exception as exc:  # noqa: BLE001 (the next call retries)
            if not self._failing:
                LOG.warning('This engine does not act: %s', exc)
            self._failing = True
            return False
        self._failing = False
        return holds

    def _holds(self):
        # NOTE: before the leader is read, as a new owner's name never leads.
        me = self._owner.acquire()
        leader, ahead_s = decision_owners.get_leader_and_clock(self._db)
        if abs(ahead_s) > CLOCK_S:
            self.close()
            raise RuntimeError('its clock differs from that of the database '
                               f'by {ahead_s:+.0f} s')
        if leader == me:
            return self._owner.keeps([])
        if self._owner.get_leases().get(leader):
            return False
        taken = decision_owners.replace_leader(self._db, leader, me)
        if taken:
            LOG.info('Engine %s is the leader from now on.', me)
        return taken or decision_owners.get_leader(self._db) == me

    def close(self):
        """Resign, so that another engine need not wait for the lease."""
        try:
            decision_owners.replace_leader(self._db, self._owner.name, '')
        except connection.ERRORS as exc:
            LOG.debug('Cannot resign: %s', exc)


class Engine:
    """Runs all tasks of nova-preempt-engine.

    :param parts: a nova_preempt.handover.service_context.ServiceContext
    :param options: [preemption_engine] of the configuration
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param leadership: a Leadership
    :param make_lifecycle: given the
        nova_preempt.engine.standalone_evictions.Evictions of this engine,
        returns a
        nova_preempt.reservation.reservation_engine_tasks.ReservationEngineTasks
    :param power: a nova_preempt.power.power_engine_tasks.PowerEngineTasks
    :param backlog: a
        nova_preempt.backlog.backlog_engine_tasks.BacklogEngineTasks
    :param works: [(name, function)] of further tasks, see periodic_tasks
    """

    def __init__(self, parts, options, inventory, leadership,
                 make_lifecycle, power, backlog, works=(), returning=None):
        self.parts = parts
        self.inventory = inventory
        self._leadership = leadership
        self.health = periodic_tasks.TaskHealth()
        process, clients = parts.process, parts.clients
        known, handover = parts.known, parts.handover
        self.evictions = standalone_evictions.Evictions(
            process, handover, clients.placement, known.budgets,
            standalone_evictions.THREADS, known.providers.left)
        self.power = power
        self.backlog = backlog
        self.lifecycle = lifecycle = make_lifecycle(self.evictions)
        keeper = headroom_task.HeadroomKeeper(process, known, handover.stuck,
                                              self.evictions)
        advisor = recommender.Recommender(parts, keeper.choose,
                                          lifecycle.to_start)
        # One thread each. The inventory is read by engines that do not lead,
        # too.
        self._timed = (
            periodic_tasks.PeriodicTasks([('inventory', inventory.keep, None)],
                                         self.health),
            *(periodic_tasks.PeriodicTasks([(name, work, None)], self.health,
                                           leadership)
              for name, work in (
                  ('reservations: lease events',
                   self._unless_paused(lifecycle.lease_events.run)),
                  ('reservations: reconcile',
                   self._unless_paused(lifecycle.reconciler.run)),
                  ('evictions: samples',
                   eviction_sampler.EvictionSampler(parts, inventory).run),
                  ('evictions: recommendations', advisor.run),
                  *power.works, *backlog.works, *works)))
        old = server_expiry.ServerExpiry(process, known.servers, clients,
                                         self.evictions, leadership.holds)
        cleaner = repairs.AllocationRepair(
            clients, known.servers, process.decisions, self.evictions,
            allocation_audit.Audit(clients.placement, known.servers,
                                   process.decisions, clients.get_cells,
                                   process_lease.INTENT_TIMEOUT_S))
        returns = victim_unshelving.VictimUnshelver(
            process.decisions, clients, known.headroom, handover.events,
            options, returning=returning, wanted=backlog.coming_back)
        # Pauses in seconds; a task with 0 runs in each round.
        self.rounds = periodic_tasks.PeriodicTasks([
            (work.__qualname__, work, pause_s) for work, pause_s in (
                (parts.repair, service_context.REPAIR_S),
                (known.refresh, 0),
                (old.end_old_servers, 0),
                (old.delete_stopped, 0),
                (keeper.keep, 0),
                (returns.restore, 0),
                (repairs.EvictionLoopCheck(process.db).look, CYCLES_S),
                # NOTE: last, as a cell that hangs delays it by a minute.
                (cleaner.clean, AUDIT_INTERVAL_S))
        ], self.health, leadership, options.interval_s,
            ('give up own preemptions', handover.recovery.give_up))

    def _unless_paused(self, work):
        return lambda: periodic_tasks.RETRY_S if (
            self.parts.process.pauses.why(pauses.RESERVATIONS)) else work()

    def run(self):
        """Run until stop() is called."""
        for work in self._timed:
            work.start()
        self.rounds.run()
        for work in self._timed:
            work.stop()
        for part in (self._leadership, self.evictions, self.lifecycle,
                     self.power, self.backlog):
            part.close()

    def run_once(self):
        """Run the tasks that are due, if this engine is the leader."""
        self.rounds.run_once()

    def stop(self):
        self.rounds.stop()
