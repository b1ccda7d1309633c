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
"""Who acts."""

from unittest import mock
import urllib.parse

import fixtures
import testtools
from tooz import coordination

from nova_preempt.engine import service


class Lock:
    """One lock for everybody, as a backend has it."""

    def __init__(self, backend, member):
        self._backend = backend
        self._member = member

    @property
    def acquired(self):
        return self._backend.holder == self._member

    def acquire(self, blocking):
        self._backend.check()
        if self._backend.holder is None:
            self._backend.holder = self._member
        return self.acquired

    def release(self):
        self._backend.check()
        self._backend.holder = None


class Backend:
    """A tooz backend that can be away."""

    def __init__(self):
        self.holder = None
        self.away = False
        self.connected = self.stopped = 0
        self.lock = Lock
        # The connections of locks that have one of their own.
        self.locks = []

    def check(self):
        if self.away:
            raise coordination.ToozConnectionError('away')

    def connect(self, url, member):
        backend = self

        class Coordinator:

            def start(self, start_heart):
                backend.check()
                backend.connected += 1

            def heartbeat(self):
                backend.check()

            def get_lock(self, name):
                return backend.lock(backend, member)

            def stop(self):
                backend.stopped += 1
                backend.check()

        return Coordinator()


class DatabaseLock(Lock):
    """One that believes in what it got, as those of databases do."""

    acquired = False

    def __init__(self, backend, member):
        super().__init__(backend, member)
        self._conn = mock.MagicMock()
        backend.locks.append(self._conn)
        self._conn.cursor.side_effect = self._check

    def _check(self):
        if self._backend.holder != self._member:
            raise OSError('MySQL server has gone away')
        return mock.DEFAULT

    def acquire(self, blocking):
        if self._backend.holder is None:
            self._backend.holder = self._member
            self.acquired = True
        return self.acquired

    def release(self):
        self._check()
        super().release()


class TestLeadership(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.backend = Backend()
        self.useFixture(fixtures.MonkeyPatch(
            'tooz.coordination.get_coordinator', self.backend.connect))
        self.first = service.Leadership('x://', 'first')
        self.second = service.Leadership('x://', 'second')

    def holds(self):
        return self.first.holds(), self.second.holds()

    def test_one_holds_it_until_it_leaves(self):
        self.assertEqual((True, False), self.holds())
        self.assertEqual((True, False), self.holds())
        self.assertEqual(2, self.backend.connected)
        self.first.close()
        self.assertTrue(self.second.holds())
        self.assertFalse(self.first.holds())

    def test_nobody_acts_without_the_backend(self):
        self.backend.away = True
        self.assertEqual((False, False), self.holds())
        self.backend.away = False
        self.assertEqual((True, False), self.holds())

    def test_backend_that_fails_and_recovers(self):
        self.assertTrue(self.first.holds())
        self.backend.away = True
        self.assertEqual((False, False), self.holds())
        # What held the lock is gone with the connection.
        self.backend.holder = None
        self.backend.away = False
        self.assertTrue(self.second.holds())
        self.assertFalse(self.first.holds())
        self.second.close()
        self.assertTrue(self.first.holds())

    def test_a_lock_that_went_with_its_connection(self):
        """The database was started anew between two looks."""
        self.backend.lock = DatabaseLock
        self.assertEqual((True, False), self.holds())
        self.assertEqual((True, False), self.holds())
        self.backend.holder = None
        self.assertTrue(self.second.holds())
        self.assertEqual((False, True), self.holds())
        self.assertEqual((False, True), self.holds())

    def test_no_connection_stays(self):
        """However often the database is started anew."""
        self.backend.lock = DatabaseLock
        for number in range(1, 4):
            self.assertTrue(self.first.holds())
            self.backend.holder = None
            self.assertFalse(self.first.holds())
            self.assertEqual((number, number), (
                self.backend.connected, self.backend.stopped))
        for connection in self.backend.locks:
            connection.close.assert_called_once_with()

    def test_an_outage_is_told_once_in_a_while(self):
        """And each one anew."""
        logger = self.useFixture(fixtures.FakeLogger())
        at = iter([*range(service.COMPLAIN_S + 1), 61])
        first = service.Leadership('x://', 'first', at.__next__)

        def complaints():
            return logger.output.count('Cannot tell which engine acts')

        self.backend.away = True
        for _second in range(service.COMPLAIN_S):
            self.assertFalse(first.holds())
        self.assertEqual(1, complaints())
        first.holds()
        self.assertEqual(2, complaints())
        self.backend.away = False
        self.assertTrue(first.holds())
        self.backend.away = True
        first.holds()
        self.assertEqual(3, complaints())

    def test_the_password_of_the_backend_is_not_logged(self):
        logger = self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MonkeyPatch(
            'tooz.coordination.get_coordinator', mock.Mock(
                side_effect=coordination.ToozConnectionError(
                    'redis://me:hu%40sh@r1: AUTH hu@sh is refused'))))
        self.assertFalse(service.Leadership(
            'redis://me:hu%40sh@r1', 'first').holds())
        self.assertIn('Cannot tell which engine acts: redis://***@r1: AUTH '
                      '*** is refused', logger.output)
        self.assertNotIn('sh@', logger.output)

    def test_no_part_of_an_address_that_is_none_is_logged(self):
        """A slash in a password has libraries quote what is before it."""
        logger = self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MonkeyPatch(
            'tooz.coordination.get_coordinator', mock.Mock(
                side_effect=lambda url, _member: urllib.parse.urlparse(
                    url).port)))
        self.assertFalse(service.Leadership(
            'redis://me:hush/hush@r1:6379', 'first').holds())
        self.assertIn('backend_url cannot be used: ValueError', logger.output)
        self.assertNotIn('hush', logger.output)

    def test_closing_never_fails(self):
        self.first.close()
        self.assertTrue(self.first.holds())
        self.backend.away = True
        self.first.close()
        self.first.close()


class TestEngine(testtools.TestCase):

    def make(self, leadership):
        parts = mock.Mock()
        parts.known.refresh.__qualname__ = 'Knowledge.refresh'
        return service.Engine(
            parts, mock.Mock(threads=1, interval_s=3600), mock.Mock(),
            leadership, mock.Mock())

    def test_nothing_of_a_round_waits_for_the_audit(self):
        """It waits for a cell that hangs, which takes a minute."""
        name, _work, _pause_s = self.make(mock.Mock()).rounds.tasks[-1]
        self.assertEqual('Janitor.clean', name)

    def test_who_stops_lets_another_one_act(self):
        leadership = mock.Mock()
        engine = self.make(leadership)
        # They are tested on their own.
        engine._timed = ()
        engine.stop()
        engine.run()
        leadership.close.assert_called_once_with()
