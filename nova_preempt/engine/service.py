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
"""The service around the tasks: who acts, how often, and what if it fails."""

import threading
import time

from oslo_log import log as logging
from stevedore import driver
from tooz import coordination

from nova_preempt import exceptions
from nova_preempt.core import masking
from nova_preempt.db import pauses
from nova_preempt.engine import cycles
from nova_preempt.engine import evictions
from nova_preempt.engine import expiry
from nova_preempt.engine import headroom
from nova_preempt.engine import janitor
from nova_preempt.engine import periodic
from nova_preempt.engine import restorer
from nova_preempt.handover import audit
from nova_preempt.handover import owner
from nova_preempt.handover import parts as shared

LOG = logging.getLogger(__name__)

# A look at what has ended is cheap, but nobody is in a hurry.
CYCLES_S = 60
#: How often servers are compared with their allocations, in seconds. What
#: disagrees twice in a row is put right.
AUDIT_INTERVAL_S = 300

_LOCK = b'nova-preempt-engine'

# How far apart two complaints are while nobody can tell who acts, at least.
COMPLAIN_S = 60


def check_backend(conf):
    """Fail where [preemption_engine]backend_url is no address of a backend.

    Nothing is connected: whether the backend answers is seen later.

    :raises InvalidConfiguration: without the URL, which has a password
    """
    url = conf.preemption_engine.backend_url
    try:
        coordination.get_coordinator(url, _LOCK)
    except Exception as exc:  # noqa: BLE001 (whatever a library has)
        raise exceptions.InvalidConfiguration(
            '[preemption_engine]backend_url cannot be used: '
            f'{_reason(exc, url)}') from None


def _reason(exc, url):
    # What a library makes of an address that it does not understand may
    # quote any part of it.
    return (masking.masked(exc, url)
            if isinstance(exc, (ImportError, driver.NoMatches))
            else type(exc).__name__)


class Leadership:
    """Which of several engines acts: the one that holds a lock.

    :param backend_url: of a tooz backend
    :param member: the name of this engine
    :param monotonic: returns seconds that only ever grow
    """

    def __init__(self, backend_url, member, monotonic=time.monotonic):
        self._monotonic = monotonic
        # When it was said that nobody can tell, None: somebody can.
        self._complained_s = None
        self._url = backend_url
        self._member = member.encode()
        self._coordinator = None
        self._lock = None
        # Several threads ask.
        self._asking = threading.Lock()

    def holds(self):
        """Whether it is this one, now.

        False where the backend cannot be reached: nobody acts rather than
        two.
        """
        with self._asking:
            return self._holds()

    def _holds(self):
        try:
            if self._coordinator is None:
                self._connect()
            self._coordinator.heartbeat()
            if self._lock.acquired:
                self._check_connection()
                acquired = True
            else:
                acquired = self._lock.acquire(blocking=False)
                if acquired:
                    LOG.info('Engine %s acts from now on.',
                             self._member.decode())
            self._complained_s = None
            return acquired
        except coordination.ToozError as exc:
            if self._may_complain():
                LOG.warning('Cannot tell which engine acts: %s',
                            masking.masked(exc, self._url))
            self._close()
            return False
        except Exception as exc:  # noqa: BLE001 (whatever a library has)
            if self._may_complain():
                LOG.error('Cannot tell which engine acts: '
                          '[preemption_engine]backend_url cannot be used: %s',
                          _reason(exc, self._url))
            self._close()
            return False

    def _may_complain(self):
        """Each task of the engine asks, every few seconds."""
        now_s = self._monotonic()
        if self._complained_s is not None and (
                now_s - self._complained_s < COMPLAIN_S):
            return False
        self._complained_s = now_s
        return True

    def _check_connection(self):
        """ToozError if the lock went with the connection that had it.

        MySQL and PostgreSQL free a lock when its connection ends, by a
        restart or by wait_timeout, and another engine gets it. Their drivers
        in tooz do not look after that: is_still_owner() of their locks is not
        implemented, heartbeat() of their coordinators does nothing, and a
        second lock of the same name tells that somebody has it, not who.
        """
        connection = getattr(self._lock, '_conn', None)
        if connection is None:
            return
        try:
            with connection.cursor() as cursor:
                cursor.execute('SELECT 1')
                cursor.fetchone()
        except Exception as exc:
            raise coordination.ToozError(
                'the connection that held the lock has ended') from exc

    def _connect(self):
        coordinator = coordination.get_coordinator(self._url, self._member)
        coordinator.start(start_heart=True)
        self._lock = coordinator.get_lock(_LOCK)
        self._coordinator = coordinator

    def close(self):
        """Let another one act."""
        with self._asking:
            self._close()

    def _close(self):
        coordinator, self._coordinator = self._coordinator, None
        if coordinator is None:
            return
        # Each of them, though the one before may fail: with the connection
        # of its lock a coordinator has another one.
        for leave in (self._release, self._disconnect, coordinator.stop):
            try:
                leave()
            except Exception as exc:  # noqa: BLE001 (it is left all the same)
                LOG.debug('While leaving: %s', type(exc).__name__)

    def _release(self):
        if self._lock.acquired:
            self._lock.release()

    def _disconnect(self):
        """A lock of a database that cannot be released stays connected."""
        connection = getattr(self._lock, '_conn', None)
        if connection is not None:
            connection.close()


