# SPDX-License-Identifier: Apache-2.0
"""Periodic tasks of the engine, each thread with its own, and their health.

No library has it: the work says itself when it is next due, which futurist's
PeriodicWorker, of fixed spacings, does not know; and what fails is tried again
after a pause, where oslo.service's DynamicLoopingCall tries it again at once.
"""

import dataclasses
import threading
import time

from oslo_log import log as logging

from nova_preempt import metrics

LOG = logging.getLogger(__name__)

# How long after a failure work is tried again that has no pause of its own,
# in seconds, and how often the lock of an engine that does not act is tried.
RETRY_S = 5.0

# How long a piece of work may take, or fail in a row, before the engine counts
# as ill: longer than any timeout of what it talks to.
LIMIT_S = 300


class PeriodicTasks:
    """Runs tasks one after the other, each when it is due.

    :param tasks: [(name, work, pause in seconds)]; where the pause is None,
        the work returns after how many seconds to come again
    :param health: a Health
    :param leadership: a nova_preempt.engine.service.Leadership, if only the
        engine that acts does this
    :param interval_s: how long it is from one round to the next, at least
    """

    def __init__(self, tasks, health, leadership=None, interval_s=0,
                 monotonic=time.monotonic):
        self.tasks = tasks
        self._health = health
        self._leadership = leadership
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._due_at = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self.run, name=tasks[0][0], daemon=True)

    def start(self):
        """Run in a thread until stop() is called."""
        self._thread.start()

    def run(self):
        """Run until stop() is called."""
        while not self._stop.is_set():
            self._stop.wait(max(self._interval_s, self.run_once()))

    def stop(self):
        """Let the current round finish, and nothing more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def run_once(self, at_once=False):
        """Do what is due; return in how many seconds something is again.

        What fails, since a service is away, does not keep the others from
        their work.

        :param at_once: do all of it, due or not
        """
        now, holds = self._monotonic(), True
        for name, work, pause_s in self.tasks:
            # Those before may have taken long.
            holds = holds and self._holds()
            if not holds:
                self._health.skip(name)
            elif at_once or self._due_at.get(name, now) <= now:
                wait_s = self._run(name, work, pause_s)
                self._due_at[name] = self._monotonic() + wait_s
        if not holds:
            return RETRY_S
        return max(0, min(self._due_at.values()) - self._monotonic())

    def _holds(self):
        if self._leadership is None:
            return True
        holds = self._leadership.holds()
        self._health.leads(holds)
        return holds

    def _run(self, name, work, pause_s):
        """Do a piece of work; return how long it is to the next time."""
        try:
            wait_s = self._health.run(name, work)
        except Exception:  # noqa: BLE001 (Health has told)
            wait_s = RETRY_S
        return wait_s if pause_s is None else pause_s


class Health:
    """Records when each task of the engine ran last, and how it went.

    :param monotonic, clock: to measure by, and to tell people
    """

    def __init__(self, monotonic=time.monotonic, clock=time.time):
        self._monotonic = monotonic
        self._clock = clock
        self._lock = threading.Lock()
        self._tasks = {}
        self._leads = False

    def leads(self, leads):
        """Whether this engine is the one that acts."""
        with self._lock:
            self._leads = leads
        metrics.ENGINE_ACTS.set(leads)

    def skip(self, name):
        """Another engine does this now: what failed here is no matter."""
        with self._lock:
            task = self._tasks.get(name)
        if task is not None:
            task.error = ''

    def run(self, name, work):
        """Do a piece of work and note how that went. Returns what it does."""
        with self._lock:
            task = self._tasks.setdefault(name, _Task())
        task.began_at = self._monotonic()
        try:
            result = work()
        except Exception as exc:
            if task.error:
                LOG.warning('%(name)s still fails: %(exc)s',
                            {'name': name, 'exc': exc})
            else:
                LOG.exception('%s failed; it is tried again.', name)
                task.failed_at = self._monotonic()
            task.error = str(exc) or type(exc).__name__
            metrics.ENGINE_FAILURES.labels(name).inc()
            raise
        else:
            task.error = ''
            task.done_at = self._clock()
            metrics.ENGINE_DONE.labels(name).set(task.done_at)
            return result
        finally:
            task.began_at = None

    def report(self):
        """(whether all is well, what to tell)."""
        now = self._monotonic()
        with self._lock:
            tasks = dict(self._tasks)
            leads = self._leads
        problems = {name: text for name, task in sorted(tasks.items())
                    if (text := task.problem(now))}
        return not problems, {
            'acts': leads, 'problems': problems,
            'last_done': {name: task.done_at
                          for name, task in sorted(tasks.items())}}


@dataclasses.dataclass
class _Task:
    """How a task goes.

    :ivar began_at: monotonic, while it is being done
    :ivar failed_at: the same, of the first failure in a row
    :ivar done_at: when it went well last, for people
    """

    began_at: float | None = None
    failed_at: float = 0
    done_at: float | None = None
    error: str = ''

    def problem(self, now):
        """Return why a task counts as unhealthy, '' if it does not.

        One that is not due, or not this engine's to do, is well.
        """
        began_at = self.began_at
        if began_at is not None and now - began_at >= LIMIT_S:
            return f'has not come back for {now - began_at:.0f} s'
        if self.error and now - self.failed_at >= LIMIT_S:
            return f'has failed for {now - self.failed_at:.0f} s: {self.error}'
        return ''
