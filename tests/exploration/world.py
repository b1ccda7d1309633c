# SPDX-License-Identifier: Apache-2.0
"""A cloud in memory, and the processes of nova_preempt that serve it."""

import atexit
import contextlib
import datetime
import functools
import itertools
import os
import random
import shutil
import tempfile

import oslo_messaging as messaging

from nova_preempt.reservation import lease_cache
from tests.exploration import edges
from tests.exploration import faults
from tests.exploration import features
from tests.exploration import keystone
from tests.exploration import machines
from tests.exploration import nova
from tests.exploration import nova_records
from tests.exploration import nova_servers
from tests.exploration import nova_user_api
from tests.exploration import placement
from tests.exploration import processes
from tests.exploration import recommendations
from tests.exploration import substitutes
from tests.exploration import tasks
from tests.exploration import traps


class World:
    """A world with all services of an exploration; a context manager.

    :param seed: of all that is drawn
    :param trace: called with each line of what happens, None for nothing
    :ivar faults: its faults.Faults
    """

    HOSTS = 4
    VCPUS = 4
    #: How often a call fails, None: drawn by the seed.
    RATE = None

    def __init__(self, seed, trace=None, settings=None):
        self.seed = seed
        self.loop = tasks.Loop(random.Random(f'{seed} order'))
        self.loop.trace = trace
        self.faults = faults.Faults(random.Random(f'{seed} faults'), self.RATE)
        self.settings = settings or {}
        #: Names of the engine tasks that run.
        self.works = features.works(self.settings)
        self._durations = random.Random(f'{seed} durations')
        self._exits = contextlib.ExitStack()
        self.cell0 = nova_records.CellMapping(
            nova_records.CELL0, 'cell0', 1)
        self.cells = {
            name: nova_records.CellMapping(
                f'00000000-0000-0000-0000-00000000000{number}', name, number)
            for number, name in ((2, 'cell1'), (3, 'cell2'))}
        self.placement = placement.MemoryPlacement()
        self.operator = tasks.Process('operator', is_trusted=True)
        self.nova = nova.MemoryNova(
            self.loop, tasks.Process('nova', is_trusted=True),
            self._call_as_nova, self.schedule)
        self.nova.duration_s = self._duration_s
        self.nova.fails = lambda what: (
            not self.faults.is_off and self._durations.random() < 0.05)
        self.keystone = keystone.MemoryKeystone()
        self.user_api = nova_user_api.UserApi(self)
        self.recommendations = recommendations.Recommendations(self)
        self.schedulers = []
        self.engines = []
        self.api = processes.Api(self, 'api')
        self._numbers = itertools.count(1)
        self._leases = {}         # Process: LeaseCache
        #: {name of a cell that hangs: until when}
        self.hanging = {}
        self.machines = None
        self.watcher = None

    # -- life ------------------------------------------------------------

    def __enter__(self):
        self._exits.enter_context(processes.configured(
            _directory(), self.settings))
        substitutes.use(self.loop, self.seed)
        for patch in edges.patches(self):
            self._exits.enter_context(patch)
        for number in range(self.HOSTS):
            self._add_host(number)
        self.machines = machines.Machines(self)
        return self

    def __exit__(self, *exc_info):
        try:
            for process in self.ours():
                process.kill()
            for process in (self.nova.process, self.operator):
                self.loop.crash(process)
            self.machines.stop()
        finally:
            substitutes.use(None, self.seed)
            self._exits.close()

    def _add_host(self, number):
        name = f'host{number}'
        uuid = f'10000000-0000-0000-0000-00000000000{number}'
        cell = sorted(self.cells)[number % len(self.cells)]
        # A stopped server keeps its disk: where disks are full, nobody stops.
        amounts = {'VCPU': self.VCPUS, 'MEMORY_MB': self.VCPUS * 1024,
                   'DISK_GB': self.VCPUS * (20 if self.seed % 2 else 10)}
        self.nova.hosts[name] = nova_servers.Host(
            uuid, name, cell, amounts, lambda: self.loop.now_s)
        self.placement.add(uuid, name, amounts)

    def start(self, schedulers=2, engines=2):
        """Start the processes of nova_preempt."""
        for number in range(schedulers):
            self.schedulers.append(processes.Scheduler(
                self, f'scheduler{number}'))
        for number in range(engines):
            self.engines.append(processes.Engine(self, f'engine{number}'))
        for process in self.ours():
            process.start()

    def ours(self):
        """The processes of nova_preempt."""
        return (*self.schedulers, *self.engines, self.api)

    def current_leases(self, conf):
        """Return the LeaseCache of the process that runs now."""
        process = self.loop.current.process
        if process not in self._leases:
            self._leases[process] = lease_cache.LeaseCache(
                lease_cache.load_service(conf), conf.reservation)
        return self._leases[process]

    # -- seams -----------------------------------------------------------

    def _duration_s(self, what):
        chance = self._durations.random()
        return (self._durations.uniform(0.1, 3) if chance < 0.9
                else self._durations.uniform(3, 40))

    def seam(self, kind, what):
        """Let other tasks run; then fail, if that is drawn.
        """
        self.call(kind, what, lambda: None)

    def call(self, kind, what, function, once=False):
        """Call a service, which takes time and may fail; its result.

        The fault is drawn before, the answer may be lost afterwards.

        :param once: whether its answer always comes
        """
        loop = self.loop
        if loop.current is None:
            return function()
        if kind == 'database':
            traps.wait_for_database(self)
        may_repeat = not once and kind in faults.SERVICES
        fault = self.faults.draw(f'{kind} {what}')
        traps.spring(self, fault, f'{kind} {what}')
        if fault == 'crash' and self._may_crash(loop.current.process):
            loop.tell('CRASH at', kind, what)
            if may_repeat and self.faults.rng.random() < 0.5:
                self._deliver_late(kind, what, function)
            self.kill(loop.current.process)
        if fault == 'slow':
            loop.tell('slow', kind, what)
            loop.sleep(self.faults.rng.uniform(1, 65))
        else:
            loop.switch()
        if fault == 'refused':
            loop.tell('refused', kind, what)
            raise faults.ERRORS[kind](lost=False)
        if fault == 'late' and may_repeat:
            self._deliver_late(kind, what, function)
            loop.sleep(self.faults.rng.uniform(0, 30))
            raise faults.ERRORS[kind](lost=True)
        result = function()
        if fault == 'twice' and may_repeat and what not in faults.NOT_TWICE:
            loop.tell('twice', kind, what)
            loop.switch()
            result = function()
        loop.tell(kind, what)
        if fault == 'lost' and may_repeat:
            loop.tell('answer lost', kind, what)
            loop.sleep(self.faults.rng.uniform(0, 10))
            raise faults.ERRORS[kind](lost=True)
        return result

    def _deliver_late(self, kind, what, function):
        """Deliver a request after its sender has timed out."""
        def deliver():
            self.loop.sleep(self.faults.rng.uniform(
                0, faults.SERVICES[kind]))
            self.loop.tell('late', kind, what)
            for uuid in list(self.nova.servers):
                if what in (f'start {uuid[:8]}', f'unlock {uuid[:8]}'):
                    # It may have given way once more meanwhile.
                    self.watcher.released(uuid)
            with contextlib.suppress(*faults.UNHEARD):
                function()

        self.loop.start(self.nova.process, f'late {what[:30]}', deliver)

    def draw_one(self, items):
        """Draw one of several, such as the process that serves a call."""
        return self._durations.choice(items)

    def _may_crash(self, process):
        # A task that ends as its process crashes may call something.
        return process.is_alive and any(
            each.process is process for each in self.ours())

    def kill(self, process):
        """Crash a process of ours; it is started again later."""
        found = next(each for each in self.ours()
                     if each.process is process)
        found.kill_and_restart(self.faults.rng.choice((0.5, 5, 30, 100)))

    # -- services --------------------------------------------------------

    def _call_as_nova(self, method, url, body=None):
        """Placement for Nova itself, which tries again where that fails."""
        self.loop.switch()
        return self.placement.call(method, url, body)

    def _age_of_leases(self, scheduler):
        """Return how old what a scheduler knows of reservations is.

        Nothing, up to the time for which it counts as new: if it reads no
        others for longer, it keeps the promises that it knows.
        """
        cache = self._leases.get(scheduler.process)
        known = cache and cache._known
        age_s = self.loop.now_s - known.read_s if known else 0
        return datetime.timedelta(seconds=age_s if (
            age_s > lease_cache.MAX_AGE_S) else 0)

    def schedule(self, servers, operation):
        """Ask a scheduler over the message bus, like the conductor.

        :returns: the names of the hosts
        """
        alive = [each for each in self.schedulers if each.is_serving]
        while not alive:
            self.loop.sleep(1)
            alive = [each for each in self.schedulers if each.is_serving]
        scheduler = self._durations.choice(alive)
        asked_at = self.loop.utcnow() - self._age_of_leases(scheduler)
        task = scheduler.ask(servers)
        self.loop.join(task)
        if task.result is not None and not scheduler.process.skew_s:
            self.watcher.placed(servers, task.result, asked_at)
        if task.error is None and task.result is not None and (
                self._durations.random() < 0.005 and not self.faults.is_off):
            self.loop.tell('answer lost', 'scheduler')
            self._free_as_an_operator(servers)
            raise messaging.MessagingTimeout('explored')
        if task.error is not None:
            # Nova keeps the claims of the first servers of a request where
            # that of a later one fails by a lost connection.
            if len(servers) > 1 and operation == 'create':
                self._free_as_an_operator(servers)
            raise task.error
        if task.result is None:
            # Its process is dead: no heartbeat comes any more.
            self.loop.sleep(60)
            self._free_as_an_operator(servers)
            raise messaging.MessagingTimeout('explored')
        return task.result

    def _free_as_an_operator(self, servers):
        """Free allocations left by a claim of Nova's own.

        Nova does not where the answer of its scheduler is lost; what of it is
        by a decision of ours is ours to free.
        """
        for server in servers:
            if not self.watcher.has_decision(server.uuid):
                self.nova.free(server.uuid)


@functools.cache
def _directory():
    """The directory of the database, which is removed at the end."""
    path = tempfile.mkdtemp(
        prefix='explored-', dir='/dev/shm' if os.path.isdir('/dev/shm')
        else None)
    atexit.register(shutil.rmtree, path, True)
    return path
