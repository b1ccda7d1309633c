# SPDX-License-Identifier: Apache-2.0
"""Deadlines of requests, and the limit of waiting requests.

A waiting request holds a thread of the scheduler and of the conductor. The
operator limits their number, so that requests that need not wait always find
a thread.
"""

import time

from oslo_concurrency import processutils
from oslo_messaging import opts

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.core import poll_timing
from nova_preempt.core.scheduling import cloud_view


class TimeIsUp(Exception):
    """The deadline has passed, or will pass before the step is done."""

    def __init__(self, what='continue'):
        super().__init__(f'the time limit was reached before it could {what}')


def get_messaging_option(conf, name):
    """Return the value of an oslo.messaging option in [DEFAULT].

    Registers the option, which only an RPC client or server does otherwise.
    """
    conf.register_opts([opt for _group, found in opts.list_opts()
                        for opt in found if opt.name == name])
    return conf[name]


def make_times(conf):
    """Return the Times of requests with this configuration.

    :param conf: nova.conf.CONF
    """
    return poll_timing.make_time_budget(
        conf.long_rpc_timeout,
        get_messaging_option(conf, 'rpc_response_timeout'),
        conf.preemption.termination_timeout_s)


def check(conf):
    """Validate [preemption]maximum_notice_s against the conductor's timeout.

    :raises InvalidConfiguration:
    """
    options = conf.preemption
    limit_s = make_times(conf).notice_limit_s
    if options.maximum_notice_s > limit_s:
        raise exceptions.InvalidConfiguration(
            f'[preemption]maximum_notice_s is {options.maximum_notice_s} s; '
            f'with termination_timeout_s {options.termination_timeout_s} s '
            f'and [DEFAULT]long_rpc_timeout {conf.long_rpc_timeout} s no '
            f'notice is longer than {limit_s} s')


def get_threads(conf):
    """Return the number of requests that a process serves at once."""
    return get_messaging_option(conf, 'executor_thread_pool_size')


def get_waiting_limits(conf):
    """Return the limits of waiting requests of all workers on a host.

    :returns: (most waiting requests, threads of the conductor's workers)
    """
    schedulers, conductors = (
        group.workers or processutils.get_worker_count()
        for group in (conf.scheduler, conf.conductor))
    return (schedulers * conf.preemption.max_waiting_requests,
            conductors * get_threads(conf))


class Deadline:
    """The deadline of a request, and its slot to wait.

    A context manager that releases the slot at its end.

    :param times: nova_preempt.core.poll_timing.TimeBudget
    :param slots: a semaphore of the waiting requests of the process, None for
        a dry run
    :param monotonic: the clock
    :ivar began: when the request arrived
    :ivar waited: uuids of decisions that it has waited for
    :ivar is_refused: whether it got no slot to wait
    :ivar silent: the hosts that Placement did not answer for, and the time
        that they took
    """

    def __init__(self, times, slots, monotonic=time.monotonic):
        self.began = monotonic()
        self.waited = set()
        self.is_refused = False
        self.silent = cloud_view.UnansweredHosts()
        self._times = times
        self._monotonic = monotonic
        self._slots = slots
        self._has_slot = False

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._has_slot:
            self._has_slot = False
            self._slots.release()
            metrics.WAITING.dec()

    def left_s(self):
        """Return the seconds until the deadline, not negative."""
        return max(0.0, self._left_s())

    def is_over(self):
        return self._left_s() <= 0

    def longest_notice_s(self):
        """Return the longest notice with which a victim is evicted in time.

        Negative if none is.
        """
        return self._left_s() - self._times.end_s

    def _left_s(self):
        return self.began + self._times.whole_s - self._monotonic()

    def check(self, what='continue'):
        """Check the deadline before a step.

        :raises TimeIsUp: the deadline has passed
        """
        if self.is_over():
            raise TimeIsUp(what)

    def may_wait(self):
        """Return whether the request may wait; acquires its slot.

        The result does not change for this request.
        """
        if self._slots is None or self._has_slot or self.is_refused:
            return not self.is_refused
        self._has_slot = self._slots.acquire(blocking=False)
        self.is_refused = not self._has_slot
        if self._has_slot:
            metrics.WAITING.inc()
        return self._has_slot
