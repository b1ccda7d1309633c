# SPDX-License-Identifier: Apache-2.0
"""Leases in the background, and services that do not answer."""

import threading
import time
import unittest
from unittest import mock

from nova_preempt import exceptions
from nova_preempt.core.reservation import leases as core
from nova_preempt.reservation import lease_cache
from tests.unit.reservation import support

LOGGER = 'nova_preempt.reservation.lease_cache'

# Long enough for a busy machine; nobody waits for it but in a failing test.
LONG_S = 60

DOWN = ConnectionError('no route')


class TestAge(unittest.TestCase):
    """Tests the age without the refreshing thread."""

    def setUp(self):
        super().setUp()
        self.monotonic = support.Clock(1000)
        self.known = self.make()
        # The complaints of a test are the test's.
        self.logs = self.enterContext(self.assertLogs(LOGGER, 'INFO'))

    def make(self, **values):
        return support.Fixed(support.lease('r', 100, 200, 'A'), now_s=150,
                             monotonic=self.monotonic, **values)

    def warnings(self):
        return [record.getMessage() for record in self.logs.records
                if record.levelname == 'WARNING']

    def fail(self):
        self.known._service.answer = DOWN
        self.known.ask()

    def test_an_answer_is_fresh_for_max_age(self):
        self.assertTrue(self.known.view().fresh)
        self.fail()
        self.monotonic.now_s += 60
        self.assertTrue(self.known.view().fresh)
        self.monotonic.now_s += 0.1
        view = self.known.view()
        self.assertFalse(view.fresh)
        self.assertEqual(0, view.free_s('A'))

    def test_complains_once_a_minute(self):
        self.known.view()
        for _ in range(300):
            self.fail()
            self.known.view()
            self.monotonic.now_s += 1
        self.assertEqual(5, len(self.warnings()))
        self.assertIn('ConnectionError: no route', self.warnings()[0])
        self.assertIn('240 s old', self.warnings()[-1])
        self.assertIn('fail_closed', self.warnings()[-1])

    def test_a_recovery_is_logged(self):
        self.fail()
        self.known._service.answer = ()
        self.known.ask()
        self.assertIn('answers again', self.logs.output[-1])
        self.assertTrue(self.known.view().fresh)

    def test_nothing_known(self):
        self.known._service.answer = DOWN
        view = self.known.view()
        self.assertIsNone(view.leases)
        self.assertEqual(0, view.free_s('A'))
        self.assertIn('reservations are none', self.warnings()[0])

    def test_fail_open(self):
        self.known = self.make(on_unavailable='fail_open')
        self.assertEqual(0, self.known.view().free_s('A'))
        self.fail()
        self.monotonic.now_s += 61
        self.assertLess(10 ** 9, self.known.view().free_s('A'))

    def test_unchanged_leases_are_kept(self):
        before = self.known.view().leases
        self.known.ask()
        self.assertIs(before, self.known.view().leases)
        self.fail()


