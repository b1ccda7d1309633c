# SPDX-License-Identifier: Apache-2.0
"""Time, threads and locks of the standard library, for tasks.

install() replaces them for good, so exploration has a process of its own. It
comes after the libraries were imported and before nova_preempt is, whose
functions have clocks as defaults. Outside of all tasks they are as before.
"""

import concurrent.futures
import contextvars
import datetime
import itertools
import os
import random
import threading
import time
import uuid

from oslo_utils import timeutils

#: The tasks.Loop of the exploration that runs, None between two.
LOOP = None

_real = {'monotonic': time.monotonic, 'time': time.time, 'sleep': time.sleep,
         'utcnow': timeutils.utcnow, 'uuid4': uuid.uuid4}


def _in_task():
    return LOOP is not None


def monotonic():
    return LOOP.now_s if _in_task() else _real['monotonic']()


def wall():
    return LOOP.wall_s() if _in_task() else _real['time']()


def thread_time():
    return 0.0


def sleep(seconds):
    if _in_task():
        LOOP.sleep(seconds)
    else:
        _real['sleep'](seconds)


def utcnow(with_timezone=False):
    if not _in_task():
        return _real['utcnow'](with_timezone)
    now = LOOP.local_utcnow()
    return now.replace(tzinfo=datetime.timezone.utc) if with_timezone else now


def uuid4():
    if not _in_task():
        return _real['uuid4']()
    return uuid.UUID(int=LOOP.rng.getrandbits(128), version=4)


class Lock:
    """threading.Lock for tasks."""

    def __init__(self):
        self._holder = None
        self._waiting = []

    def acquire(self, blocking=True, timeout=-1):
        until = None if timeout is None or timeout < 0 else (
            monotonic() + timeout)
        while self._holder is not None:
            left = None if until is None else until - monotonic()
            if not blocking or (left is not None and left <= 0):
                return False
            task = LOOP.current
            self._waiting.append(task)
            try:
                LOOP.block(left)
            finally:
                if task in self._waiting:
                    self._waiting.remove(task)
        self._holder = (LOOP and LOOP.current) or self
        return True

    def release(self):
        if self._holder is None:
            raise RuntimeError('release unlocked lock')
        self._holder = None
        if self._waiting and LOOP is not None:
            LOOP.wake(self._waiting.pop(0))

    def locked(self):
        return self._holder is not None

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *exc_info):
        self.release()

    def _at_fork_reinit(self):
        self.__init__()


class RLock(Lock):
    """threading.RLock for tasks."""

    def __init__(self):
        super().__init__()
        self._depth = 0

    def acquire(self, blocking=True, timeout=-1):
        me = (LOOP and LOOP.current) or self
        if self._holder is not me and not super().acquire(blocking, timeout):
            return False
        self._depth += 1
        return True

    def release(self):
        self._depth -= 1
        if not self._depth:
            super().release()

    def _is_owned(self):
        return self._holder is ((LOOP and LOOP.current) or self)


class Condition:
    """threading.Condition for tasks."""

    def __init__(self, lock=None):
        self._lock = RLock() if lock is None else lock
        self._waiters = []
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def __enter__(self):
        self._lock.acquire()
        return self

    def __exit__(self, *exc_info):
        self._lock.release()

    def wait(self, timeout=None):
        task = LOOP.current
        depth, self._lock._depth = getattr(self._lock, '_depth', 0), 1
        self._waiters.append(task)
        self._lock.release()
        try:
            return bool(LOOP.block(timeout))
        finally:
            if task in self._waiters:
                self._waiters.remove(task)
            self._lock.acquire()
            self._lock._depth = depth

    def wait_for(self, predicate, timeout=None):
        until = None if timeout is None else monotonic() + timeout
        while not predicate():
            left = None if until is None else until - monotonic()
            if left is not None and left <= 0:
                return predicate()
            self.wait(left)
        return True

    def notify(self, n=1):
        for task in self._waiters[:n]:
            self._waiters.remove(task)
            LOOP.wake(task)

    def notify_all(self):
        self.notify(len(self._waiters))


class Event:
    """threading.Event for tasks."""

    def __init__(self):
        self._is_set = False
        self._waiters = []

    def is_set(self):
        return self._is_set

    def set(self):
        self._is_set = True
        waiters, self._waiters = self._waiters, []
        for task in waiters:
            LOOP.wake(task)

    def clear(self):
        self._is_set = False

    def wait(self, timeout=None):
        if not self._is_set:
            task = LOOP.current
            self._waiters.append(task)
            try:
                LOOP.block(timeout)
            finally:
                if task in self._waiters:
                    self._waiters.remove(task)
        return self._is_set


class Semaphore:
    """threading.Semaphore for tasks."""

    def __init__(self, value=1):
        self._value = value
        self._changed = Condition()

    def acquire(self, blocking=True, timeout=None):
        with self._changed:
            if not self._value and (not blocking or not self._changed.wait_for(
                    lambda: self._value, timeout)):
                return False
            self._value -= 1
            return True

    def release(self, n=1):
        with self._changed:
            self._value += n
            self._changed.notify(n)

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *exc_info):
        self.release()


class Thread:
    """threading.Thread as a task of the process that starts it."""

    _numbers = itertools.count(1)

    def __init__(self, group=None, target=None, name=None, args=(),
                 kwargs=None, *, daemon=None):
        self._target = target
        self.name = name or 'thread'
        self.daemon = daemon
        self._arguments = args, kwargs or {}
        self._task = None

    def start(self):
        args, kwargs = self._arguments
        process = LOOP.current.process
        self._task = LOOP.start(
            process, f'{process.name}/{self.name}',
            lambda: self._target(*args, **kwargs))

    def join(self, timeout=None):
        if self._task is not None:
            LOOP.join(self._task)

    def is_alive(self):
        return self._task is not None and not self._task.is_over


class Executor(concurrent.futures.Executor):
    """A pool of any number of tasks."""

    def __init__(self, max_workers=None, thread_name_prefix='', **kwargs):
        self._name = thread_name_prefix or 'pool'

    def submit(self, fn, /, *args, **kwargs):
        future = concurrent.futures.Future()
        process = LOOP.current.process
        self._tasks = [*getattr(self, '_tasks', ()), LOOP.start(
            process, f'{process.name}/{self._name}',
            lambda: self._run(future, fn, args, kwargs))]
        return future

    @staticmethod
    def _run(future, fn, args, kwargs):
        future.set_running_or_notify_cancel()
        try:
            result = contextvars.Context().run(fn, *args, **kwargs)
        except Exception as exc:  # noqa: BLE001 (whoever waits raises it)
            future.set_exception(exc)
        else:
            future.set_result(result)

    def shutdown(self, wait=True, *, cancel_futures=False):
        if wait:
            for task in getattr(self, '_tasks', ()):
                LOOP.join(task)


def install():
    """Replace modules that nova_preempt will import."""
    time.monotonic = monotonic
    time.time = wall
    time.sleep = sleep
    time.thread_time = thread_time
    timeutils.utcnow = utcnow
    uuid.uuid4 = uuid4
    os.getpid = lambda: 1
    for substitute in (Lock, RLock, Condition, Event, Semaphore, Thread):
        setattr(threading, substitute.__name__, substitute)
    threading.BoundedSemaphore = Semaphore
    concurrent.futures.ThreadPoolExecutor = Executor


def use(loop, seed):
    """Have everybody live in the time of a loop, None: in the real one."""
    global LOOP
    LOOP = loop
    random.seed(seed)
