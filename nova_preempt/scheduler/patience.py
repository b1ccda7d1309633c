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
"""What one request may still wait for.

Who waits holds a thread of the scheduler and one of the conductor that has
asked. No more of them than an operator says wait at once, so that those who
find room at once always find a thread too.
"""

import threading

from oslo_concurrency import processutils

from nova_preempt.core.scheduling import unanswered
from nova_preempt.scheduler import deadline


def get_threads(conf):
    """How many requests a process with this configuration works on at once.
    """
    return deadline.get_messaging_option(conf, 'executor_thread_pool_size')


def get_crowd(conf):
    """How many requests the workers of a host can have waiting together.

    :returns: (that, how many threads the workers of a conductor there have),
        both as this configuration has it
    """
    schedulers, conductors = (
        group.workers or processutils.get_worker_count()
        for group in (conf.scheduler, conf.conductor))
    return (schedulers * conf.preemption.max_waiting_requests,
            conductors * get_threads(conf))


class Places:
    """How many requests of this process may wait at once.

    :param most: None for as many as there are
    :param gauge: the metric that shows how many there are, or None
    """

    def __init__(self, most=None, gauge=None):
        self._most = most
        self._gauge = gauge
        self._lock = threading.Lock()
        self._taken = 0

    def take(self):
        """Whether one more may wait; it gives its place back afterwards."""
        with self._lock:
            if self._most is not None and self._taken >= self._most:
                return False
            self._change(1)
            return True

    def give_back(self):
        with self._lock:
            self._change(-1)

    def _change(self, by):
        self._taken += by
        if self._gauge is not None:
            self._gauge.set(self._taken)


class Patience:
    """One request's. Use it as a context manager.

    :param limit: its nova_preempt.scheduler.deadline.Deadline
    :param places: the Places of the process
    :ivar waited: the uuids of decisions whose end it has waited for
    :ivar is_refused: whether it was not allowed to wait
    :ivar silent: the hosts that Placement did not answer for, and the time
        that they took
    """

    def __init__(self, limit, places):
        self.limit = limit
        self.waited = set()
        self.is_refused = False
        self.silent = unanswered.Silent()
        self._places = places
        self._has_place = False

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._has_place:
            self._has_place = False
            self._places.give_back()

    def may_wait(self):
        """Whether it may: asked only where it has something to wait for.

        The answer is the same until the request has its own.
        """
        if not self._has_place and not self.is_refused:
            self._has_place = self._places.take()
            self.is_refused = not self._has_place
        return self._has_place
