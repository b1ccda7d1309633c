# SPDX-License-Identifier: Apache-2.0
"""Tests of the health of an engine's tasks."""

import json
import urllib.error
import urllib.request

import testtools

from nova_preempt import metrics
from nova_preempt.engine import periodic_tasks


class TestHealth(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.health = periodic_tasks.TaskHealth(lambda: self.now,
                                                lambda: 1e9 + self.now)

    def fail(self, name='task'):
        self.assertRaises(ZeroDivisionError, self.health.run, name,
                          lambda: 1 / 0)

    def test_a_task_that_succeeds(self):
        self.health.leads(True)
        self.now += 5
        self.assertEqual(7, self.health.run('task', lambda: 7))
        self.assertEqual((True, {'acts': True, 'problems': {},
                                 'last_done': {'task': 1e9 + 5}}),
                         self.health.report())
        self.assertEqual(1e9 + 5, metrics.ENGINE_DONE.labels(
            'task')._value.get())

    def test_a_task_that_waits_is_healthy(self):
        self.health.run('task', lambda: None)
        self.now += 10 * periodic_tasks.LIMIT_S
        self.assertTrue(self.health.report()[0])

    def test_a_single_failure_is_no_problem_yet(self):
        self.health.run('task', lambda: None)
        for _ in range(9):
            self.fail()
            self.now += periodic_tasks.LIMIT_S / 10
            self.assertTrue(self.health.report()[0])
        self.now += periodic_tasks.LIMIT_S / 10
        self.fail()
        self.assertEqual(
            {'task': 'has failed for 300 s: division by zero'},
            self.health.report()[1]['problems'])
        self.health.run('task', lambda: None)
        self.assertTrue(self.health.report()[0])

    def test_a_rare_task_has_the_same_limit(self):
        self.health.run('task', lambda: None)
        self.now += 10 * periodic_tasks.LIMIT_S
        self.fail()
        self.assertTrue(self.health.report()[0])
        self.now += periodic_tasks.LIMIT_S
        self.assertEqual(
            {'task': 'has failed for 300 s: division by zero'},
            self.health.report()[1]['problems'])

    def test_a_failure_is_cleared_when_another_engine_leads(self):
        """Otherwise this engine would be unhealthy until it leads again."""
        self.health.skip('task')
        self.fail()
        self.fail('of each engine')
        self.now += periodic_tasks.LIMIT_S
        self.health.skip('task')
        self.assertEqual(['of each engine'],
                         list(self.health.report()[1]['problems']))

    def test_a_task_that_hangs_is_a_problem(self):
        def work():
            self.now += periodic_tasks.LIMIT_S
            return self.health.report()

        is_well, told = self.health.run('task', work)
        self.assertFalse(is_well)
        self.assertEqual({'task': 'has not come back for 300 s'},
                         told['problems'])

    def test_healthcheck_is_served(self):
        server, thread = metrics.prometheus_client.start_http_server(
            0, '127.0.0.1')
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        server.set_app(metrics._with_health(server.get_app(),
                                            self.health.report))
        url = f'http://127.0.0.1:{server.server_port}'
        with urllib.request.urlopen(f'{url}/healthcheck') as answer:
            self.assertFalse(json.load(answer)['acts'])
        with urllib.request.urlopen(f'{url}/metrics') as answer:
            self.assertIn(b'nova_preempt_engine_acts', answer.read())
        self.fail()
        self.now += periodic_tasks.LIMIT_S
        error = self.assertRaises(urllib.error.HTTPError,
                                  urllib.request.urlopen,
                                  f'{url}/healthcheck')
        self.assertEqual(503, error.code)
        error.close()
