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
"""Periodic tasks of the engine, each thread with its own.

No library has it: the work says itself when it is next due, which futurist's
PeriodicWorker, of fixed spacings, does not know; and what fails is tried again
after a pause, where oslo.service's DynamicLoopingCall tries it again at once.
"""

import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# How long after a failure work is tried again that has no pause of its own,
# in seconds, and how often the lock of an engine that does not act is tried.
RETRY_S = 5.0


class PeriodicTasks:
    """Runs tasks one after the other, each when it is due.

    :param tasks: [(name, work, pause in seconds)]; where the pause is None,
        the work returns after how many seconds to come again
    :param health: a nova_preempt.engine.health.Health
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
        self._failing = set()
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
        except Exception as exc:
            wait_s = RETRY_S
            if name in self._failing:
                LOG.warning('%(name)s still fails: %(exc)s',
                            {'name': name, 'exc': exc})
            else:
                LOG.exception('%s failed; it is tried again.', name)
            self._failing.add(name)
        else:
            self._failing.discard(name)
        return wait_s if pause_s is None else pause_s
