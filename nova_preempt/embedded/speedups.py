# SPDX-License-Identifier: Apache-2.0
"""Fixtures that avoid repeated work in a cloud in one process.

oslo.db and SQLAlchemy are made for services that live for months, and Nova's
fixtures for tests that start few of them. Here a cloud lives for seconds, with
five databases and a hundred threads.
"""

import functools
import gc
import threading
import time
import weakref

import fixtures
import futurist
from futurist import _thread
from nova import utils
from oslo_messaging._drivers import impl_fake
import sqlalchemy
from sqlalchemy import event
from sqlalchemy import pool
from sqlalchemy import util
from sqlalchemy.dialects.sqlite import pysqlite

#: As futurist has it. Nova's tests make it 0.01.
MAX_IDLE_FOR_S = 1.0

#: The compiled statements of all engines of the process. A cloud has some
#: thousand.
COMPILED = util.LRUCache(10_000)


class _Dialect(pysqlite.SQLiteDialect_pysqlite):
    """Dialect whose instances are equal, so that engines share statements."""

    # SQLAlchemy reads this of the very class.
    supports_statement_cache = True

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return hash(type(self))


class Databases(fixtures.Fixture):
    """SQLite with connections that are kept, and statements compiled once.

    oslo.db opens a file of SQLite anew for each transaction, and SQLite then
    reads the whole schema. Compiled statements belong to an engine, of which
    each cloud makes five. Nothing needs to be on the disk: the files do not
    outlive the process.
    """

    def _setUp(self):
        self._engines = weakref.WeakSet()
        self.addCleanup(self._dispose)
        self.useFixture(fixtures.MockPatchObject(
            sqlalchemy, 'create_engine', functools.partial(
                self._create_engine, sqlalchemy.create_engine)))
        self.useFixture(fixtures.MockPatchObject(
            pysqlite.SQLiteDialect_pysqlite, 'get_dialect_cls',
            lambda url: _Dialect))

    def _create_engine(self, real, url, **kwargs):
        if kwargs.get('poolclass') is pool.NullPool:
            # Without a limit, for all services' threads are in this process.
            # And a file does not go away.
            kwargs.update(poolclass=pool.QueuePool, pool_size=0,
                          pool_use_lifo=True, pool_pre_ping=False)
        engine = real(url, **kwargs)
        if isinstance(engine.dialect, _Dialect):
            engine._compiled_cache = COMPILED
            event.listen(engine, 'connect', _skip_the_disk)
            self._engines.add(engine)
        return engine

    def _dispose(self):
        for engine in list(self._engines):
            engine.dispose()


def _skip_the_disk(connection, _record):
    connection.execute('PRAGMA synchronous = OFF')


class BlockingThreadPools(fixtures.Fixture):
    """Idle threads block until there is work, or until their pool ends.

    Nova's tests have each look a hundred times a second whether it may go,
    and a cloud has up to a hundred threads.
    """

    def _setUp(self):
        # Earlier releases know no threads but those of eventlet.
        if getattr(utils, 'concurrency_mode_threading', bool)():
            self.useFixture(fixtures.MockPatchObject(
                _thread.ThreadWorker, '_wait_for_work',
                _wait_for_work(_thread.ThreadWorker._wait_for_work)))
            self.useFixture(fixtures.MockPatchObject(
                futurist.ThreadPoolExecutor, 'shutdown',
                _shutdown(futurist.ThreadPoolExecutor.shutdown)))


def _wait_for_work(real):
    def wait_for_work(worker):
        # Of the object, for Nova sets that of the class.
        worker.MAX_IDLE_FOR = MAX_IDLE_FOR_S
        return real(worker)

    return wait_for_work


def _shutdown(real):
    def shutdown(executor, wait=True, **kwargs):
        with executor._shutdown_lock:
            if wait and executor.alive:
                executor._work_queue.join()
            real(executor, wait=False, **kwargs)
            # Each takes one of these at most, for then it ends.
            for _worker in executor._workers:
                executor._work_queue.put(_NoWork())
        if wait:
            for worker in executor._workers:
                worker.join()

    return shutdown


class _NoWork:

    def run(self):
        """Do nothing: it wakes a thread that waits for work."""


class Messages(fixtures.Fixture):
    """Messages are received at once, without polling.

    Who listens on the in-process bus looks twenty times a second, and a
    server that is built takes half a dozen messages.
    """

    def _setUp(self):
        clock = _Clock()
        self.useFixture(fixtures.MockPatchObject(impl_fake, 'time', clock))
        self.useFixture(fixtures.MockPatchObject(
            impl_fake.FakeExchange, 'deliver_message',
            _deliver(impl_fake.FakeExchange.deliver_message, clock.wake)))


class _Clock:
    """Clock of the bus: a message wakes its sleepers."""

    time = staticmethod(time.time)

    def __init__(self):
        self._condition = threading.Condition()

    def sleep(self, seconds):
        with self._condition:
            self._condition.wait(seconds)

    def wake(self):
        with self._condition:
            self._condition.notify_all()


def _deliver(real, wake):
    def deliver_message(*args, **kwargs):
        real(*args, **kwargs)
        wake()

    return deliver_message


@functools.cache
def freeze():
    """Exclude objects made by imports from garbage collection, once."""
    gc.collect()
    gc.freeze()
