# SPDX-License-Identifier: Apache-2.0
"""Periodic tasks of the engine, each group in a thread, and their health.

Not futurist's PeriodicWorker, whose spacings are fixed, as a task says when it
is next due; nor oslo.service's DynamicLoopingCall, which retries a failure at
once instead of after a pause.
"""

import dataclasses
import threading
import time

from oslo_log import log as logging

from nova_preempt import metrics

LOG = logging.getLogger(__name__)

# After how many seconds a failed task without a pause of its own is retried,
# and an engine that is not the leader tries to become it.
RETRY_S = 5.0

# How long a task may run, or fail in a row, before the engine is unhealthy:
# longer than any timeout of the services that it calls.
LIMIT_S = 300


class PeriodicTasks:
    """Runs tasks in one thread, each when it is due.

    :param tasks: [(name, function, pause in seconds)]; where the pause is
        None the function returns after how many seconds to call it again
    :param health: a Health
    :param leadership: a nova_preempt.engine.service.Leadership, if only the
        leader runs the tasks
    :param interval_s: the least time between two rounds
    :param standby: (name, function) of the task that is run every RETRY_S
        while another engine is the leader, if any
    """

    def __init__(self, tasks, health, leadership=None, interval_s=0,
                 standby=None, monotonic=time.monotonic):
        self.tasks = tasks
        self._health = health
        self._leadership = leadership
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._standby = standby
        self._due_at = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self.run, name=tasks[0][0], daemon=True)

    def start(self):
        """Run the tasks in a thread until stop() is called."""
        self._thread.start()

    def run(self):
        """Run the tasks until stop() is called."""
        while not self._stop.is_set():
            self._stop.wait(max(self._interval_s, self.run_once()))

    def stop(self):
        """Stop after the current round."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def run_once(self, at_once=False):
        """Run tasks that are due; return in how many seconds the next one is.

        A task that fails does not stop the tasks after it.

        :param at_once: run all tasks, due or not
        """
        now, holds = self._monotonic(), True
        for name, work, pause_s in self.tasks:
            is_due = at_once or self._due_at.get(name, now) <= now
            # The tasks before may have taken long.
            holds = holds and (not is_due or self._holds())
            if not holds:
                self._health.skip(name)
            elif is_due:
                self._due_at[name] = self._run(
                    name, work, pause_s) + self._monotonic()
        if not holds:
            return self._run(*self._standby, RETRY_S) if (
                self._standby) else RETRY_S
        if self._standby:
            self._health.skip(self._standby[0])
        return max(0, min(self._due_at.values()) - self._monotonic())

    def _holds(self):
        if self._leadership is None:
            return True
        holds = self._leadership.holds()
        self._health.leads(holds)
        return holds

    def _run(self, name, work, pause_s):
        """Run a task; return after how many seconds to run it again."""
        try:
            wait_s = self._health.run(name, work)
        except Exception:  # noqa: BLE001 (Health has logged it)
            wait_s = RETRY_S
        return wait_s if pause_s is None else pause_s


class TaskHealth:
    """Records when each task of the engine ran last, and how it went.

    :param monotonic, clock: for durations, and for times that people read
    """

    def __init__(self, monotonic=time.monotonic, clock=time.time):
        self._monotonic = monotonic
        self._clock = clock
        self._lock = threading.Lock()
        self._tasks = {}
        self._leads = False

    def leads(self, leads):
        """Record whether this engine is the leader."""
        with self._lock:
            self._leads = leads
        metrics.ENGINE_ACTS.set(leads)

    def skip(self, name):
        """Clear a task's error: another engine runs it now."""
        with self._lock:
            self._tasks.get(name, _Task()).error = ''

    def run(self, name, work):
        """Run a task, record its outcome and return its result."""
        with self._lock:
            task = self._tasks.setdefault(name, _Task())
        task.began_at = self._monotonic()
        try:
            result = work()
        except Exception as exc:
            if task.error:
                LOG.warning('The task %s still fails: %s', name, exc)
            else:
                LOG.exception('The task %s failed; it is retried.', name)
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
        """Return (whether all tasks are healthy, the JSON of the report)."""
        with self._lock:
            tasks, leads = dict(self._tasks), self._leads
        problems = {name: text for name, task in sorted(tasks.items())
                    if (text := task.problem(self._monotonic()))}
        return not problems, {
            'acts': leads, 'problems': problems, 'last_done': {
                name: task.done_at for name, task in sorted(tasks.items())}}


@dataclasses.dataclass
class _Task:
    """State of one task.

    :ivar began_at: when it began, monotonic; None while it does not run
    :ivar failed_at: when it first failed in a row, monotonic
    :ivar done_at: when it last succeeded, by the clock
    """

    began_at: float | None = None
    failed_at: float = 0
    done_at: float | None = None
    error: str = ''

    def problem(self, now):
        """Return why a task is unhealthy, '' if it is healthy.

        A task that is not due, or that another engine runs, is healthy.
        """
        began_at = self.began_at
        if began_at is not None and now - began_at >= LIMIT_S:
            return f'has not come back for {now - began_at:.0f} s'
        if self.error and now - self.failed_at >= LIMIT_S:
            return f'has failed for {now - self.failed_at:.0f} s: {self.error}'
        return ''
