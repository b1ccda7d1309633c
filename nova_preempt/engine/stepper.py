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
"""Much that takes long, in few threads: none of them waits.

Each piece of work is done in steps and says after each how long to wait for
the next. Meanwhile the threads are there for the others.
"""

import concurrent.futures
import heapq
import itertools
import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Stepper:
    """Takes the steps, in the order in which they are due.

    :param threads: how many steps at once
    """

    def __init__(self, threads, name, monotonic=time.monotonic):
        self._pool = concurrent.futures.ThreadPoolExecutor(
            threads, thread_name_prefix=name)
        self._monotonic = monotonic
        self._due = []            # heap of (when, number, step)
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name,
                                        daemon=True)

    def add(self, step):
        """Begin with a piece of work, as soon as a thread is free.

        :param step: does what is due, without waiting; returns after how many
            seconds to be called again, None once it is done
        """
        with self._changed:
            if self._thread.ident is None:
                self._thread.start()
        self._push(self._monotonic(), step)

    def _push(self, when, step):
        with self._changed:
            heapq.heappush(self._due, (when, next(self._numbers), step))
            self._changed.notify()

    def _run(self):
        while True:
            with self._changed:
                while not self._stopped and not self._is_due():
                    self._changed.wait(self._due[0][0] - self._monotonic()
                                       if self._due else None)
                if self._stopped:
                    return
                step = heapq.heappop(self._due)[2]
                self._pool.submit(self._take, step)

    def _is_due(self):
        return self._due and self._due[0][0] <= self._monotonic()

    def _take(self, step):
        try:
            wait_s = step()
        except Exception:
            LOG.exception('A step failed; it is not taken again.')
            return
        if wait_s is not None:
            self._push(self._monotonic() + wait_s, step)

    def close(self):
        """Take no more steps; those that are being taken end by themselves."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
            self._pool.shutdown(wait=False, cancel_futures=True)
