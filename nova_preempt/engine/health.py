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
"""Whether the engine does its work: for metrics, and for a health check."""

import threading
import time

from nova_preempt import metrics

# How long a piece of work may take, or fail in a row, before the engine counts
# as ill: longer than any timeout of what it talks to.
LIMIT_S = 300


class Health:
    """What each piece of work of the engine did last.

    :param monotonic, clock: to measure by, and to tell people
    """

    def __init__(self, monotonic=time.monotonic, clock=time.time):
        self._monotonic = monotonic
        self._clock = clock
        self._lock = threading.Lock()
        self._tasks = {}
        self._leads = False

    def expect(self, name):
        """From now on this is to be done again and again."""
        with self._lock:
            self._tasks.setdefault(name, _Task())

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
        self.expect(name)
        task = self._tasks[name]
        task.began_at = self._monotonic()
        try:
            result = work()
        except Exception as exc:
            if not task.error:
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


class _Task:

    def __init__(self):
        self.began_at = None      # monotonic, while it is being done
        self.failed_at = 0        # the same, of the first failure in a row
        self.done_at = None       # when it went well last, for people
        self.error = ''

    def problem(self, now):
        """What is wrong with it, '' for nothing.

        One that is not due, or not this engine's to do, is well.
        """
        began_at = self.began_at
        if began_at is not None and now - began_at >= LIMIT_S:
            return f'has not come back for {now - began_at:.0f} s'
        if self.error and now - self.failed_at >= LIMIT_S:
            return f'has failed for {now - self.failed_at:.0f} s: {self.error}'
        return ''
