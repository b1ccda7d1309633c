# SPDX-License-Identifier: Apache-2.0
"""Tests of the tasks of an exploration."""

import random
import unittest

from nova_preempt.engine import periodic_tasks
from tests.exploration import tasks


class TestMistakes(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.loop = tasks.Loop(random.Random(1))
        self.process = tasks.Process('engine0')

    def test_a_task_fails_as_the_cloud_has_failed(self):
        def fail():
            raise OSError('no answer')

        self.loop.start(self.process, 'ends', fail)
        self.loop.start(self.process, 'heartbeat',
                        lambda: self.loop.sleep(10))
        self.loop.run(self.loop.now_s + 1)
        self.assertEqual([], self.loop.mistakes)

    def test_a_mistake_ends_the_exploration(self):
        self.loop.start(self.process, 'ends', lambda: {}['server'])
        with self.assertRaises(KeyError):
            self.loop.run(self.loop.now_s + 1)

    def test_a_mistake_that_the_engine_would_log(self):
        health = periodic_tasks.TaskHealth()
        run = tasks.noting(self.loop, health.run)
        with self.assertRaises(AttributeError):
            run('ends', lambda: None.uuid)
        self.assertIsInstance(self.loop.mistakes[0], AttributeError)
