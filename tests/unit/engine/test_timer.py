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
"""Work that says itself when it is next due."""

import threading
from unittest import mock

import fixtures
import testtools

from nova_preempt.engine import health
from nova_preempt.engine import timer


class TestPunctual(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.leadership = mock.Mock()
        self.waits = []
        self.work = mock.Mock(return_value=0.5)

    def run_times(self, times, leadership=None, **to_health):
        """Let it go round so often, without waiting."""
        item = timer.TimedTask('a test', self.work, leadership, **to_health)
        item._stop = mock.Mock()
        item._stop.is_set.side_effect = [False] * times + [True]
        item._stop.wait.side_effect = self.waits.append
        item._run()

    def test_waits_as_long_as_the_work_says(self):
        self.work.side_effect = [1.0, 0.0, 0.25]
        self.run_times(3)
        self.assertEqual([1.0, 0.0, 0.25], self.waits)

    def test_only_the_engine_that_acts(self):
        self.leadership.holds.side_effect = [False, True, False]
        self.run_times(3, self.leadership)
        self.assertEqual(1, self.work.call_count)
        self.assertEqual([timer.RETRY_S, 0.5, timer.RETRY_S],
                         self.waits)

    def test_what_failed_while_another_took_over(self):
        """Of an engine that does not act it is no fault any more."""
        now = 0.0
        well = health.Health(lambda: now)
        self.leadership.holds.side_effect = [True, False]

        def work():
            # It takes long, and the lock is lost meanwhile.
            well.leads(False)
            raise OSError('away')

        self.work.side_effect = work
        self.run_times(2, self.leadership, run=well.run, skip=well.skip)
        now += health.LIMIT_S
        self.assertEqual({}, well.report()[1]['problems'])

    def test_failures_are_tried_again(self):
        self.work.side_effect = [OSError('away'), OSError('away'), 0.5,
                                 OSError('away')]
        self.run_times(4)
        self.assertEqual([timer.RETRY_S] * 2 + [0.5, timer.RETRY_S],
                         self.waits)
        self.assertEqual(2, self.logger.output.count(
            'a test failed; it is tried again.'))
        self.assertEqual(1, self.logger.output.count(
            'a test still fails: away'))

    def test_stops_while_it_waits(self):
        started = threading.Event()

        def work():
            started.set()
            return 3600.0

        item = timer.TimedTask('a test', work)
        item.start()
        started.wait()
        item.stop()
        self.assertFalse(item._thread.is_alive())

    def test_stops_before_it_starts(self):
        timer.TimedTask('a test', self.work).stop()
