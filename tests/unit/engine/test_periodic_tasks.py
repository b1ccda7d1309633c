# SPDX-License-Identifier: Apache-2.0
"""Schedule of tasks, and isolation of failing tasks."""

import threading
from unittest import mock

import fixtures
import testtools

from nova_preempt.engine import periodic_tasks


class TasksTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.leadership = mock.Mock()
        self.leadership.holds.return_value = True
        self.now = 1000.0
        self.health = periodic_tasks.TaskHealth(lambda: self.now)

    def make(self, *tasks, leadership=None, interval_s=0, standby=None):
        return periodic_tasks.PeriodicTasks(
            tasks, self.health, leadership, interval_s, standby,
            lambda: self.now)


class TestRounds(TasksTestCase):
    """Several tasks, each with its own pause."""

    def setUp(self):
        super().setUp()
        self.done = []
        self.rounds = self.make(
            ('fail', self.fail_always, 0),
            ('often', lambda: self.done.append('often'), 0),
            ('seldom', lambda: self.done.append('seldom'), 60),
            leadership=self.leadership)

    def fail_always(self):
        self.done.append('fail')
        raise ValueError('no service')

    def run_once(self, **values):
        self.done = []
        self.rounds.run_once(**values)
        return self.done

    def test_a_failing_task_does_not_stop_others(self):
        self.assertEqual(['fail', 'often', 'seldom'], self.run_once())
        self.assertIn('fail failed', self.logger.output)
        self.assertEqual(['fail', 'often'], self.run_once())
        self.assertIn('fail still fails: no service', self.logger.output)

    def test_each_task_has_its_pause(self):
        self.run_once()
        self.now += 59
        self.assertEqual(['fail', 'often'], self.run_once())
        self.now += 1
        self.assertEqual(['fail', 'often', 'seldom'], self.run_once())
        self.assertEqual(['fail', 'often'], self.run_once())
        self.assertEqual(['fail', 'often', 'seldom'],
                         self.run_once(at_once=True))

    def test_a_failed_task_has_its_pause(self):
        self.rounds = self.make(('fail', self.fail_always, 60))
        self.assertEqual(['fail'], self.run_once())
        self.now += 59
        self.assertEqual([], self.run_once())

    def test_no_task_runs_while_another_engine_leads(self):
        self.leadership.holds.return_value = False
        self.assertEqual([], self.run_once())
        self.leadership.holds.return_value = True
        self.assertEqual(['fail', 'often', 'seldom'], self.run_once())

    def test_what_runs_while_another_engine_leads(self):
        done = []
        rounds = self.make(('a', lambda: done.append('a'), 60),
                           leadership=self.leadership,
                           standby=('b', lambda: done.append('b')))
        rounds.run_once()
        self.leadership.holds.return_value = False
        self.now += 60
        self.assertEqual(5.0, rounds.run_once())
        self.assertEqual(['a', 'b'], done)
        self.assertIsNotNone(self.health.report()[1]['last_done']['b'])

    def test_a_task_of_a_standby_engine_fails(self):
        rounds = self.make(('a', lambda: None, 60),
                           leadership=self.leadership,
                           standby=('b', self.fail_always))
        self.leadership.holds.return_value = False
        rounds.run_once()
        self.now += periodic_tasks.LIMIT_S
        rounds.run_once()
        self.assertIn('b still fails: no service', self.logger.output)
        self.assertEqual(
            {'b': f'has failed for {periodic_tasks.LIMIT_S} s: no service'},
            self.health.report()[1]['problems'])
        self.leadership.holds.return_value = True
        rounds.run_once()
        self.assertTrue(self.health.report()[0])

    def test_a_round_stops_when_another_engine_leads(self):
        """Its task has waited for a minute."""
        self.leadership.holds.side_effect = [True, False, True]
        self.assertEqual(['fail'], self.run_once())

    def test_a_failure_is_cleared_when_another_engine_leads(self):
        self.run_once()
        self.now += periodic_tasks.LIMIT_S
        self.assertFalse(self.health.report()[0])
        self.leadership.holds.return_value = False
        self.run_once()
        self.assertTrue(self.health.report()[0])

    def test_the_rounds_stop(self):
        def stop():
            self.done.append('stop')
            self.rounds.stop()

        self.rounds = self.make(('stop', stop, 0), interval_s=3600)
        self.rounds.run()
        self.assertEqual(['stop'], self.done)


class TestTimed(TasksTestCase):
    """Work that returns when it is next due."""

    def setUp(self):
        super().setUp()
        self.waits = []
        self.work = mock.Mock(return_value=0.5)

    def run_times(self, times, leadership=None):
        """Let it go round so often, without waiting."""
        item = self.make(('a test', self.work, None), leadership=leadership)
        for _ in range(times):
            self.waits.append(item.run_once())
            self.now += self.waits[-1]

    def test_waits_as_long_as_the_work_says(self):
        self.work.side_effect = [1.0, 0.0, 0.25]
        self.run_times(3)
        self.assertEqual([1.0, 0.0, 0.25], self.waits)

    def test_the_pause_does_not_include_the_work(self):
        def work():
            self.now += 7
            return 0.5

        self.work.side_effect = work
        self.run_times(2)
        self.assertEqual([0.5, 0.5], self.waits)

    def test_only_the_leader_works(self):
        self.leadership.holds.side_effect = [False, True, False]
        self.run_times(3, self.leadership)
        self.assertEqual(1, self.work.call_count)
        self.assertEqual([periodic_tasks.RETRY_S, 0.5, periodic_tasks.RETRY_S],
                         self.waits)

    def test_a_failure_during_a_change_of_the_leader_is_no_fault(self):
        self.leadership.holds.side_effect = [True, False]

        def work():
            # It takes long, and the lock is lost meanwhile.
            self.health.leads(False)
            raise OSError('away')

        self.work.side_effect = work
        self.run_times(2, self.leadership)
        self.now += periodic_tasks.LIMIT_S
        self.assertEqual({}, self.health.report()[1]['problems'])

    def test_failures_are_retried(self):
        self.work.side_effect = [OSError('away'), OSError('away'), 0.5,
                                 OSError('away')]
        self.run_times(4)
        self.assertEqual([periodic_tasks.RETRY_S] * 2
                         + [0.5, periodic_tasks.RETRY_S], self.waits)
        self.assertEqual(2, self.logger.output.count(
            'a test failed; it is retried.'))
        self.assertEqual(1, self.logger.output.count(
            'a test still fails: away'))

    def test_stops_while_it_waits(self):
        started = threading.Event()

        def work():
            started.set()
            return 3600.0

        item = periodic_tasks.PeriodicTasks([('a test', work, None)],
                                            self.health)
        item.start()
        started.wait()
        item.stop()
        self.assertFalse(item._thread.is_alive())

    def test_stops_before_it_starts(self):
        self.make(('a test', self.work, None)).stop()
