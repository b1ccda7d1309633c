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
"""When each task is done, and what a failing one does to the others."""

from unittest import mock

import fixtures
import testtools

from nova_preempt.engine import health
from nova_preempt.engine import rounds


class TestRounds(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.leadership = mock.Mock()
        self.leadership.holds.return_value = True
        self.now = 1000.0
        self.done = []
        self.rounds = self.make((self.fail_always, 0), (self.often, 0),
                                (self.seldom, 60))

    def make(self, *tasks):
        self.health = health.Health(lambda: self.now)
        return rounds.Rounds(tasks, 3600, self.leadership, self.health,
                             lambda: self.now)

    def fail_always(self):
        self.done.append('fail')
        raise ValueError('no service')

    def often(self):
        self.done.append('often')

    def seldom(self):
        self.done.append('seldom')

    def run_once(self):
        self.done = []
        self.rounds.run_once()
        return self.done

    def test_a_failing_task_does_not_stop_others(self):
        self.assertEqual(['fail', 'often', 'seldom'], self.run_once())
        self.assertIn('TestRounds.fail_always failed', self.logger.output)
        self.assertEqual(['fail', 'often'], self.run_once())

    def test_each_at_its_time(self):
        self.run_once()
        self.now += 59
        self.assertEqual(['fail', 'often'], self.run_once())
        self.now += 1
        self.assertEqual(['fail', 'often', 'seldom'], self.run_once())
        self.assertEqual(['fail', 'often'], self.run_once())

    def test_others_act(self):
        self.leadership.holds.return_value = False
        self.assertEqual([], self.run_once())

    def test_others_act_from_the_middle_of_a_round(self):
        """As one whose task has waited for a minute."""
        self.leadership.holds.side_effect = [True, False, True]
        self.assertEqual(['fail'], self.run_once())

    def test_others_act_after_a_failure(self):
        self.run_once()
        self.now += health.LIMIT_S
        self.assertFalse(self.health.report()[0])
        self.leadership.holds.return_value = False
        self.run_once()
        self.assertTrue(self.health.report()[0])

    def test_it_stops(self):
        self.rounds = self.make((self.stop, 0))
        self.rounds.run()
        self.assertEqual(['stop'], self.done)

    def stop(self):
        self.done.append('stop')
        self.rounds.stop()
