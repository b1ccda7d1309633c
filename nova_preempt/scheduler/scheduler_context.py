# SPDX-License-Identifier: Apache-2.0
"""Assembles the parts of a scheduler that preempts."""

import threading
import time

from oslo_log import log as logging

from nova_preempt.core.scheduling import cost_bound_cache
from nova_preempt.handover import service_context
from nova_preempt.scheduler import release_waiter
from nova_preempt.scheduler import request_deadline

LOG = logging.getLogger(__name__)


# Selecting victims on 10,000 hosts takes a second or two.
LONGEST_S = 10


class VictimSelectionLock:
    """Lock that lets one thread at a time select victims.

    It only avoids conflicts: Placement and the database keep a server from
    being evicted twice. So a thread that holds the lock for too long, because
    a database or a service does not answer, loses it to the next thread.

    :param longest_s: for how long a thread keeps the lock while another waits
    :param monotonic: the clock
    :param wait: waits for a threading.Condition for so many seconds
    """

    def __init__(self, longest_s=LONGEST_S, monotonic=time.monotonic,
                 wait=threading.Condition.wait):
        self._longest_s = longest_s
        self._monotonic = monotonic
        self._wait = wait
        self._changed = threading.Condition()
        self._turn = None         # the token of the thread that holds it
        self._since = None        # when that thread acquired it

    def acquire(self):
        """Wait for the lock; return the token that release() takes."""
        turn = object()
        with self._changed:
            while self._turn is not None:
                left_s = self._since + self._longest_s - self._monotonic()
                if left_s <= 0:
                    LOG.warning('A request has been selecting victims for '
                                'more than %s s; other requests no longer '
                                'wait for it. Is there a cell, a database or '
                                'a service that does not answer?',
                                self._longest_s)
                    break
                self._wait(self._changed, left_s)
            self._turn = turn
            self._since = self._monotonic()
        return turn

    def release(self, turn):
        """Release the lock unless another thread has taken it over."""
        with self._changed:
            if self._turn is turn:
                self._turn = None
                self._changed.notify()


class SchedulerContext(service_context.ServiceContext):
    """The parts, and those that only a scheduler has.

    :param conf: nova.conf.CONF
    :param host: the name of the scheduler's host
    :param host_manager: Nova's HostManager
    :param get_client: returns Nova's Placement client
    :param clock: returns now, timezone-aware
    :param monotonic: the clock that requests have their time by
    """

    def __init__(self, conf, host, host_manager, get_client, clock,
                 monotonic=time.monotonic):
        self.host_manager = host_manager
        self.monotonic = monotonic
        self._times = request_deadline.make_times(conf)
        self._slots = threading.Semaphore(_get_places(conf))
        super().__init__(conf, host, get_client, lambda: host_manager.cells,
                         clock, self.notice_limit_s)
        self.selection_lock = VictimSelectionLock()
        self.memo = cost_bound_cache.CostBoundCache()
        self.releasing = release_waiter.ReleaseWaiter(
            self.process.decisions, self.process.options)

    @property
    def notice_limit_s(self):
        """The longest notice that a request can wait for."""
        return self._times.notice_limit_s

    def deadline(self, waits=True):
        """The Deadline of a request that has come just now.

        :param waits: False for one that only asks how it would be
        """
        return request_deadline.Deadline(
            self._times, self._slots if waits else None, self.monotonic)


def _get_places(conf):
    """Return the most requests that wait, each in a thread."""
    places = conf.preemption.max_waiting_requests
    threads = request_deadline.get_threads(conf)
    if places >= threads:
        LOG.warning(
            '[preemption]max_waiting_requests is %(places)s, not below '
            '[DEFAULT]executor_thread_pool_size, %(threads)s: when so '
            'many requests wait no other one is served, not even one '
            'that has room.',
            {'places': places, 'threads': threads})
    return places
