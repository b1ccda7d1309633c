# SPDX-License-Identifier: Apache-2.0
"""Cooperative tasks under a virtual clock, in an order drawn from a seed.

Each task is a greenlet. It goes on until it reaches a seam: a call of a
service, a transaction, a lock, a sleep. There the loop draws who is next. No
real time passes: where nobody can go on the clock is set to the next time at
which a task wakes.
"""

import datetime
import heapq

import greenlet

#: When every exploration begins, in seconds since the epoch.
START_S = 1_800_000_000


class Crashed(BaseException):
    """The process of the task is dead, with all of its tasks."""


#: Errors that no fault of the cloud explains.
MISTAKES = AttributeError, LookupError, NameError, TypeError


class Deadlock(Exception):
    """No task can run, and none waits for a time."""


def noting(loop, run):
    """Return a function like TaskHealth.run() that notes errors in a Loop.

    The engine only logs them.
    """
    def run_noting(*args):
        try:
            return run(*args)
        except Exception as exc:
            loop.note(exc)
            raise
    return run_noting


class Process:
    """A process that can crash, with all of its tasks.

    :param is_trusted: whether an error in one of its tasks is a fault of the
        exploration
    :ivar tasks: those that are not over
    :ivar lock_files: process_lease.LockFiles that it holds
    """

    def __init__(self, name, is_trusted=False):
        self.name = name
        self.is_trusted = is_trusted
        #: By how much the clock of its host is ahead, in seconds.
        self.skew_s = 0.0
        #: Until when it waits for the database.
        self.cut_until_s = 0.0
        self.is_alive = True
        self.tasks = []
        self.lock_files = []


class Task:
    """A task of a process.

    :ivar result: what its function returned
    :ivar error: what it raised instead, None if nothing
    """

    def __init__(self, loop, process, name, function):
        self.process = process
        self.name = name
        self.is_over = False
        self.result = self.error = None
        self.wakes = 0            # counts wakings: those of before are void
        self.woken_by = None
        self._loop = loop
        self._function = function
        self.greenlet = greenlet.greenlet(self._run, loop.hub)

    def _run(self):
        try:
            self.result = self._function()
        except Crashed:
            pass
        except Exception as exc:  # noqa: BLE001 (whoever waits raises it)
            self.error = exc
            self._loop.note(exc)
        finally:
            self.is_over = True
            self._loop.ended(self)