class TestAnswer(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.known = support.Fixed(
            support.lease('r', 100, 200, 'A', status=core.ACTIVE),
            now_s=150)
        self.service = self.known._service

    def test_a_usable_hint_needs_no_query(self):
        self.known.view()
        self.assertEqual(frozenset('A'), self.known.answer(['r'], 'p').hosts)
        self.assertEqual(1, self.service.asked)

    def test_a_new_lease_is_found_at_once(self):
        self.known.view()
        self.service.answer = (support.lease('s', 100, 200, 'B',
                                             status=core.ACTIVE),)
        self.assertEqual(frozenset('B'), self.known.answer(['s'], 'p').hosts)
        self.assertEqual(2, self.service.asked)

    def test_an_unusable_hint_is_looked_up_once(self):
        self.known.view()
        self.assertIn('no reservation',
                      self.known.answer(['s'], 'p').reason)
        self.assertEqual(2, self.service.asked)

    def test_an_ended_lease(self):
        self.service.past['s'] = support.lease('s', 100, 140, 'B',
                                               status=core.ENDED)
        self.assertIn('has ended at', self.known.answer(['s'], 'p').reason)
        self.assertIn('no reservation',
                      self.known.answer(['s'], 'other').reason)

    def test_the_service_stops_answering(self):
        self.known.view()
        self.service.answer = DOWN
        with self.assertLogs(LOGGER, 'WARNING'):
            answer = self.known.answer(['s'], 'p')
        self.assertFalse(answer.known)
        self.assertIn('no reservation', answer.reason)
        self.assertIn('does not answer', answer.reason)
        # Known before, and so it is not asked again.
        self.assertEqual(frozenset('A'), self.known.answer(['r'], 'p').hosts)
        self.known.answer(['s'], 'p')
        self.assertEqual(2, self.service.asked)


class Waiting(support.Service):
    """Service that reports a call, and answers when it may."""

    def __init__(self, *answer):
        super().__init__(*answer)
        self.begun = threading.Semaphore(0)
        self.may_answer = threading.Semaphore(0)

    def fetch(self):
        self.begun.release()
        if not self.may_answer.acquire(timeout=LONG_S):
            raise AssertionError('nobody lets it answer')
        return super().fetch()


class TestThread(unittest.TestCase):

    def start(self, service, **values):
        known = lease_cache.LeaseCache(service, support.options(**values))
        self.addCleanup(known.stop)
        return known

    def enable(self, module=lease_cache, **values):
        for name, value in values.items():
            self.enterContext(mock.patch.object(module, name, value))

    def test_the_first_request_waits(self):
        service = support.Service(support.lease('r', 0, 10, 'A'))
        self.enable(WAIT_S=LONG_S)
        self.assertIsNotNone(self.start(service).view().leases)

    def test_the_first_request_waits_a_limited_time(self):
        self.enable(WAIT_S=0.05)
        service = Waiting()
        known = self.start(service)
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            self.assertIsNone(known.view().leases)
            self.assertEqual(0, known.view().free_s('A'))
        self.assertIn('no answer yet', logs.output[0])
        service.may_answer.release()

    def test_the_thread_keeps_asking(self):
        service = Waiting()
        self.enable(REFRESH_S=0.01)
        self.start(service).start()
        for _ in range(3):
            service.may_answer.release()
            self.assertTrue(service.begun.acquire(timeout=LONG_S))
        service.may_answer.release(10)

    def test_the_thread_survives_a_failure(self):
        service = Waiting()
        service.answer = DOWN
        self.enable(REFRESH_S=0.01)
        known = self.start(service)
        with self.assertLogs(LOGGER, 'INFO') as logs:
            known.start()
            service.may_answer.release()
            for _ in range(2):
                self.assertTrue(service.begun.acquire(timeout=LONG_S))
            service.answer = ()
            service.may_answer.release()
            self.assertTrue(service.begun.acquire(timeout=LONG_S))
        self.assertEqual(2, len(logs.output))
        self.assertTrue(known.view().fresh)
        service.may_answer.release(10)

    def test_requests_share_a_query(self):
        self.enable(PAUSE_S=0, WAIT_S=LONG_S, REFRESH_S=LONG_S)
        service = Waiting(support.lease('r', 0, 10, 'A'))
        known = self.start(service)
        known.start()
        self.assertTrue(service.begun.acquire(timeout=LONG_S))
        results = []
        threads = [threading.Thread(target=lambda number=number: (
            results.append(known.refresh([f'r{number}']))))
            for number in range(8)]
        for thread in threads:
            thread.start()
        while len(known._thread._asked_after) < 8:
            time.sleep(0.001)
        service.may_answer.release(2)
        for thread in threads:
            thread.join(LONG_S)
        self.assertEqual([True] * 8, results)
        self.assertEqual(2, service.asked)

    def test_a_query_that_began_before_is_not_shared(self):
        """The lease may have been made after it."""
        self.enable(PAUSE_S=0, WAIT_S=LONG_S, REFRESH_S=LONG_S)
        service = Waiting()
        known = self.start(service)
        known.start()
        self.assertTrue(service.begun.acquire(timeout=LONG_S))
        results = []
        thread = threading.Thread(
            target=lambda: results.append(known.refresh()))
        thread.start()
        service.may_answer.release()
        self.assertTrue(service.begun.acquire(timeout=LONG_S))
        self.assertEqual([], results)
        service.may_answer.release()
        thread.join(LONG_S)
        self.assertEqual([True], results)
        self.assertEqual(2, service.asked)

    def test_the_thread_starts_again_after_a_fork(self):
        service = support.Service()
        known = self.start(service)
        known.view()
        with mock.patch('os.getpid', return_value=-1):
            known.view()
        self.assertEqual(2, service.asked)


class TestCurrent(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(lease_cache.forget)
        lease_cache.forget()

    def conf(self, name, filters=()):
        return mock.Mock(
            reservation=support.options(lease_service=name),
            filter_scheduler=mock.Mock(enabled_filters=filters))

    def test_the_cache_is_shared(self):
        conf = self.conf('blazar')
        self.assertIs(lease_cache.current(conf), lease_cache.current(conf))

    def test_an_unknown_service(self):
        with self.assertRaisesRegex(exceptions.InvalidConfiguration,
                                    'known are: blazar, native'):
            lease_cache.current(self.conf('none'))

    def test_the_cache_is_used_with_the_filter(self):
        self.assertTrue(lease_cache.is_used(self.conf('',
                                                      ['ReservationFilter'])))
        self.assertFalse(lease_cache.is_used(self.conf('', ['ComputeFilter'])))
