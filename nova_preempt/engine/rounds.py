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
"""Work that is done again and again, one task after the other."""

import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Rounds:
    """Runs each task whose pause is over, if it is this engine's turn.

    :param tasks: [(what to call, pause in seconds)]
    :param interval_s: how long it is from one round to the next
    :param leadership: a nova_preempt.engine.service.Leadership
    :param health: a nova_preempt.engine.health.Health
    """

    def __init__(self, tasks, interval_s, leadership, health,
                 monotonic=time.monotonic):
        self._tasks = tasks
        self._interval_s = interval_s
        self._leadership = leadership
        self._health = health
        self._monotonic = monotonic
        self._stop = threading.Event()
        self._done_at = {}

    def run(self):
        """Until stop() is called."""
        while not self._stop.is_set():
            self.run_once()
            self._stop.wait(self._interval_s)

    def stop(self):
        self._stop.set()

    def run_once(self):
        """One round.

        What fails, since a service is away, does not keep the others from
        their work, and is tried again the next time.
        """
        now = self._monotonic()
        holds = True
        for task, pause_s in self._tasks:
            # Those before may have taken long.
            holds = holds and self._leadership.holds()
            self._health.leads(holds)
            if not holds:
                self._health.skip(task.__qualname__)
                continue
            done_at = self._done_at.get(task)
            if done_at is not None and now - done_at < pause_s:
                continue
            self._done_at[task] = now
            try:
                self._health.run(task.__qualname__, task)
            except Exception:
                LOG.exception('%s failed; it is tried again.',
                              task.__qualname__)