class Loop:
    """Runs the tasks.

    :param rng: a random.Random, which chooses
    :ivar now_s: the virtual time, in seconds since the epoch
    :ivar steps: how often a task went on
    """

    def __init__(self, rng):
        self.rng = rng
        self.now_s = float(START_S)
        self.steps = 0
        self.hub = greenlet.getcurrent()
        self.current = None
        self.trace = None         # called with a text for each event, if set
        #: Called between two steps, in the hub.
        self.watch = None
        self.mistakes = []        # errors of MISTAKES, which end the run
        self._ready = []
        self._sleeping = []       # heap of (when, number, task, its wakes)
        self._number = 0
        self._waiting = {}        # id of a task: [tasks that join it]

    # -- tasks -----------------------------------------------------------

    def start(self, process, name, function):
        """Start a Task, which runs when it is drawn."""
        task = Task(self, process, name, function)
        process.tasks.append(task)
        self._ready.append(task)
        return task

    def ended(self, task):
        """Wake the tasks that wait for the end of a task."""
        if task in task.process.tasks:
            task.process.tasks.remove(task)
        for other in self._waiting.pop(id(task), ()):
            self.wake(other)

    def join(self, task):
        """Wait for the end of a task."""
        while not task.is_over:
            self._waiting.setdefault(id(task), []).append(self.current)
            self.block()

    def crash(self, process):
        """End all tasks of a process where they are."""
        process.is_alive = False
        current = self.current
        for task in list(process.tasks):
            if task is not current and task in process.tasks:
                self._end(task)
        if current is not None and current.process is process:
            raise Crashed

    def _end(self, task):
        if task in self._ready:
            self._ready.remove(task)
        task.wakes += 1
        before, self.current = self.current, task
        if task.greenlet:
            task.greenlet.parent = greenlet.getcurrent()
            task.greenlet.throw(Crashed)
        else:
            task.is_over = True
            self.ended(task)
        self.current = before

    # -- seams -----------------------------------------------------------

    def check(self):
        """Raise Crashed in a task of a dead process."""
        if self.current is not None and not self.current.process.is_alive:
            raise Crashed

    def switch(self):
        """Let the task run that the seed draws."""
        if self.current is None:
            return
        self.check()
        self._ready.append(self.current)
        self.hub.switch()
        self.check()

    def block(self, timeout_s=None):
        """Wait until wake() or a timeout.

        :returns: what wake() gave, None where the time is over
        """
        task = self.current
        if task is None:
            raise Deadlock('something outside of all tasks would wait')
        self.check()
        task.wakes += 1
        task.woken_by = None
        if timeout_s is not None:
            self._number += 1
            heapq.heappush(self._sleeping, (
                self.now_s + max(0.0, timeout_s), self._number, task,
                task.wakes))
        self.hub.switch()
        self.check()
        return task.woken_by

    def wake(self, task, by=True):
        """Let a waiting task continue."""
        if task.is_over or task in self._ready:
            return
        task.wakes += 1
        task.woken_by = by
        self._ready.append(task)

    def sleep(self, seconds):
        """Wait; outside of all tasks the time passes at once."""
        if self.current is None:
            self._set(self.now_s + seconds)
        else:
            self.block(seconds)

    # -- the loop --------------------------------------------------------

    def run(self, until_s, is_over=lambda: False):
        """Run tasks until a time or until a condition holds."""
        while not is_over():
            while self._sleeping and self._sleeping[0][0] <= self.now_s:
                _when, _number, task, wakes = heapq.heappop(self._sleeping)
                if task.wakes == wakes and not task.is_over:
                    task.wakes += 1
                    self._ready.append(task)
            if not self._ready:
                while self._sleeping and (
                        self._sleeping[0][2].wakes != self._sleeping[0][3]):
                    heapq.heappop(self._sleeping)
                if not self._sleeping:
                    raise Deadlock('nobody can go on')
                if self._sleeping[0][0] > until_s:
                    self._set(until_s)
                    return
                self._set(self._sleeping[0][0])
                continue
            self._step()

    def _step(self):
        # Each step takes some time, so that no loop of a task is endless.
        self.now_s += 1e-4
        self.steps += 1
        index = self.rng.randrange(len(self._ready))
        task = self._ready[index]
        self._ready[index] = self._ready[-1]
        self._ready.pop()
        self.current = task
        self.hub = greenlet.getcurrent()
        task.greenlet.parent = self.hub
        task.greenlet.switch()
        self.current = None
        if task.is_over and task.error and task.process.is_trusted:
            raise task.error
        if self.mistakes:
            raise self.mistakes[0]
        if self.watch is not None:
            self.watch()

    def note(self, exc):
        """Note an error, in case it is one of MISTAKES."""
        if isinstance(exc, MISTAKES):
            self.mistakes.append(exc)

    def _set(self, now_s):
        self.now_s = max(self.now_s, now_s)

    def tell(self, *what):
        """Add a line to the trace."""
        if self.trace is not None:
            name = self.current.name if self.current else '-'
            self.trace(f'{self.now_s - START_S:10.3f} {name}: '
                       + ' '.join(map(str, what)))

    def wall_s(self):
        """The time by the clock of the current process, since the epoch."""
        return self.now_s + (
            self.current.process.skew_s if self.current else 0)

    def utcnow(self):
        """Now by the clock of the database and of Nova, naive, in UTC."""
        return _naive(self.now_s)

    def local_utcnow(self):
        """Now by the clock of the current process."""
        return _naive(self.wall_s())


def _naive(seconds):
    return datetime.datetime.fromtimestamp(
        seconds, datetime.timezone.utc).replace(tzinfo=None)
