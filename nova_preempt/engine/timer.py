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
"""Work that says itself when it is next due, in a thread of its own.

The tasks of the engine's loop may take their time; what has to happen at a
certain second does not wait for them.
"""

import threading

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# How long after a failure it is tried again, in seconds, and how often the
# lock of an engine that does not act is tried.
RETRY_S = 5.0


class TimedTask:
    """Runs one piece of work again and again.

    :param work: does what is due and returns after how many seconds to come
        again
    :param leadership: a nova_preempt.engine.service.Leadership, if only the
        engine that acts does it
    :param run: given name and work, does it
    :param skip: given the name, is told each time that another engine does it
    """

    def __init__(self, name, work, leadership=None,
                 run=lambda name, work: work(), skip=lambda name: None):
        self._name = name
        self._work = work
        self._leadership = leadership
        self._do = run
        self._skip = skip
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=name, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        """Let it finish what it does, and nothing more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self):
        failing = False
        while not self._stop.is_set():
            try:
                wait_s = self._turn()
                failing = False
            except Exception as exc:
                wait_s = RETRY_S
                if failing:
                    LOG.warning('%(name)s still fails: %(exc)s',
                                {'name': self._name, 'exc': exc})
                else:
                    LOG.exception('%s failed; it is tried again.',
                                  self._name)
                failing = True
            self._stop.wait(wait_s)

    def _turn(self):
        if self._leadership is not None and not self._leadership.holds():
            self._skip(self._name)
            return RETRY_S
        return self._do(self._name, self._work)