class Engine:
    """Runs every task at its time.

    :param parts: a nova_preempt.handover.parts.Parts
    :param options: [preemption_engine] of the configuration
    :param inventory: a nova_preempt.reservation.inventory.Inventory
    :param leadership: a Leadership
    :param make_lifecycle: given the nova_preempt.engine.evictions.Evictions
        of this engine, returns a nova_preempt.reservation.lifecycle.Lifecycle
    :param power: a nova_preempt.power.service.Power
    :param backlog: a nova_preempt.backlog.service.Backlog
    :param works: [(name, function)] of what else is to be done, see periodic
    """

    def __init__(self, parts, options, inventory, leadership,
                 make_lifecycle, monotonic=time.monotonic, power=None,
                 backlog=None, works=(), returning=None):
        self.parts = parts
        self.inventory = inventory
        self._leadership = leadership
        self.health = periodic.Health(monotonic)
        process, clients = parts.process, parts.clients
        known, handover = parts.known, parts.handover
        self.evictions = evictions.Evictions(
            process, handover, clients.placement, known.budgets,
            evictions.THREADS, known.providers.left)
        self.power = power
        self.backlog = backlog
        self.lifecycle = make_lifecycle(self.evictions)
        self._timed = (
            periodic.PeriodicTasks([('inventory', inventory.keep, None)],
                                   self.health),
            self._make_timed('reservations: moments', self._unless_paused(
                self.lifecycle.lease_events.run)),
            self._make_timed('reservations: chores', self._unless_paused(
                self.lifecycle.reconciler.run)),
            *(self._make_timed(name, work)
              for more in (*(part.works for part in (power, backlog) if part),
                           works)
              for name, work in more))
        old = expiry.Expiry(process, known.servers, clients, self.evictions,
                            leadership.holds)
        cleaner = janitor.Janitor(
            parts.repair, clients, known.servers, process.decisions,
            self.evictions,
            audit.Audit(clients.placement, known.servers, process.decisions,
                        clients.get_cells, owner.INTENT_TIMEOUT_S))
        keeper = headroom.HeadroomKeeper(process, known, handover.stuck,
                                         self.evictions)
        returns = restorer.Restorer(process.decisions, clients, known.headroom,
                                    handover.events, options,
                                    returning=returning,
                                    wanted=backlog.coming_back if backlog
                                    else frozenset)
        # Those with a pause of their own have it here, in seconds.
        self.rounds = periodic.PeriodicTasks([
            (work.__qualname__, work, pause_s) for work, pause_s in (
                (cleaner.repair_decisions, shared.REPAIR_S),
                (known.refresh, 0),
                (old.end_old_servers, 0),
                (old.delete_stopped, 0),
                (keeper.keep, 0),
                (returns.restore, 0),
                (cycles.Cycles(process.db).look, CYCLES_S),
                # Last: it waits for a cell that hangs for a minute.
                (cleaner.clean, AUDIT_INTERVAL_S))
        ], self.health, leadership, options.interval_s, monotonic)

    def _make_timed(self, name, work):
        """Make a task that only the leading engine runs, in its own thread."""
        return periodic.PeriodicTasks([(name, work, None)], self.health,
                                      self._leadership)

    def _unless_paused(self, work):
        def run():
            if self.parts.process.pauses.why(pauses.RESERVATIONS):
                return periodic.RETRY_S
            return work()

        return run

    def run(self):
        """Until stop() is called."""
        for work in self._timed:
            work.start()
        self.rounds.run()
        for work in self._timed:
            work.stop()
        self._leadership.close()
        self.evictions.close()
        self.lifecycle.close()
        for part in (self.power, self.backlog):
            if part:
                part.close()

    def run_once(self):
        """Every task whose time has come, if it is this engine's turn."""
        self.rounds.run_once()

    def stop(self):
        self.rounds.stop()
