# SPDX-License-Identifier: Apache-2.0

import pathlib
import threading
import time

import fixtures
import futurist
from oslo_db.sqlalchemy import enginefacade
import oslo_messaging as messaging
from oslo_messaging._drivers import impl_fake
import sqlalchemy as sa
from sqlalchemy import event
import testtools

from nova_preempt.embedded import speedups


class TestDatabases(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(speedups.Databases())

    def engine(self, name):
        facade = enginefacade.transaction_context()
        facade.configure(connection=f'sqlite:///{self.folder}/{name}.sqlite')
        engine = facade.writer.get_engine()
        self.connects = []
        event.listen(engine, 'connect', lambda *args: self.connects.append(1))
        return engine

    def test_connections_are_kept(self):
        engine = self.engine('a')
        opened = len(self.connects)
        for _number in range(3):
            with engine.begin() as connection:
                connection.execute(sa.text('SELECT 1'))
        self.assertEqual(opened, len(self.connects))
        # There are as many as are needed at once.
        held = [engine.connect() for _number in range(20)]
        self.assertEqual(opened + 19, len(self.connects))
        for connection in held:
            connection.close()

    def test_uncommitted_changes_are_lost(self):
        engine = self.engine('a')
        with engine.begin() as connection:
            connection.execute(sa.text('CREATE TABLE t (x INTEGER)'))
        with engine.connect() as connection:
            connection.execute(sa.text('INSERT INTO t VALUES (1)'))
        with engine.connect() as connection:
            self.assertEqual(
                [], connection.execute(sa.text('SELECT x FROM t')).all())

    def test_statements_are_compiled_once(self):
        statement = sa.select(sa.literal(7).label('seven'))
        compiled = []
        for name in 'ab':
            with self.engine(name).connect() as connection:
                result = connection.execute(statement)
                compiled.append(result.context.compiled)
                self.assertEqual(7, result.scalar())
        self.assertIs(*compiled)

    def test_ends(self):
        engine = self.engine('a')
        engine.connect().close()
        self.assertEqual(1, engine.pool.checkedin())
        self.doCleanups()
        self.assertEqual(0, engine.pool.checkedin())


class TestIdleThreads(testtools.TestCase):

    def setUp(self):
        super().setUp()
        # Whoever looks only then never ends in this test.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_preempt.embedded.speedups.MAX_IDLE_FOR_S', 3600))
        self.useFixture(speedups.BlockingThreadPools())

    def test_all_work_is_done_and_all_threads_end(self):
        pool = futurist.ThreadPoolExecutor(8)
        done = []
        for number in range(20):
            pool.submit(lambda number=number: (
                time.sleep(0.001), done.append(number)))
        workers = pool._workers
        pool.shutdown()
        self.assertEqual(list(range(20)), sorted(done))
        self.assertEqual(8, len(workers))
        self.assertFalse(any(worker.is_alive() for worker in workers))

    def test_shut_down_twice(self):
        pool = futurist.ThreadPoolExecutor(2)
        self.assertEqual(1, pool.submit(lambda: 1).result())
        pool.shutdown(wait=False)
        pool.shutdown()
        self.assertFalse(any(worker.is_alive() for worker in pool._workers))
        self.assertRaises(RuntimeError, pool.submit, len, '')


class TestMessages(testtools.TestCase):

    def test_a_sleeping_thread_is_woken(self):
        self.useFixture(speedups.Messages())
        exchange = impl_fake.FakeExchange('e')
        target = messaging.Target(topic='t')
        received = []

        def listen():
            while not received:
                message = exchange.poll(target, None)
                if message[1] is None:
                    # Nobody waits for the end of this.
                    impl_fake.time.sleep(3600)
                else:
                    received.append(message[1])

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        exchange.deliver_message('t', {}, 'first')
        while thread.is_alive():
            # Should it have come between the look and the sleep.
            exchange.deliver_message('other', {}, 'second')
            thread.join(0.01)
        self.assertEqual(['first'], received)

    def test_sleeps_no_longer_than_asked(self):
        self.useFixture(speedups.Messages())
        began = time.monotonic()
        impl_fake.time.sleep(0.001)
        self.assertLess(time.monotonic() - began, 60)
