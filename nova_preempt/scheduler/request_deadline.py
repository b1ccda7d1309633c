# SPDX-License-Identifier: Apache-2.0
"""The time until which one request has to be answered, and who may wait.

Who waits holds a thread of the scheduler and one of the conductor that has
asked. No more of them than an operator says wait at once, so that those who
find room at once always find a thread too.
"""

import time

from oslo_concurrency import processutils
from oslo_messaging import opts

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.core import poll_backoff
from nova_preempt.core.scheduling import cloud_port


class TimeIsUp(Exception):
    """Who asked has given up, or will have before this can be done."""

    def __init__(self, what='go on'):
        super().__init__(f'no time was left to {what}')


def get_messaging_option(conf, name):
    """An option of oslo.messaging in [DEFAULT].

    What it is for registers it: a client or a server, which may come later,
    or never in a command.
    """
    conf.register_opts([opt for _group, found in opts.list_opts()
                        for opt in found if opt.name == name])
    return conf[name]


def make_times(conf):
    """The Times of requests to a scheduler with this configuration.

    :param conf: nova.conf.CONF
    """
    return poll_backoff.make_time_budget(
        conf.long_rpc_timeout,
        get_messaging_option(conf, 'rpc_response_timeout'),
        conf.preemption.termination_timeout_s)


def check(conf):
    """Fail where [preemption]maximum_notice_s is too long for the conductor.

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
    """How many requests a process with this configuration works on at once.
    """
    return get_messaging_option(conf, 'executor_thread_pool_size')


def get_waiting_limits(conf):
    """How many requests the workers of a host can have waiting together.

    :returns: (that, how many threads the workers of a conductor there have),
        both as this configuration has it
    """
    schedulers, conductors = (
        group.workers or processutils.get_worker_count()
        for group in (conf.scheduler, conf.conductor))
    return (schedulers * conf.preemption.max_waiting_requests,
            conductors * get_threads(conf))


class Deadline:
    """Until when a request must be answered, and whether it may wait.

    One object for all that is done for it. A context manager, within which it
    keeps its slot.

    :param times: nova_preempt.core.poll_backoff.TimeBudget
    :param slots: a semaphore of how many requests of the process may wait,
        None for one that only asks how it would be
    :param monotonic: the clock
    :ivar began: when the request came: no host was looked at before
    :ivar waited: the uuids of decisions whose end it has waited for
    :ivar is_refused: whether it was not allowed to wait
    :ivar silent: the hosts that Placement did not answer for, and the time
        that they took
    """

    def __init__(self, times, slots, monotonic=time.monotonic):
        self.began = monotonic()
        self.waited = set()
        self.is_refused = False
        self.silent = cloud_port.UnansweredHosts()
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
        """Seconds until the answer must be given, not negative."""
        return max(0.0, self._left_s())

    def is_over(self):
        return self._left_s() <= 0

    def longest_notice_s(self):
        """The longest notice after which a victim can end in time.

        Negative where nobody can.
        """
        return self._left_s() - self._times.end_s

    def _left_s(self):
        return self.began + self._times.whole_s - self._monotonic()

    def check(self, what='go on'):
        """Before anything is done that would be in vain too late.

        :raises TimeIsUp: it is too late
        """
        if self.is_over():
            raise TimeIsUp(what)

    def may_wait(self):
        """Whether it may: asked only where it has something to wait for.

        The answer is the same until the request has its own.
        """
        if self._slots is None or self._has_slot or self.is_refused:
            return not self.is_refused
        self._has_slot = self._slots.acquire(blocking=False)
        self.is_refused = not self._has_slot
        if self._has_slot:
            metrics.WAITING.inc()
        return self._has_slot
